/// @file evaluation/neural_cache.hpp  A continuous cache: recent words, weighted by the similarity of their contexts.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <isogloss/types.hpp>
#include <span>

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
/// states are rows of numbers. For a text under a graph see neural_cache_perplexity.hpp.
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
            for (const Index j : found_) of_word += std::exp(double(scale * (z[j] - most)));
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

}}  // namespace isogloss
