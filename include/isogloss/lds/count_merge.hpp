/// @file lds/count_merge.hpp  Merging count files, and reading them into memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <isogloss/array.hpp>
#include <isogloss/lds/count_cursor.hpp>
#include <isogloss/lds/count_folder.hpp>
#include <isogloss/lds/count_run.hpp>
#include <isogloss/lds/counts.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// The sum of the sections k of several files, in order of the pairs: calls out(row, column, count).
///
/// A heap with one cursor per file yields the least pair. Memory is that of the cursors; at most one open file
/// per cursor. Throws DataError for a sum above 2⁶³ - 1.
template <class Out> void merge_count_runs(std::span<const CountRun> runs, Index k, Index buffer, Out&& out) {
    std::vector<CountRunCursor> cursors;
    cursors.reserve(runs.size());
    struct Head {
        std::uint64_t key;
        std::size_t cursor;
    };
    std::vector<Head> heap;
    heap.reserve(runs.size());
    for (const CountRun& run : runs) {
        cursors.emplace_back(run, k, buffer);
        if (cursors.back().next()) heap.push_back({cursors.back().key(), cursors.size() - 1});
    }
    const auto later = [](const Head& a, const Head& b) { return a.key > b.key; };
    std::make_heap(heap.begin(), heap.end(), later);
    while (!heap.empty()) {
        const std::uint64_t key = heap.front().key;
        std::int64_t sum = 0;
        while (!heap.empty() && heap.front().key == key) {
            CountRunCursor& cursor = cursors[heap.front().cursor];
            detail::require_room("merge_count_runs", cursor.count(), sum);
            sum += cursor.count();
            // the least cursor moves to its next pair, and sinks to its place in the heap
            Head moved = heap.front();
            if (cursor.next()) {
                moved.key = cursor.key();
            } else {
                moved = heap.back();
                heap.pop_back();
                if (heap.empty()) break;
            }
            std::size_t at = 0;
            for (std::size_t child = 1; child < heap.size(); child = 2 * at + 1) {
                if (child + 1 < heap.size() && heap[child + 1].key < heap[child].key) ++child;
                if (moved.key <= heap[child].key) break;
                heap[at] = heap[child];
                at = child;
            }
            heap[at] = moved;
        }
        out(static_cast<std::int64_t>(key >> 32), static_cast<std::int64_t>(key & 0xffffffffu), sum);
    }
}

/// Merges neighbouring files of a text into one file of the folder, which replaces them in `runs`, sorted by
/// first token: the group with the fewest bytes, of at most `fan` ≥ 2 files, and no larger than needed for all
/// later merges to be of `fan` files each. Each file is read through `buffer` bytes. Calls
/// watch(bytes merged, bytes to merge) now and then; an exception from it aborts the merge without effect.
template <class Watch> void merge_neighbours(Array<CountRun>& runs, const CountFolder& folder, Index fan,
                                             Index buffer, Watch&& watch) {
    const Index n = std::ssize(runs), width = std::min(fan, n > fan ? n - fan + 1 : n);
    Index begin = 0, least = 0;
    for (Index i = 0, sum = 0; i < n; ++i) {
        sum += runs[i].bytes();
        if (i >= width) sum -= runs[i - width].bytes();
        if (i == width - 1 || (i >= width && sum < least)) begin = i - width + 1, least = sum;
    }
    const std::span<const CountRun> group(runs.data() + begin, static_cast<std::size_t>(width));
    CountRunHeader h = group.back().header();
    h.first = group.front().header().first;
    for (const CountRun& run : group)
        if (h.words == 0) h.words = run.header().words;
    const std::string path = folder.name_of(h);
    CountRunWriter out(path, h);
    std::int64_t done = 0;
    for (Index k = 0; k <= h.lags; ++k) {
        out.section();
        std::int64_t bytes = 0, pairs = 0, met = 0;
        for (const CountRun& run : group) bytes += run.section(k).bytes, pairs += run.section(k).pairs;
        merge_count_runs(group, k, buffer, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
            out.add(row, column, count);
            if (++met % 65536 == 0)
                watch(done + bytes * std::min<std::int64_t>(1000, 1000 * met / pairs) / 1000, least);
        });
        done += bytes;
        watch(done, least);
    }
    out.commit();
    CountRun merged(path);
    std::vector<std::string> replaced;
    for (const CountRun& run : group) replaced.push_back(run.path());
    runs.erase(runs.begin() + begin + 1, runs.begin() + begin + width);
    runs[begin] =
        std::move(merged);  // first: where a file cannot be removed, the next merge goes on from here
    for (const std::string& name : replaced) folder.remove(name);
}

/// The counts of a file, read into memory as LagCounts. `words`: the checksum of the vocabulary, for a file that may not
/// know it.
inline LagCounts counts_of(const CountRun& run, Index buffer, std::uint64_t words = 0) {
    const Index V = run.header().vocabulary;
    Array<std::int64_t> occurrences(V);
    for (CountRunCursor at(run, 0, buffer); at.next();) occurrences[at.row()] = at.count();
    Array<SparseCounts> lags;
    for (Index k = 1; k <= run.header().lags; ++k) {
        const CountRunSection& section = run.section(k);
        Array<std::int64_t> starts(V + 1), wide;
        Array<std::int32_t> columns;
        Array<std::uint32_t> narrow;
        const bool fits = section.largest <= std::numeric_limits<std::uint32_t>::max();
        columns.reserve(section.pairs);
        fits ? narrow.reserve(section.pairs) : wide.reserve(section.pairs);
        for (CountRunCursor at(run, k, buffer); at.next();) {
            columns.push_back(static_cast<std::int32_t>(at.column()));
            if (fits) narrow.push_back(static_cast<std::uint32_t>(at.count()));
            else wide.push_back(at.count());
            ++starts[at.row() + 1];
        }
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        lags.push_back({std::move(starts), std::move(columns), std::move(narrow), std::move(wide)});
    }
    return LagCounts::from_parts({.lags = run.header().lags,
                                  .boundary = static_cast<Token>(run.header().boundary),
                                  .vocabulary_checksum = words != 0 ? words : run.header().words},
                                 std::move(occurrences), std::move(lags));
}

}}}  // namespace isogloss::lds
