/// @file loss/block_plan.hpp  Blocks of rows of logits: their memory, and how many rows they have.
#pragma once

#include <algorithm>
#include <isogloss/graph/arena.hpp>
#include <isogloss/graph/setup.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The memory of a loss for blocks of some number of rows, counted or taken. A loss lists its arrays in one function,
/// which is called with a BlockMemory that counts until the number of rows is found, and then with one that takes.
template <class T> class BlockMemory {
public:
    /// One that counts or, with a setup, takes.
    explicit BlockMemory(Setup<T>* setup = nullptr) : setup_(setup) {}

    /// An array of n elements, see Setup::scratch.
    template <class U> void take(U*& array, Index n) {
        if (n > 0) count<U>(n);
        if (n > 0 && setup_) array = setup_->template scratch<U>(n);
    }
    /// An array of n elements that somebody else takes.
    template <class U> void count(Index n) { bytes_ += n * Index{sizeof(U)} + graph::Arena::overhead; }
    Index bytes() const { return bytes_; }  ///< of all arrays so far

private:
    Setup<T>* setup_;
    Index bytes_ = 0;
};

namespace detail {

/// Bytes from which larger blocks are hardly faster, for a table of `table` bytes. Products in bfloat16 pack the table
/// anew for each block.
inline Index enough(bool bf16, Index table) {
    return bf16 ? std::max(Index{34} << 20, table / 3 * 2) : std::max(Index{17} << 20, table / 2);
}

/// Most rows of a block, from 1 to `rows`: as many as bytes(rows) within `budget` allows, and beyond 64 rows no more
/// than within `enough` bytes, apart from bytes(0).
template <class Bytes> Index most_rows(Index rows, Index budget, Index enough, Bytes&& bytes) {
    enough += bytes(0);
    Index least = 1;
    while (least < rows) {
        const Index middle = least + (rows - least + 1) / 2, needed = bytes(middle);
        if (needed <= budget && (middle <= 64 || needed <= enough)) least = middle;
        else rows = middle - 1;
    }
    return least;
}

/// Rows of the next block when `left` remain and `most` fit: as few blocks as possible, of nearly equal size, since
/// even a thin one costs a pass over the whole table; or one block more, if that fills groups of `grain` rows better.
inline Index next_rows(Index left, Index most, Index grain) {
    constexpr Index pass = 24;  // rows that cost as much as a pass over the table
    const auto padded = [grain](Index rows) { return (rows + grain - 1) / grain * grain; };
    Index best = 0, least = 0;
    for (const Index limit : {most, most - most % grain}) {
        if (limit == 0) continue;
        const Index blocks = (left + limit - 1) / limit, even = (left + blocks - 1) / blocks,
                    rows = std::min({padded(even), limit, left}), whole = left / rows, rest = left % rows,
                    cost = whole * (padded(rows) + pass) + (rest > 0 ? padded(rest) + pass : 0);
        if (best == 0 || cost < least) best = rows, least = cost;
    }
    return best;
}

}  // namespace detail

}}  // namespace isogloss
