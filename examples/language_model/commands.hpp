/// @file commands.hpp  The nine commands of the program. Each returns the exit status.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "options.hpp"

namespace lm {

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
    std::vector<std::string> mix_with, mix_probabilities;
    std::vector<double> mix_weight;
    bool json = false;
};

/// Options of `tune`: lists of values to try; an empty list means the default.
struct TuneOptions {
    std::string model, text;
    int threads = 2;
    std::optional<ig::Index> cache_window;
    std::vector<double> cache_flatness, cache_weight;
    std::string dynamic, dynamic_text;
    std::vector<double> dynamic_rate, dynamic_decay;
    std::optional<double> dynamic_table_rate;
    std::optional<ig::Index> dynamic_steps;
    ig::Index columns = 1;
    bool softmax_temperature = false;
    std::vector<std::string> mix_with, mix_probabilities;
    bool json = false;
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
};

/// Options of `complete`.
struct CompleteOptions {
    std::string model, text;
    ig::Index k = 10;
    bool json = false;
};

/// Options of `score`.
struct ScoreOptions {
    std::string model, text = "-", sort, precision = "fp32";
    ig::Index batch = 64;
    int threads = 2;
    bool json = false;
};

/// Options of `neighbours`.
struct NeighbourOptions {
    std::string model;
    std::vector<std::string> words;
    ig::Index k = 10;
    std::string export_to, format = "word2vec-text";
    bool overwrite = false, json = false;
};

/// Options of `compare`.
struct CompareOptions {
    std::string model, against, text, csv;
    std::vector<std::string> words;
    ig::Index neighbours = 10, frequent = 10, likeliest = 10, show = 4, context = 10, columns = 20;
    int threads = 2;
};

/// Options of `convert`.
struct ConvertOptions {
    std::string model, to, store;
};

/// `named`: the options given on the command line.
int train(const Options& given, const std::set<std::string>& named);
int evaluate(const EvaluateOptions& o);
int tune(const TuneOptions& o);
int sample(const SampleOptions& o);
int complete(const CompleteOptions& o);
int score(const ScoreOptions& o);
int neighbours(const NeighbourOptions& o);
int compare(const CompareOptions& o);
int convert(const ConvertOptions& o);

}  // namespace lm
