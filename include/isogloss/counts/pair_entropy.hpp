/// @file counts/pair_entropy.hpp  How uncertain a pair of words of a window is, from counts of a text.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/counts/lag_counts.hpp>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace counts {

/// The entropy of the pairs of word and neighbour that a skip-gram model learns from, in nats.
///
///     p̃_ij ∝ Σ_{k=1}^window (N_k[i, j] + N_k[j, i]),   H̃ = -Σ_ij p̃_ij ln p̃_ij
///
/// That of the counts: pairs too rare to have occurred are missing, so that it is below that of the language.
///
/// Memory   16 bytes for each pair of the lags up to `window`, which is 0 for all of them.
/// Errors   UsageError: a window below 0 or above the lags counted, or without memory for it. DataError: no pair.
/// Source   Su Jianlin 2020, kexue.fm/archives/7695.
inline double pair_entropy(const LagCounts& counts, Index window = 0) {
    const char* who = "pair_entropy";
    require(who, "window", window, 0, counts.lags());
    if (window == 0) window = counts.lags();
    Array<std::pair<std::int64_t, std::int64_t>>
        pairs;  // (lesser word, greater word) as one number, and count
    Index size = 0;
    for (Index k = 1; k <= window; ++k) size += counts.lag(k).pairs();
    within_memory(who, bytes_of(who, {size}, 16), [&] { pairs.reserve(size); });
    double all = 0;
    for (Index k = 1; k <= window; ++k) {
        const SparseCounts& N = counts.lag(k);
        for (Index i = 0; i < N.rows(); ++i)
            for (Index at = N.starts[i]; at < N.starts[i + 1]; ++at) {
                const Index j = N.columns[at];
                pairs.push_back({std::min(i, j) * N.rows() + std::max(i, j), N.values[at]});
                all += 2 * static_cast<double>(N.values[at]);
            }
    }
    if (pairs.empty()) throw DataError(who, ": the counts hold no pair of words");
    std::sort(pairs.begin(), pairs.end());
    double sum = 0;  // Σ c ln c over ordered pairs
    for (Index k = 0; k < std::ssize(pairs);) {
        const std::int64_t pair = pairs[k].first, V = counts.vocabulary();
        double c = 0;
        for (; k < std::ssize(pairs) && pairs[k].first == pair; ++k)
            c += static_cast<double>(pairs[k].second);
        sum += pair / V == pair % V ? 2 * c * std::log(2 * c) : 2 * c * std::log(c);
    }
    return std::log(all) - sum / all;
}

}}}  // namespace isogloss::counts
