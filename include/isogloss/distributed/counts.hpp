/// @file distributed/counts.hpp  Counts of one text by several ranks: each counts a part, and the parts are summed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <isogloss/array.hpp>
#include <isogloss/counts/lag_counts.hpp>
#include <isogloss/counts/sorted_file.hpp>
#include <isogloss/distributed/communicator.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

namespace detail {

// Opens the files of which each rank has named one, on all ranks.
template <Communicator C> std::vector<counts::SortedFile> files_of_ranks(C& ranks, const std::string& own) {
    const auto sizes = gathered(ranks, Index{std::ssize(own)});
    std::size_t all = 0;
    for (const Index s : sizes) all += static_cast<std::size_t>(s);
    std::string names(all, '\0');
    ranks.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(names)), sizes);
    std::vector<counts::SortedFile> out;
    std::size_t begin = 0;
    for (const Index s : sizes) {
        out.emplace_back(names.substr(begin, static_cast<std::size_t>(s)));
        begin += static_cast<std::size_t>(s);
    }
    return out;
}

}  // namespace detail

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

/// Merges the files of counts of all ranks, one file each, lag by lag: of n ranks, rank r merges lags r, r + n, …
/// of all files (0 stands for the occurrences) into its own file `path`. Returns the n resulting files, on
/// every rank: lag k is in file k mod n, and the other lags of that file are empty.
///
///     const auto all = merge_of_ranks(counts.finish(), "big.spill/rank-2/merged.run", counts.buffer(), ranks);
///     if (ranks.rank() == 0) save_counts("big.counts", all, v, counts.buffer());
///
/// Each file is read through `buffer` bytes by all ranks, so it must be visible to all ranks under the same
/// name. At most r + 1 ranks merge at a time, however many count. `watch(done, all)`, in pairs of a lag, is
/// called now and then; an exception from it aborts the merge.
///
/// Collective.
/// Errors   as SortedFile; DataError: counted with different options.
template <Communicator C, class Watch = NoCallback>
std::vector<counts::SortedFile> merge_of_ranks(const counts::SortedFile& own, const std::string& path,
                                               Index buffer, C& ranks, Watch&& watch = {}) {
    const auto parts = detail::files_of_ranks(ranks, own.path());
    auto h = parts.front().header();
    for (const counts::SortedFile& part : parts) {
        counts::detail::require_alike<DataError>("merge_of_ranks", part.shape(), parts.front().shape(),
                                                 " in '" + part.path() + "'");
        h.first = std::min(h.first, part.header().first);
        if (part.header().last >= h.last) h.last = part.header().last, h.text = part.header().text;
    }
    counts::SortedFile::write(path, h, [&](Index k, auto&& put) {
        if (k % ranks.size() != ranks.rank()) return;
        std::int64_t all = 0, met = 0;
        for (const counts::SortedFile& part : parts) all += part.section(k).pairs;
        counts::SortedFile::merge(parts, k, buffer, [&](auto row, auto column, auto count) {
            put(row, column, count);
            if (++met % 65536 == 0) watch(met, all);
        });
    });
    return detail::files_of_ranks(ranks, path);
}

}}}  // namespace isogloss::distributed
