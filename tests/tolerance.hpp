/// @file tolerance.hpp  How far apart numbers may be.
#pragma once

#include <cmath>
#include <limits>

#include "catch.hpp"

/// The larger of the worst error so far and another; infinity from the first that is not finite on, where
/// std::max would forget a NaN.
inline double worse(double worst, double error) {
    if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
    return error > worst ? error : worst;
}

/// x within a margin, and in float within 1e-5 of x, which Approx alone would allow in double too.
template <class T> Approx to_rounding(double x, double margin_in_float, double margin_in_double) {
    const bool single = sizeof(T) == 4;
    return Approx(x).epsilon(single ? 1e-5 : 0).margin(single ? margin_in_float : margin_in_double);
}
