/// @file geometry/principal_angles.hpp  All angles between two column spaces.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/geometry/subspace_distance.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The principal angles θ_1 ≤ … ≤ θ_r between the column spaces of x [V, a] and y [V, b], in radians from 0
/// to π/2; r is the smaller of both dimensions.
///
///     U = orth(x), Q = orth(y);   cos θ_i: singular values of UᵀQ, descending
///                                 sin θ_i: singular values of Q - U UᵀQ, ascending, y the smaller space
///
/// The arctangent of both is accurate to rounding for angles near 0 and near π/2; the arccosine alone would
/// lose half the digits of small angles. Linearly dependent columns do not count. Costs O(V (a + b)²).
///
/// Errors   UsageError when the row counts differ or a matrix has more columns than rows, NumericError for a
///          matrix that is zero or not finite.
/// Source   Björck, Golub 1973, "Numerical methods for computing angles between linear subspaces".
template <class T> std::vector<double> principal_angles(MatrixRef<const T> x, MatrixRef<const T> y) {
    // The angles do not depend on the order.
    const detail::Projection<T> both(x, y, "principal angles", true);
    const BlasOnOneThread blas;
    // The residual's singular values are those of its triangular factor, a small matrix.
    const auto cosines = dense::singular_values(both.inner),
               sines = dense::singular_values(dense::detail::thin_qr(both.residual).R);  // descending
    std::vector<double> angles;
    for (Index i = 0, r = std::ssize(sines); i < r; ++i)
        angles.push_back(
            std::atan2(std::max(0.0, double(sines(r - 1 - i))), std::max(0.0, double(cosines(i)))));
    std::sort(angles.begin(), angles.end());
    return angles;
}

/// The averaged distance for given principal angles: √(mean sin²θ_i), the subspace_distance of spaces of equal
/// dimension. Throws UsageError if there are no angles.
inline double averaged_distance(const std::vector<double>& angles) {
    if (angles.empty()) throw UsageError("averaged distance: there are no angles");
    double squares = 0;
    for (const double theta : angles) squares += std::sin(theta) * std::sin(theta);
    return std::sqrt(squares / static_cast<double>(angles.size()));
}

}}  // namespace isogloss
