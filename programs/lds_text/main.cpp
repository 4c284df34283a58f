/// @file main.cpp  The command line of lds_text: count, fit, embed, inspect, near, tag, rnn, start, plot.
#include <CLI/CLI.hpp>
#include <functional>
#include <isogloss/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../shared/program.hpp"
#include "../shared/ranks.hpp"
#include "commands.hpp"

namespace {

/// The commands of the program, of which a call names one.
class Commands {
public:
    explicit Commands(CLI::App& app) : app_(app) {}

    /// Adds a command that may run on several ranks, which share the cores.
    template <class Command>
    void add_on_ranks(const char* name, const char* help, Command& options, int (*work)(const Command&)) {
        CLI::App* const app = add(name, help, options);
        runs_.emplace_back(app, [app, &options, work] {
            if (program::Ranks::launched() && app->count("--threads") == 0) options.threads = 1;
            options.require_effect(*app);
            return work(options);
        });
    }
    /// Adds a command of one process.
    template <class Command>
    void add_alone(const char* name, const char* help, Command& options, int (*work)(const Command&)) {
        CLI::App* const app = add(name, help, options);
        runs_.emplace_back(app, [app, &options, work] {
            program::require_alone(app->get_name(), "count and fit");
            if constexpr (requires { options.require_effect(*app); }) options.require_effect(*app);
            return work(options);
        });
    }
    /// Runs the command that the call names.
    int run() const {
        for (const auto& [app, command] : runs_)
            if (app->parsed()) return command();
        return 1;  // not reached: the command line requires one
    }

private:
    template <class Command> CLI::App* add(const char* name, const char* help, Command& options) {
        CLI::App* const app = app_.add_subcommand(name, help);
        options.declare(*app);
        return app;
    }

    CLI::App& app_;
    std::vector<std::pair<const CLI::App*, std::function<int()>>> runs_;
};

int work(int argc, char** argv) {
    CLI::App app(
        "Linear dynamical systems for text: counts, fitting, embeddings of tokens and words, tagging.");
    app.require_subcommand(1);
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);

    lt::CountCommand count;
    lt::FitCommand fit;
    lt::EmbedCommand embed;
    lt::InspectCommand inspect;
    lt::NearCommand near;
    lt::TagCommand tag;
    lt::RnnCommand rnn;
    lt::StartCommand start;
    lt::PlotCommand plot;
    Commands commands(app);
    commands.add_on_ranks("count", "Count lagged co-occurrences of a text or a shard of it, or add counts",
                          count, lt::count);
    commands.add_on_ranks("fit", "Fit a system: subspace identification, then EM", fit, lt::fit);
    commands.add_alone("embed", "Write vectors of tokens in their context, and of words", embed, lt::embed);
    commands.add_alone("inspect", "Print the spectrum, and what leads to what", inspect, lt::inspect);
    commands.add_alone("near", "Print the nearest neighbours of words, or of tokens in their context", near,
                       lt::near);
    commands.add_alone("tag",
                       "Train and test a tagger that sees one vector per word, or the words themselves", tag,
                       lt::tag);
    commands.add_alone("rnn", "Train a recurrent language model, from a system or from random numbers", rnn,
                       lt::rnn);
    commands.add_alone("start", "Write a model that `language_model train --start-from` begins with", start,
                       lt::start);
    commands.add_alone("plot", "Draw curves of `fit` or `rnn` from their logs, or spectra of systems", plot,
                       lt::plot);

    if (const auto end = program::parse(app, argc, argv)) return *end;
    return commands.run();
}

}  // namespace

int main(int argc, char** argv) { return program::run(argc, argv, work, "a system of this size"); }
