/// @file lds/text_pairs.hpp  Products with the co-occurrences of a text without storing them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/counts/lag_counts.hpp>
#include <isogloss/matrix_ref.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// The matrices N_k of LagCounts as operators: Y = N_k X adds row i_{t-k} of X to row i_t of Y for every position
/// t of the text. Memory is X, Y and sums of some columns, whatever the length of the text.
///
///     TextPairs pairs(corpus.tokens(), V, {.lags = 7});      // the tokens may lie in a mapped file
///     LagMoments<float> moments(pairs);                      // in place of counts
///     subspace_identification(moments, …);
///
/// A product reads the text once for every 64 columns, and N_k has the same entries as with counts; sums are in
/// double, rounded once.
///
/// Cost     T l additions per product with l columns, against nnz(N_k) l for counts: slower if pairs repeat
/// Memory   n, and during a product V · 64 doubles on each thread
/// Options  lags and boundary of CountOptions; the tokens must outlive this object, and a temporary vector of them is
///          refused at compile time
/// Errors   UsageError: options out of range. DataError: a token outside the vocabulary.
/// Source   Halko, Martinsson, Tropp 2011, section 1.3: a randomised SVD needs only products with the matrix.
class TextPairs {
public:
    /// Counts the words and finds the longest sentence: reads the text once.
    TextPairs(ArrayView<const Token> tokens, Index vocabulary, counts::CountOptions options = {})
        : tokens_(tokens), options_(options) {
        const char* who = "TextPairs";
        require(who, "vocabulary", vocabulary, 1, std::numeric_limits<std::int32_t>::max());
        require(who, "lags", options.lags, 1, 1000);
        require(who, "boundary", Index{options.boundary}, -1, vocabulary - 1);
        within_memory(who, bytes_of(who, {vocabulary}, sizeof(std::int64_t)),
                      [&] { occurrences_.assign(vocabulary, 0); });
        Index begin = 0;
        for (Index t = 0; t < std::ssize(tokens); ++t) {
            const Token w = tokens[t];
            counts::detail::require_word(who, t, w, vocabulary, "its own vocabulary");
            ++occurrences_[w];
            farthest_ = std::max(farthest_, t - begin);
            if (w == options.boundary) begin = t + 1;
        }
    }

    // It would be gone before the first product.
    TextPairs(const std::vector<Token>&&, Index, counts::CountOptions = {}) = delete;

    Index vocabulary() const { return std::ssize(occurrences_); }            ///< V
    Index lags() const { return options_.lags; }                             ///< r
    std::int64_t tokens() const { return std::ssize(tokens_); }              ///< T
    const counts::CountOptions& options() const { return options_; }         ///< as given
    const Array<std::int64_t>& occurrences() const { return occurrences_; }  ///< n, by word
    /// Whether any two words are k apart, within a sentence if there is a boundary.
    bool has_pairs(Index k) const { return k <= farthest_; }

    /// Rows first … last-1 of N_k x, or of N_kᵀ x, into y [last - first, l]; x [V, l]. x and y are distinct
    /// blocks, neither of them transposed. On threads() threads that each take some columns: the result does not
    /// depend on their number.
    template <bool transpose, class T>
    void product(Index k, MatrixRef<const T> x, Index first, Index last, MatrixRef<T> y) const {
        constexpr Index width = 64;  // columns summed at a time, so that much of their sums stays in cache
        const Index blocks = (x.cols + width - 1) / width, teams = piece_count(blocks, 1, blocks),
                    numbers = (last - first) * std::min(width, x.cols);
        Array<Array<double>> sums(teams);
        within_memory("TextPairs", 8 * teams * numbers, [&] {
            for (auto& s : sums) s.resize(numbers);
        });
        parallel(blocks, 1, teams, [&](Index begin, Index end, Index piece) {
            double* const sum = sums[piece].data();
            for (Index block = begin; block < end; ++block) {
                const Index left = block * width, n = std::min(width, x.cols - left);
                std::fill_n(sum, (last - first) * n, 0.0);
                each_pair(k, [&](Token later, Token earlier) {
                    const Index row = (transpose ? earlier : later) - first;
                    if (row < 0 || row >= last - first) return;
                    const T* __restrict from = x.row(transpose ? later : earlier) + left;
                    double* __restrict to = sum + row * n;
                    for (Index c = 0; c < n; ++c) to[c] += static_cast<double>(from[c]);
                });
                for (Index i = 0; i < last - first; ++i)
                    for (Index c = 0; c < n; ++c) y.row(i)[left + c] = static_cast<T>(sum[i * n + c]);
            }
        });
    }

private:
    // Calls f(i_t, i_{t-k}) for every pair at distance k within a sentence.
    template <class F> void each_pair(Index k, F&& f) const {
        const Index T = std::ssize(tokens_);
        Index begin = 0;  // of the sentence
        for (Index t = 0; t < T; ++t) {
            if (t - k >= begin) f(tokens_[t], tokens_[t - k]);
            if (tokens_[t] == options_.boundary) begin = t + 1;
        }
    }

    ArrayView<const Token> tokens_;
    counts::CountOptions options_;
    Array<std::int64_t> occurrences_;
    Index farthest_ = 0;  // largest k with a pair
};

}}}  // namespace isogloss::lds
