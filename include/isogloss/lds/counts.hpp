/// @file lds/counts.hpp  How often each word follows each other at each of a few distances.
#pragma once

#include <Eigen/SparseCore>
#include <algorithm>
#include <cstdint>
#include <exception>
#include <isogloss/error.hpp>
#include <isogloss/threads.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace isogloss {

/// Counts of pairs, row-major: 8 bytes for each pair that occurs.
using SparseCounts = Eigen::SparseMatrix<std::uint32_t, Eigen::RowMajor, std::int32_t>;

/// What is counted.
struct CountOptions {
    Index lags = 7;       ///< r ≥ 1: distances 1 … r
    Token boundary = -1;  ///< a token that ends a sentence: no pair reaches over it; -1: pairs go anywhere
    Index block = Index{1} << 24;  ///< tokens taken at a time, 1 … 2³¹ - 1; 4 bytes of memory each
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
/// Cost     one pass over the tokens, one random access for each that serves all lags, and a sort of the
///          different words found beside each word; memory 8 bytes per pair that occurs and lag, never V × V.
///          Runs on threads(); the result is the same for any number of them.
/// Options  see CountOptions.
/// Errors   GraphError: options out of range, counts of different shape added. DataError: a token outside
///          the vocabulary, more than 2³² - 1 tokens (a count could overflow), more than 2³¹ - 1 different
///          pairs at one lag. Nothing is changed then.
/// Source   Belanger, Kakade 2015, eqs. (13)-(17); rows and columns as in its eq. (3).
class LagCounts {
public:
    /// No tokens yet. V ≥ 1.
    explicit LagCounts(Index vocabulary, CountOptions options = {}) : options_(options) {
        if (vocabulary < 1 || vocabulary > std::numeric_limits<std::int32_t>::max())
            throw GraphError(
                text("LagCounts: found a vocabulary of ", vocabulary, " words, expected 1 … 2³¹ - 1"));
        if (options.lags < 1 || options.lags > 1000)
            throw GraphError(text("LagCounts: found ", options.lags, " lags, expected 1 … 1000"));
        if (options.block < 1 || options.block > (Index{1} << 31) - 1)
            throw GraphError(
                text("LagCounts: found blocks of ", options.block, " tokens, expected 1 … 2³¹ - 1"));
        occurrences_.assign(static_cast<std::size_t>(vocabulary), 0);
        const auto V = static_cast<Eigen::Index>(vocabulary);
        for (Index k = 0; k < options.lags; ++k) lags_.emplace_back(V, V);
    }

    /// Counts a whole text.
    void add(std::span<const Token> tokens) { add(tokens, 0, std::ssize(tokens)); }

    /// Counts the pairs of a text whose later token is at first … last-1; earlier tokens are looked at.
    void add(std::span<const Token> tokens, Index first, Index last) {
        if (first < 0 || last < first || last > std::ssize(tokens))
            throw GraphError(text("LagCounts: found the range ", first, " … ", last, " of a text of ",
                                  tokens.size(), " tokens"));
        const Index from = std::max<Index>(0, first - lags());
        for (Index p = from; p < last; ++p) {
            const Token w = tokens[static_cast<std::size_t>(p)];
            if (w < 0 || w >= vocabulary())
                throw DataError(text("LagCounts: token ", p, " is ", w, ", outside the vocabulary of ",
                                     vocabulary(), " words; read the text with the vocabulary counted with"));
        }
        require_room(last - first);
        LagCounts sum(vocabulary(), options_);
        for (Index p = first; p < last; p += options_.block) {
            const Index end = std::min(last, p + options_.block);
            sum.merge(block(tokens, p, end));
            for (Index q = p; q < end; ++q)
                ++sum.occurrences_[static_cast<std::size_t>(tokens[static_cast<std::size_t>(q)])];
        }
        sum.total_ = last - first;
        add(std::move(sum));
    }

    /// Adds the counts of another part of the text, of the same vocabulary, lags and boundary.
    void add(LagCounts other) {
        if (other.vocabulary() != vocabulary() || other.lags() != lags() ||
            other.options_.boundary != options_.boundary)
            throw GraphError(text("LagCounts: found counts of ", other.vocabulary(), " words, ", other.lags(),
                                  " lags and boundary ", other.options_.boundary, ", expected ", vocabulary(),
                                  ", ", lags(), " and ", options_.boundary, "; count all parts alike"));
        require_room(other.total_);
        merge(std::move(other.lags_));
        for (std::size_t i = 0; i < occurrences_.size(); ++i) occurrences_[i] += other.occurrences_[i];
        total_ += other.total_;
    }

    /// Puts counts together from their parts, as a file has them. Throws GraphError where they do not fit.
    static LagCounts from_parts(CountOptions options, std::vector<std::int64_t> occurrences,
                                std::vector<SparseCounts> lags) {
        LagCounts c(std::ssize(occurrences), options);
        if (std::ssize(lags) != options.lags)
            throw GraphError(text("LagCounts: found ", lags.size(), " matrices, expected ", options.lags));
        for (const SparseCounts& m : lags)
            if (m.rows() != c.vocabulary() || m.cols() != c.vocabulary())
                throw GraphError(text("LagCounts: found counts [", m.rows(), ", ", m.cols(), "], expected [",
                                      c.vocabulary(), ", ", c.vocabulary(), "]"));
        c.lags_ = std::move(lags);
        c.total_ = std::accumulate(occurrences.begin(), occurrences.end(), std::int64_t{0});
        c.occurrences_ = std::move(occurrences);
        return c;
    }

    Index vocabulary() const { return std::ssize(occurrences_); }  ///< V
    Index lags() const { return options_.lags; }                   ///< r
    std::int64_t tokens() const { return total_; }                 ///< tokens counted, T
    const CountOptions& options() const { return options_; }       ///< as given
    /// n, by word.
    const std::vector<std::int64_t>& occurrences() const { return occurrences_; }
    /// N_k, k = 1 … r. Throws GraphError for another k.
    const SparseCounts& lag(Index k) const {
        if (k < 1 || k > lags())
            throw GraphError(text("LagCounts: lag ", k, " is asked for, but lags 1 … ", lags(),
                                  " were counted; count with lags = ", k));
        return lags_[static_cast<std::size_t>(k - 1)];
    }

    /// Equal in every count.
    friend bool operator==(const LagCounts& a, const LagCounts& b) {
        if (a.occurrences_ != b.occurrences_ || a.lags() != b.lags() ||
            a.options_.boundary != b.options_.boundary)
            return false;
        for (std::size_t k = 0; k < a.lags_.size(); ++k) {
            const SparseCounts &x = a.lags_[k], &y = b.lags_[k];
            const auto n = x.nonZeros();
            if (n != y.nonZeros() ||
                !std::equal(x.outerIndexPtr(), x.outerIndexPtr() + x.rows() + 1, y.outerIndexPtr()) ||
                !std::equal(x.innerIndexPtr(), x.innerIndexPtr() + n, y.innerIndexPtr()) ||
                !std::equal(x.valuePtr(), x.valuePtr() + n, y.valuePtr()))
                return false;
        }
        return true;
    }

private:
    // The pairs of some rows, one lag: what one thread has found.
    struct Piece {
        std::vector<std::int32_t> columns, row_sizes;
        std::vector<std::uint32_t> values;
    };

    void require_room(std::int64_t more) const {
        if (total_ + more > std::int64_t{std::numeric_limits<std::uint32_t>::max()})
            throw DataError(text("LagCounts: ", total_ + more,
                                 " tokens are more than 2³² - 1, and a count "
                                 "could overflow"));
    }

    void merge(std::vector<SparseCounts> other) {
        std::vector<SparseCounts> sums;
        for (std::size_t k = 0; k < lags_.size(); ++k) {
            if (lags_[k].nonZeros() + other[k].nonZeros() > std::numeric_limits<std::int32_t>::max() &&
                lags_[k].nonZeros() > 0 && other[k].nonZeros() > 0)
                throw DataError(text("LagCounts: there may be more than 2³¹ - 1 different pairs at lag ",
                                     k + 1, "; cut the vocabulary"));
            if (lags_[k].nonZeros() == 0) sums.push_back(std::move(other[k]));
            else if (other[k].nonZeros() == 0) sums.push_back(std::move(lags_[k]));
            else sums.push_back(SparseCounts(lags_[k] + other[k]));
            lags_[k] = SparseCounts();
        }
        lags_ = std::move(sums);
    }

    // The pairs whose later token is at first … last-1. Positions are sorted by word, so that all that stands
    // before one word is counted at once, in a row as long as the vocabulary.
    std::vector<SparseCounts> block(std::span<const Token> tokens, Index first, Index last) const {
        const auto V = static_cast<std::size_t>(vocabulary());
        std::vector<std::uint32_t> starts(V + 1, 0), places(static_cast<std::size_t>(last - first));
        for (Index p = first; p < last; ++p) ++starts[static_cast<std::size_t>(tokens[std::size_t(p)]) + 1];
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        {
            std::vector<std::uint32_t> next(starts.begin(), starts.end() - 1);
            for (Index p = first; p < last; ++p)
                places[next[static_cast<std::size_t>(tokens[std::size_t(p)])]++] =
                    static_cast<std::uint32_t>(p - first);
        }
        const Index pieces = kernel::pieces(last - first, 1, last - first);
        std::vector<std::vector<Piece>> found(static_cast<std::size_t>(pieces));
        std::vector<std::exception_ptr> failed(found.size());
        kernel::parallel(pieces, 1, pieces, [&](Index a, Index b, Index) {
            for (Index i = a; i < b; ++i) {
                try {
                    // rows with about as many positions for each piece
                    const auto row_at = [&](Index part) {
                        const auto at = static_cast<std::uint32_t>((last - first) * part / pieces);
                        return part == pieces
                                   ? V
                                   : static_cast<std::size_t>(
                                         std::lower_bound(starts.begin(), starts.end(), at) - starts.begin());
                    };
                    found[std::size_t(i)] = count_rows(tokens, first, starts, places, std::min(V, row_at(i)),
                                                       std::min(V, row_at(i + 1)));
                } catch (...) {
                    failed[std::size_t(i)] = std::current_exception();
                }
            }
        });
        for (const auto& e : failed)
            if (e) std::rethrow_exception(e);
        return joined(found);
    }

    std::vector<Piece> count_rows(std::span<const Token> tokens, Index first,
                                  const std::vector<std::uint32_t>& starts,
                                  const std::vector<std::uint32_t>& places, std::size_t row,
                                  std::size_t end) const {
        const auto r = static_cast<std::size_t>(lags()), V = occurrences_.size();
        std::vector<Piece> out(r);
        std::vector<std::vector<std::uint32_t>> counts(r, std::vector<std::uint32_t>(V, 0));
        std::vector<std::vector<std::int32_t>> seen(r);
        for (; row < end; ++row) {
            for (std::uint32_t n = starts[row]; n < starts[row + 1]; ++n) {
                const Index p = first + static_cast<Index>(places[n]);
                const Index reach = std::min<Index>(p, lags());
                for (Index k = 1; k <= reach; ++k) {
                    const Token before = tokens[static_cast<std::size_t>(p - k)];
                    if (before == options_.boundary) break;
                    auto& cell = counts[std::size_t(k - 1)][static_cast<std::size_t>(before)];
                    if (cell++ == 0) seen[std::size_t(k - 1)].push_back(before);
                }
            }
            for (std::size_t k = 0; k < r; ++k) {
                std::sort(seen[k].begin(), seen[k].end());
                for (const std::int32_t c : seen[k]) {
                    out[k].columns.push_back(c);
                    out[k].values.push_back(std::exchange(counts[k][static_cast<std::size_t>(c)], 0u));
                }
                out[k].row_sizes.push_back(static_cast<std::int32_t>(seen[k].size()));
                seen[k].clear();
            }
        }
        return out;
    }

    std::vector<SparseCounts> joined(std::vector<std::vector<Piece>>& found) const {
        std::vector<SparseCounts> out;
        for (std::size_t k = 0; k < lags_.size(); ++k) {
            std::size_t n = 0;
            for (const auto& part : found) n += part[k].columns.size();
            const auto V = static_cast<Eigen::Index>(vocabulary());
            SparseCounts m(V, V);
            m.resizeNonZeros(static_cast<Eigen::Index>(n));  // n ≤ block ≤ 2³¹ - 1 after the check above
            std::int32_t at = 0;
            Eigen::Index row = 0;
            for (auto& part : found) {
                Piece& piece = part[k];
                std::copy(piece.columns.begin(), piece.columns.end(), m.innerIndexPtr() + at);
                std::copy(piece.values.begin(), piece.values.end(), m.valuePtr() + at);
                for (const std::int32_t size : piece.row_sizes) {
                    m.outerIndexPtr()[row++] = at;
                    at += size;
                }
                piece = Piece();
            }
            while (row <= V) m.outerIndexPtr()[row++] = at;
            out.push_back(std::move(m));
        }
        return out;
    }

    CountOptions options_;
    std::vector<std::int64_t> occurrences_;
    std::vector<SparseCounts> lags_;
    std::int64_t total_ = 0;
};

}  // namespace isogloss
