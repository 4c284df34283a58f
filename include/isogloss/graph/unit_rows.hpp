/// @file graph/unit_rows.hpp  Table rows held at norm 1.
#pragma once

#include <cmath>
#include <isogloss/graph/store.hpp>
#include <isogloss/kernel/rows.hpp>

namespace isogloss {

/// Divides one row of a parameter by its Euclidean norm. Throws NumericError for a row that is zero or
/// not finite.
template <class T> void normalise_row(Parameter<T>& p, Index row) {
    const double norm = kernel::normalise(p.cols, p.value + row * p.cols);
    if (!(norm > 0) || !std::isfinite(norm))
        throw NumericError(
            message("weight '", p.name, "': row ", row, " has norm ", norm,
                    " and cannot be brought to norm 1; start from values that are not all zero"));
}

/// Throws NumericError where a step would take a row that is held at norm 1 to one without a direction, zero
/// or not finite. moved(i) is what the step makes of number i of the parameter; nothing is changed.
template <class T, class Moved> void require_directions(const Parameter<T>& p, Moved&& moved) {
    using Condition = typename Parameter<T>::Condition;
    if (!p.unit_rows) return;
    const auto check = [&](Index row) {
        T part[kernel::chunk];
        double squares = 0;
        for (Index first = 0, some; first < p.cols; first += some) {
            some = std::min(kernel::chunk, p.cols - first);
            for (Index k = 0; k < some; ++k) part[k] = moved(row * p.cols + first + k);
            squares += kernel::sum_of_squares(some, part);
        }
        if (!(squares > 0) || !std::isfinite(squares))
            throw NumericError(message("update: the step takes row ", row, " of '", p.name, "' to the norm ",
                                       std::sqrt(squares),
                                       ", which cannot be brought back to 1; nothing was changed. Lower the "
                                       "learning rate or the clipping threshold"));
    };
    if (p.condition == Condition::dense)
        for (Index i = 0; i < p.rows; ++i) check(i);
    else if (p.condition == Condition::rows)
        for (const Index i : p.touched) check(i);
}

/// Every row, as for a fresh weight.
template <class T> void normalise_rows(Parameter<T>& p) {
    for (Index i = 0; i < p.rows; ++i) normalise_row(p, i);
}

}  // namespace isogloss
