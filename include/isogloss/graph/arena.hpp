/// @file graph/arena.hpp  Memory of a graph: taken while it is built, never in a step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <isogloss/sizes.hpp>
#include <isogloss/types.hpp>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

/// Hands out zeroed blocks, 64-byte aligned, one after the other, each between two guard bands of 64
/// bytes. Blocks live as long as the arena and never move.
class Arena {
public:
    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    /// A zeroed block; its number of elements is the product of the sizes. Messages name `who`.
    ///
    /// Throws UsageError if a size is negative, the number of bytes overflows or there is no memory; the arena
    /// is then unchanged.
    template <class T> T* take(std::initializer_list<Index> sizes, std::string_view who = "graph") {
        static_assert(std::is_trivially_copyable_v<T>, "an arena holds plain numbers");
        const Index asked = bytes_of(who, sizes, sizeof(T));
        const std::size_t wanted = round_up(static_cast<std::size_t>(std::max<Index>(asked, 1)));
        return within_memory(who, asked, [&] {
            if (blocks_.size() == blocks_.capacity()) blocks_.reserve(2 * blocks_.size() + 16);
            std::byte* start = bytes(wanted + 2 * guard);  // after which nothing can fail
            blocks_.push_back({start, wanted});
            std::memset(start, pattern, guard);
            std::memset(start + guard, 0, wanted);
            std::memset(start + guard + wanted, pattern, guard);
            return reinterpret_cast<T*>(start + guard);
        });
    }
    template <class T> T* take(Index n, std::string_view who = "graph") {
        return take<T>({n}, who);
    }  ///< a block of n elements

    /// What is taken at a given time.
    struct Mark {
        std::size_t chunks, blocks;
        std::byte* next;
        std::size_t left, size;
    };
    Mark mark() const { return {chunks_.size(), blocks_.size(), next_, left_, size_}; }  ///< see back_to
    /// Releases what was taken since a mark. Does not throw.
    void back_to(const Mark& m) {
        chunks_.resize(m.chunks);
        blocks_.resize(m.blocks);
        next_ = m.next, left_ = m.left, size_ = m.size;
    }

    /// Most bytes that a block takes beyond the size requested.
    static constexpr Index overhead = 2 * 64 + 63;

    /// Bytes in use, guard bands included.
    std::size_t size() const { return size_; }

    /// Whether nothing has been written beyond the ends of any block.
    bool guards_intact() const {
        const auto intact = [](const std::byte* p) {
            return std::all_of(p, p + guard, [](std::byte b) { return b == std::byte{pattern}; });
        };
        return std::all_of(blocks_.begin(), blocks_.end(), [&](const Block& b) {
            return intact(b.start) && intact(b.start + guard + b.size);
        });
    }

private:
    static constexpr std::size_t guard = 64, chunk = std::size_t{1} << 20, page = std::size_t{2} << 20;
    static constexpr unsigned char pattern = 0xA5;
    static std::size_t round_up(std::size_t n) { return (n + 63) / 64 * 64; }

    struct Free {
        void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{page}); }
    };
    struct Block {
        std::byte* start = nullptr;
        std::size_t size = 0;
    };

    std::byte* bytes(std::size_t n) {
        if (n > left_) {  // a large block gets a chunk of its own, so that little is left unused
            const std::size_t size = std::max(n, chunk);
            std::unique_ptr<std::byte[], Free> fresh(
                static_cast<std::byte*>(::operator new[](size, std::align_val_t{page})));
            chunks_.push_back(std::move(fresh));
            next_ = chunks_.back().get();
            left_ = size;
#ifdef __linux__
            // Products walk down the columns of large matrices: with small pages every row is on another page.
            if (left_ >= page) madvise(next_, left_ / page * page, MADV_HUGEPAGE);
#endif
        }
        std::byte* p = next_;
        next_ += n;
        left_ -= n;
        size_ += n;
        return p;
    }

    std::vector<std::unique_ptr<std::byte[], Free>> chunks_;
    std::vector<Block> blocks_;
    std::byte* next_ = nullptr;
    std::size_t left_ = 0, size_ = 0;
};

}}}  // namespace isogloss::graph
