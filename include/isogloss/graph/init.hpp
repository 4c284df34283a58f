/// @file graph/init.hpp  Initial values of weights.
#pragma once

#include <cmath>
#include <functional>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/random.hpp>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Initial values of a weight: element (row, col) of a matrix [rows, cols] as a function of its own random
/// stream. Any callable of this form will do; the usual ones are defined below.
///
/// The stream is that of the weight's name under the graph's seed, so the initial values of a weight
/// do not depend on what else is in the model, nor on the scalar type (except for rounding).
using Init = std::function<double(const Random& random, Index rows, Index cols, Index row, Index col)>;

/// Uniform on [-bound, bound], bound ≥ 0.
inline Init uniform(double bound) {
    require("uniform", "bound", bound, 0);
    return [bound](const Random& r, Index, Index cols, Index i, Index j) {
        return bound * (2 * r.uniform(i * cols + j) - 1);
    };
}

/// Normal with mean 0 and the given standard deviation, ≥ 0.
inline Init normal(double deviation) {
    require("normal", "deviation", deviation, 0);
    return [deviation](const Random& r, Index, Index cols, Index i, Index j) {
        return deviation * r.normal(i * cols + j);
    };
}

/// Every element the same.
inline Init constant(double value) {
    return [value](const Random&, Index, Index, Index, Index) { return value; };
}

/// A multiple of the identity in each square block of a matrix [n, k n]; a taller one is zero below the square.
inline Init identity(double scale = 1) {
    return [scale](const Random&, Index rows, Index, Index i, Index j) { return j % rows == i ? scale : 0; };
}

/// One value per equal block of columns, for the biases of gates: block k of the columns starts at
/// values[k]. Throws UsageError if there are none, and for a weight whose columns are not so many equal blocks.
inline Init per_block(Array<double> values) {
    if (values.empty()) throw UsageError("per_block: found no values");
    return [values = std::move(values)](const Random&, Index, Index cols, Index, Index j) {
        if (cols % std::ssize(values) != 0)
            throw UsageError("per_block: ", values.size(), " values, ", cols, " columns; give one per gate");
        return values[j * std::ssize(values) / cols];
    };
}

}}  // namespace isogloss
