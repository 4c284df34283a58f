/// @file update/require.hpp  Options out of range.
#pragma once

#include <cmath>
#include <isogloss/error.hpp>
#include <limits>
#include <string_view>

namespace isogloss {

/// The upper end of a range without one.
inline constexpr double no_limit = std::numeric_limits<double>::infinity();

/// Throws UsageError unless low ≤ value ≤ high and the value is finite.
template <class V> void require(std::string_view who, std::string_view option, V value, V low, V high) {
    if (!(value >= low && value <= high && std::isfinite(static_cast<double>(value))))
        throw UsageError(
            message(who, ": found ", option, " = ", value, ", expected a finite number from ", low,
                    std::isfinite(static_cast<double>(high)) ? message(" to ", high) : std::string(" up")));
}

}  // namespace isogloss
