/// @file elementary.hpp  Logarithm, exponential, powers and cosine whose bits do not depend on the C library.
///
/// Sums and products in double, in a fixed order: the same result on every processor and with every compiler that does
/// not contract them (-ffp-contract=off). Errors of a few units in the last place; for vectors see kernel/simd.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <isogloss/config.hpp>
#include <limits>
#include <numbers>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel { namespace elementary {

/// log x for x ≥ 0 or NaN: with x = 2^e m, √½ ≤ m < √2, it is e log 2 + 2 (s + s³/3 + s⁵/5 + …), s = (m - 1) / (m + 1).
inline double log(double x) {
    if (!(x > 0) || x > std::numeric_limits<double>::max())
        return x == 0 ? -std::numeric_limits<double>::infinity() : x < 0 ? std::nan("") : x;
    int e = 0;
    double m = std::frexp(x, &e);
    if (m < std::numbers::sqrt2 / 2) m *= 2, --e;
    const double s = (m - 1) / (m + 1), square = s * s;
    double series = 0;
    for (int k = 23; k >= 3; k -= 2) series = (series + 1. / k) * square;
    const double remainder = e * 7.371002565167799e-13;  // of log 2, of which e times the first part is exact
    return e * 0.6931471805592082 + (remainder + (2 * s * series + 2 * s));
}

/// exp x = 2^k exp r with |r| ≤ log 2 / 2, by its series.
inline double exp(double x) {
    if (!(x > -746)) return x <= -746 ? 0 : x;
    if (x > 710) return std::numeric_limits<double>::infinity();
    const double k = std::floor(x * std::numbers::log2e + 0.5);
    const double r = (x - k * 0.6931471805592082) - k * 7.371002565167799e-13;  // as in log
    double series = 1;
    for (int n = 14; n >= 1; --n) series = 1 + series * r / n;
    return std::ldexp(series, static_cast<int>(k));
}

/// x to an integer power n.
inline double power(double x, std::ptrdiff_t n) {
    double result = 1;
    for (std::ptrdiff_t k = n < 0 ? -n : n; k > 0; k /= 2, x *= x)
        if (k % 2 == 1) result *= x;
    return n < 0 ? 1 / result : result;
}

/// cos(2 π v) for 0 ≤ v ≤ 1.
inline double cosine_of_turns(double v) {
    double y = v > 0.5 ? 1 - v : v;  // cos is even, and of period 1
    const bool beyond = y > 0.25;
    if (beyond) y = 0.5 - y;
    const double a = 2 * std::numbers::pi * y, square = a * a;
    double series = 1;
    for (int k = 24; k >= 2; k -= 2) series = 1 - series * square / (k * (k - 1));
    return beyond ? -series : series;
}

}}}}  // namespace isogloss::kernel::elementary
