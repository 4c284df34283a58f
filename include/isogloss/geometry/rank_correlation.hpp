/// @file geometry/rank_correlation.hpp  Rank correlation of two lists of numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/error.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/types.hpp>
#include <numeric>
#include <span>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace detail {

/// Ranks from 1, the smallest first; equal numbers share the mean of their ranks. Throws NumericError for a
/// number that is not finite.
inline std::vector<double> ranks(std::span<const double> x) {
    require_finite("ranks", "a list", std::ssize(x), x.data());
    std::vector<std::size_t> order(x.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
    std::vector<double> rank(x.size());
    for (std::size_t i = 0; i < order.size();) {
        std::size_t end = i + 1;
        while (end < order.size() && x[order[end]] == x[order[i]]) ++end;
        for (std::size_t k = i; k < end; ++k) rank[order[k]] = 0.5 * static_cast<double>(i + 1 + end);
        i = end;
    }
    return rank;
}

}  // namespace detail

/// Spearman's rank correlation: Pearson's correlation of the ranks, which is correct with ties.
///
///     ρ = Σ (r_i - r̄)(s_i - s̄) / √(Σ (r_i - r̄)² Σ (s_i - s̄)²)
///
/// Errors   DataError: lists of different lengths, or of fewer than 2 numbers. NumericError: a number that
///          is not finite, or a list of equal numbers, which has no order.
/// Source   Spearman 1904.
inline double spearman(std::span<const double> x, std::span<const double> y) {
    if (x.size() != y.size() || x.size() < 2)
        throw DataError("spearman: found lists of ", x.size(), " and ", y.size(),
                        " numbers, expected equal lengths of at least 2");
    const auto r = detail::ranks(x), s = detail::ranks(y);
    const double mean = 0.5 * static_cast<double>(x.size() + 1);
    double both = 0, of_x = 0, of_y = 0;
    for (std::size_t i = 0; i < r.size(); ++i) {
        both += (r[i] - mean) * (s[i] - mean);
        of_x += (r[i] - mean) * (r[i] - mean);
        of_y += (s[i] - mean) * (s[i] - mean);
    }
    if (of_x == 0 || of_y == 0)
        throw NumericError("spearman: all numbers of a list are equal, which leaves no order to compare");
    return both / std::sqrt(of_x * of_y);
}

}}  // namespace isogloss
