/// @file kernel/simd_avx512.hpp  What AVX-512 does better than the portable lanes: masks and maxima.
///
/// Empty without xsimd or without AVX-512.
#pragma once

#include <isogloss/kernel/simd.hpp>

#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

template <class L>
requires(sizeof(L) == 64) struct Masked<float, L> {
    Index i, count;
    L load(const float* row) const { return L(_mm512_maskz_loadu_ps(bits(), row + i)); }
    void store(float* row, L v) const { _mm512_mask_storeu_ps(row + i, bits(), v); }
    L mask(L v, float fill) const { return L(_mm512_mask_mov_ps(_mm512_set1_ps(fill), bits(), v)); }

private:
    __mmask16 bits() const { return static_cast<__mmask16>((1u << count) - 1u); }
};

template <class L>
requires(sizeof(L) == 64) struct Masked<double, L> {
    Index i, count;
    L load(const double* row) const { return L(_mm512_maskz_loadu_pd(bits(), row + i)); }
    void store(double* row, L v) const { _mm512_mask_storeu_pd(row + i, bits(), v); }
    L mask(L v, double fill) const { return L(_mm512_mask_mov_pd(_mm512_set1_pd(fill), bits(), v)); }

private:
    __mmask8 bits() const { return static_cast<__mmask8>((1u << count) - 1u); }
};

template <class L>
requires(sizeof(L) == 64 && lane_count<L> == 16) struct LaneFunctions<L> {
    static float largest(L v) { return _mm512_reduce_max_ps(v); }
    template <class Keep> static Index append(Keep keep, L v, Index i, Token* place, float* value) {
        const auto bits = static_cast<__mmask16>(keep);
        const __m512i places =
            _mm512_add_epi32(_mm512_set1_epi32(static_cast<Token>(i)),
                             _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        _mm512_storeu_si512(place, _mm512_maskz_compress_epi32(bits, places));
        _mm512_storeu_ps(value, _mm512_maskz_compress_ps(bits, v));
        return __builtin_popcount(bits);
    }
};
template <class L>
requires(sizeof(L) == 64 && lane_count<L> == 8) struct LaneFunctions<L> {
    static double largest(L v) { return _mm512_reduce_max_pd(v); }
    template <class Keep> static Index append(Keep keep, L v, Index i, Token* place, double* value) {
        const auto bits = static_cast<__mmask8>(keep);
        const __m512i places =
            _mm512_add_epi32(_mm512_set1_epi32(static_cast<Token>(i)),
                             _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(place),
                            _mm512_castsi512_si256(_mm512_maskz_compress_epi32(bits, places)));
        _mm512_storeu_pd(value, _mm512_maskz_compress_pd(bits, v));
        return __builtin_popcount(bits);
    }
};

}}}  // namespace isogloss::kernel
#endif
