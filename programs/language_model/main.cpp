/// @file main.cpp  The command line of language_model: train, evaluate, tune, sample, complete, score, neighbours,
/// compare, convert.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cassert>
#include <charconv>

#include "../shared/program.hpp"
#include "../shared/ranks.hpp"
#include "commands.hpp"

namespace {

namespace ig = isogloss;

/// An option of one value.
template <class V>
CLI::Option* add_value(CLI::App& app, const std::string& name, V& value, const std::string& help) {
    return app.add_option(name, value, help);
}
/// An option of comma-separated numbers: a list of CLI11 would take all that follow on the command line.
CLI::Option* add_value(CLI::App& app, const std::string& name, std::vector<ig::Index>& value,
                       const std::string& help) {
    const auto read = [&value, name](const std::string& list) {
        value.clear();
        for (const char *at = list.data(), *end = at + list.size();; ++at) {
            const auto found = std::from_chars(at, end, value.emplace_back());
            if (found.ec != std::errc{} || (found.ptr != end && *found.ptr != ','))
                throw CLI::ConversionError(name + " is '" + list + "', expected numbers separated by commas");
            if ((at = found.ptr) == end) return;
        }
    };
    std::string now;
    for (const auto n : value) now += (now.empty() ? "" : ",") + std::to_string(n);
    return app.add_option_function<std::string>(name, read, help)->type_name("INT,...")->default_str(now);
}

/// The headings of `train --help` and their options; those below the first few are shown by --help-all.
constexpr std::size_t in_brief = 4;
const std::vector<std::pair<std::string, std::set<std::string>>> headings = {
    {"Text", {"train", "valid", "test", "corpus", "level", "min-count"}},
    {"Model", {"preset", "cell", "layers", "units", "keep"}},
    {"Training", {"epochs", "patience", "rate", "batch", "seed", "threads"}},
    {"Files", {"model", "log", "resume", "overwrite", "verbose"}},
    {"Further on the text", {"max-vocabulary", "train-tokens", "vocabulary"}},
    {"Further on the model",
     {"embedding", "depth", "rounds", "rank", "edges", "bound", "head", "head-bias", "unit-rows", "init"}},
    {"Dropout and penalties",
     {"keep-input", "keep-between", "keep-state", "keep-output", "keep-words", "keep-weights", "scheme", "ar",
      "tar"}},
    {"Loss", {"loss", "gamma", "alpha", "beta", "temperature", "target", "adversarial"}},
    {"Update",
     {"update", "clip", "weight-decay", "damping", "floor", "head-rate", "table-rate", "two-tailed"}},
    {"Schedule of the rate", {"schedule", "decay-from", "decay", "warm-up"}},
    {"Batches", {"bptt", "random-bptt", "shuffle", "shards"}},
    {"Starting points", {"start", "start-from", "vectors", "freeze"}},
    {"Further on the training",
     {"precision", "portable", "epsilon", "runaway", "checkpoint-every", "subspace"}}};
const std::string& heading_of(const std::string& option) {
    const auto found =
        std::ranges::find_if(headings, [&](const auto& h) { return h.second.contains(option); });
    assert(found != headings.end());
    return found->first;
}

/// Adds every option of the trainer to its command line.
void add_train(CLI::App& app, lm::Options& o) {
    each_option(
        o, [&]<class V>(const std::string& name, V& value, lm::Kind, const char* help, const auto& choices) {
            if constexpr (std::is_same_v<V, bool>) {
                app.add_flag("--" + name, value, help)->group(heading_of(name));
            } else {
                auto* option = add_value(app, "--" + name, value, help)->group(heading_of(name));
                if constexpr (!lm::is_optional<V> && !lm::is_list<V> && !std::is_same_v<V, std::string>)
                    option->capture_default_str();
                if constexpr (std::is_same_v<V, std::string>) {
                    if (!value.empty()) option->capture_default_str();
                    if (!choices.empty()) option->check(CLI::IsMember(choices));
                }
            }
        });
    app.get_option("--model")->required();
}

/// A command to which a struct of commands.hpp declares its options.
class Command {
public:
    explicit Command(CLI::App* app) : app_(app) {}

    /// An option that must be given.
    template <class V> void required(const char* name, V& value, const std::string& help) {
        app_->add_option(name, value, help)->required();
    }
    /// An option whose default is shown.
    template <class V> void value(const char* name, V& value, const std::string& help) {
        app_->add_option(name, value, help)->capture_default_str();
    }
    /// An option without a default to show.
    template <class V> void option(const char* name, V& value, const std::string& help) {
        app_->add_option(name, value, help);
    }
    /// An option of several values, which may also be given several times.
    template <class V> void list(const char* name, V& value, const std::string& help) {
        app_->add_option(name, value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    void flag(const char* name, bool& value, const char* help) { app_->add_flag(name, value, help); }
    /// An option of some values, with its default if it has one.
    CLI::Option* choice(const char* name, std::string& value, const char* help,
                        const std::vector<std::string>& values) {
        auto* option = app_->add_option(name, value, help)->check(CLI::IsMember(values));
        return value.empty() ? option : option->capture_default_str();
    }

    void portable() { program::add_portable(*app_); }
    void json(bool& value) { flag("--json", value, "for programs: results as JSON, one object per line"); }
    void precision(std::string& value) {
        choice("--precision", value, "of the matrix products: fp32, or weights rounded to bf16 or int8",
               {"fp32", "bf16", "int8"});
    }

private:
    CLI::App* app_;
};

/// Adds a command that reads a model, with its options, to a program.
template <class O> CLI::App* add(CLI::App& app, const char* name, const char* help, O& o) {
    auto* it = app.add_subcommand(name, help);
    it->add_option("--model", o.model, "a file that `train` wrote")->required();
    Command command(it);
    o.declare(command);
    return it;
}

int work(int argc, char** argv) {
    CLI::App app("Neural language models: training, perplexity, sampling, scores, word vectors.");
    app.require_subcommand(1);
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);

    lm::Options t;
    auto* train = app.add_subcommand("train", "Train a model; without texts, on the bundled one");
    add_train(*train, t);
    lm::EvaluateOptions e;
    auto* evaluate = add(app, "evaluate", "Perplexity of a text", e);
    lm::TuneOptions u;
    auto* tune = add(app, "tune", "Find the best cache, --dynamic or temperature on a validation text", u);
    lm::SampleOptions s;
    auto* sample = add(app, "sample", "Write a text", s);
    lm::CompleteOptions f;
    auto* complete = add(app, "complete", "The most probable next words, with their probabilities", f);
    lm::ScoreOptions r;
    auto* score = add(app, "score", "Log probability of each line, for ranking hypotheses", r);
    lm::NeighbourOptions n;
    auto* neighbours = add(app, "neighbours", "Nearest words by the cosine of their vectors", n);
    lm::CompareOptions c;
    add(app, "compare", "Where the predictions of two models differ", c);
    lm::ConvertOptions v;
    auto* convert = add(app, "convert", "The same model in a smaller file", v);

    std::vector<std::string> first;
    for (std::size_t i = 0; i < in_brief; ++i) first.push_back(headings[i].first);
    if (const auto end = program::parse(app, argc, argv, first)) return *end;
    if (*train) {
        std::set<std::string> named;
        for (const auto* option : train->get_options())
            if (option->count() > 0) named.insert(option->get_single_name());
        return lm::train(t, named);
    }
    program::require_alone(app.get_subcommands().front()->get_name(), "train");
    if (*evaluate) return lm::evaluate(e);
    if (*tune) return lm::tune(u);
    if (*sample) return lm::sample(s);
    if (*complete) return lm::complete(f);
    if (*score) return lm::score(r);
    if (*neighbours) return lm::neighbours(n);
    if (*convert) return lm::convert(v);
    return lm::compare(c);
}

}  // namespace

int main(int argc, char** argv) { return program::run(argc, argv, work, "a model of this size"); }
