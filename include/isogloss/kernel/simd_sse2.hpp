/// @file kernel/simd_sse2.hpp  Fused products in software, four numbers at a time: for SSE2, and for WebAssembly, whose
/// compiler knows the same intrinsics.
///
/// Empty without SSE2.
#pragma once

#include <isogloss/config.hpp>

#ifdef __SSE2__
#include <emmintrin.h>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

namespace detail {

/// a b + c of two numbers of float in double: the product is exact, the sum rounded.
struct TwoSums {
    __m128d product, c, sum;
    TwoSums(__m128 a, __m128 b, __m128 addend)
        : product(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b))),
          c(_mm_cvtps_pd(addend)),
          sum(_mm_add_pd(product, c)) {}

    /// The sums rounded to odd, as in fused_in_double for one: an inexact sum lies between two numbers whose bits, as
    /// integers, are consecutive, and becomes the odd one.
    __m128d to_odd() const {
        const __m128d part = _mm_sub_pd(sum, product),
                      error = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, part)), _mm_sub_pd(c, part)),
                      size = _mm_andnot_pd(_mm_set1_pd(-0.), error);
        const __m128i inexact =
                          _mm_castpd_si128(_mm_cmplt_pd(_mm_setzero_pd(), size)),  // not where it is NaN
            towards_zero = _mm_srli_epi64(_mm_castpd_si128(_mm_xor_pd(error, sum)), 63),
                      below = _mm_sub_epi64(_mm_castpd_si128(sum), _mm_and_si128(towards_zero, inexact));
        return _mm_castsi128_pd(_mm_or_si128(below, _mm_srli_epi64(inexact, 63)));
    }
};

/// Whether the rounding of any of four sums to float depends on what they lost when rounded in double: those just in the
/// middle of two floats, whose last 29 bits are 1 0…0, and those that will be subnormal.
inline bool is_doubtful(__m128d low, __m128d high) {
    const __m128 a = _mm_castpd_ps(low), b = _mm_castpd_ps(high);
    const __m128i last = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0))),
                  first = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1))),
                  middle = _mm_cmpeq_epi32(_mm_and_si128(last, _mm_set1_epi32(0x1fffffff)),
                                           _mm_set1_epi32(0x10000000));
    // 0 < |sum| < 2^-126: without their sign, the first 32 bits minus 1 are below those of 2^-126, as unsigned numbers,
    // which SSE2 compares after a shift by 2^31.
    constexpr int bound = static_cast<int>(0x70200000u - 1 - 0x80000000u);
    const __m128i small = _mm_cmplt_epi32(
        _mm_add_epi32(_mm_add_epi32(first, first), _mm_set1_epi32(0x7fffffff)), _mm_set1_epi32(bound));
    return _mm_movemask_epi8(_mm_or_si128(middle, small)) != 0;
}

}  // namespace detail

/// a b + c in one rounding, in four lanes. Few sums are doubtful, about one of 2^29 where the factors are arbitrary.
inline __m128 fused_in_double(__m128 a, __m128 b, __m128 c) {
    const auto upper = [](__m128 x) { return _mm_movehl_ps(x, x); };
    const auto to_float = [](__m128d low, __m128d high) {
        return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
    };
    const detail::TwoSums low(a, b, c), high(upper(a), upper(b), upper(c));
    if (detail::is_doubtful(low.sum, high.sum)) [[unlikely]]
        return to_float(low.to_odd(), high.to_odd());
    return to_float(low.sum, high.sum);
}

}}}  // namespace isogloss::kernel
#endif
