/// @file loss/block_plan.hpp  Block size and memory layout of a fused softmax.
#pragma once

#include <algorithm>
#include <isogloss/graph/arena.hpp>
#include <isogloss/kernel/skinny_gemm.hpp>
#include <isogloss/threads.hpp>
#include <thread>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// What a loss needs of its output head besides the logits.
struct HeadNeeds {
    Index arrays = 1;  ///< [rows, V] arrays of a block, including the logits; the others come from extra()
    /// The first extra array, so that `arrays` is at least 2, holds the products of a table with its own rows, one for
    /// each distinct target of a block, and rows of a block are sorted by target. The table is the head's unless setup
    /// is given another.
    bool word_logits = false;
    bool word_gradient = false;  ///< with word_logits: the loss may set LogitBlock::word_gradient
    Index bytes_a_row = 0;       ///< memory of the loss itself per row of a block
    Index bytes_a_position = 0;  ///< and per position [T, B]
    Index bytes = 0;             ///< and independent of both
};

/// The memory of a fused softmax, all of it within the graph's budget, and the division of positions into
/// blocks of rows. For a block of R rows, with S = R, or 2 R if the products include word vectors, one pool
/// holds
///
///     arrays   [arrays, R, V]   the logits and the loss's own
///     states   [S, n]           the hidden states, unless contiguous, and the word vectors below
///     packed                    the same, packed, for few rows
///     partial  [threads, S, n]  dl/dh per thread, for few rows
template <class T> class BlockPlan {
public:
    static constexpr Index tile = 64;  ///< rows of the table and of a block at a time, for a modulus

    BlockPlan() = default;
    /// For a table [vocabulary, width], `capacity` positions and `budget` bytes. A budget too small for one row
    /// gives blocks of one row.
    BlockPlan(const HeadNeeds& needs, Index vocabulary, Index width, Index capacity, Index budget)
        : arrays_(needs.arrays),
          vocabulary_(vocabulary),
          width_(width),
          // Allows for later passes too: the number of threads may be set after the model is built.
          threads_(std::clamp<Index>(std::max<Index>(threads(), std::thread::hardware_concurrency()), 1, 16)),
          words_(needs.word_logits) {
        const Index word = words_ ? Index{sizeof(Token) + sizeof(Index)} : 0,
                    position = needs.bytes_a_position + Index{sizeof(Index) + sizeof(Token) + sizeof(double)},
                    rest = needs.bytes + capacity * position + 2 * tile * width * Index{sizeof(T)} +
                           36 * Arena::overhead;
        const auto bytes = [&](Index rows) {
            return size(rows) * Index{sizeof(T)} + rows * (needs.bytes_a_row + word) + rest;
        };
        rows_ = std::clamp<Index>(budget / (arrays_ * vocabulary * Index{sizeof(T)}), 1, capacity);
        const Index enough = std::max({bytes(std::min(rows_, enough_rows)), needs.bytes + enough_bytes,
                                       needs.bytes + vocabulary * width * Index{sizeof(T)} / 2});
        while (rows_ > 1 && bytes(rows_) > std::min(budget, enough)) --rows_;
    }

    /// Maximum number of rows of a block.
    Index rows() const { return rows_; }
    /// Maximum number of rows of the products of a block of `rows` rows: hidden states, and word vectors.
    Index states_of(Index rows) const { return (words_ ? 2 : 1) * rows; }
    /// Maximum number of pieces into which threads divide a product.
    Index threads_at_most() const { return threads_; }
    /// Number of elements of the pool for a block of `rows` rows.
    Index size(Index rows) const {
        return partial(rows) + threads_ * states_of(std::min(rows, Skinny::most(width_))) * width_;
    }

    /// Offsets of the parts of the pool.
    Index array(Index k, Index rows) const { return k * rows * vocabulary_; }
    Index states(Index rows) const { return array(arrays_, rows); }                     ///< see array()
    Index packed(Index rows) const { return states(rows) + states_of(rows) * width_; }  ///< see array()
    Index partial(Index rows) const { return packed(rows) + packed_size(rows); }        ///< see array()

    /// Rows of the next block when `left` remain: as few blocks as possible, of nearly equal size, since even a
    /// thin one costs a pass over the whole table; or one block more, if that fills lane groups better.
    Index next(Index left) const {
        constexpr Index pass = 24;  // rows that cost as much as a pass over the table
        Index best = 0, least = 0;
        for (const Index limit : {rows_, rows_ - rows_ % grain()}) {
            if (limit == 0) continue;
            const Index blocks = (left + limit - 1) / limit, even = (left + blocks - 1) / blocks,
                        rows = std::min({padded(even), limit, left}), whole = left / rows, rest = left % rows,
                        cost = whole * (padded(rows) + pass) + (rest > 0 ? padded(rest) + pass : 0);
            if (best == 0 || cost < least) best = rows, least = cost;
        }
        return best;
    }

private:
    using Skinny = kernel::SkinnyGemm<T>;
    // More rows or bytes than these make a block hardly faster, unless the table is larger still.
    static constexpr Index enough_rows = 64, enough_bytes = Index{18} << 20;

    // With fewer word vectors than rows, a block may stay within most_transposed().
    Index packed_size(Index rows) const {
        return Skinny::Micro::wide
                   ? Skinny::size(std::min(states_of(rows), Skinny::most_transposed(width_)), width_)
                   : 0;
    }
    Index grain() const {
        return words_ ? std::max<Index>(1, Skinny::Micro::lanes / 2) : Skinny::Micro::lanes;
    }
    Index padded(Index rows) const { return (rows + grain() - 1) / grain() * grain(); }

    Index arrays_ = 1, vocabulary_ = 0, width_ = 0, threads_ = 1, rows_ = 1;
    bool words_ = false;
};

}}  // namespace isogloss
