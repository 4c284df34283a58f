/// @file lds/counts.hpp  How often each word follows each other word at each of a few distances.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/lds/pair_block.hpp>
#include <isogloss/lds/sparse_counts.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <new>
#include <string>
#include <utility>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds {

/// What is counted.
struct CountOptions {
    Index lags = 7;       ///< r ≥ 1: distances 1 … r
    Token boundary = -1;  ///< a token that ends a sentence: no pair crosses it; -1: pairs are not restricted
    Index block = Index{1} << 24;  ///< tokens processed at a time, 1 … 2³¹ - 1001
};

namespace detail {

/// Throws DataError for a token outside the vocabulary, at a place of the text; `its` is the vocabulary to use.
inline void require_word(const char* who, std::int64_t place, Token w, Index vocabulary,
                         const char* its = "the vocabulary of the counts") {
    if (w < 0 || w >= vocabulary)
        throw DataError(who, ": token ", place, " is ", w, ", outside the vocabulary of ", vocabulary,
                        " words; read the text with ", its);
}

/// Throws DataError if so many more tokens could overflow a count.
inline void require_room(const char* who, std::int64_t more, std::int64_t total) {
    if (more > std::numeric_limits<std::int64_t>::max() - total)
        throw DataError(who, ": ", more, " tokens in addition to ", total,
                        " are more than 2⁶³ - 1, and a count could overflow");
}

/// What counts must have in common to be added: words, lags, boundary.
using CountShape = std::array<Index, 3>;

template <class Options> CountShape shape_of(Index vocabulary, const Options& options) {  ///< see above
    return {vocabulary, options.lags, options.boundary};
}

/// Throws UsageError if two shapes differ; `where` tells in the message where the first was found.
inline void require_alike(const char* who, const CountShape& found, const CountShape& expected,
                          const std::string& where = "") {
    if (found != expected)
        throw UsageError(who, ": found counts of ", found[0], " words, ", found[1], " lags and boundary ",
                         found[2], where, ", expected ", expected[0], ", ", expected[1], " and ", expected[2],
                         "; count all parts alike");
}

}  // namespace detail

/// Lagged co-occurrences of a text of tokens 0 … V-1.
///
///     N_k[i, j] = number of t with i_t = i and i_{t-k} = j,   k = 1 … r        rows are the later word
///     n[i]      = number of t with i_t = i
///
/// One pass over the text. Each `add` counts the pairs whose later token lies in a range, so that the sum over
/// any partition of the text into ranges is exactly the counts of one pass:
///
///     LagCounts counts(V, {.lags = 7});
///     counts.add(corpus.tokens());                       // all of it, or
///     shard.add(corpus.tokens(), first, last);           // in another process
///     counts.add(shard);
///
/// Cost     O(T) per lag; the only sort is a counting sort of the positions by word. Memory: 8 bytes per pair
///          that occurs and lag (12 at a lag with a count above 2³² - 1), never V × V; while a block is
///          counted, 4 bytes per token of the block, and 8 more on each thread. Lags are counted in parallel on
///          threads(); the result does not depend on the number of threads.
/// Options  see CountOptions.
/// Errors   UsageError: options out of range, addition of counts of different shape. DataError: a token outside
///          the vocabulary, more than 2⁶³ - 1 tokens. Nothing is changed in these cases. If memory runs out while
///          counts are added, DataError, and the counts are then empty; use SpilledCounts for larger counts.
/// Source   Belanger, Kakade 2015, eqs. (13)-(17); rows and columns as in its eq. (3).
class LagCounts {
public:
    /// No tokens yet. V ≥ 1.
    explicit LagCounts(Index vocabulary, CountOptions options = {}) : options_(options) {
        require("LagCounts", "vocabulary", vocabulary, 1, std::numeric_limits<std::int32_t>::max());
        require("LagCounts", "lags", options.lags, 1, 1000);
        require("LagCounts", "block", options.block, 1, (Index{1} << 31) - 1001);
        require("LagCounts", "boundary", Index{options.boundary}, -1, vocabulary - 1);
        const auto bytes = bytes_of("LagCounts", {vocabulary, 2 + options.lags}, sizeof(std::int64_t));
        within_memory("LagCounts", bytes, [&] {
            occurrences_.assign(vocabulary, 0);
            empty_lags();
        });
    }

    /// Counts a whole text.
    void add(ArrayView<const Token> tokens) { add(tokens, 0, std::ssize(tokens)); }

    /// Counts the pairs of a text whose later token is in first … last-1; the earlier may lie before `first`.
    void add(ArrayView<const Token> tokens, Index first, Index last) {
        if (first < 0 || last < first || last > std::ssize(tokens))
            throw UsageError("LagCounts: found the range ", first, " … ", last, " of a text of ",
                             tokens.size(), " tokens");
        const Index from = std::max<Index>(0, first - lags());
        for (Index p = from; p < last; ++p) detail::require_word("LagCounts", p, tokens[p], vocabulary());
        detail::require_room("LagCounts", last - first, total_);
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
        detail::require_alike("LagCounts", detail::shape_of(other.vocabulary(), other.options_),
                              detail::shape_of(vocabulary(), options_));
        detail::require_room("LagCounts", other.total_, total_);
        merge(std::move(other.lags_));
        for (std::size_t i = 0; i < occurrences_.size(); ++i) occurrences_[i] += other.occurrences_[i];
        total_ += other.total_;
    }

    /// Why these parts do not form valid counts; empty if they do.
    static std::string problem(const CountOptions& options, const Array<std::int64_t>& occurrences,
                               const Array<SparseCounts>& lags) {
        const Index V = std::ssize(occurrences);
        if (std::ssize(lags) != options.lags)
            return message("found ", lags.size(), " matrices, expected ", options.lags);
        std::int64_t room = std::numeric_limits<std::int64_t>::max();
        for (const std::int64_t n : occurrences) {
            if (n < 0) return message("found a word that occurs ", n, " times");
            if (n > room) return "the words occur more than 2⁶³ - 1 times";
            room -= n;
        }
        for (std::size_t k = 0; k < lags.size(); ++k) {
            if (lags[k].rows() != V || !lags[k].is_valid())
                return message("lag ", k + 1, " is not a matrix of counts [", V, ", ", V, "]");
            if (!lags[k].fits(occurrences))
                return message("lag ", k + 1, " has more pairs with a word than the word has occurrences");
        }
        return {};
    }

    /// Assembles counts from their parts, as stored in a file. Throws UsageError if these are inconsistent.
    static LagCounts from_parts(CountOptions options, Array<std::int64_t> occurrences,
                                Array<SparseCounts> lags) {
        if (const std::string what = problem(options, occurrences, lags); !what.empty())
            throw UsageError("LagCounts: ", what);
        LagCounts c(std::ssize(occurrences), options);
        for (const std::int64_t n : occurrences) c.total_ += n;
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
            throw UsageError("LagCounts: lag ", k, " was requested, but only lags 1 … ", lags(),
                             " were counted; count with lags = ", k);
        return lags_[k - 1];
    }

    /// Equal in every count.
    friend bool operator==(const LagCounts& a, const LagCounts& b) {
        return a.occurrences_ == b.occurrences_ && a.lags_ == b.lags_ &&
               a.options_.boundary == b.options_.boundary;
    }

private:
    void empty_lags() {
        lags_.clear();
        for (Index k = 0; k < lags(); ++k) lags_.push_back({Array<std::int64_t>(vocabulary() + 1), {}, {}});
    }

    void merge(Array<SparseCounts> other) {
        try {
            for (std::size_t k = 0; k < lags_.size(); ++k) {
                if (lags_[k].pairs() == 0) std::swap(lags_[k], other[k]);
                else if (other[k].pairs() > 0) lags_[k] = lags_[k] + other[k];
                other[k] = SparseCounts();  // frees its memory before the next sum allocates
            }
        } catch (const std::bad_alloc&) {  // some lags are summed and some are not
            empty_lags();
            std::fill(occurrences_.begin(), occurrences_.end(), 0);
            total_ = 0;
            throw DataError(
                "LagCounts: not enough memory to add these counts, and what was counted is lost; "
                "reduce the vocabulary or count fewer lags");
        }
    }

    // The pairs whose later token is in first … last-1.
    Array<SparseCounts> block(ArrayView<const Token> tokens, Index first, Index last) const {
        const PairBlock pairs(tokens, first, last, vocabulary(), lags(), options_.boundary);
        Array<SparseCounts> out(lags());
        parallel(lags(), 1, lags(), [&](Index a, Index b, Index) {
            for (Index k = a; k < b; ++k) {
                LagCells cells;
                pairs.count(k + 1, cells);
                out[k] = compressed(pairs, cells);
            }
        });
        return out;
    }

    SparseCounts compressed(const PairBlock& block, const LagCells& lag) const {
        const Index V = vocabulary();
        Array<std::int64_t> starts{0};
        starts.reserve(V + 1);
        for (Index i = 0; i < V; ++i)
            starts.push_back(starts.back() + std::int64_t{lag.rows[i].end - block.start(i)});
        Array<std::int32_t> columns;
        Array<std::uint32_t> values;
        columns.reserve(starts.back());
        values.reserve(starts.back());
        for (Index i = 0; i < V; ++i)
            for (std::uint32_t c = block.start(i); c < lag.rows[i].end; ++c) {
                columns.push_back(lag.cells[c].column);
                values.push_back(lag.cells[c].count);
            }
        return {std::move(starts), std::move(columns), std::move(values)};
    }

    CountOptions options_;
    Array<std::int64_t> occurrences_;
    Array<SparseCounts> lags_;
    std::int64_t total_ = 0;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds
