/// @file evaluation/neural_cache_perplexity.hpp  The perplexity of a graph with a neural cache, and the best cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/evaluation/evaluate.hpp>
#include <isogloss/evaluation/neural_cache.hpp>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace detail {

/// -log p of the mixture of NeuralCache, given the model's nats -log p_model and p_cache. Infinite if λ = 1 and
/// p_cache = 0.
inline double mixed_nats(double nats, double cache, double weight) {
    if (weight == 0) return nats;
    if (cache == 0) return nats - std::log1p(-weight);
    return -std::log((1 - weight) * std::exp(-nats) + weight * cache);
}

}  // namespace detail

/// A setting of a neural cache, and the perplexity of a text under it.
struct NeuralCacheTrial {
    double flatness = 0, weight = 0;  ///< θ and λ
    Perplexity perplexity;
};

/// Perplexities for every θ of one list with every λ of another, from one pass over a text of one column:
/// forward passes of a graph are added in order, for instance in a loop of your own. p_cache is computed once
/// for each θ.
///
/// Errors   UsageError: lists that are empty or hold numbers out of range, more than one column, targets that are not
///          as many as those of the last pass, a loss that is more than a cross-entropy. NumericError: a word of
///          probability 0 (λ = 1); those of NeuralCache
template <class T> class NeuralCacheTrials {
public:
    /// For hidden states of `width` numbers and the window N of the cache.
    NeuralCacheTrials(Index width, Index window, std::vector<double> flatness, std::vector<double> weights)
        : cache_(width, {.window = window}), flatness_(std::move(flatness)) {
        if (flatness_.empty() || weights.empty())
            throw UsageError("neural cache: expected at least one flatness and one weight");
        for (const double theta : flatness_)
            for (const double lambda : weights) {
                require_neural_cache({.window = window, .flatness = theta, .weight = lambda});
                trials_.push_back({theta, lambda, {}});
            }
        mixed_.resize(trials_.size());
    }

    /// Counts the last forward pass, which was for the CrossEntropy `l`: `h` is the input of its head
    /// (`g.head(o).hidden()`), `targets` [T, 1] are those fed to `l`. Targets of -1 are skipped. If it throws, the words
    /// before the one in question are counted in all trials, the others in none.
    void add(Graph<T>& g, Loss<T> l, Seq<T> h, TokenBlock targets) {
        if (g.result(l).nats() != g.result(l).cross_entropy())
            throw UsageError("neural cache: the loss is no CrossEntropy; give one over the same logits");
        const auto nats = g.result(l).by_token();
        if (targets.batch != 1 || nats.shape(1) != 1 || targets.time != static_cast<Index>(nats.size()))
            throw UsageError("neural cache: found targets [", targets.time, ", ", targets.batch,
                             "], expected those of the last pass, in one column");
        const auto states = g.value(h);
        const std::size_t weights = trials_.size() / flatness_.size();
        for (Index first = 0, end; first < targets.time; first = end) {
            end = first;
            while (end < targets.time && targets.data[end] != not_predicted) ++end;
            const MatrixRef<const T> run(states.data() + first * h.width, end - first, h.width);
            cache_.follow(run, targets.data + first, flatness_, [&](Index r, std::span<const double> p) {
                const double model = nats.data()[first + r];
                for (std::size_t k = 0; k < trials_.size(); ++k) {
                    const auto& trial = trials_[k];
                    const double mixed = mixed_[k] =
                        p.empty() ? model : detail::mixed_nats(model, p[k / weights], trial.weight);
                    if (std::isinf(mixed))
                        throw NumericError("neural cache: found probability 0 of the word ",
                                           targets.data[first + r], ", with weight 1");
                }
                for (std::size_t k = 0; k < trials_.size(); ++k) trials_[k].perplexity.add(mixed_[k], 1);
            });
            if (end < targets.time) ++end;
        }
    }

    /// All trials, in the order of the lists: by flatness, then by weight.
    const std::vector<NeuralCacheTrial>& all() const { return trials_; }
    /// The trial of lowest perplexity, the first of several; UsageError before anything was counted.
    const NeuralCacheTrial& best() const {
        trials_.front().perplexity.value();  // throws; min_element compares nothing if there is one trial
        return *std::min_element(trials_.begin(), trials_.end(), [](const auto& a, const auto& b) {
            return a.perplexity.value() < b.perplexity.value();
        });
    }

private:
    NeuralCache<T> cache_;
    std::vector<double> flatness_;
    std::vector<NeuralCacheTrial> trials_;
    std::vector<double> mixed_;  // nats of a word in each trial
};

/// The perplexities of a text under a graph with neural caches of one window, see NeuralCacheTrials, within an
/// Evaluation: from zero states and an empty cache, and with mode and states restored. Choose θ and λ on a
/// validation text:
///
///     const auto trials = evaluate_neural_cache(g, l, g.head(o).hidden(), x, y, batches, 2000, {0.1, 0.3}, {0.05, 0.1});
///     const double theta = trials.best().flatness, lambda = trials.best().weight;
///
/// `l` is a CrossEntropy, `h` the input of its head, `batches` have one column. `go_on(done, all)` is called
/// after each batch; if it returns false, the rest is skipped. Errors of NeuralCacheTrials and of Graph::forward.
template <class T, class GoOn = NoCallback>
NeuralCacheTrials<T> evaluate_neural_cache(Graph<T>& g, Loss<T> l, Seq<T> h, Tokens x, Tokens y,
                                           text::Batches batches, Index window, std::vector<double> flatness,
                                           std::vector<double> weights, GoOn&& go_on = {}) {
    NeuralCacheTrials<T> trials(h.width, window, std::move(flatness), std::move(weights));
    detail::for_each_pass(g, l, x, y, batches, [&](const text::Batch& batch) {
        trials.add(g, l, h, batch.target);
        return go_on(batch.index + 1, batches.count());
    });
    return trials;
}

/// The perplexity of a text under a graph with one neural cache; see above.
template <class T> Perplexity evaluate_neural_cache(Graph<T>& g, Loss<T> l, Seq<T> h, Tokens x, Tokens y,
                                                    text::Batches batches,
                                                    const NeuralCacheOptions& options) {
    return evaluate_neural_cache(g, l, h, x, y, std::move(batches), options.window, {options.flatness},
                                 {options.weight})
        .best()
        .perplexity;
}

}}  // namespace isogloss
