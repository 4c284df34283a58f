/// @file mixing.hpp  The temperature and the mixture given on a command line.
#pragma once

#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adaptation.hpp"
#include "mixture.hpp"
#include "predictions.hpp"
#include "report.hpp"

namespace lm {

/// Whether options of `evaluate` or of `tune` specify a mixture.
template <class O> bool is_mixed(const O& o) { return !o.mix_with.empty() || !o.mix_probabilities.empty(); }

/// Throws UsageError if a temperature or a mixture is combined with the cache or --dynamic.
template <class O> void require_not_adaptive(const O& o, bool cache, bool tempered) {
    if (!(tempered || is_mixed(o)) || !(cache || !o.dynamic.empty())) return;
    throw ig::UsageError(ig::message(
        tempered              ? "--softmax-temperature"
        : !o.mix_with.empty() ? "--mix-with"
                              : "--mix-probabilities",
        " is given with ", cache ? "the cache" : "--dynamic",
        ", expected one of the two: a model that follows the text is not mixed; leave one of them out"));
}

/// Throws UsageError unless every component but the model has a weight ≥ 0 and these sum to at most 1.
/// Returns the weights of all components, that of the model first.
template <class O> std::vector<double> all_weights(const O& o) {
    const std::size_t others = o.mix_with.size() + o.mix_probabilities.size();
    if (o.mix_weight.size() != others)
        throw ig::UsageError(ig::message(
            "--mix-weight has ", counted(std::ssize(o.mix_weight), "number"), ", expected ", others,
            ", one for each --mix-with and then each --mix-probabilities; `tune` "
            "finds them on a validation text"));
    std::vector<double> weights = {1};
    for (const double w : o.mix_weight) {
        ig::require("evaluate", "--mix-weight", w, 0, 1);
        weights.push_back(w);
        weights.front() -= w;
    }
    if (weights.front() < -1e-9)
        throw ig::UsageError(ig::message("--mix-weight: the weights sum to ", exact(1 - weights.front()),
                                         ", expected at most 1: the model has the rest"));
    weights.front() = std::max(0., weights.front());
    return weights;
}

/// -log p of every token of a text by each file of --mix-probabilities.
using Probabilities = std::vector<std::vector<double>>;

/// Those of the options. Checks the models of --mix-with, too, so that what is wrong is said before the passes over
/// the text.
template <class O>
Probabilities read_mixed(const O& o, const ig::text::Vocabulary& vocabulary, const ig::text::Corpus& corpus) {
    for (const auto& path : o.mix_with)
        require_same_vocabulary("--mix-with '" + path + "'", vocabulary, read_model(path).vocabulary);
    Probabilities found;
    for (const auto& path : o.mix_probabilities)
        found.push_back(read_probabilities(path, corpus.size(), corpus.source()));
    return found;
}

/// The model, with -log p of every token in `own`, and the components mixed with it on a text: models, in the
/// precision of `packed` as in build_model(), and the files that read_mixed() has read.
template <class O, class GoOn> Mixture mixture_of(const O& o, const LoadedModel& it, std::vector<double> own,
                                                  Probabilities probabilities, const ig::text::Corpus& corpus,
                                                  GoOn&& go_on, std::optional<ig::Precision> packed = {}) {
    Mixture mixture;
    mixture.add(o.model, std::move(own));
    for (const auto& path : o.mix_with) {
        auto file = read_model(path);
        require_same_vocabulary("--mix-with '" + path + "'", it.vocabulary, file.vocabulary);
        const Extent size = extent_of(corpus.size(), o.columns, file.options.bptt);
        auto other = build_model(std::move(file), size, packed);
        mixture.add(path, token_nats(other, corpus, size.columns, 1, go_on));
    }
    for (std::size_t k = 0; k < probabilities.size(); ++k)
        mixture.add(o.mix_probabilities[k], std::move(probabilities[k]));
    return mixture;
}

/// Adds the printed form of a mixture, and its components as values.
inline void report_mixture(Report& to, const Mixture& mixture, const std::vector<double>& weights) {
    to.values["mixture"] = Json::array();
    for (std::size_t k = 0; k < mixture.size(); ++k) {
        to.line(ig::message(k == 0 ? "mixture     " : "            ", exact(weights[k]), " of '",
                            mixture.name(k), "', by itself perplexity ", fixed(mixture.alone(k), 2)));
        to.values["mixture"].push_back(
            {{"name", mixture.name(k)}, {"weight", weights[k]}, {"perplexity", mixture.alone(k)}});
    }
}

}  // namespace lm
