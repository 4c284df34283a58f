/// @file distributed/counts.hpp  Counts of one text by several ranks: each counts a part, and the parts are summed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/array.hpp>
#include <isogloss/counts/lag_counts.hpp>
#include <isogloss/distributed/communicator.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// The sum of the counts of all ranks, on every rank. Counts are integers, so that any partition of a text gives the
/// counts of a single pass.
///
///     LagCounts own(V, {.lags = 7});
///     own.add(corpus.tokens(), T * rank / size, T * (rank + 1) / size);
///     const LagCounts all = sum_of_ranks(std::move(own), ranks);
///     const LagMoments<float> moments(all);     // for EM and subspace identification by ranks
///
/// Collective. Each rank in turn sends its counts to all, 8 bytes per pair and 8 per word and lag.
/// Errors   as LagCounts::add; parts that were counted with different options, on every rank.
template <Communicator C> counts::LagCounts sum_of_ranks(counts::LagCounts own, C& ranks) {
    // On every rank and before anything else: the number of collective calls below depends on the lags.
    const auto shapes = gathered(ranks, counts::detail::shape_of(own.vocabulary(), own.options()));
    for (std::size_t r = 1; r < shapes.size(); ++r)
        counts::detail::require_alike("sum_of_ranks", shapes[r], shapes[0], message(" on rank ", r));
    if (ranks.size() == 1) return own;
    counts::LagCounts sum(own.vocabulary(), own.options());
    for (Index root = 0; root < ranks.size(); ++root) {
        const auto sent = [&]<class N>(std::span<const N> numbers) {
            Index size = std::ssize(numbers);
            broadcast(ranks, std::span(&size, 1), root);
            Array<N> all(size);
            if (ranks.rank() == root) std::copy(numbers.begin(), numbers.end(), all.begin());
            broadcast(ranks, std::span<N>(all), root);
            return all;
        };
        auto occurrences = sent(std::span<const std::int64_t>(own.occurrences()));
        Array<counts::SparseCounts> lags;
        for (Index k = 1; k <= own.lags(); ++k) {
            const counts::SparseCounts& m = own.lag(k);
            auto starts = sent(std::span<const std::int64_t>(m.starts));
            auto columns = sent(std::span<const std::int32_t>(m.columns));
            auto narrow = sent(std::span<const std::uint32_t>(m.values.narrow));
            auto wide = sent(std::span<const std::int64_t>(m.values.wide));
            lags.push_back({std::move(starts), std::move(columns), std::move(narrow), std::move(wide)});
        }
        sum.add(counts::LagCounts::from_parts(own.options(), std::move(occurrences), std::move(lags)));
    }
    return sum;
}

}}}  // namespace isogloss::distributed
