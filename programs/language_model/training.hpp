/// @file training.hpp  A training: its texts, its model, its state on the disk, and its loop.
#pragma once

#include <array>
#include <functional>
#include <isogloss/distributed/data_parallel.hpp>
#include <isogloss/geometry/subspace_monitor.hpp>
#include <isogloss/io.hpp>
#include <optional>
#include <string>

#include "../shared/ranks.hpp"
#include "commands.hpp"
#include "health.hpp"
#include "log.hpp"
#include "measure.hpp"
#include "model_file.hpp"
#include "progress.hpp"
#include "system_start.hpp"
#include "texts.hpp"
#include "updates.hpp"
#include "vectors.hpp"

namespace lm {

using program::Ranks;

/// The state of a training, as stored in its checkpoint.
struct State {
    std::uint64_t epoch = 1, batch = 0;                     ///< the next batch
    double nats = 0, tokens = 0;                            ///< of the epoch so far
    double seconds = 0, cpu_seconds = 0;                    ///< of the epoch so far, over all runs
    double best = std::numeric_limits<double>::infinity();  ///< nats per token on the validation text
    std::uint64_t best_epoch = 0;
    std::string run;                                       ///< names the training in its log
    std::string vocabulary;                                ///< as text
    std::uint64_t train_checksum = 0, valid_checksum = 0;  ///< of the token streams
};

/// Start values that a new training reads, apart from a model.
struct StartValues {
    std::optional<ig::io::WordVectors> vectors;  ///< of the file that options.vectors names
    std::optional<System> system;                ///< of the file that options.start names
};

/// A complete training run. FILE holds the best model; FILE.train, written every --checkpoint-every batches,
/// after every epoch and on Ctrl-C, holds all that is needed to continue bit for bit. Several ranks share the
/// columns of every batch; all have the same position and parameters, and the first writes the files.
class Training {
public:
    using OnEpoch = std::function<void(const Row&)>;

    /// `from`: the FILE.train to resume from. `start`: for a new training.
    Training(Ranks& ranks, const Options& options, const ig::io::Safetensors* from, const StartValues& start);

    /// Trains; returns the exit status: 0, 3 if the training has run away, in perplexity or to numbers that are
    /// not finite, or that of the signal that interrupted it, 130 after Ctrl-C. `on_epoch`: see train().
    int run(const OnEpoch& on_epoch);

private:
    ig::text::Vocabulary make_vocabulary(const ig::io::Safetensors* from, const StartValues& start) const;
    ig::text::Corpus read_train();
    void start(const StartValues& values);
    void require_same_texts() const;
    void introduce();
    bool run_epoch();
    bool finish_epoch(const OnEpoch& on_epoch);
    int finish_run();
    int interrupted();
    int diverged(const std::string& error);
    Stop stop() const {
        return stop_of(o_, state_.epoch, state_.best_epoch, state_.best, health_.validation,
                       vocabulary_.size());
    }
    void explain(Stop why);
    std::string without_best() const;
    struct Sums {
        double loss, nats, tokens;  // of the text: the loss, its cross-entropy, predicted tokens
        bool interrupted;           // some rank received a signal to end
    };
    Sums gradients(const ig::text::Batch& batch);
    using GoOn = std::function<bool(ig::Index done, ig::Index all)>;
    std::optional<ig::Perplexity> perplexity(const ig::text::Corpus& corpus, const GoOn& go_on);
    double rate_of(const ig::text::Batch& batch, double done) const;
    void require_finite();
    void save();

    Ranks& ranks_;
    Options o_;
    Texts texts_;
    ig::text::Vocabulary vocabulary_;
    ig::text::Corpus train_, valid_;
    std::optional<ig::text::Corpus> test_;
    Graph g_;
    Model model_;
    ig::distributed::DataParallel<float, Ranks> parallel_;
    Update update_;
    std::optional<ig::WeightDrop<float>> drop_;
    Schedule schedule_;
    State state_;
    Health health_;
    double waited_ = 0;    // seconds that ranks waited in earlier epochs
    std::string started_;  // the line to print on word vectors from a file
    ig::io::Checkpoint checkpoint_, best_;
    std::optional<Log> log_;
    std::optional<ig::SubspaceMonitor<float>> subspace_;  // on the first rank, with --subspace
    bool stepped_ = false;  // whether the parameters are no longer the start values
};

}  // namespace lm
