// The options of the program. Those that define a model and its training are listed once, for the command
// line and for the file that a training resumes from.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <isogloss/kernel/activation.hpp>
#include <isogloss/update/riemannian/metric.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tasks.hpp"

inline constexpr tasks::Index most_cuts = 8;      // full batches: ways in which a text is cut into columns
inline constexpr tasks::Index most_halvings = 7;  // minibatches: of all rates, to less than a hundredth

struct Options {
    // of the model: stored with it
    std::string task = "alphabet", network = "glnn", training = "minibatch", metric = "ruop", form = "auto",
                activation = "tanh", level = "task";
    tasks::Options source;
    tasks::Index units = 20, edges = 3;
    double bound = -1, pull = 0;
    tasks::Index length = 100000, lines = 0;                     // of the training text
    tasks::Index validation_length = 0, longest_validation = 0;  // 0: as in training
    tasks::Index fewest_training_bits = 0;                       // xor; 0: as in validation
    tasks::Index min_count = 0;
    std::uint64_t seed = 1;
    tasks::Index start = 0;      // which of --starts
    tasks::Index doublings = 0;  // full batches: of the training text, still to come
    // What training changed when it went back to its best moment. Full batches: which cut of the text into columns
    // is trained on, below most_cuts; minibatches: how often the rates were halved, at most most_halvings.
    tasks::Index cut = 0;
    double start_rate = 0, up = 1.1, down = 2, damping = 1, slowest = 0;
    bool conjugate = false, portable = false;
    double adam_rate = 0.003, sgd_rate = 0, natural_rate = 0, head_rate = 0, natural_damping = 0,
           decay = 0.98, floor = -1, average = 0;
    tasks::Index columns = 0, steps = 50, lasting = 4;

    std::string changed;    // options of the texts that differ from those of the loaded model
    std::string text_hash;  // of the training text, if that is given; of files

    // of a call
    double seconds = 60, anneal = 0.3;
    tasks::Index rounds = 0, starts = 1, sample = 0;
    std::string text, valid, save, load, csv, curve, write;
    std::vector<std::string> beside;
    bool chars = false, words = false, overwrite = false, json = false;

    // Of graph, start values and readers; `seed` alone is that of the texts.
    std::uint64_t network_seed() const { return seed + 1000 * static_cast<std::uint64_t>(start); }
    const tasks::Task& named_task() const { return tasks::named(task); }
    // The bound of V. On minibatches states are carried over more steps than gradients flow, and a unit cut
    // off by s' = 0 stays so.
    double named_bound() const { return bound >= 0 ? bound : training == "full" ? 0 : 4; }
    bool sparse() const { return network != "lstm" && network != "hmm"; }
    bool full_batches() const { return sparse() && training == "full"; }
    isogloss::Activation named_activation() const {
        return activation == "logistic" ? isogloss::Activation::logistic : isogloss::Activation::tanh;
    }
    isogloss::UnitModulus named_modulus() const {
        return metric == "rbpm" ? isogloss::UnitModulus::rbpm : isogloss::UnitModulus::ruop;
    }
    double named_rate() const { return natural_rate > 0 ? natural_rate : sparse() ? 0.1 : 0.01; }
    double named_floor() const { return floor >= 0 ? floor : sparse() ? 0.1 : 1e-5; }
    isogloss::MetricForm named_form() const {
        using isogloss::MetricForm;
        if (form == "auto" && sparse()) return isogloss::form_on_graph(MetricForm::automatic, edges, 1);
        return form == "full"       ? MetricForm::full
               : form == "diagonal" ? MetricForm::diagonal
                                    : MetricForm::quasi_diagonal;
    }
    // The training method, in words.
    std::string method(tasks::Index columns_of_text) const {
        if (network == "hmm") return "Baum-Welch";
        const auto form_name = named_form() == isogloss::MetricForm::full       ? "full"
                               : named_form() == isogloss::MetricForm::diagonal ? "diagonal"
                                                                                : "quasi_diagonal";
        return isogloss::message(
            full_batches() ? "full batches" : isogloss::message("minibatches of ", steps, " steps"), " in ",
            columns_of_text, columns_of_text == 1 ? " column" : " columns", ", metric ", metric,
            metric != "gradient" ? isogloss::message(", form ", form_name)
            : full_batches()     ? std::string()
                                 : std::string(sgd_rate > 0 ? " (descent)" : " (Adam)"));
    }
};

// Calls f(name, member, help) for each option stored with a model.
template <class O, class F> void each_stored(O& o, F&& f) {
    f("--task", o.task, "source of the texts: alphabet, xor, music, anbn, reber, dyck, copy");
    f("--network", o.network, "glnn, gnn, leaky, rnn (on a sparse graph), lstm, hmm");
    f("--training", o.training,
      "glnn, gnn, leaky, rnn: minibatch, or full: the whole text with a line search");
    f("--metric", o.metric, "ruop, rbpm; gradient: none, with Adam on minibatches");
    f("--form", o.form,
      "of the metric: full, quasi_diagonal, diagonal; auto: full on graphs of up to 5 edges");
    f("--activation", o.activation, "tanh, logistic");
    f("--units", o.units, "units, or states of the hmm");
    f("--edges", o.edges, "edges that leave each unit, its loop among them");
    f("--bound", o.bound,
      "glnn, gnn, leaky, rnn: V stays within ± this; 0: no bound; -1: 4 on minibatches, none on full "
      "batches");
    f("--pull", o.pull,
      "glnn, gnn, leaky, rnn: this times the sum of V² is added to the loss of every position");
    f("--length", o.length, "symbols of the training text");
    f("--lines", o.lines, "lines (rounds) of the training text; 0: as many as the length takes");
    f("--validation-length", o.validation_length,
      "symbols of the validation text; 0: --length, also where --lines sets the training text");
    f("--min-count", o.min_count, "--text: rarer symbols count as unknown; 0: 2 for words, 1 for characters");
    f("--seed", o.seed, "of texts, graph and start values");
    f("--insert-digits", o.source.insert_digits, "alphabet: p1");
    f("--insert-capitals", o.source.insert_capitals, "alphabet: p2");
    f("--bits", o.source.bits, "xor: bits in a line");
    f("--training-bits-from", o.fewest_training_bits,
      "xor: lines of the training text have from this many to --bits bits; 0: all have --bits");
    f("--answer-only", o.source.answer_only, "xor: only the answer is predicted");
    f("--shortest", o.source.shortest, "anbn: least n");
    f("--longest", o.source.longest, "anbn: greatest n");
    f("--depth", o.source.depth, "dyck: most open brackets");
    f("--lag", o.source.lag, "copy: symbols back");
    f("--noise", o.source.noise, "copy: probability of any symbol instead");
    f("--validation-longest", o.longest_validation,
      "anbn: validate on n from --longest to this too; 0: do not");
    f("--columns", o.columns,
      "columns that the text is cut into, each read from the start values on; 0: 16, on full batches no "
      "more than a third of the lines that the source draws");
    f("--steps", o.steps, "minibatches: steps of a segment");
    f("--lasting", o.lasting,
      "minibatches: where a column begins, one that has read so far takes the start values once in so many "
      "times");
    f("--adam-rate", o.adam_rate, "minibatches, gradient: learning rate; also of an lstm's input table");
    f("--sgd-rate", o.sgd_rate,
      "minibatches, gradient: learning rate of plain gradient descent in place of Adam; 0: Adam");
    f("--natural-rate", o.natural_rate,
      "minibatches, ruop or rbpm: learning rate; 0: 0.1 on graphs, 0.01 for lstm");
    f("--head-rate", o.head_rate,
      "minibatches, ruop or rbpm: learning rate of the softmax; 0: --natural-rate, on graphs 3 times that");
    f("--natural-damping", o.natural_damping,
      "minibatches, ruop or rbpm: damping, of the mean diagonal; 0: 0.001 on graphs, 0.01 for lstm");
    f("--natural-floor", o.floor,
      "minibatches, ruop or rbpm: what is added to the diagonal too; -1: 0.1 on graphs, 1e-5 for lstm");
    f("--decay", o.decay, "minibatches, ruop or rbpm, on graphs: of the metric's average");
    f("--average", o.average,
      "minibatches: predict with the running average of the weights over the rounds, of this decay, such as "
      "0.999; 0: with the weights themselves");
    f("--start-rate", o.start_rate, "full batches: first learning rate; 0: 1/units");
    f("--up", o.up, "full batches: factor of a rate after an accepted step");
    f("--down", o.down, "full batches: divisor of a rate after a cancelled step");
    f("--damping", o.damping, "full batches: of the metric's diagonal");
    f("--slowest", o.slowest, "slowest time scale at the start, geometric from 1; 0: 1, 2, ..., units");
    f("--conjugate", o.conjugate, "full batches: conjugate directions of the metric");
    f("--portable", o.portable, "a model of the same bytes on every processor, given --rounds");
}

// Options for how a task draws its texts: without meaning for a given text.
inline const std::vector<const char*> task_options = {"--task",
                                                      "--length",
                                                      "--lines",
                                                      "--validation-length",
                                                      "--insert-digits",
                                                      "--bits",
                                                      "--shortest",
                                                      "--insert-capitals",
                                                      "--training-bits-from",
                                                      "--validation-longest",
                                                      "--answer-only",
                                                      "--longest",
                                                      "--depth",
                                                      "--lag",
                                                      "--noise"};

// The error in stored options, from the command line or from a file; empty if there is none.
inline std::string fault(const Options& o) {
    using isogloss::message;
    const auto one_of = [](std::string_view name, const std::string& value,
                           std::initializer_list<std::string_view> known) {
        std::string names;
        for (const auto k : known) names += (names.empty() ? "" : ", ") + std::string(k);
        return std::find(known.begin(), known.end(), value) != known.end()
                   ? std::string()
                   : message(name, " is '", value, "', expected one of ", names);
    };
    tasks::named(o.task);
    for (const std::string& wrong :
         {one_of("--network", o.network, {"glnn", "gnn", "leaky", "rnn", "lstm", "hmm"}),
          one_of("--training", o.training, {"minibatch", "full"}),
          one_of("--metric", o.metric, {"ruop", "rbpm", "gradient"}),
          one_of("--form", o.form, {"auto", "full", "quasi_diagonal", "diagonal"}),
          one_of("--activation", o.activation, {"tanh", "logistic"}),
          one_of("the level of the text", o.level, {"task", "chars", "words"})})
        if (!wrong.empty()) return wrong;
    const auto within = [](tasks::Index v, tasks::Index least,
                           tasks::Index greatest = tasks::Index{1} << 31) {
        return v >= least && v <= greatest;
    };
    const auto sound = [](double v) { return v >= 0 && std::isfinite(v); };
    for (const auto& [name, value] :
         {std::pair("--pull", o.pull), std::pair("--slowest", o.slowest),
          std::pair("--start-rate", o.start_rate), std::pair("--adam-rate", o.adam_rate),
          std::pair("--sgd-rate", o.sgd_rate), std::pair("--natural-rate", o.natural_rate),
          std::pair("--head-rate", o.head_rate), std::pair("--natural-damping", o.natural_damping)})
        if (!sound(value)) return message(name, " is ", value, ", expected a finite number of at least 0");
    if (!(o.average >= 0 && o.average <= 1))
        return message("--average is ", o.average, ", expected a number in [0, 1]");
    for (const auto& [name, value] : {std::pair("--bound", o.bound), std::pair("--natural-floor", o.floor)})
        if (!sound(value) && value != -1)
            return message(name, " is ", value,
                           ", expected a finite number of at least 0, or -1 for the default");
    if (!within(o.units, 1) || !within(o.edges, 1) || !within(o.columns, 0) || !within(o.steps, 1) ||
        !within(o.lasting, 1) || !within(o.min_count, 0))
        return message("found units = ", o.units, ", edges = ", o.edges, ", columns = ", o.columns,
                       ", steps = ", o.steps, ", lasting = ", o.lasting, ", min count = ", o.min_count,
                       "; expected columns and min count ≥ 0, the others ≥ 1, and all at most 2^31");
    if (!within(o.length, 2, tasks::longest_text) || !within(o.lines, 0, tasks::longest_text) ||
        !within(o.validation_length, 0, tasks::longest_text))
        return message("found length = ", o.length, ", lines = ", o.lines,
                       ", validation length = ", o.validation_length,
                       "; expected length ≥ 2, the others ≥ 0, and all at most ", tasks::longest_text);
    if (o.longest_validation < 0)
        return message("--validation-longest is ", o.longest_validation, ", expected at least 0");
    const tasks::Index last_cut = o.full_batches() ? most_cuts - 1 : most_halvings;
    if (!within(o.start, 0, 999) || !within(o.doublings, 0, 20) || !within(o.cut, 0, last_cut))
        return message("found start = ", o.start, ", doublings = ", o.doublings, ", cut = ", o.cut,
                       "; expected 0 to 999, 0 to 20 and 0 to ", last_cut);
    return {};
}
