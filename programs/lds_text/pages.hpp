/// @file pages.hpp  Pages of mapped files, which count as memory of the program while it holds them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace lt {

/// Gives up the pages of these bytes of a mapped file, but not the last, of which others may be in use; where they are read
/// again the system reads the file again.
inline void release(std::span<const std::byte> bytes) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page,
               last = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) / page * page;
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace lt
