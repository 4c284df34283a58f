/// @file subnormals.hpp  Subnormal numbers count as 0 while the library computes.
#pragma once

#include <isogloss/config.hpp>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// For as long as one lives, its thread reads and writes subnormal numbers (below 1e-38 in float, 2e-308 in
/// double) as 0; what was set before comes back with its end. Probabilities and gradients that all but vanish
/// are subnormal, and products of matrices full of them take processors ten times as long. Every pass
/// and every update that keeps averages holds one, and parallel() passes it on to its threads. On processors
/// other than x86 it does nothing.
class SubnormalsAreZero {
public:
    /// With `wanted` false it is the other way round: subnormal numbers count.
    explicit SubnormalsAreZero([[maybe_unused]] bool wanted = true) {
#if defined(__SSE2__)
        before_ = _mm_getcsr();
        _mm_setcsr(wanted ? before_ | bits : before_ & ~bits);
#endif
    }
    ~SubnormalsAreZero() {
#if defined(__SSE2__)
        _mm_setcsr((_mm_getcsr() & ~bits) | (before_ & bits));  // exceptions raised since stay raised
#endif
    }
    SubnormalsAreZero(const SubnormalsAreZero&) = delete;
    SubnormalsAreZero& operator=(const SubnormalsAreZero&) = delete;

    /// Whether the calling thread does so now.
    static bool active() {
#if defined(__SSE2__)
        return (_mm_getcsr() & bits) == bits;
#else
        return false;
#endif
    }

private:
    [[maybe_unused]] static constexpr unsigned bits = 0x8040;  // flush to zero, denormals are zero
    [[maybe_unused]] unsigned before_ = 0;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
