/// @file counts/pair_block.hpp  The pairs of words in a block of tokens, lag by lag.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/array.hpp>
#include <isogloss/counts/sparse_counts.hpp>
#include <isogloss/types.hpp>
#include <numeric>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace counts {

/// Counts the pairs of a block of tokens: positions are sorted by word once, by counting sort; then, for each lag,
/// earlier words are visited in that order, so that every row receives its columns in ascending order and no
/// pair needs sorting.
///
/// Memory   4 bytes per token and 8 per word, 2 more per token if there is a boundary; while a lag is counted 8 per token and
///          8 per word. See bytes().
class PairBlock {
public:
    /// Tokens first … last-1 of a text are the later words; earlier words may lie up to `lags` before them.
    /// At most 2³¹ - 1 tokens, all in 0 … V-1; the text must outlive this object.
    PairBlock(ArrayView<const Token> text, Index first, Index last, Index vocabulary, Index lags,
              Token boundary)
        : text_(text), first_(first), last_(last), from_(std::max<Index>(0, first - lags)) {
        starts_.assign(vocabulary + 1, 0);
        for (Index p = first; p < last; ++p) ++starts_[text[p] + 1];
        Array<std::uint32_t> next = starts_;
        for (Index p = from_; p < first; ++p) ++next[text[p] + 1];
        std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
        std::partial_sum(next.begin(), next.end(), next.begin());
        places_.resize(last - from_);
        for (Index p = from_; p < last; ++p) places_[next[text[p]]++] = static_cast<std::uint32_t>(p - from_);
        if (boundary < 0) return;
        reach_.resize(last - from_);
        Index most = lags;
        for (Index p = last; p-- > from_; reach_[p - from_] = static_cast<std::uint16_t>(most))
            most = text[p] == boundary ? 0 : std::min(lags, most + 1);
    }

    /// Bytes that a block of `tokens` tokens takes, of which so many lags are counted at a time, beside their counts.
    static Index bytes(Index tokens, Index vocabulary, Index lags, Token boundary, Index at_a_time) {
        const Index positions = tokens + lags;
        return positions * (boundary >= 0 ? 6 : 4) + 8 * (vocabulary + 1) +
               at_a_time * 8 * (tokens + vocabulary);
    }

    /// The pairs at distance k.
    SparseCounts count(Index k) const {
        // Row i has the cells from starts_[i] to rows[i].end - 1, in ascending columns: one cell per token of the block, of
        // which not all are used.
        const Index V = std::ssize(starts_) - 1;
        Array<Row> rows(V);
        Array<Cell> cells(last_ - first_);
        for (Index i = 0; i < V; ++i) rows[i] = {-1, starts_[i]};
        const auto pair = [&](Index q) {
            const Token before = text_[q];
            Row& row = rows[text_[q + k]];
            const std::uint32_t opens = row.column != before;
            row = {before, row.end + opens};
            Cell& cell = cells[row.end - 1];
            cell = {before, opens ? 1 : cell.count + 1};
        };
        const Index lowest = std::max<Index>(0, first_ - k - from_), highest = last_ - k - from_;
        const auto inside = [&](Index place) { return place >= lowest && place < highest; };
        // Later words, their rows and their cells are scattered in memory, each address depending on the previous
        // load: they are prefetched some pairs ahead, in this order.
        constexpr Index ahead = 12;
        const Index n = std::ssize(places_), looked = n - 3 * ahead;
        const auto later = [&](Index at) { return from_ + Index{places_[at]} + k; };
        for (Index at = 0; at < n; ++at) {
            if (at < looked) {
                if (inside(places_[at + 3 * ahead])) __builtin_prefetch(&text_[later(at + 3 * ahead)]);
                if (inside(places_[at + 2 * ahead]))
                    __builtin_prefetch(&rows[text_[later(at + 2 * ahead)]], 1);
                if (inside(places_[at + ahead]))
                    __builtin_prefetch(cells.data() + rows[text_[later(at + ahead)]].end, 1);
            }
            const Index place = places_[at];
            if (inside(place) && (reach_.empty() || k <= reach_[place])) pair(from_ + place);
        }
        Array<std::int64_t> starts(V + 1);
        for (Index i = 0; i < V; ++i) starts[i + 1] = starts[i] + (rows[i].end - starts_[i]);
        Array<std::int32_t> columns;
        Array<std::uint32_t> values;
        columns.reserve(starts.back());
        values.reserve(starts.back());
        for (Index i = 0; i < V; ++i)
            for (std::uint32_t c = starts_[i]; c < rows[i].end; ++c) {
                columns.push_back(cells[c].column);
                values.push_back(cells[c].count);
            }
        return {std::move(starts), std::move(columns), std::move(values)};
    }

private:
    struct Row {
        std::int32_t column;  // the earlier word added last
        std::uint32_t end;    // the position of its cell, + 1
    };
    struct Cell {
        std::int32_t column;  // an earlier word
        std::uint32_t count;
    };

    ArrayView<const Token> text_;
    Index first_, last_, from_;
    Array<std::uint32_t> starts_, places_;
    Array<std::uint16_t> reach_;  // for each position, the largest lag at which it counts as earlier token
};

}}}  // namespace isogloss::counts
