// The command line.
#pragma once

#include <isogloss/kernel/activation.hpp>
#include <string>

#include "tasks.hpp"

struct Options {
    std::string task = "alphabet", network = "glnn", metric = "rbpm", form = "quasi_diagonal",
                activation = "tanh";
    tasks::Options source;
    tasks::Index units = 20, edges = 3;
    tasks::Index length = 100000, lines = 0;                     // of the training text
    tasks::Index validation_length = 0, longest_validation = 0;  // 0: as in training
    tasks::Index fewest_training_bits = 0;                       // xor; 0: as in validation
    double seconds = 60;
    tasks::Index starts = 1;  // networks that share the time
    std::uint64_t seed = 1;
    double start_rate = 0, up = 1.1, down = 2, damping = 1, longest = 0;
    bool conjugate = false;
    tasks::Index doublings = 0;
    double adam_rate = 0.003, natural_rate = 0.01, natural_damping = 0.01;
    tasks::Index columns = 16, steps = 50;  // of minibatches
    tasks::Index sample = 0;
    std::string csv, write;
    bool overwrite = false;

    const tasks::Task& named_task() const { return tasks::named(task); }
    isogloss::Activation named_activation() const {
        return activation == "logistic" ? isogloss::Activation::logistic : isogloss::Activation::tanh;
    }
};
