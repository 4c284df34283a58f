/// @file metric/subspace_distance.hpp  How far apart two column spaces are.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/factor.hpp>
#include <vector>

namespace isogloss {

/// Cosines ρ_i of the principal angles between the column spaces of x [V, a] and y [V, b], falling: the
/// singular values of UᵀQ for orthonormal bases U, Q, brought into [0, 1].
///
/// Throws UsageError when the row counts differ or a matrix has more columns than rows, NumericError for
/// a matrix that is zero or not finite.
template <class T> std::vector<double> principal_cosines(MatrixRef<const T> x, MatrixRef<const T> y) {
    if (x.rows != y.rows)
        throw UsageError(message("subspace distance: found matrices with ", x.rows, " and ", y.rows,
                                 " rows, expected equal numbers"));
    const BlasOnOneThread blas;
    const auto u = orthonormal_columns<T>(x, "subspace distance"),
               q = orthonormal_columns<T>(y, "subspace distance");
    Tensor<T, 2> m({u.shape()[1], q.shape()[1]});
    const auto view = [](auto& a) { return MatrixRef(a.data(), Index(a.shape()[0]), Index(a.shape()[1])); };
    gemm<T>(T(1), t(view(u)), view(q), T(0), view(m));
    std::vector<double> cosines;
    for (const T rho : singular_values(m)) cosines.push_back(std::clamp(static_cast<double>(rho), 0.0, 1.0));
    return cosines;
}

/// The distance between the column spaces of x [V, a] and y [V, b].
///
///     U = orth(x), Q = orth(y), R = Q - U Uᵀ Q
///     d² = ‖R‖² / C = 1 - (1/C) Σ ρ_i² = (1/C) Σ sin²θ_i,   C = number of columns of Q
///
/// 0 if y's space lies within x's, 1 if the spaces are orthogonal. With equal dimensions it is symmetric
/// and 0 only for equal spaces; with unequal ones it is not symmetric: it measures how much of y is
/// outside x. Columns that depend on others do not count. Costs O(V (a² + b²)).
///
/// Errors   as principal_cosines.
/// Source   Inan, Khosravi, Socher 2017, appendix B.  Departure: matrices that lack rank are allowed.
template <class T> double subspace_distance(MatrixRef<const T> x, MatrixRef<const T> y) {
    if (x.rows != y.rows)
        throw UsageError(message("subspace distance: found matrices with ", x.rows, " and ", y.rows,
                                 " rows, expected equal numbers"));
    const BlasOnOneThread blas;
    const auto u = orthonormal_columns<T>(x, "subspace distance"),
               q = orthonormal_columns<T>(y, "subspace distance");
    const auto a = static_cast<Index>(u.shape()[1]), b = static_cast<Index>(q.shape()[1]);
    Tensor<T, 2> inner({u.shape()[1], q.shape()[1]}), residual = q;
    gemm<T>(T(1), t(MatrixRef<const T>(u.data(), x.rows, a)), {q.data(), x.rows, b}, T(0),
            {inner.data(), a, b});
    gemm<T>(T(-1), {u.data(), x.rows, a}, {inner.data(), a, b}, T(1), {residual.data(), x.rows, b});
    double squares = 0;  // of R itself: 1 - Σρ² would lose small distances to rounding
    for (const T r : residual) squares += double(r) * double(r);
    return std::min(1.0, std::sqrt(squares / static_cast<double>(b)));
}

}  // namespace isogloss
