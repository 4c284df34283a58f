/// @file update/riemannian/metric.hpp  Forms of a unit's metric, and how each is inverted.
#pragma once

#include <cmath>
#include <isogloss/types.hpp>
#include <limits>

namespace isogloss {

/// The squared scale Φ attached to a unit at a position.
enum class UnitModulus {
    ruop,  ///< recurrent unitwise outer product: Φ = (∂l/∂V)²
    rbpm,  ///< recurrent backpropagated metric: Φ from backward<Modulus>
};

/// Which entries of a unit's metric M = Σ Φ z zᵀ over its inputs z (bias: z_0 = 1) are used.
enum class MetricForm {
    full,            ///< all; one linear system per unit
    quasi_diagonal,  ///< M_ii, M_0i, M_00; linear in the inputs, still invariant under affine changes of
                     ///< activities
    diagonal,        ///< M_ii; not invariant
};

namespace kernel {

/// What is left of a diagonal entry when that of another direction is taken out, below which the two are
/// regarded as one: some units of rounding of the entry itself.
template <class T> inline constexpr T redundant = 64 * std::numeric_limits<T>::epsilon();

/// The quasi-diagonal step of one input: (G - G_0 M_0 / M_00) / (M - M_0² / M_00), or 0 where the input never
/// departs from a constant (or nothing is known of it) and its part belongs to the bias.
template <class T> T quasi_diagonal(T G, T G0, T M, T M0, T M00) {
    const T slope = M00 > 0 ? M0 / M00 : T(0), left = M - slope * M0;
    return left > redundant<T> * M && left > 0 ? (G - slope * G0) / left : T(0);
}

/// G / M, or 0 where M is 0.
template <class T> T diagonal(T G, T M) { return M > 0 ? G / M : T(0); }

/// Solves M r = G for a symmetric positive matrix M [m, m] of which the lower triangle is read, by Cholesky,
/// in place: M becomes its factor, G becomes r. Directions that depend on those before them (a pivot of
/// nothing but rounding) get r = 0, so that a matrix of any rank gives a solution.
template <class T> void solve_symmetric(Index m, T* M, T* G) {
    for (Index i = 0; i < m; ++i) {
        T* row = M + i * m;
        const T whole = row[i];
        for (Index j = 0; j <= i; ++j) {
            const T* other = M + j * m;
            T sum = row[j];
            for (Index k = 0; k < j; ++k) sum -= row[k] * other[k];
            if (j < i) row[j] = other[j] > 0 ? sum / other[j] : T(0);
            else row[i] = sum > redundant<T> * static_cast<T>(m) * whole && sum > 0 ? std::sqrt(sum) : T(0);
        }
        T sum = G[i];
        for (Index k = 0; k < i; ++k) sum -= row[k] * G[k];
        G[i] = row[i] > 0 ? sum / row[i] : T(0);
    }
    for (Index i = m - 1; i >= 0; --i) {
        const T d = M[i * m + i];
        T sum = G[i];
        for (Index k = i + 1; k < m; ++k) sum -= M[k * m + i] * G[k];
        G[i] = d > 0 ? sum / d : T(0);
    }
}

}  // namespace kernel
}  // namespace isogloss
