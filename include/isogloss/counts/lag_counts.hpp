/// @file counts/lag_counts.hpp  How often each word follows each other word at each of a few distances.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <isogloss/counts/pair_block.hpp>
#include <isogloss/counts/sparse_counts.hpp>
#include <isogloss/error.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace counts {

/// What is counted.
struct CountOptions {
    Index lags = 7;       ///< r ≥ 1: distances 1 … r
    Token boundary = -1;  ///< a token that ends a sentence: no pair crosses it; -1: pairs are not restricted
    Index block = Index{1} << 24;  ///< tokens processed at a time, 1 … 2³¹ - 1001; fewer take less memory
    std::uint64_t vocabulary_checksum =
        0;  ///< Vocabulary::checksum(): counts of another are refused; 0: unknown
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

/// What counts must have in common to be added: words, lags, boundary, checksum of the words if both know it.
using CountShape = std::array<Index, 4>;

/// That of counts made with these options.
template <class Options> CountShape shape_of(Index vocabulary, const Options& options) {
    return {vocabulary, options.lags, options.boundary, static_cast<Index>(options.vocabulary_checksum)};
}

/// Throws E if two shapes differ; `where` tells in the message where the first was found.
template <class E = UsageError> void require_alike(const char* who, const CountShape& found,
                                                   const CountShape& expected,
                                                   const std::string& where = "") {
    const bool same_words = found[3] == expected[3] || found[3] == 0 || expected[3] == 0;
    if (same_words && std::equal(found.begin(), found.begin() + 3, expected.begin())) return;
    throw E(who, ": found counts of ", found[0], " words, ", found[1], " lags and boundary ", found[2],
            same_words ? "" : " of another vocabulary", where, ", expected ", expected[0], ", ", expected[1],
            " and ", expected[2], "; count all parts alike");
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
/// Cost     O(T) per lag, and O(V + pairs) per lag for every `add` to counts that hold some already; the only
///          sort is a counting sort of the positions by word. Memory: 8 bytes per pair that occurs and lag (12 at
///          a lag with a count above 2³² - 1), never V × V; while a block is counted, 4 bytes per token of the
///          block, 8 more on each thread, and up to 8 more for each lag, the counts of the block beside the sums:
///          a smaller `block` takes less. An `add` to counts that hold some already has those of the new text
///          beside them. Lags are counted in parallel on threads(); the result does not depend on the number of
///          threads.
/// Options  see CountOptions.
/// Errors   UsageError: options out of range, addition of counts of different shape. DataError: a token outside
///          the vocabulary, more than 2⁶³ - 1 tokens, not enough memory. Nothing is changed in these cases, but where
///          memory runs out while counts are added to others, lag by lag and in the memory that the previous ones leave:
///          then no lag is left.
/// Source   Belanger, Kakade 2015, eqs. (13)-(17); rows and columns as in its eq. (3).
class LagCounts {
public:
    /// No tokens yet. V ≥ 1.
    explicit LagCounts(Index vocabulary, CountOptions options = {}) : options_(options) {
        require_options(vocabulary);
        const auto bytes = bytes_of("LagCounts", {vocabulary, 2 + options.lags}, sizeof(std::int64_t));
        within_memory("LagCounts", bytes, [&] {
            occurrences_.assign(vocabulary, 0);
            lags_ = no_pairs();
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
        merge(within_memory<DataError>("LagCounts", -1, [&] {
            const auto counted = [&](Index p) {
                return block(tokens, p, p + std::min(last - p, options_.block));
            };
            Array<SparseCounts> sum = counted(first);
            for (Index p = first; last - p > options_.block;) add_lags(sum, counted(p += options_.block));
            return sum;
        }));
        for (Index p = first; p < last; ++p) ++occurrences_[tokens[p]];
        total_ += last - first;
    }

    /// Adds the counts of another part of the text, of the same vocabulary, lags and boundary. Counts that do not know
    /// the checksum of their vocabulary take that of the others.
    void add(LagCounts other) {
        detail::require_alike("LagCounts", detail::shape_of(other.vocabulary(), other.options_),
                              detail::shape_of(vocabulary(), options_));
        detail::require_room("LagCounts", other.total_, total_);
        merge(std::move(other.lags_));
        for (std::size_t i = 0; i < occurrences_.size(); ++i) occurrences_[i] += other.occurrences_[i];
        total_ += other.total_;
        if (options_.vocabulary_checksum == 0)
            options_.vocabulary_checksum = other.options_.vocabulary_checksum;
    }

    /// Assembles counts from their parts, as stored in a file, without memory of its own. Throws E, naming `who`, if these
    /// are not the counts of one text.
    template <class E = UsageError>
    static LagCounts from_parts(CountOptions options, Array<std::int64_t> occurrences,
                                Array<SparseCounts> lags, std::string_view who = "LagCounts") {
        bool valid = std::ssize(lags) == options.lags;
        std::int64_t room = std::numeric_limits<std::int64_t>::max();
        for (const std::int64_t n : occurrences) {
            valid = valid && n >= 0 && n <= room;
            if (valid) room -= n;
        }
        for (const SparseCounts& m : lags) valid = valid && m.is_valid(occurrences);
        if (!valid)
            throw E(who, ": found matrices and occurrences of words that are not the counts of one text");
        return {options, std::move(occurrences), std::move(lags)};
    }

    Index vocabulary() const { return std::ssize(occurrences_); }  ///< V
    Index lags() const { return options_.lags; }                   ///< r
    std::int64_t tokens() const { return total_; }                 ///< tokens counted, T
    /// As given; a checksum that was not is that of counts added.
    const CountOptions& options() const { return options_; }
    /// n, by word.
    const Array<std::int64_t>& occurrences() const { return occurrences_; }
    /// N_k, k = 1 … r. Throws UsageError for another k.
    const SparseCounts& lag(Index k) const {
        if (k < 1 || k > std::ssize(lags_))
            throw UsageError("LagCounts: lag ", k, " was requested, but only lags 1 … ", lags_.size(),
                             " were counted; count with lags = ", k);
        return lags_[k - 1];
    }

    /// Equal in every count.
    friend bool operator==(const LagCounts& a, const LagCounts& b) {
        return a.occurrences_ == b.occurrences_ && a.lags_ == b.lags_ &&
               a.options_.boundary == b.options_.boundary;
    }

private:
    // Of parts without a problem.
    LagCounts(CountOptions options, Array<std::int64_t> occurrences, Array<SparseCounts> lags)
        : options_(options), occurrences_(std::move(occurrences)), lags_(std::move(lags)) {
        require_options(vocabulary());
        for (const std::int64_t n : occurrences_) total_ += n;
    }

    void require_options(Index vocabulary) const {
        require("LagCounts", "vocabulary", vocabulary, 1, std::numeric_limits<std::int32_t>::max());
        require("LagCounts", "lags", options_.lags, 1, 1000);
        require("LagCounts", "block", options_.block, 1, (Index{1} << 31) - 1001);
        require("LagCounts", "boundary", Index{options_.boundary}, -1, vocabulary - 1);
    }

    // N_k of no tokens.
    Array<SparseCounts> no_pairs() const {
        Array<SparseCounts> none;
        for (Index k = 0; k < lags(); ++k) none.push_back({Array<std::int64_t>(vocabulary() + 1), {}, {}});
        return none;
    }

    // Adds lag by lag; the memory of each is free again before the next sum allocates.
    static void add_lags(Array<SparseCounts>& to, Array<SparseCounts> other) {
        for (std::size_t k = 0; k < to.size(); ++k) {
            SparseCounts its = std::move(other[k]);
            if (to[k].pairs() == 0) to[k] = std::move(its);
            else if (its.pairs() > 0) to[k] = to[k] + its;
        }
    }

    // A second array of sums would take as much memory again as all counts. So lags are replaced one by one; where memory
    // runs out some are sums and some are not, and none is left.
    void merge(Array<SparseCounts> other) {
        Array<SparseCounts> sum = std::exchange(lags_, {});
        within_memory<DataError>("LagCounts", -1, [&] { add_lags(sum, std::move(other)); });
        lags_ = std::move(sum);
    }

    // The pairs whose later token is in first … last-1.
    Array<SparseCounts> block(ArrayView<const Token> tokens, Index first, Index last) const {
        const PairBlock pairs(tokens, first, last, vocabulary(), lags(), options_.boundary);
        Array<SparseCounts> out(lags());
        parallel(lags(), 1, lags(), [&](Index a, Index b, Index) {
            for (Index k = a; k < b; ++k) out[k] = pairs.count(k + 1);
        });
        return out;
    }

    CountOptions options_;
    Array<std::int64_t> occurrences_;
    Array<SparseCounts> lags_;
    std::int64_t total_ = 0;
};

}}}  // namespace isogloss::counts
