/// @file evaluation/neural_cache.hpp  A continuous cache: recent words, weighted by the similarity of their contexts.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/array.hpp>
#include <isogloss/elementary.hpp>
#include <isogloss/error.hpp>
#include <isogloss/evaluation/evaluate.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of NeuralCache.
struct NeuralCacheOptions {
    Index window = 2000;    ///< N ≥ 1: number of most recent steps stored
    double flatness = 0.3;  ///< θ ≥ 0; 0: relative frequencies within the window
    double weight = 0.1;    ///< λ in [0, 1] of the cache in the mixture, see evaluate_neural_cache()
};

/// Throws UsageError for a window, a flatness or a weight out of range.
inline void require_neural_cache(const NeuralCacheOptions& o) {
    require("neural cache", "window", o.window, 1);
    require("neural cache", "flatness", o.flatness, 0);
    require("neural cache", "weight", o.weight, 0, 1);
}

/// The neural cache: for a model that predicts x_{t+1} from its hidden state h_t it stores the last N pairs
/// (h_i, x_{i+1}); the more the states that a word followed resemble h_t, the more probable is the word.
///
///     p_cache(w | h_t) = Σ_i 1[x_{i+1} = w] exp(θ h_tᵀh_i) / Σ_i exp(θ h_tᵀh_i),    i = t-N … t-1
///     p(w)             = (1 - λ) p_model(w) + λ p_cache(w);    p_model(w) while the cache is empty
///
/// The largest exponent is subtracted before the exponentials. Nothing is trained, and no graph is needed:
/// states are rows of numbers. For a text under a graph see NeuralCacheTrials.
///
/// Shapes   h [n]: the input of the model's head; words 0 … 2³¹ - 1
/// Memory   N (n + 131) numbers in float, allocated by the constructor; afterwards only follow() allocates, when its
///          list of θ is longer than any before
/// Options  see NeuralCacheOptions
/// Errors   UsageError: options or sizes out of range, a negative word to store, a probability from an empty cache.
///          NumericError: a state, or θ times a product of two, that is not finite, once it is compared
/// Source   Grave, Joulin, Usunier 2017, "Improving neural language models with a continuous cache",
///          equations (2) and (3).
template <class T> class NeuralCache {
public:
    /// For states of `width` numbers, n ≥ 1.
    NeuralCache(Index width, NeuralCacheOptions options) : width_(width), options_(options) {
        require("neural cache", "width", width, 1);
        require_neural_cache(options);
        const Index N = options.window, rows = std::min(N, most_rows);
        const Index bytes = bytes_of("neural cache", {N, width + rows + 3}, sizeof(T));
        within_memory("neural cache", bytes, [&] {
            states_.resize(N * width);
            scores_.resize(N * rows);
            among_.resize(rows * rows);
            words_.resize(N);
            found_.reserve(N);
        });
    }

    Index width() const { return width_; }                          ///< n
    Index size() const { return size_; }                            ///< pairs stored, 0 … N
    const NeuralCacheOptions& options() const { return options_; }  ///< as given

    /// Empties the cache.
    void clear() { size_ = next_ = 0; }

    /// Stores that `next` followed the state h; a full cache drops the oldest pair.
    void add(const T* h, Token next) {
        check({h, 1, width_}, &next);
        remember(h, next);
    }

    /// p_cache(w | h).
    double probability(const T* h, Token w) {
        if (size_ == 0) throw UsageError("neural cache: it is empty; add() something first");
        const BlasOnOneThread blas;
        double p = 0;
        score({h, 1, width_});
        weigh(scores_.data(), size_, w, std::span(&options_.flatness, 1), &p);
        return p;
    }
    /// Processes consecutive steps of a text: calls f(r, p) for row r of the states h [S, n] in turn, p being
    /// p_cache(next[r] | h_r) for each θ in `flatness` (in place of the option) from the pairs stored before this
    /// step; then it stores the step. p is empty while the cache is. Products of states are computed for up to 128
    /// steps at once. Words below 0 are found before the first call; if f throws, the steps before that one are stored.
    template <class F>
    void follow(MatrixRef<const T> h, const Token* next, std::span<const double> flatness, F&& f) {
        check(h, next);
        const BlasOnOneThread blas;
        of_word_.resize(std::ssize(flatness));
        for (Index first = 0, rows; first < h.rows; first += rows) {
            rows = std::min({h.rows - first, most_rows, options_.window});
            const MatrixRef<const T> part = h.rows_from(first, rows);
            score(part);
            gemm<T>(T(1), part, t(part), T(0), {among_.data(), rows, rows});
            // Row r gets the products with the rows before it at their places in the ring.
            const Index start = next_;
            for (Index r = 0; r < rows; ++r) {
                T* z = scores_.data() + r * options_.window;
                for (Index s = 0; s < r; ++s) z[(start + s) % options_.window] = among_[r * rows + s];
                if (size_ > 0) weigh(z, size_, next[first + r], flatness, of_word_.data());
                f(first + r, size_ > 0 ? std::span<const double>(of_word_) : std::span<const double>());
                remember(part.row(r), next[first + r]);
            }
        }
    }

private:
    static constexpr Index most_rows = 128;  // rows of products at once

    void check(MatrixRef<const T> h, const Token* next) const {
        if (h.cols != width_ || !h.is_valid() || h.transposed ||
            std::any_of(next, next + h.rows, [](Token w) { return w < 0; }))
            throw UsageError("neural cache: found states of ", h.cols,
                             " numbers or a word below 0, expected ", width_,
                             " numbers and the next word of each");
    }

    // Products of a few states with all stored ones, into rows of N.
    void score(MatrixRef<const T> h) {
        if (size_ == 0) return;
        gemm<T>(T(1), h, t(MatrixRef<const T>(states_.data(), size_, width_)), T(0),
                {scores_.data(), h.rows, size_, options_.window});
    }

    static double finite(double sum) {
        if (!std::isfinite(sum))
            throw NumericError("neural cache: a state, or a product of two with a flatness, is not finite");
        return sum;
    }

    // p[k] = Σ_{j: words_[j] = w} exp(θ_k z_j) / Σ_j exp(θ_k z_j), j < n.
    void weigh(const T* z, Index n, Token w, std::span<const double> flatness, double* p) {
        found_.clear();
        for (Index j = 0; j < n; ++j)
            if (words_[j] == w) found_.push_back(j);
        const T most = kernel::row_max(n, z);
        for (const double theta : flatness) {
            const T scale = static_cast<T>(theta);
            const double sum = finite(kernel::exp_sum(n, z, most, scale, static_cast<T*>(nullptr)));
            double of_word = 0;
            for (const Index j : found_) of_word += kernel::elementary::exp(double(scale * (z[j] - most)));
            *p++ = std::min(1.0, of_word / sum);
        }
    }

    void remember(const T* h, Token next) {
        std::copy_n(h, width_, states_.data() + next_ * width_);
        words_[next_] = next;
        next_ = (next_ + 1) % options_.window;
        size_ = std::min(size_ + 1, options_.window);
    }

    Index width_;
    NeuralCacheOptions options_;
    Array<T> states_;            // [N, n], a ring
    Array<T> scores_;            // [128, N]: products of row r with all stored states
    Array<T> among_;             // [128, 128]: products among the rows themselves
    Array<Token> words_;         // [N]
    Array<Index> found_;         // positions of a word
    Array<double> of_word_;      // its probability under each θ
    Index size_ = 0, next_ = 0;  // pairs stored; where the next one goes
};

namespace detail {

/// -log p of the mixture of NeuralCache, given the model's nats -log p_model and p_cache. Infinite if λ = 1 and
/// p_cache = 0.
inline double mixed_nats(double nats, double cache, double weight) {
    using kernel::elementary::log;
    if (weight == 0) return nats;
    if (cache == 0) return nats - log(1 - weight);
    return -log((1 - weight) * kernel::elementary::exp(-nats) + weight * cache);
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
