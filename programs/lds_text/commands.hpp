/// @file commands.hpp  The nine commands of the program, each with its options. Each returns the exit status.
#pragma once

#include <cstdint>
#include <isogloss/types.hpp>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}
namespace program {
class Ranks;
}

namespace lt {

namespace ig = isogloss;

// Of the members, declare() adds the options to a command line, and require_effect() throws UsageError for an
// option that was given and has no effect with the others.

/// Options of `count`.
struct CountCommand {
    std::string vocabulary_from, vocabulary_to, tokens_to, counts, shard = "1/1", memory, spill;
    std::vector<std::string> text, add;
    ig::Index vocabulary = 0, lags = 7;
    std::int64_t min_count = 1;
    bool sentences = false, resume = false, overwrite = false;
    int threads = 2;

    void declare(CLI::App& command);
    void require_effect(const CLI::App& command) const;
};

/// Options of `fit`. Lists of more than one value require `select`; an empty list means the default.
struct FitCommand {
    std::vector<std::string> train, dev;
    std::string counts, model, log, vocabulary_from;
    std::vector<ig::Index> states, ssid_lags;
    std::vector<double> pseudo_counts;
    std::optional<ig::Index> vocabulary, em_lags;
    ig::Index iterations = 20,
              shards = 0;  ///< 0: as in the file to resume from, or as many as the ranks need
    double stop = 0, checkpoint_seconds = 30;
    std::optional<std::uint64_t> seed;
    bool sentences = false, random_start = false, scaled = false, select = false, resume = false,
         matrix_free = false, fixed_noise = false;
    bool go_on =
        false;  ///< --resume was given, whether or not there is a model: subspace identification may be under way
    int threads = 2;

    void declare(CLI::App& command);
    void require_effect(const CLI::App& command) const;
};

/// Options of `embed`.
struct EmbedCommand {
    std::string model, out, states = "smoother", types;
    std::vector<std::string> text;
    bool overwrite = false;
    int threads = 2;

    void declare(CLI::App& command);
    void require_effect(const CLI::App& command) const;
};

/// Options of `inspect`.
struct InspectCommand {
    std::string model;
    ig::Index pairs = 10, words = 6;
    double min_count = 50;
    bool json = false;

    void declare(CLI::App& command);
};

/// Options of `near`.
struct NearCommand {
    std::string model;
    std::vector<std::string> text, words;
    ig::Index count = 8, occurrences = 5;
    double min_count = 50;
    int threads = 2;
    bool json = false;

    void declare(CLI::App& command);
    void require_effect(const CLI::App& command) const;
};

/// Options of `tag`.
struct TagCommand {
    std::string model, vectors, states = "smoother", train, dev, test, format = "conllu", predictions,
                                against, features = "vectors";
    ig::Index units = 25, epochs = 15, window = 0, batch = 32, min_count = 1, majority = 0;
    std::optional<double> rate;
    bool overwrite = false, json = false;
    std::uint64_t seed = 1;
    int threads = 2;

    void declare(CLI::App& command);
    void require_effect(const CLI::App& command) const;
};

/// Options of `rnn`.
struct RnnCommand {
    std::vector<std::string> train, valid, test;
    std::string model, vocabulary_from, save, log;
    std::optional<ig::Index> vocabulary, units;
    ig::Index epochs = 20, batch = 20, bptt = 20, checkpoint_every = 500;
    double rate = 0.1, clip = 5, rms = 0.3, gain = 1, power = 0, init = 0.1, decay = 0.5, epsilon = 0;
    bool resume = false, overwrite = false, tied = false;
    std::uint64_t seed = 1;
    int threads = 2;

    void declare(CLI::App& command);
    void require_effect(const CLI::App& command) const;
};

/// Options of `start`.
struct StartCommand {
    std::string model, out, cell = "rnn";
    double rms = 0.3, gain = 1, power = 0, init = 0.1;
    std::uint64_t seed = 1;

    void declare(CLI::App& command);
    void require_effect(const CLI::App& command) const;
};

/// Options of `plot`.
struct PlotCommand {
    std::vector<std::string> logs, systems, names;
    std::string svg = "lds.svg";

    void declare(CLI::App& command);
};

int count(const CountCommand& o);
int count_within(const CountCommand& o, ig::Index memory, program::Ranks& ranks);  ///< `count --memory`
int fit(const FitCommand& o);
int embed(const EmbedCommand& o);
int inspect(const InspectCommand& o);
int near(const NearCommand& o);
int tag(const TagCommand& o);
int rnn(const RnnCommand& o);
int start(const StartCommand& o);
int plot(const PlotCommand& o);

}  // namespace lt
