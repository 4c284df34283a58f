/// @file tensor.hpp  The array layer: the only header that includes xtensor itself, in its old and new layout.
#pragma once

#if __has_include(<xtensor/containers/xtensor.hpp>)  // 0.26 and later
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/views/xview.hpp>
#else  // up to 0.25
#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

#include <array>
#include <cstddef>
#include <isogloss/types.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// Owning dense array of N dimensions, row-major.
template <class T, std::size_t N> using Tensor = xt::xtensor<T, N>;

/// A matrix [rows, cols] over memory owned elsewhere, as an xtensor expression. T may be const.
///
/// Assign with `noalias(view) = expression`: nothing is allocated. noalias, tanh, exp, square and the other
/// elementwise functions are found by argument-dependent lookup, so a cell reads like its equations.
template <class T> auto matrix_view(T* data, Index rows, Index cols) {
    const auto r = static_cast<std::size_t>(rows), c = static_cast<std::size_t>(cols);
    return xt::adapt(data, r * c, xt::no_ownership(), std::array<std::size_t, 2>{r, c});
}

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
