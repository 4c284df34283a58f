/// @file geometry/subspace_distance.hpp  The distance between two column spaces.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/factor.hpp>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace detail {

/// The column space of y [V, b] relative to that of x [V, a]: with orthonormal bases U, Q of both, swapped if
/// `larger_first` is set and Q is the larger one.
template <class T> struct Projection {
    Tensor<T, 2> inner;     ///< UᵀQ
    Tensor<T, 2> residual;  ///< Q - U UᵀQ

    Projection(MatrixRef<const T> x, MatrixRef<const T> y, const char* who, bool larger_first = false) {
        if (x.height() != y.height())
            throw UsageError(who, ": found matrices with ", x.height(), " and ", y.height(),
                             " rows, expected equal numbers");
        const BlasOnOneThread blas;
        auto u = dense::orthonormal_columns<T>(x, who), q = dense::orthonormal_columns<T>(y, who);
        if (larger_first && dense::cols(u) < dense::cols(q)) std::swap(u, q);
        const MatrixRef<const T> U = dense::ref(std::as_const(u));
        inner = dense::zeros<T>(dense::cols(u), dense::cols(q));
        gemm<T>(T(1), t(U), dense::ref(std::as_const(q)), T(0), dense::ref(inner));
        residual = std::move(q);
        gemm<T>(T(-1), U, dense::ref(std::as_const(inner)), T(1), dense::ref(residual));
    }
};

}  // namespace detail

/// The distance between the column spaces of x [V, a] and y [V, b].
///
///     U = orth(x), Q = orth(y), R = Q - U Uᵀ Q
///     d² = ‖R‖² / C = (1/C) Σ sin²θ_i,   C = number of columns of Q, θ_i the principal angles
///
/// 0 if y's space lies within x's, 1 if the spaces are orthogonal. With equal dimensions it is symmetric
/// and 0 only for equal spaces; with unequal ones it is not symmetric: it measures how much of y is
/// outside x. Linearly dependent columns do not count. Costs O(V (a² + b²)).
///
/// Errors   UsageError when the row counts differ or a matrix has more columns than rows, NumericError for a
///          matrix that is zero or not finite.
/// Source   Inan, Khosravi, Socher 2017, appendix B.  Departure: rank-deficient matrices are allowed.
template <class T> double subspace_distance(MatrixRef<const T> x, MatrixRef<const T> y) {
    const Tensor<T, 2> R = detail::Projection<T>(x, y, "subspace distance").residual;
    // Of R itself: 1 - Σρ² would lose small distances to rounding.
    const double squares = kernel::plain::dot(std::ssize(R), R.data(), R.data());
    return std::min(1.0, std::sqrt(squares / static_cast<double>(dense::cols(R))));
}

}}  // namespace isogloss
