/// @file lds/counts.hpp  How often each word follows each other at each of a few distances.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <isogloss/error.hpp>
#include <isogloss/lds/sparse_counts.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds {

/// What is counted.
struct CountOptions {
    Index lags = 7;       ///< r ≥ 1: distances 1 … r
    Token boundary = -1;  ///< a token that ends a sentence: no pair reaches over it; -1: pairs go anywhere
    Index block = Index{1} << 24;  ///< tokens taken at a time, 1 … 2³¹ - 1001
};

/// Lagged co-occurrences of a text of tokens 0 … V-1.
///
///     N_k[i, j] = number of t with i_t = i and i_{t-k} = j,   k = 1 … r        rows are the later word
///     n[i]      = number of t with i_t = i
///
/// One pass over the text. Each `add` counts the pairs whose later token lies in a range, so that a text cut
/// into ranges anywhere gives, added, exactly the counts of one pass:
///
///     LagCounts counts(V, {.lags = 7});
///     counts.add(corpus.tokens());                       // all of it, or
///     shard.add(corpus.tokens(), first, last);           // in another process
///     counts.add(shard);
///
/// Cost     O(T) per lag, with no sort but that of the positions by word, which is one of counting. Memory 8
///          bytes per pair that occurs and lag, never V × V; while a block is counted, 4 bytes for each of
///          its tokens, and 8 more on each thread. Lags are counted side by side on threads(); the result is
///          the same for any number of them.
/// Options  see CountOptions.
/// Errors   UsageError: options out of range, counts of different shape added. DataError: a token outside
///          the vocabulary, more than 2³² - 1 tokens (a count could overflow), more than 2³¹ - 1 different
///          pairs at one lag. Nothing is changed then. Where memory ends while counts are added, DataError,
///          and they are empty afterwards.
/// Source   Belanger, Kakade 2015, eqs. (13)-(17); rows and columns as in its eq. (3).
class LagCounts {
public:
    /// No tokens yet. V ≥ 1.
    explicit LagCounts(Index vocabulary, CountOptions options = {}) : options_(options) {
        require("LagCounts", "vocabulary", vocabulary, 1, std::numeric_limits<std::int32_t>::max());
        require("LagCounts", "lags", options.lags, 1, 1000);
        require("LagCounts", "block", options.block, 1, (Index{1} << 31) - 1001);
        const auto bytes = bytes_of("LagCounts", {vocabulary, 2 + options.lags}, sizeof(std::int32_t));
        within_memory("LagCounts", bytes, [&] {
            occurrences_.assign(vocabulary, 0);
            empty_lags();
        });
    }

    /// Counts a whole text.
    void add(ArrayView<const Token> tokens) { add(tokens, 0, std::ssize(tokens)); }

    /// Counts the pairs of a text whose later token is at first … last-1; earlier tokens are looked at.
    void add(ArrayView<const Token> tokens, Index first, Index last) {
        if (first < 0 || last < first || last > std::ssize(tokens))
            throw UsageError("LagCounts: found the range ", first, " … ", last, " of a text of ",
                             tokens.size(), " tokens");
        const Index from = std::max<Index>(0, first - lags());
        for (Index p = from; p < last; ++p) {
            const Token w = tokens[p];
            if (w < 0 || w >= vocabulary())
                throw DataError("LagCounts: token ", p, " is ", w, ", outside the vocabulary of ",
                                vocabulary(), " words; read the text with the vocabulary counted with");
        }
        require_room(last - first);
        LagCounts sum(vocabulary(), options_);
        for (Index p = first; p < last; p += options_.block) {
            const Index end = std::min(last, p + options_.block);
            sum.merge(block(tokens, p, end));
            for (Index q = p; q < end; ++q) ++sum.occurrences_[tokens[q]];
        }
        sum.total_ = last - first;
        add(std::move(sum));
    }

    /// Adds the counts of another part of the text, of the same vocabulary, lags and boundary.
    void add(LagCounts other) {
        if (other.vocabulary() != vocabulary() || other.lags() != lags() ||
            other.options_.boundary != options_.boundary)
            throw UsageError("LagCounts: found counts of ", other.vocabulary(), " words, ", other.lags(),
                             " lags and boundary ", other.options_.boundary, ", expected ", vocabulary(),
                             ", ", lags(), " and ", options_.boundary, "; count all parts alike");
        require_room(other.total_);
        merge(std::move(other.lags_));
        for (std::size_t i = 0; i < occurrences_.size(); ++i) occurrences_[i] += other.occurrences_[i];
        total_ += other.total_;
    }

    /// Puts counts together from their parts, as a file has them. Throws UsageError where they do not fit,
    /// DataError for more than 2³² - 1 tokens.
    static LagCounts from_parts(CountOptions options, Array<std::int64_t> occurrences,
                                Array<SparseCounts> lags) {
        LagCounts c(std::ssize(occurrences), options);
        if (std::ssize(lags) != options.lags)
            throw UsageError("LagCounts: found ", lags.size(), " matrices, expected ", options.lags);
        for (const SparseCounts& m : lags)
            if (m.rows() != c.vocabulary() || !m.is_valid())
                throw UsageError("LagCounts: found counts of ", m.rows(), " rows",
                                 m.is_valid() ? "" : " that are no matrix", ", expected [", c.vocabulary(),
                                 ", ", c.vocabulary(), "]");
        for (const std::int64_t n : occurrences) {
            if (n < 0) throw UsageError("LagCounts: found a word that occurs ", n, " times");
            c.require_room(n);
            c.total_ += n;
        }
        c.lags_ = std::move(lags);
        c.occurrences_ = std::move(occurrences);
        return c;
    }

    Index vocabulary() const { return std::ssize(occurrences_); }  ///< V
    Index lags() const { return options_.lags; }                   ///< r
    std::int64_t tokens() const { return total_; }                 ///< tokens counted, T
    const CountOptions& options() const { return options_; }       ///< as given
    /// n, by word.
    const Array<std::int64_t>& occurrences() const { return occurrences_; }
    /// N_k, k = 1 … r. Throws UsageError for another k.
    const SparseCounts& lag(Index k) const {
        if (k < 1 || k > lags())
            throw UsageError("LagCounts: lag ", k, " is asked for, but lags 1 … ", lags(),
                             " were counted; count with lags = ", k);
        return lags_[k - 1];
    }

    /// Equal in every count.
    friend bool operator==(const LagCounts& a, const LagCounts& b) {
        return a.occurrences_ == b.occurrences_ && a.lags_ == b.lags_ &&
               a.options_.boundary == b.options_.boundary;
    }

private:
    void require_room(std::int64_t more) const {
        if (more > std::int64_t{std::numeric_limits<std::uint32_t>::max()} - total_)
            throw DataError("LagCounts: ", more, " tokens beside ", total_,
                            " are more than 2³² - 1, and a count could overflow");
    }

    void empty_lags() {
        lags_.clear();
        for (Index k = 0; k < lags(); ++k) lags_.push_back({Array<std::int32_t>(vocabulary() + 1), {}, {}});
    }

    void merge(Array<SparseCounts> other) {
        // all lags before any is touched, so that a refusal changes nothing
        for (std::size_t k = 0; k < lags_.size(); ++k)
            if (lags_[k].pairs() + other[k].pairs() > std::numeric_limits<std::int32_t>::max() &&
                lags_[k].pairs() > 0 && other[k].pairs() > 0)
                throw DataError("LagCounts: there may be more than 2³¹ - 1 different pairs at lag ", k + 1,
                                "; cut the vocabulary");
        try {
            for (std::size_t k = 0; k < lags_.size(); ++k) {
                if (lags_[k].pairs() == 0) std::swap(lags_[k], other[k]);
                else if (other[k].pairs() > 0) lags_[k] = lags_[k] + other[k];
                other[k] = SparseCounts();  // its memory, before the next sum takes some
            }
        } catch (const std::bad_alloc&) {  // some lags are summed and some are not
            empty_lags();
            std::fill(occurrences_.begin(), occurrences_.end(), 0);
            total_ = 0;
            throw DataError(
                "LagCounts: there is not enough memory to add these counts, and what was counted is lost; "
                "cut the vocabulary or count fewer lags");
        }
    }

    // A row while its pairs come in: the earlier word met last, and where its cell is.
    struct Row {
        std::int32_t column;
        std::uint32_t end;  // cell + 1
    };
    struct Cell {
        std::int32_t column;
        std::uint32_t count;
    };

    // The pairs whose later token is at first … last-1. Earlier tokens are taken in the order of their words,
    // so that each row receives its columns in ascending order: nothing is sorted but the positions, by
    // counting.
    Array<SparseCounts> block(ArrayView<const Token> tokens, Index first, Index last) const {
        const Index V = vocabulary(), from = std::max<Index>(0, first - lags());
        Array<std::uint32_t> rows(V + 1), places(last - from);
        for (Index p = first; p < last; ++p) ++rows[tokens[p] + 1];
        Array<std::uint32_t> next = rows;
        for (Index p = from; p < first; ++p) ++next[tokens[p] + 1];
        std::partial_sum(rows.begin(), rows.end(), rows.begin());
        std::partial_sum(next.begin(), next.end(), next.begin());
        for (Index p = from; p < last; ++p) places[next[tokens[p]]++] = static_cast<std::uint32_t>(p - from);

        Array<SparseCounts> out(lags());
        Array<std::exception_ptr> failed(lags());
        const Array<std::uint16_t> reach = reaches(tokens, from, last);
        parallel(lags(), 1, lags(), [&](Index a, Index b, Index) {
            for (Index k = a; k < b; ++k) {
                try {
                    out[k] = one_lag(tokens, from, first, last, k + 1, rows, places, reach);
                } catch (...) {
                    failed[k] = std::current_exception();
                }
            }
        });
        for (const auto& e : failed)
            if (e) std::rethrow_exception(e);
        return out;
    }

    // For each position from … last-1 the largest lag at which it is counted as the earlier token; nothing
    // where all are.
    Array<std::uint16_t> reaches(ArrayView<const Token> tokens, Index from, Index last) const {
        Array<std::uint16_t> reach;
        if (options_.boundary < 0) return reach;
        reach.resize(last - from);
        Index most = lags();
        for (Index p = last - 1; p >= from; --p) {
            most = tokens[p] == options_.boundary ? 0 : std::min(lags(), most + 1);
            reach[p - from] = static_cast<std::uint16_t>(most);
        }
        return reach;
    }

    SparseCounts one_lag(ArrayView<const Token> tokens, Index from, Index first, Index last, Index k,
                         const Array<std::uint32_t>& starts, const Array<std::uint32_t>& places,
                         const Array<std::uint16_t>& reach) const {
        const Index V = vocabulary();
        Array<Row> rows(V);
        for (Index i = 0; i < V; ++i) rows[i] = {-1, starts[i]};
        Array<Cell> cells(last - first);
        const auto pair = [&](Index q) {
            const Token before = tokens[q];
            Row& row = rows[tokens[q + k]];
            const std::uint32_t opens = row.column != before;
            row = {before, row.end + opens};
            Cell& cell = cells[row.end - 1];
            cell = {before, opens ? 1 : cell.count + 1};
        };
        const Index lowest = std::max<Index>(0, first - k - from), highest = last - k - from;
        for (const std::uint32_t place : places)
            if (place >= lowest && place < highest && (reach.empty() || k <= reach[place]))
                pair(from + place);

        SparseCounts m;
        m.starts.reserve(V + 1);
        std::int32_t pairs = 0;  // no more than the tokens of a block, 2³¹ - 1
        for (Index i = 0; i < V; ++i)
            m.starts.push_back(pairs += static_cast<std::int32_t>(rows[i].end - starts[i]));
        m.columns.reserve(pairs);
        m.values.reserve(pairs);
        for (Index i = 0; i < V; ++i)
            for (std::uint32_t c = starts[i]; c < rows[i].end; ++c) {
                m.columns.push_back(cells[c].column);
                m.values.push_back(cells[c].count);
            }
        return m;
    }

    CountOptions options_;
    Array<std::int64_t> occurrences_;
    Array<SparseCounts> lags_;
    std::int64_t total_ = 0;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds
