/// @file commands.hpp  The nine commands of the program and their options. Each returns the exit status.
///
/// A struct of options declares them to a command line, in the order of its help: `c` is the class Command of
/// main.cpp.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "options.hpp"

namespace lm {

/// Declares the options of the cache and of dynamic evaluation: one value of each, or with `several` lists of those
/// to try. The defaults in the help text are those of NeuralCacheOptions and of Adaptation, and the lists of tune.cpp.
template <class Command, class O> void declare_adaptation(Command& c, O& o, bool several) {
    const auto some = [&](const char* name, auto& value, const std::string& help, const char* one,
                          const char* list) {
        if (several) c.list(name, value, help + ", or several [" + list + "]");
        else c.option(name, value, help + " [" + one + "]");
    };
    some("--cache-window", o.cache_window, "steps that the cache remembers", "2000",
         "2000; one with --dynamic");
    some("--cache-flatness", o.cache_flatness, "theta of the cache, 0 or more", "0.3",
         "0 0.05 0.1 0.2 0.3 0.4 0.6 0.8 1");
    some("--cache-weight", o.cache_weight, "lambda of the cache in the mixture, 0 to 1", "0.1",
         "0 0.02 0.05 0.1 0.15 0.2 0.3 0.4");
    c.choice("--dynamic", o.dynamic, "adapt the weights to the text, by this rule",
             {"sgd", "rms", "riemannian"});
    some("--dynamic-rate", o.dynamic_rate, "its learning rate",
         "sgd 0.5, rms 5e-05, riemannian 1e-05, each times steps / 5",
         "a quarter, half, once and twice that of evaluate");
    some("--dynamic-decay", o.dynamic_decay, "share by which weights return to the trained ones, 0 to 1",
         "sgd 0.001, rms and riemannian 0.002, each times steps / 5, at most 1", "that of evaluate");
    c.option("--dynamic-table-rate", o.dynamic_table_rate,
             "riemannian: learning rate of the tables, which use rms [5e-05 times steps / 5]");
    c.option("--dynamic-steps", o.dynamic_steps,
             "steps of a segment, after which the weights are updated [5]");
    c.option("--dynamic-text", o.dynamic_text,
             "training text, or some of it, for the gradient statistics of --dynamic rms and riemannian");
}

/// Options of `evaluate`; for those of --cache and --dynamic an empty optional means the default.
struct EvaluateOptions {
    std::string model, text, precision = "fp32";
    ig::Index columns = 1;
    int threads = 2;
    bool cache = false;
    std::optional<ig::Index> cache_window;
    std::optional<double> cache_flatness, cache_weight;
    std::string dynamic, dynamic_text;
    std::optional<double> dynamic_rate, dynamic_decay, dynamic_table_rate;
    std::optional<ig::Index> dynamic_steps;
    std::optional<double> softmax_temperature;
    ig::Index suggest = 0;
    bool json = false;

    template <class Command> void declare(Command& c) {
        c.required("--text", text, "text file; -: standard input");
        c.value("--columns", columns, "columns processed in parallel; 1: the text in its order");
        c.value("--threads", threads, "threads");
        c.precision(precision);
        c.flag("--cache", cache, "with a neural cache of the text so far");
        declare_adaptation(c, *this, false);
        c.option("--softmax-temperature", softmax_temperature,
                 "the logits are divided by it; `tune` finds the best [1]");
        c.value("--suggest", suggest,
                "count the keystrokes of typing the text where so many words are suggested; 0: do not");
        c.portable();
        c.json(json);
    }
};

/// Options of `tune`: lists of values to try; an empty list means the default.
struct TuneOptions {
    std::string model, text;
    int threads = 2;
    std::vector<ig::Index> cache_window;
    std::vector<double> cache_flatness, cache_weight;
    std::string dynamic, dynamic_text;
    std::vector<double> dynamic_rate, dynamic_decay;
    std::optional<double> dynamic_table_rate;
    std::optional<ig::Index> dynamic_steps;
    ig::Index columns = 1;
    bool softmax_temperature = false;
    bool json = false;

    template <class Command> void declare(Command& c) {
        c.required("--text", text, "validation text; -: standard input");
        c.value("--threads", threads, "threads");
        declare_adaptation(c, *this, true);
        c.flag("--softmax-temperature", softmax_temperature,
               "find the temperature of the softmax, in place of the cache");
        c.value("--columns", columns, "as for evaluate; 1 for the cache and --dynamic");
        c.portable();
        c.json(json);
    }
};

/// Options of `sample`.
struct SampleOptions {
    std::string model, prompt;
    ig::Index length = 100;
    std::uint64_t seed = 1;
    double temperature = 1;
    bool unknowns = false;
    ig::Index top_k = 0;
    double top_p = 1;
    ig::Index samples = 1;

    template <class Command> void declare(Command& c) {
        c.value("--words,--characters", length, "length, line ends not counted");
        c.value("--seed", seed, "of the random numbers");
        c.value("--temperature", temperature,
                "below 1 more likely words, above 1 less likely ones; 0: the likeliest");
        c.option("--prompt", prompt, "beginning of a line to continue");
        c.flag("--unknowns", unknowns, "let <unk> appear");
        c.value("--top-k", top_k, "draw from this many likeliest words; 0: from all");
        c.value("--top-p", top_p,
                "draw from the likeliest words that together have this probability, above 0 and at most 1");
        c.value("--samples", samples, "number of texts, separated by empty lines");
        c.portable();
    }
};

/// Options of `complete`.
struct CompleteOptions {
    std::string model, text;
    ig::Index k = 10;
    bool json = false;

    template <class Command> void declare(Command& c) {
        c.required("--text", text, "beginning of a line; -: each line of standard input");
        c.value("--k", k, "how many words");
        c.portable();
        c.json(json);
    }
};

/// Options of `score`.
struct ScoreOptions {
    std::string model, text = "-", sort, precision = "fp32";
    ig::Index batch = 64;
    int threads = 2;
    bool json = false;

    template <class Command> void declare(Command& c) {
        c.value("--text", text, "file of lines; -: standard input");
        c.choice("--sort", sort, "likeliest line first, by its total or by its mean over tokens",
                 {"total", "mean"});
        c.value("--batch", batch, "lines processed in parallel");
        c.value("--threads", threads, "threads");
        c.precision(precision);
        c.portable();
        c.json(json);
    }
};

/// Options of `neighbours`.
struct NeighbourOptions {
    std::string model;
    std::vector<std::string> words;
    ig::Index k = 10;
    std::string export_to, format = "word2vec-text";
    bool overwrite = false, json = false;

    template <class Command> void declare(Command& c) {
        c.list("--word", words, "word, or several");
        c.value("--k", k, "how many");
        c.option("--export", export_to, "write all word vectors to this file");
        c.json(json);
        c.flag("--overwrite", overwrite, "even if a file of that name exists");
        c.choice("--format", format, "of that file", {"word2vec-text", "word2vec-binary", "glove"});
    }
};

/// Options of `compare`.
struct CompareOptions {
    std::string model, against, text, csv;
    std::vector<std::string> words;
    std::optional<ig::Index> neighbours, frequent,
        likeliest;  // if empty 10, or all words of a smaller vocabulary
    ig::Index show = 4, context = 10, columns = 20;
    int threads = 2;

    template <class Command> void declare(Command& c) {
        c.required("--against", against, "the second model, of the same vocabulary");
        c.required("--text", text, "text file; -: standard input");
        c.option("--neighbours", neighbours, "nearest words of a target [10, or all there are]");
        c.option("--frequent", frequent, "most frequent words [10, or all there are]");
        c.list("--word", words, "a word to be listed by itself, or several");
        c.value("--show", show, "positions shown of each kind");
        c.value("--context", context, "words shown before each");
        c.option("--likeliest", likeliest, "predictions shown of each [10, or all there are]");
        c.value("--columns", columns, "columns processed in parallel");
        c.option("--csv", csv, "write a row for each position to this file");
        c.value("--threads", threads, "threads");
        c.portable();
    }
};

/// Options of `convert`.
struct ConvertOptions {
    std::string model, to, store;

    template <class Command> void declare(Command& c) {
        c.required("--to", to, "file to write");
        c.choice(
             "--store", store,
             "type of its matrices: fp32; bf16, half the bytes; int8 with a scale for each row, a quarter",
             {"fp32", "bf16", "int8"})
            ->required();
    }
};

struct Row;  // log.hpp

/// `named`: the options given on the command line. `on_epoch` is called with the results of every epoch, once it is saved.
int train(const Options& given, const std::set<std::string>& named,
          const std::function<void(const Row&)>& on_epoch = {});
int evaluate(const EvaluateOptions& o);
int tune(const TuneOptions& o);
int sample(const SampleOptions& o);
int complete(const CompleteOptions& o);
int score(const ScoreOptions& o);
int neighbours(const NeighbourOptions& o);
int compare(const CompareOptions& o);
int convert(const ConvertOptions& o);

}  // namespace lm
