/// @file lds/moments.hpp  Whitened lagged covariances of a text, as operators: sparse minus low rank.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <isogloss/counts/lag_counts.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/lds/dense.hpp>
#include <isogloss/lds/text_pairs.hpp>
#include <isogloss/lds/whitening.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// The lagged covariances Ψ_k = E[y_{t+k} y_tᵀ] of whitened words, as operators on blocks of columns.
///
///     S_k = W N_k W / T' sparse,   Π x = x - m (mᵀ x),   Ψ_k = Π S_k Π,   Ψ_0 = Π
///
/// `apply(k, x, y)` is y = Ψ_k x, `apply_transposed` y = Ψ_kᵀ x, for distinct blocks x, y [V, l]. The cost is
/// 2 nnz(N_k) l operations and O(V l), on threads() threads that each take some columns of x, so that the
/// result does not depend on their number. A call allocates a block of the size of x; several threads may use
/// one object at once.
///
/// Counts are divided by T', not T: pseudo-counts then stand for tokens that follow nothing in particular,
/// words much more frequent than κ keep their correlation n_ij / √(n_i n_j), and no correlation can exceed
/// 1. With T, all correlations would be multiplied by T'/T, and the model could predict better than perfectly.
///
/// With TextPairs in place of counts, sparse products are read off the text, storing no pair: T l operations.
///
/// Options  k = 0 … r, r the lags of the counts or of the text; these must outlive this object, and stay as they are; a
///          temporary is refused at compile time
/// Errors   UsageError for k out of range, and shapes that do not match; DataError as Whitening.
/// Source   Belanger, Kakade 2015, eqs. (13)-(17). Departure: Π on both sides instead of - m mᵀ, which is the
///          same if the margins of N_k / T' are μ; T' instead of T.
template <class T> class LagMoments {
public:
    using Scalar = T;
    explicit LagMoments(const counts::LagCounts& counts, WhiteningOptions options = {})
        : counts_(&counts), whitening_(counts.occurrences(), options) {}
    /// The same, computed from a text at each product.
    explicit LagMoments(const TextPairs& text, WhiteningOptions options = {})
        : text_(&text), whitening_(text.occurrences(), options) {}
    // These would be gone before the first product.
    explicit LagMoments(const counts::LagCounts&&, WhiteningOptions = {}) = delete;
    explicit LagMoments(const TextPairs&&, WhiteningOptions = {}) = delete;

    Index vocabulary() const { return counts_ ? counts_->vocabulary() : text_->vocabulary(); }  ///< V
    Index lags() const { return made_with().lags; }                                             ///< r
    const Whitening& whitening() const { return whitening_; }                                   ///< μ, m, w
    /// The counting options, such as the sentence boundary.
    const counts::CountOptions& made_with() const { return counts_ ? counts_->options() : text_->options(); }
    /// Stored pairs of N_k: nnz(N_k), 0 if it is computed from a text.
    Index pairs(Index k) const { return k == 0 || text_ ? 0 : counts_->lag(k).pairs(); }

    /// Number of terms of row i in the products with all N_k: the cost of the row.
    Index row_terms(Index i) const {
        if (text_) return lags() * text_->occurrences()[i];
        Index n = 0;
        for (Index k = 1; k <= lags(); ++k) n += counts_->lag(k).starts[i + 1] - counts_->lag(k).starts[i];
        return n;
    }

    /// Throws DataError unless each lag 1 … k has a pair.
    void require_pairs(Index k, const char* who) const {
        for (Index l = 1; l <= k; ++l)
            if (text_ ? !text_->has_pairs(l) : counts_->lag(l).pairs() == 0)
                throw DataError(who, ": no two words", made_with().boundary >= 0 ? " of a sentence" : "",
                                " are ", l, " apart in the text; use fewer lags or a longer text");
    }

    /// y = Ψ_k x
    void apply(Index k, MatrixRef<const T> x, MatrixRef<T> y) const { run<false>(k, x, y); }
    /// y = Ψ_kᵀ x
    void apply_transposed(Index k, MatrixRef<const T> x, MatrixRef<T> y) const { run<true>(k, x, y); }

    /// W Π x, the input of apply_rows and apply_transposed_rows.
    TallMatrix<T> weighted(MatrixRef<const T> x) const {
        assert(x.rows == vocabulary() && !x.transposed);
        TallMatrix<T> z = zeros<T>(x.rows, x.cols);
        for (Index i = 0; i < x.rows; ++i) std::copy_n(x.row(i), x.cols, z.data() + i * x.cols);
        project_out<T>(whitening_.m, ref(z));
        scale_rows(ref(z), 1, 0);
        return z;
    }
    /// Rows first … last-1 of S_k Π x from z = weighted(x), into y [last - first, l], k = 1 … r: Ψ_k x before the
    /// Π on its left, which needs all rows. Each entry is the same whatever the range.
    void apply_rows(Index k, MatrixRef<const T> z, Index first, Index last, MatrixRef<T> y) const {
        product_rows<false>(k, z, first, last, y);
    }
    /// The same with S_kᵀ.
    void apply_transposed_rows(Index k, MatrixRef<const T> z, Index first, Index last, MatrixRef<T> y) const {
        product_rows<true>(k, z, first, last, y);
    }

private:
    template <bool transpose> void run(Index k, MatrixRef<const T> x, MatrixRef<T> y) const {
        if (x.rows != vocabulary() || y.rows != x.rows || x.cols != y.cols || x.transposed || y.transposed)
            throw UsageError("LagMoments: found blocks [", x.height(), ", ", x.width(), "] and [", y.height(),
                             ", ", y.width(), "], expected two of ", vocabulary(), " rows");
        // Π and both W around the sparse product.
        if (k == 0) {
            for (Index i = 0; i < x.rows; ++i) std::copy_n(x.row(i), x.cols, y.row(i));
        } else {
            const TallMatrix<T> z = weighted(x);
            product_rows<transpose>(k, ref(z), 0, x.rows, y);
        }
        project_out<T>(whitening_.m, y);
    }

    // Rows first … last-1 of W N_k z / T', or of its transpose, into y [last - first, l].
    template <bool transpose>
    void product_rows(Index k, MatrixRef<const T> z, Index first, Index last, MatrixRef<T> y) const {
        require("LagMoments", "lag", k, 1, lags());
        assert(z.rows == vocabulary() && first >= 0 && first <= last && last <= z.rows);
        assert(y.rows == last - first && y.cols == z.cols && !z.transposed && !y.transposed);
        if (text_) text_->product<transpose, T>(k, z, first, last, y);
        else sparse_product<transpose>(counts_->lag(k), z, first, last, y);
        scale_rows(y, whitening_.mass, first);
    }

    template <bool transpose> static void sparse_product(const counts::SparseCounts& N, MatrixRef<const T> z,
                                                         Index first, Index last, MatrixRef<T> y) {
        const bool all = first == 0 && last == z.rows;
        parallel(z.cols, 16, z.cols, [&](Index left, Index right, Index) {
            const Index n = right - left;
            for (Index i = 0; i < y.rows; ++i) std::fill_n(y.row(i) + left, n, T(0));
            for (Index i = transpose ? 0 : first, i_end = transpose ? z.rows : last; i < i_end; ++i) {
                Index at = N.starts[i], end = N.starts[i + 1];
                if (transpose && !all) {  // columns are ascending
                    const auto* const columns = N.columns.data();
                    at = std::lower_bound(columns + at, columns + end, first) - columns;
                    end = std::lower_bound(columns + at, columns + end, last) - columns;
                }
                for (; at < end; ++at) {
                    const Index j = N.columns[at];
                    const T count = static_cast<T>(N.values[at]);
                    const T* __restrict from = z.row(transpose ? i : j) + left;
                    T* __restrict to = y.row((transpose ? j : i) - first) + left;
                    for (Index c = 0; c < n; ++c) to[c] += count * from[c];
                }
            }
        });
    }

    // W x / divisor, in place, for the rows from `first` on
    void scale_rows(MatrixRef<T> x, double divisor, Index first) const {
        for (Index i = 0; i < x.rows; ++i)
            kernel::scale(x.cols, static_cast<T>(whitening_.w[first + i] / divisor), x.row(i));
    }

    const counts::LagCounts* counts_ = nullptr;  // one of the two
    const TextPairs* text_ = nullptr;
    Whitening whitening_;
};

}}}  // namespace isogloss::lds
