// Replaces operator new for the test programs, so that a step that allocates can be caught, and one that gets
// no memory be tried. It goes through malloc and free, which the sanitizers watch.
#include "allocations.hpp"

#include <malloc.h>

#include <atomic>
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

void* counted(void* p) noexcept {
    if (!p) return p;
    held.fetch_add(1, std::memory_order_relaxed);
    const auto size = static_cast<std::ptrdiff_t>(malloc_usable_size(p));
    const std::ptrdiff_t now = bytes.fetch_add(size, std::memory_order_relaxed) + size;
    std::ptrdiff_t most = most_bytes.load(std::memory_order_relaxed);
    while (most < now && !most_bytes.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
    return p;
}

void* take(std::size_t size) noexcept {
    return refuse(size) ? nullptr : counted(std::malloc(size == 0 ? 1 : size));
}

void* take(std::size_t size, std::align_val_t alignment) noexcept {
    if (refuse(size)) return nullptr;
    const auto to = static_cast<std::size_t>(alignment);
    return counted(std::aligned_alloc(to, (size + to - 1) / to * to + (size == 0 ? to : 0)));
}

void give_back(void* p) noexcept {
    if (p) {
        held.fetch_sub(1, std::memory_order_relaxed);
        bytes.fetch_sub(static_cast<std::ptrdiff_t>(malloc_usable_size(p)), std::memory_order_relaxed);
    }
    std::free(p);
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
