/// @file loss/block_plan.hpp  How many rows of logits a fused softmax takes at a time, and where they lie.
#pragma once

#include <algorithm>
#include <isogloss/graph/arena.hpp>
#include <isogloss/kernel/skinny_gemm.hpp>
#include <isogloss/threads.hpp>
#include <thread>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// What a loss needs of its output head besides the logits.
struct HeadNeeds {
    Index arrays = 1;     ///< [rows, V] arrays of a block, the logits included; the others come from extra()
    bool sorted = false;  ///< rows come sorted by target, so that equal targets are neighbours
    /// The first extra array holds the table's products with its own rows, one for each distinct target of a
    /// block; implies `sorted`.
    bool word_logits = false;
    Index bytes_a_row = 0;       ///< what the loss itself takes for every row of a block
    Index bytes_a_position = 0;  ///< and for every position [T, B]
    Index bytes = 0;             ///< and once
};

/// The memory of a fused softmax, all of it within the budget of the graph, and how positions are cut into
/// blocks of rows. For a block of R rows, with S = R, or 2 R where word vectors go through the products too,
/// one pool holds
///
///     arrays   [arrays, R, V]   the logits and the loss's own
///     states   [S, n]           the hidden states, unless they lie together, and the word vectors below
///     packed                    the same, packed, where they are few
///     partial  [threads, S, n]  dl/dh by each thread, where they are few
template <class T> class BlockPlan {
public:
    static constexpr Index tile = 64;  ///< rows of the table and of a block at a time, for a modulus

    BlockPlan() = default;
    /// For a table [vocabulary, width], `capacity` positions and `budget` bytes. A budget below what one row
    /// takes gives blocks of one row.
    BlockPlan(const HeadNeeds& needs, Index vocabulary, Index width, Index capacity, Index budget)
        : arrays_(needs.arrays),
          vocabulary_(vocabulary),
          width_(width),
          // For the threads of later passes too, whose number may be set after the model is built.
          threads_(std::clamp<Index>(std::max<Index>(threads(), std::thread::hardware_concurrency()), 1, 16)),
          words_(needs.word_logits) {
        const Index word = needs.sorted || words_ ? Index{sizeof(Token) + sizeof(Index)} : 0,
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

    /// Most rows of one block.
    Index rows() const { return rows_; }
    /// Most pieces that threads cut a product into.
    Index threads_at_most() const { return threads_; }
    /// Numbers that the pool holds for a block of so many rows.
    Index size(Index rows) const {
        return partial(rows) + threads_ * states_of(std::min(rows, Skinny::most(width_))) * width_;
    }

    /// Where the parts of the pool begin.
    Index array(Index k, Index rows) const { return k * rows * vocabulary_; }
    Index states(Index rows) const { return array(arrays_, rows); }                     ///< see array()
    Index packed(Index rows) const { return states(rows) + states_of(rows) * width_; }  ///< see array()
    Index partial(Index rows) const { return packed(rows) + packed_size(rows); }        ///< see array()

    /// Rows of the next block when `left` are to come: as many blocks as needed, as even as they can be, for
    /// a thin one costs a pass over the whole table too; or one more, where that fills lane groups better.
    Index next(Index left) const {
        constexpr Index pass = 24;  // rows that cost as much as passing over the table
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
    // More rows than these, or more bytes, make a block hardly faster, unless the table is larger still.
    static constexpr Index enough_rows = 64, enough_bytes = Index{18} << 20;

    Index states_of(Index rows) const { return (words_ ? 2 : 1) * rows; }
    // A block may have fewer word vectors than rows, and be of few rows for that.
    Index packed_size(Index rows) const {
        return Skinny::Micro::wide ? Skinny::size(std::min(states_of(rows), Skinny::most_transposed), width_)
                                   : 0;
    }
    Index grain() const {
        return words_ ? std::max<Index>(1, Skinny::Micro::lanes / 2) : Skinny::Micro::lanes;
    }
    Index padded(Index rows) const { return (rows + grain() - 1) / grain() * grain(); }

    Index arrays_ = 1, vocabulary_ = 0, width_ = 0, threads_ = 1, rows_ = 1;
    bool words_ = false;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
