/// @file lds/count_ranks.hpp  Counts of one text by several ranks: each counts a part, and the parts are summed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <isogloss/array.hpp>
#include <isogloss/distributed/communicator.hpp>
#include <isogloss/error.hpp>
#include <isogloss/lds/count_merge.hpp>
#include <isogloss/lds/counts.hpp>
#include <isogloss/types.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

namespace detail {

// Sends numbers to rank `to` and receives those of rank `from`; -1: sends or receives none. Collective.
template <class T, distributed::Communicator C>
Array<T> handed_on(C& ranks, std::span<const T> own, Index to, Index from) {
    const Index size = to < 0 ? 0 : std::ssize(own);
    Index coming = 0;
    Array<Index> sent(ranks.size()), counts(ranks.size());
    const auto exchange = [&](auto send, Index bytes_out, auto receive, Index bytes_in) {
        if (to >= 0) sent[to] = bytes_out;
        if (from >= 0) counts[from] = bytes_in;
        ranks.all_to_all(std::as_bytes(send), std::span<const Index>(sent), std::as_writable_bytes(receive),
                         std::span<const Index>(counts));
    };
    exchange(std::span(&size, to < 0 ? 0u : 1u), Index{sizeof size}, std::span(&coming, from < 0 ? 0u : 1u),
             Index{sizeof coming});
    Array<T> got(coming);
    exchange(own.first(static_cast<std::size_t>(size)), size * Index{sizeof(T)}, std::span<T>(got),
             coming * Index{sizeof(T)});
    return got;
}

// Calls pass(array) for all arrays of counts, a collective call that returns an array of the same type. The counts
// made of what it returned, if `wanted`.
template <class Pass> std::optional<LagCounts> passed(const LagCounts& own, bool wanted, Pass&& pass) {
    auto occurrences = pass(std::span<const std::int64_t>(own.occurrences()));
    Array<SparseCounts> lags;
    for (Index k = 1; k <= own.lags(); ++k) {
        const SparseCounts& m = own.lag(k);
        auto starts = pass(std::span<const std::int64_t>(m.starts));
        auto columns = pass(std::span<const std::int32_t>(m.columns));
        auto narrow = pass(std::span<const std::uint32_t>(m.values.narrow));
        auto wide = pass(std::span<const std::int64_t>(m.values.wide));
        if (wanted)
            lags.push_back({std::move(starts), std::move(columns), std::move(narrow), std::move(wide)});
    }
    if (!wanted) return std::nullopt;
    return LagCounts::from_parts(own.options(), std::move(occurrences), std::move(lags));
}

// Gathers a string of each rank on all ranks.
template <distributed::Communicator C> std::vector<std::string> gathered(C& ranks, const std::string& own) {
    const auto sizes = distributed::gathered(ranks, Index{std::ssize(own)});
    std::string all;
    for (const Index s : sizes) all.append(static_cast<std::size_t>(s), '\0');
    ranks.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)), sizes);
    std::vector<std::string> out;
    std::size_t at = 0;
    for (const Index s : sizes) {
        out.push_back(all.substr(at, static_cast<std::size_t>(s)));
        at += static_cast<std::size_t>(s);
    }
    return out;
}

}  // namespace detail

/// The sum of the counts of all ranks, on the first rank; counts of no tokens on the others. Counts are
/// integers, so that any partition of a text gives the counts of a single pass. On every rank they know the checksum of
/// the vocabulary if those of any rank do.
///
///     LagCounts own(V, {.lags = 7});
///     own.add(corpus.tokens(), T * rank / size, T * (rank + 1) / size);
///     const LagCounts all = sum_of_ranks(std::move(own), ranks);
///
/// Collective. A binary tree: log₂ n rounds, in each of which half of the remaining ranks send all their
/// counts, 8 bytes per pair and 8 per word and lag.
/// Errors   as LagCounts::add; parts that were counted with different options, on every rank.
template <distributed::Communicator C> LagCounts sum_of_ranks(LagCounts own, C& ranks) {
    const Index rank = ranks.rank();
    // On every rank and before anything else: the number of collective calls below depends on the lags.
    const auto shapes = distributed::gathered(ranks, detail::shape_of(own.vocabulary(), own.options()));
    detail::CountShape expected = shapes[0];
    for (Index r = 1; r < ranks.size(); ++r) {
        const detail::CountShape& found = shapes[static_cast<std::size_t>(r)];
        detail::require_alike("sum_of_ranks", found, expected, message(" on rank ", r));
        if (expected[3] == 0) expected[3] = found[3];
    }
    // As LagCounts::add does: counts of no tokens that know the checksum of the words. Those received are made with the
    // options of this rank.
    if (own.options().vocabulary_checksum == 0 && expected[3] != 0) {
        CountOptions known = own.options();
        known.vocabulary_checksum = static_cast<std::uint64_t>(expected[3]);
        own.add(LagCounts(own.vocabulary(), known));
    }
    for (Index step = 1; step < ranks.size(); step *= 2) {
        const bool sends = rank % (2 * step) == step;
        const bool gets = rank % (2 * step) == 0 && rank + step < ranks.size();
        const auto hand_on = [&]<class T>(std::span<const T> numbers) {
            return detail::handed_on<T>(ranks, numbers, sends ? rank - step : -1, gets ? rank + step : -1);
        };
        if (auto other = detail::passed(own, gets, hand_on)) own.add(std::move(*other));
        if (sends) own = LagCounts(own.vocabulary(), own.options());
    }
    return own;
}

/// The same sum on every rank: the first rank sends it to all others, 8 bytes per pair and per word and lag.
///
///     const LagCounts all = sum_on_all_ranks(std::move(own), ranks);
///     const LagMoments<float> moments(all);     // for EM and subspace identification by ranks
///
/// Collective.
/// Errors   as sum_of_ranks.
template <distributed::Communicator C> LagCounts sum_on_all_ranks(LagCounts own, C& ranks) {
    LagCounts sum = sum_of_ranks(std::move(own), ranks);
    if (ranks.size() == 1) return sum;
    const bool first = ranks.rank() == 0;
    const auto sent = [&]<class T>(std::span<const T> numbers) {
        Index size = std::ssize(numbers);
        distributed::broadcast(ranks, std::span(&size, 1));
        Array<T> all(size);
        if (first) std::copy(numbers.begin(), numbers.end(), all.begin());
        distributed::broadcast(ranks, std::span<T>(all));
        return all;
    };
    if (auto received = detail::passed(sum, !first, sent)) return std::move(*received);
    return sum;
}

/// Merges the count files of all ranks, one file each, lag by lag: of n ranks, rank r merges lags r, r + n, …
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
/// Errors   FileError: a file of another rank is missing or damaged. DataError: counted with different options, more
///          than 2⁶³ - 1 tokens together.
template <distributed::Communicator C, class Watch = NoCallback>
Array<CountRun> merge_of_ranks(const CountRun& own, const std::string& path, Index buffer, C& ranks,
                               Watch&& watch = {}) {
    std::vector<CountRun> parts;
    for (const std::string& name : detail::gathered(ranks, own.path())) parts.emplace_back(name);
    CountRunHeader h = parts.front().header();
    for (const CountRun& part : parts) {
        const CountRunHeader& p = part.header();
        detail::require_alike("", part, h, "count all parts alike");
        if (h.words == 0) h.words = p.words;
        h.first = std::min(h.first, p.first);
        if (p.last >= h.last) h.last = p.last, h.text = p.text;
    }
    CountRunWriter out(path, h);
    for (Index k = 0; k <= h.lags; ++k) {
        out.section();
        if (k % ranks.size() != ranks.rank()) continue;
        std::int64_t all = 0, met = 0, total = 0;
        for (const CountRun& part : parts) all += part.section(k).pairs;
        merge_count_runs(parts, k, buffer, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
            // A word has at least as many occurrences as pairs of a lag, so that those need no check.
            if (k == 0) detail::require_room("merge_of_ranks", count, total), total += count;
            out.add(row, column, count);
            if (++met % 65536 == 0) watch(met, all);
        });
    }
    out.commit();
    Array<CountRun> merged;
    for (const std::string& name : detail::gathered(ranks, path)) merged.emplace_back(name);
    return merged;
}

}}}  // namespace isogloss::lds
