/// @file kernel/simd_avx512.hpp  What AVX-512 does better than the portable lanes: masks, maxima, exponentials.
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

/// exp within 2 units in the last place: 2^r e^f with r = round(x / ln 2) and |f| ≤ ln 2 / 2,
/// e^f = 1 + f + f² P(f), P of degree 4, or 9 in double (tests/reference/exponential.py). The losses consist of
/// exponentials, and AVX-512 can scale by powers of two, which a portable exp has to emulate.
template <class L>
requires(sizeof(L) == 64 && lane_count<L> == 16) struct LaneFunctions<L> {
    static float largest(L v) { return _mm512_reduce_max_ps(v); }
    static L exponential(L x) {
        const L near_zero =
            min(L(200.f), max(L(-200.f), x));  // beyond, the result is 0 or ∞ in any case; NaN passes
        const L r(
            _mm512_roundscale_ps(near_zero * L(1.442695041f), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        L f = fma_lanes(r, L(-0.693359375f), near_zero);
        f = fma_lanes(r, L(2.12194440e-4f), f);  // ln 2 in two parts, the first exact in products with r
        L p(0.00139336882f);
        for (const float c : {0.00836320501f, 0.041666463f, 0.166665763f, 0.5f}) p = fma_lanes(p, f, L(c));
        p = fma_lanes(p, f * f, f) + L(1.f);
        return L(_mm512_scalef_ps(p, r));
    }
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
    static L exponential(L x) {
        const L near_zero = min(L(1400.), max(L(-1400.), x));
        const L r(_mm512_roundscale_pd(near_zero * L(1.4426950408889634),
                                       _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        L f =
            fma_lanes(r, L(-0.693145751953125), near_zero);  // as above: no product may need a fused rounding
        f = fma_lanes(r, L(-1.4286068203094172e-06), f);
        L p(2.5100424157005067e-08);
        for (const double c :
             {2.7620138719732994e-07, 2.7557268378684192e-06, 2.4801521190217729e-05, 0.00019841269863105968,
              0.0013888888917281794, 0.0083333333333300511, 0.04166666666662399, 0.16666666666666669, 0.5})
            p = fma_lanes(p, f, L(c));
        p = fma_lanes(p, f * f, f) + L(1.);
        return L(_mm512_scalef_pd(p, r));
    }
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
