// Replaces operator new for the test programs, so that a step that allocates can be caught, and one that gets
// no memory be tried. It goes through malloc and free, which the sanitizers watch.
#include "allocations.hpp"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t never = SIZE_MAX;

std::atomic<std::size_t> count{0}, fails_at{never}, fails_until{never}, largest{SIZE_MAX};
std::atomic<std::ptrdiff_t> held{0}, bytes{0}, most_bytes{0};

// Counts a call, and whether it is to fail.
bool refuse(std::size_t size) noexcept {
    const std::size_t number = count.fetch_add(1, std::memory_order_relaxed);
    return size > largest.load(std::memory_order_relaxed) ||
           (number >= fails_at.load(std::memory_order_relaxed) &&
            number < fails_until.load(std::memory_order_relaxed));
}

#ifdef _WIN32
// There an aligned block cannot be asked for its size: what is needed stands before it.
struct Header {
    void* block;
    std::size_t size;
};
void* aligned(std::size_t size, std::size_t alignment) noexcept {
    alignment = std::max(alignment, alignof(std::max_align_t));
    void* block = std::malloc(size + alignment + sizeof(Header));
    if (!block) return block;
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(block) + sizeof(Header);
    auto* p = reinterpret_cast<Header*>((first + alignment - 1) / alignment * alignment);
    p[-1] = {block, size};
    return p;
}
std::size_t usable_size(void* p) noexcept { return static_cast<Header*>(p)[-1].size; }
void release(void* p) noexcept { std::free(static_cast<Header*>(p)[-1].block); }
#else
void* aligned(std::size_t size, std::size_t alignment) noexcept {
    return alignment == 1 ? std::malloc(size)
                          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
std::size_t usable_size(void* p) noexcept { return malloc_usable_size(p); }
void release(void* p) noexcept { std::free(p); }
#endif

void* counted(void* p) noexcept {
    if (!p) return p;
    held.fetch_add(1, std::memory_order_relaxed);
    const auto size = static_cast<std::ptrdiff_t>(usable_size(p));
    const std::ptrdiff_t now = bytes.fetch_add(size, std::memory_order_relaxed) + size;
    std::ptrdiff_t most = most_bytes.load(std::memory_order_relaxed);
    while (most < now && !most_bytes.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
    return p;
}

void* take(std::size_t size, std::align_val_t alignment = std::align_val_t{1}) noexcept {
    return refuse(size) ? nullptr
                        : counted(aligned(size == 0 ? 1 : size, static_cast<std::size_t>(alignment)));
}

void give_back(void* p) noexcept {
    if (!p) return;
    held.fetch_sub(1, std::memory_order_relaxed);
    bytes.fetch_sub(static_cast<std::ptrdiff_t>(usable_size(p)), std::memory_order_relaxed);
    release(p);
}

void* or_throw(void* p) {
    if (!p) throw std::bad_alloc();
    return p;
}

}  // namespace

std::size_t allocations() { return count.load(std::memory_order_relaxed); }
std::ptrdiff_t blocks_held() { return held.load(std::memory_order_relaxed); }

FailingAllocation::FailingAllocation(std::size_t k, bool for_good) {
    fails_until = for_good ? never : allocations() + k + 1;
    fails_at = allocations() + k;
}
FailingAllocation::~FailingAllocation() { fails_at = never; }
bool FailingAllocation::happened() const { return allocations() > fails_at; }

LargestAllocation::LargestAllocation(std::size_t size) { largest = size; }
LargestAllocation::~LargestAllocation() { largest = SIZE_MAX; }

MostBytes::MostBytes() : before_(bytes.load()) { most_bytes = before_; }
std::ptrdiff_t MostBytes::most() const { return most_bytes.load() - before_; }

void* operator new(std::size_t n) { return or_throw(take(n)); }
void* operator new[](std::size_t n) { return or_throw(take(n)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return take(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return take(n); }
void* operator new(std::size_t n, std::align_val_t a) { return or_throw(take(n, a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return or_throw(take(n, a)); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return take(n, a); }
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return take(n, a); }

void operator delete(void* p) noexcept { give_back(p); }
void operator delete[](void* p) noexcept { give_back(p); }
void operator delete(void* p, std::size_t) noexcept { give_back(p); }
void operator delete[](void* p, std::size_t) noexcept { give_back(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { give_back(p); }
