/// @file kernel/simd.hpp  One vocabulary for vectorised and plain loops.
///
/// A kernel is written once, as a function of lanes; with xsimd a lane group is a SIMD register of the
/// instruction set chosen by the compiler's flags, without it a single number. The tail of a row goes
/// through the same vector code on a padded register, so the last bit of an element does not depend on
/// its position.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/types.hpp>
#include <limits>

#ifdef XTENSOR_USE_XSIMD
#include <xsimd/xsimd.hpp>
#endif

namespace isogloss::kernel {

#ifdef XTENSOR_USE_XSIMD
using Architecture = xsimd::default_arch;
template <class T, class A = Architecture> using Lanes = xsimd::batch<T, A>;
template <class L> inline constexpr Index lane_count = static_cast<Index>(L::size);
#else
struct Scalar {};  ///< stands where xsimd would name an instruction set
using Architecture = Scalar;
template <class T, class A = Architecture> using Lanes = T;
template <class L> inline constexpr Index lane_count = 1;
using std::exp;
using std::fma;
using std::log;
using std::max;
using std::tanh;
#endif

// Unqualified names inside `requires` are looked up at instantiation, which tells xsimd 8 from later ones.
template <class L> auto lane_sum(L v) {
    if constexpr (lane_count<L> == 1) return v;
    else if constexpr (requires { reduce_add(v); }) return reduce_add(v);
    else return hadd(v);
}
template <class L> auto lane_max(L v) {
    if constexpr (lane_count<L> == 1) {
        return v;
    } else {
#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
        if constexpr (sizeof(L) == 64 && lane_count<L> == 16) return _mm512_reduce_max_ps(v);
        else if constexpr (sizeof(L) == 64 && lane_count<L> == 8) return _mm512_reduce_max_pd(v);
        else
#endif
        {
            alignas(L) typename L::value_type lanes[lane_count<L>];
            v.store_aligned(lanes);
            return *std::max_element(lanes, lanes + lane_count<L>);
        }
    }
}

/// A full lane group at position i of a row.
template <class T, class L> struct Whole {
    Index i;
    L load(const T* row) const {
        if constexpr (lane_count<L> == 1) return row[i];
        else return L::load_unaligned(row + i);
    }
    void store(T* row, L v) const {
        if constexpr (lane_count<L> == 1) row[i] = v;
        else v.store_unaligned(row + i);
    }
    /// The group itself; a partial group puts `fill` into the lanes beyond the row.
    L only(L v, T /*fill*/) const { return v; }
};

/// The first `count` lanes of a group at position i, the rest zero.
template <class T, class L> struct Partial {
    Index i, count;
    L load(const T* row) const {
#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
        if constexpr (sizeof(L) == 64 && sizeof(T) == 4) return L(_mm512_maskz_loadu_ps(mask(), row + i));
        else if constexpr (sizeof(L) == 64 && sizeof(T) == 8)
            return L(_mm512_maskz_loadu_pd(static_cast<__mmask8>(mask()), row + i));
        else
#endif
        {
            alignas(L) T lanes[lane_count<L>] = {};
            std::copy(row + i, row + i + count, lanes);
            return L::load_aligned(lanes);
        }
    }
    void store(T* row, L v) const {
#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
        if constexpr (sizeof(L) == 64 && sizeof(T) == 4) return _mm512_mask_storeu_ps(row + i, mask(), v);
        else if constexpr (sizeof(L) == 64 && sizeof(T) == 8)
            return _mm512_mask_storeu_pd(row + i, static_cast<__mmask8>(mask()), v);
        else
#endif
        {
            alignas(L) T lanes[lane_count<L>];
            v.store_aligned(lanes);
            std::copy(lanes, lanes + count, row + i);
        }
    }
    L only(L v, T fill) const {
#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
        if constexpr (sizeof(L) == 64 && sizeof(T) == 4)
            return L(_mm512_mask_mov_ps(_mm512_set1_ps(fill), mask(), v));
        else if constexpr (sizeof(L) == 64 && sizeof(T) == 8)
            return L(_mm512_mask_mov_pd(_mm512_set1_pd(fill), static_cast<__mmask8>(mask()), v));
        else
#endif
        {
            alignas(L) T lanes[lane_count<L>];
            v.store_aligned(lanes);
            std::fill(lanes + count, lanes + lane_count<L>, fill);
            return L::load_aligned(lanes);
        }
    }

#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
private:
    __mmask16 mask() const { return static_cast<__mmask16>((1u << count) - 1u); }
#endif
};

/// Calls f(group) for the lane groups of [first, last): whole ones, then the padded tail.
template <class T, class A = Architecture, class F> inline void sweep(Index first, Index last, F&& f) {
    using L = Lanes<T, A>;
    constexpr Index width = lane_count<L>;
    Index i = first;
    for (; i + width <= last; i += width) f(Whole<T, L>{i});
    if constexpr (width > 1)
        if (i < last) f(Partial<T, L>{i, last - i});
}

/// a b + c in one rounding where the machine has it.
template <class L> inline L fma_lanes(L a, L b, L c) { return fma(a, b, c); }

/// f(x) for an f that has reached its limits at ±bound. Without AVX-512 xsimd converts doubles to integers in
/// plain C++, for which huge numbers and NaN are undefined: there f is spared both.
template <class L, class F> inline L within(double bound, L x, F f) {
    if constexpr (lane_count<L> == 1) {
        return f(x);
    } else if constexpr (sizeof(typename L::value_type) == 8 && sizeof(L) < 64) {
        const L most(static_cast<typename L::value_type>(bound)), none(0);
        const L value = f(select(abs(x) <= most, x, select(x < none, -most, most)));
        return select(x == x, value, x);
    } else {
        return f(x);
    }
}
#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
/// exp within 2 units in the last place: 2^r e^f with r = round(x / ln 2) and |f| ≤ ln 2 / 2,
/// e^f = 1 + f + f² P(f), P of degree 4, or 9 in double (tests/reference/exponential.py). The losses are made
/// of exponentials, and the instruction set scales by powers of two, which a portable exp does by hand.
template <class L> inline L exp_of_floats(L x) {
    const L near_zero =
        min(L(200.f), max(L(-200.f), x));  // beyond, the result is 0 or ∞ all the same; NaN passes
    const L r(
        _mm512_roundscale_ps(near_zero * L(1.442695041f), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    L f = fma_lanes(r, L(-0.693359375f), near_zero);
    f = fma_lanes(r, L(2.12194440e-4f), f);  // ln 2 in two parts, the first of them exact in products with r
    L p(0.00139336882f);
    for (const float c : {0.00836320501f, 0.041666463f, 0.166665763f, 0.5f}) p = fma_lanes(p, f, L(c));
    p = fma_lanes(p, f * f, f) + L(1.f);
    return L(_mm512_scalef_ps(p, r));
}
template <class L> inline L exp_of_doubles(L x) {  ///< see above
    const L near_zero = min(L(1400.), max(L(-1400.), x));
    const L r(_mm512_roundscale_pd(near_zero * L(1.4426950408889634),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    L f = fma_lanes(r, L(-0.693145751953125), near_zero);  // as above: no product may need a fused rounding
    f = fma_lanes(r, L(-1.4286068203094172e-06), f);
    L p(2.5100424157005067e-08);
    for (const double c :
         {2.7620138719733994e-07, 2.7557268378684192e-06, 2.4801521190217729e-05, 0.00019841269863105968,
          0.0013888888917281794, 0.0083333333333300511, 0.04166666666662399, 0.16666666666666669, 0.5})
        p = fma_lanes(p, f, L(c));
    p = fma_lanes(p, f * f, f) + L(1.);
    return L(_mm512_scalef_pd(p, r));
}
#endif

/// exp and tanh of any number.
template <class L> inline L exp_lanes(L x) {
#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
    if constexpr (sizeof(L) == 64 && lane_count<L> == 16) return exp_of_floats(x);
    else if constexpr (sizeof(L) == 64 && lane_count<L> == 8) return exp_of_doubles(x);
    else
#endif
        return within(1000, x, [](L v) { return exp(v); });
}
template <class L> inline L tanh_lanes(L x) {  ///< see above
    return within(50, x, [](L v) { return tanh(v); });
}

/// 1 / (1 + exp(-x)), finite for every finite x.
template <class L> inline L sigmoid(L x) { return L(1) / (L(1) + exp_lanes(-x)); }

}  // namespace isogloss::kernel
