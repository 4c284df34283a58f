/// @file allocations.hpp  How often this program has asked for memory, and what happens when it gets none.
#pragma once

#include <cstddef>

/// Calls of operator new, in all its forms, since the program began.
std::size_t allocations();

/// Blocks that operator new has given and that have not come back.
std::ptrdiff_t blocks_held();

/// While one lives, the k-th call of operator new from now on fails, k = 0, 1 …, and all later ones too where
/// it is for good. One at a time.
class FailingAllocation {
public:
    explicit FailingAllocation(std::size_t k, bool for_good = false);
    ~FailingAllocation();
    FailingAllocation(const FailingAllocation&) = delete;
    FailingAllocation& operator=(const FailingAllocation&) = delete;

    /// Whether it has come to that.
    bool happened() const;
};

/// While one lives, operator new gives no block larger than so many bytes: a small machine. One at a time.
class LargestAllocation {
public:
    explicit LargestAllocation(std::size_t bytes);
    ~LargestAllocation();
    LargestAllocation(const LargestAllocation&) = delete;
    LargestAllocation& operator=(const LargestAllocation&) = delete;
};

/// The most bytes that operator new has given at a time since one was made, beyond those it had given before;
/// as malloc counts them, which rounds up. One at a time.
class MostBytes {
public:
    MostBytes();
    std::ptrdiff_t most() const;

private:
    std::ptrdiff_t before_;
};
