/// @file main.cpp  The command line of language_model: train, evaluate, tune, sample, complete, score, neighbours,
/// compare, convert.
#include <CLI/CLI.hpp>
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

/// Adds every option of the trainer to its command line.
void add_train(CLI::App& app, lm::Options& o) {
    each_option(
        o, [&]<class V>(const std::string& name, V& value, lm::Kind, const char* help, const auto& choices) {
            if constexpr (std::is_same_v<V, bool>) {
                app.add_flag("--" + name, value, help);
            } else {
                auto* option = add_value(app, "--" + name, value, help);
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

/// Adds the options of the cache and of dynamic evaluation to a command line; `several` ends the help text of
/// those that take a list.
template <class O> void add_adaptation(CLI::App& app, O& o, const std::string& several) {
    const auto list = [&](const char* name, auto& value, const std::string& help) {
        auto* option = app.add_option(name, value, help + several);
        if (!several.empty()) option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    app.add_option("--cache-window", o.cache_window, "steps that the cache remembers [2000]");
    list("--cache-flatness", o.cache_flatness, "theta of the cache, 0 or more");
    list("--cache-weight", o.cache_weight, "lambda of the cache in the mixture, 0 to 1");
    app.add_option("--dynamic", o.dynamic, "adapt the weights to the text, by this rule")
        ->check(CLI::IsMember({"sgd", "rms", "riemannian"}));
    list("--dynamic-rate", o.dynamic_rate, "its learning rate");
    list("--dynamic-decay", o.dynamic_decay, "share by which weights return to the trained ones, 0 to 1");
    app.add_option("--dynamic-table-rate", o.dynamic_table_rate,
                   "riemannian: learning rate of the tables, which use rms [5e-05]");
    app.add_option("--dynamic-steps", o.dynamic_steps,
                   "steps of a segment, after which the weights are updated [5]");
    app.add_option(
        "--dynamic-text", o.dynamic_text,
        "training text, or some of it, for the gradient statistics of --dynamic rms and riemannian");
}

/// Adds the options of a mixture to a command line.
template <class O> void add_mixture(CLI::App& app, O& o) {
    const auto list = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    list("--mix-with", o.mix_with, "another model of the same vocabulary, or several, mixed in");
    list("--mix-probabilities", o.mix_probabilities,
         "file of the probabilities of the text's tokens by another program, mixed in, or several");
    if constexpr (requires { o.mix_weight; })
        list("--mix-weight", o.mix_weight,
             "weights of those models, then of those files, 0 to 1; the model has the rest");
}

int work(int argc, char** argv) {
    CLI::App app("Neural language models: training, perplexity, sampling, scores, word vectors.");
    app.require_subcommand(1);
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    const auto add_json = [](CLI::App* command, bool& json) {
        command->add_flag("--json", json, "for programs: results as JSON, one object per line");
    };
    const auto add_precision = [](CLI::App* command, std::string& precision) {
        command
            ->add_option("--precision", precision,
                         "of the matrix products: fp32, or weights rounded to bf16 or int8")
            ->check(CLI::IsMember({"fp32", "bf16", "int8"}))
            ->capture_default_str();
    };
    const auto with_model = [](CLI::App* command, std::string& model) {
        command->add_option("--model", model, "a file that `train` wrote")->required();
        return command;
    };

    lm::Options t;
    auto* train = app.add_subcommand("train", "Train a model; without texts, on the bundled one");
    add_train(*train, t);

    lm::EvaluateOptions e;
    auto* evaluate = with_model(app.add_subcommand("evaluate", "Perplexity of a text"), e.model);
    evaluate->add_option("--text", e.text, "text file; -: standard input")->required();
    evaluate->add_option("--columns", e.columns, "columns processed in parallel; 1: the text in its order")
        ->capture_default_str();
    evaluate->add_option("--threads", e.threads, "threads")->capture_default_str();
    add_precision(evaluate, e.precision);

    evaluate->add_flag("--cache", e.cache, "with a neural cache of the text so far");
    add_adaptation(*evaluate, e, "");
    evaluate->add_option("--softmax-temperature", e.softmax_temperature,
                         "the logits are divided by it; `tune` finds the best [1]");
    add_mixture(*evaluate, e);
    add_json(evaluate, e.json);

    lm::TuneOptions u;
    auto* tune =
        with_model(app.add_subcommand(
                       "tune", "Find the best cache, --dynamic, temperature or mixture on a validation text"),
                   u.model);
    tune->add_option("--text", u.text, "validation text; -: standard input")->required();
    tune->add_option("--threads", u.threads, "threads")->capture_default_str();
    add_adaptation(*tune, u, ", or several");
    tune->add_flag("--softmax-temperature", u.softmax_temperature,
                   "find the temperature of the softmax, in place of the cache");
    add_mixture(*tune, u);
    tune->add_option("--columns", u.columns, "as for evaluate; 1 for the cache and --dynamic")
        ->capture_default_str();
    add_json(tune, u.json);

    lm::SampleOptions s;
    auto* sample = with_model(app.add_subcommand("sample", "Write a text"), s.model);
    sample->add_option("--words,--characters", s.length, "length, line ends not counted")
        ->capture_default_str();
    sample->add_option("--seed", s.seed, "of the random numbers")->capture_default_str();
    sample
        ->add_option("--temperature", s.temperature,
                     "below 1 more likely words, above 1 less likely ones; 0: the likeliest")
        ->capture_default_str();
    sample->add_option("--prompt", s.prompt, "beginning of a line to continue");
    sample->add_flag("--unknowns", s.unknowns, "let <unk> appear");
    sample->add_option("--top-k", s.top_k, "draw from this many likeliest words; 0: from all")
        ->capture_default_str();
    sample
        ->add_option(
            "--top-p", s.top_p,
            "draw from the likeliest words that together have this probability, above 0 and at most 1")
        ->capture_default_str();
    sample->add_option("--samples", s.samples, "number of texts, separated by empty lines")
        ->capture_default_str();

    lm::CompleteOptions f;
    auto* complete = with_model(
        app.add_subcommand("complete", "The most probable next words, with their probabilities"), f.model);
    complete->add_option("--text", f.text, "beginning of a line; -: each line of standard input")->required();
    complete->add_option("--k", f.k, "how many words")->capture_default_str();
    add_json(complete, f.json);

    lm::ScoreOptions r;
    auto* score = with_model(
        app.add_subcommand("score", "Log probability of each line, for ranking hypotheses"), r.model);
    score->add_option("--text", r.text, "file of lines; -: standard input")->capture_default_str();
    score->add_option("--sort", r.sort, "likeliest line first, by its total or by its mean over tokens")
        ->check(CLI::IsMember({"total", "mean"}));
    score->add_option("--batch", r.batch, "lines processed in parallel")->capture_default_str();
    score->add_option("--threads", r.threads, "threads")->capture_default_str();
    add_precision(score, r.precision);
    add_json(score, r.json);

    lm::NeighbourOptions n;
    auto* neighbours =
        with_model(app.add_subcommand("neighbours", "Nearest words by the cosine of their vectors"), n.model);
    neighbours->add_option("--word", n.words, "word, or several")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    neighbours->add_option("--k", n.k, "how many")->capture_default_str();
    neighbours->add_option("--export", n.export_to, "write all word vectors to this file");
    add_json(neighbours, n.json);
    neighbours->add_flag("--overwrite", n.overwrite, "even if a file of that name exists");
    neighbours->add_option("--format", n.format, "of that file")
        ->check(CLI::IsMember({"word2vec-text", "word2vec-binary", "glove"}))
        ->capture_default_str();

    lm::CompareOptions c;
    auto* compare =
        with_model(app.add_subcommand("compare", "Where the predictions of two models differ"), c.model);
    compare->add_option("--against", c.against, "the second model, of the same vocabulary")->required();
    compare->add_option("--text", c.text, "text file; -: standard input")->required();
    compare->add_option("--neighbours", c.neighbours, "nearest words of a target")->capture_default_str();
    compare->add_option("--frequent", c.frequent, "most frequent words")->capture_default_str();
    compare->add_option("--word", c.words, "a word to be listed by itself, or several")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    compare->add_option("--show", c.show, "positions shown of each kind")->capture_default_str();
    compare->add_option("--context", c.context, "words shown before each")->capture_default_str();
    compare->add_option("--likeliest", c.likeliest, "predictions shown of each")->capture_default_str();
    compare->add_option("--columns", c.columns, "columns processed in parallel")->capture_default_str();
    compare->add_option("--csv", c.csv, "write a row for each position to this file");
    compare->add_option("--threads", c.threads, "threads")->capture_default_str();

    lm::ConvertOptions v;
    auto* convert = with_model(app.add_subcommand("convert", "The same model in a smaller file"), v.model);
    convert->add_option("--to", v.to, "file to write")->required();
    convert
        ->add_option(
            "--store", v.store,
            "type of its matrices: fp32; bf16, half the bytes; int8 with a scale for each row, a quarter")
        ->check(CLI::IsMember({"fp32", "bf16", "int8"}))
        ->required();

    if (const auto end = program::parse(app, argc, argv)) return *end;
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
