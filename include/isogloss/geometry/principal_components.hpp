/// @file geometry/principal_components.hpp  A table of vectors projected onto its directions of largest variance.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/factor.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The result of principal_components.
struct PrincipalComponents {
    Index rows = 0, count = 0;
    Array<double> coordinates;  ///< [rows, count], row-major: each row of the table along the directions
    Array<double> directions;   ///< [count, columns], row-major: orthonormal, by descending variance
    Array<double> variance;     ///< [count]: fraction of the total variance, 0 to 1, descending
};

/// The first `count` principal components of a table x [rows, columns], by the singular value decomposition
/// of the centred table:
///
///     x - 1 x̄ᵀ = U S Vᵀ,   coordinates = U S,   variance_i = s_i² / Σ s²
///
/// The sign of a direction is arbitrary; it is chosen so that its entry of largest absolute value is positive.
/// A table whose rows are all equal has coordinates and variances 0. Costs O(rows · columns²).
///
/// Errors   UsageError: fewer than 2 rows, fewer rows than columns, count below 1 or above the columns.
///          NumericError: a number that is not finite or 1e150 or more, with its position.
/// Source   Pearson 1901; Hotelling 1933.
template <class T> PrincipalComponents principal_components(MatrixRef<const T> x, Index count) {
    const Index n = x.height(), m = x.width();  // x may be a transpose
    if (n < 2 || m < 1 || n < m || count < 1 || count > m || !x.is_valid())
        throw UsageError("principal components: found ", count, " of a table [", n, ", ", m,
                         "], expected at least 2 rows, as many as columns, and 1 to ", m, " components");
    auto centred = dense::zeros<double>(n, m);
    for (Index j = 0; j < m; ++j) {
        double mean = 0, least = double(x(0, j)), greatest = least;
        for (Index i = 0; i < n; ++i) {
            const auto v = static_cast<double>(x(i, j));
            if (!(std::abs(v) < 1e150))  // squares must not overflow
                throw NumericError("principal components: found ", v, " at row ", i, ", column ", j);
            mean += v / static_cast<double>(n);
            least = std::min(least, v);
            greatest = std::max(greatest, v);
        }
        mean = std::clamp(mean, least, greatest);  // rounding may take that of equal numbers off them
        for (Index i = 0; i < n; ++i) centred(i, j) = double(x(i, j)) - mean;
    }
    const BlasOnOneThread blas;
    const auto [U, s, V] = dense::thin_svd(centred, "principal components");
    double total = 0;
    for (Index i = 0; i < m; ++i) total += s(i) * s(i);

    PrincipalComponents p{n, count, {}, {}, {}};
    p.coordinates.resize(n * count);
    for (Index k = 0; k < count; ++k) {
        double leading = 0;
        for (Index j = 0; j < m; ++j)
            if (std::abs(V(j, k)) > std::abs(leading)) leading = V(j, k);
        const double sign = leading < 0 ? -1 : 1;
        for (Index j = 0; j < m; ++j) p.directions.push_back(sign * V(j, k));
        p.variance.push_back(total > 0 ? s(k) * s(k) / total : 0);
        for (Index i = 0; i < n; ++i) p.coordinates[i * count + k] = sign * U(i, k) * s(k);
    }
    return p;
}

}}  // namespace isogloss
