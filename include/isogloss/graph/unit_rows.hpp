/// @file graph/unit_rows.hpp  Table rows held at norm 1.
#pragma once

#include <cmath>
#include <isogloss/graph/store.hpp>
#include <isogloss/kernel/rows.hpp>

namespace isogloss {

/// Divides one row of a parameter by its Euclidean norm. Throws NumericError for a row that is zero or
/// not finite.
template <class T> void normalise_row(Parameter<T>& p, Index row) {
    T* x = p.value + row * p.cols;
    const double norm = std::sqrt(kernel::sum_of_squares(p.cols, x));
    if (!(norm > 0) || !std::isfinite(norm))
        throw NumericError(text("weight '", p.name, "': row ", row, " has norm ", norm,
                                " and cannot be brought to norm 1; start from values that are not all zero"));
    kernel::scale(p.cols, static_cast<T>(1 / norm), x);
}

/// Every row, as for a fresh weight.
template <class T> void normalise_rows(Parameter<T>& p) {
    for (Index i = 0; i < p.rows; ++i) normalise_row(p, i);
}

}  // namespace isogloss
