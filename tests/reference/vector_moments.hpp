/// @file reference/vector_moments.hpp  Lagged covariances of real vectors, for subspace identification and EM of a known
/// system: a type of one's own that has the concept Moments.
#pragma once

#include <isogloss/lds/whitening.hpp>
#include <utility>

namespace reference {

using namespace isogloss;
using namespace isogloss::lds;

/// Of vectors x_t of n numbers, from their covariances Γ_k = E[(x_{t+k} - x̄)(x_t - x̄)ᵀ], k = 0 … r.
///
///     W = Γ_0^{-½},   y_t = W (x_t - x̄),   Ψ_k = W Γ_k W,   Ψ_0 = I
template <class T> class VectorMoments {
public:
    using Scalar = T;

    explicit VectorMoments(const Array<SmallMatrix>& covariances)
        : whitener_(symmetric_power(symmetrised(covariances[0]), -0.5, "test")) {
        const Index n = rows(whitener_);
        whitening_.mu = whitening_.m = Array<double>(n);
        whitening_.w = Array<double>(n, 1.0);
        whitening_.dimension = n;
        psi_.push_back(identity(n));
        for (std::size_t k = 1; k < covariances.size(); ++k)
            psi_.push_back(product(whitener_, covariances[k], whitener_));
    }

    Index vocabulary() const { return rows(whitener_); }       ///< n
    Index lags() const { return std::ssize(psi_) - 1; }        ///< r
    const Whitening& whitening() const { return whitening_; }  ///< μ = m = 0, w = 1
    const SmallMatrix& whitener() const { return whitener_; }  ///< W
    void require_pairs(Index, const char*) const {}            ///< every lag has pairs
    /// y = Ψ_k x
    void apply(Index k, MatrixRef<const T> x, MatrixRef<T> y) const {
        gemm<T>(T(1), ref(std::as_const(psi_[k])), x, T(0), y);
    }
    /// y = Ψ_kᵀ x
    void apply_transposed(Index k, MatrixRef<const T> x, MatrixRef<T> y) const {
        gemm<T>(T(1), t(ref(std::as_const(psi_[k]))), x, T(0), y);
    }

private:
    SmallMatrix whitener_;
    Whitening whitening_;
    Array<TallMatrix<T>> psi_;
};

/// The covariances Γ_0 … Γ_r of observations [T, n]: sums divided by T, whatever the lag.
inline Array<SmallMatrix> covariances_of(const SmallMatrix& x, Index r) {
    const Index N = rows(x), n = cols(x);
    SmallMatrix centred = x;
    for (Index i = 0; i < n; ++i) {
        double mean = 0;
        for (Index t = 0; t < N; ++t) mean += x(t, i) / static_cast<double>(N);
        for (Index t = 0; t < N; ++t) centred(t, i) -= mean;
    }
    Array<SmallMatrix> out;
    for (Index k = 0; k <= r; ++k) {
        const auto all = ref(std::as_const(centred));
        out.push_back(inner_products<double>(all.rows_from(k, N - k), all.rows_from(0, N - k)));
        out.back() /= static_cast<double>(N);
    }
    return out;
}

}  // namespace reference
