/// @file subnormals.hpp  Subnormal numbers are treated as 0 while the library computes.
#pragma once

#include <atomic>
#include <isogloss/config.hpp>

#if defined(__SSE2__) && !defined(__wasm__)
#include <xmmintrin.h>
#endif

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace detail {
inline std::atomic<bool>& is_portable() {
    static std::atomic<bool> it{false};
    return it;
}
}  // namespace detail

/// Whether all results of this process are the same bits on every processor; false unless set by portable(true).
inline bool portable() { return detail::is_portable().load(std::memory_order_relaxed); }

/// During its lifetime, its thread reads and writes subnormal numbers (below 1e-38 in float, 2e-308 in double)
/// as 0; its destructor restores the previous mode. Nearly vanishing probabilities and gradients are subnormal,
/// and products of matrices full of them take processors ten times as long. Every pass and every update that
/// keeps averages holds one, and parallel() passes the mode on to its threads. Does nothing if portable(), or on
/// processors other than x86.
class SubnormalsAreZero {
public:
    /// With `wanted` false, the reverse: subnormal numbers are kept.
    explicit SubnormalsAreZero([[maybe_unused]] bool wanted = true) {
#if defined(__SSE2__) && !defined(__wasm__)
        before_ = _mm_getcsr();
        _mm_setcsr(wanted && !portable() ? before_ | bits : before_ & ~bits);
#endif
    }
    ~SubnormalsAreZero() {
#if defined(__SSE2__) && !defined(__wasm__)
        _mm_setcsr((_mm_getcsr() & ~bits) | (before_ & bits));  // exception flags raised since stay set
#endif
    }
    SubnormalsAreZero(const SubnormalsAreZero&) = delete;
    SubnormalsAreZero& operator=(const SubnormalsAreZero&) = delete;

    /// Whether the calling thread treats them as 0 now.
    static bool active() {
#if defined(__SSE2__) && !defined(__wasm__)
        return (_mm_getcsr() & bits) == bits;
#else
        return false;
#endif
    }

private:
    [[maybe_unused]] static constexpr unsigned bits = 0x8040;  // flush to zero, denormals are zero
    [[maybe_unused]] unsigned before_ = 0;
};

}}  // namespace isogloss
