/// @file kernel/simd.hpp  One vocabulary for vectorised and plain loops.
///
/// A kernel is written once, as a function of lanes; with xsimd a lane group is a SIMD register of the
/// instruction set chosen by the compiler's flags, without it a single number. The tail of a row goes
/// through the same vector code on a padded register, so the last bit of an element does not depend on
/// its position.
///
/// Nor does it depend on the instruction set: products and sums are rounded one by one (-ffp-contract=off), elementary
/// functions are the library's own, and sums over a row run in as many lanes everywhere, see LaneSum.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <isogloss/kernel/simd_sse2.hpp>
#include <isogloss/types.hpp>
#include <iterator>
#include <type_traits>

#ifdef XTENSOR_USE_XSIMD
#include <xsimd/xsimd.hpp>
#endif

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

#ifdef XTENSOR_USE_XSIMD
using Architecture = xsimd::default_arch;
template <class T, class A = Architecture> using Lanes = xsimd::batch<T, A>;
template <class L> inline constexpr Index lane_count = static_cast<Index>(L::size);
template <std::floating_point T> inline constexpr Index lane_count<T> = 1;
/// Whether fma() of these lanes rounds once.
template <class L>
#ifdef __aarch64__
inline constexpr bool fuses = true;
#else
inline constexpr bool fuses = std::is_same_v<typename L::arch_type, xsimd::fma3<xsimd::avx2>> ||
                              sizeof(L) == 64;
#endif
/// Registers for lanes.
template <class L>
#ifdef __aarch64__
inline constexpr int registers = 32;
#else
inline constexpr int registers = sizeof(L) == 64 ? 32 : 16;
#endif
#else
struct Scalar {};  ///< stands in for an instruction set of xsimd
using Architecture = Scalar;
template <class T, class A = Architecture> using Lanes = T;
template <class L> inline constexpr Index lane_count = 1;
template <class L> inline constexpr bool fuses = false;  // of a lane group; there are none
template <class L> inline constexpr int registers = 16;
#endif
template <std::floating_point T>
#ifdef FP_FAST_FMAF
inline constexpr bool fuses<T> = true;
#else
inline constexpr bool fuses<T> = false;
#endif
using std::abs;
using std::max;

/// a b + c in one rounding, through sums in double. The product is exact; the sum is rounded to odd: where it is not
/// exact, its last bit is set, so that the second rounding, to float, decides as the exact sum would.
inline float fused_in_double(float a, float b, float c) {
    const double product = double(a) * double(b), sum = product + double(c), part = sum - product,
                 error = (product - (sum - part)) + (double(c) - part);
    auto bits = std::bit_cast<std::uint64_t>(sum);
    if ((error < 0 || error > 0) && bits % 2 == 0) bits += (error > 0) == (sum > 0) ? 1 : std::uint64_t(-1);
    return static_cast<float>(std::bit_cast<double>(bits));
}
/// a b + c in one rounding; see above.
template <class T> inline T fused(T a, T b, T c) {
#ifndef FP_FAST_FMAF
    if constexpr (std::is_same_v<T, float>) return fused_in_double(a, b, c);
#endif
    return std::fma(a, b, c);
}
template <class L> inline L fused_lanes(L a, L b, L c) {
    if constexpr (lane_count<L> == 1) {
        return fused(a, b, c);
    } else if constexpr (fuses<L>) {
#ifdef __AVX512F__  // where xsimd 8 rounds twice
        if constexpr (sizeof(L) == 64 && lane_count<L> == 16) return L(_mm512_fmadd_ps(a, b, c));
        else if constexpr (sizeof(L) == 64) return L(_mm512_fmadd_pd(a, b, c));
        else
#endif
            return fma(a, b, c);
    } else {
        using T = typename L::value_type;
        constexpr Index n = lane_count<L>;
        alignas(L) T x[n], y[n], z[n];
        a.store_aligned(x), b.store_aligned(y), c.store_aligned(z);
#ifdef __SSE2__
        if constexpr (std::is_same_v<T, float>)
            for (Index i = 0; i < n; i += 4)
                _mm_store_ps(z + i,
                             fused_in_double(_mm_load_ps(x + i), _mm_load_ps(y + i), _mm_load_ps(z + i)));
        else
#endif
            for (Index i = 0; i < n; ++i) z[i] = fused(x[i], y[i], z[i]);
        return L::load_aligned(z);
    }
}

/// a / b and √a, rounded once; those of xsimd 8 are estimates in float on ARM.
template <class L> inline L divide(L a, L b) {
#if defined(XTENSOR_USE_XSIMD) && defined(__aarch64__)
    if constexpr (std::is_same_v<L, Lanes<float>>) return L(vdivq_f32(a, b));
#endif
    return a / b;
}
template <class L> inline L square_root(L a) {
#if defined(XTENSOR_USE_XSIMD) && defined(__aarch64__)
    if constexpr (std::is_same_v<L, Lanes<float>>) return L(vsqrtq_f32(a));
#endif
    using std::sqrt;
    return sqrt(a);
}

/// a where the condition holds, else b, lane by lane.
template <class Condition, class L> inline L choose(Condition condition, L a, L b) {
    if constexpr (lane_count<L> == 1) return condition ? a : b;
    else return select(condition, a, b);
}

/// A full lane group at position i of a row.
template <class T, class L> struct Full {
    Index i;
    L load(const T* row) const {
        if constexpr (lane_count<L> == 1) return row[i];
        else return L::load_unaligned(row + i);
    }
    void store(T* row, L v) const {
        if constexpr (lane_count<L> == 1) row[i] = v;
        else v.store_unaligned(row + i);
    }
    /// The group itself; a masked group puts `fill` into the lanes beyond the row.
    L mask(L v, T /*fill*/) const { return v; }
};

/// The first `count` lanes of a group at position i of a row; loading sets the others to 0, storing writes
/// nothing beyond the row.
template <class T, class L> struct Masked {
    Index i, count;
    L load(const T* row) const {
        alignas(L) T lanes[lane_count<L>] = {};
        std::copy(row + i, row + i + count, lanes);
        return L::load_aligned(lanes);
    }
    void store(T* row, L v) const {
        alignas(L) T lanes[lane_count<L>];
        v.store_aligned(lanes);
        std::copy(lanes, lanes + count, row + i);
    }
    L mask(L v, T fill) const {
        alignas(L) T lanes[lane_count<L>];
        v.store_aligned(lanes);
        std::fill(lanes + count, lanes + lane_count<L>, fill);
        return L::load_aligned(lanes);
    }
};

/// Calls f(group) for the lane groups of [first, last): full ones, then the masked tail.
template <class T, class A = Architecture, class F> inline void sweep(Index first, Index last, F&& f) {
    using L = Lanes<T, A>;
    constexpr Index width = lane_count<L>;
    Index i = first;
    for (; i + width <= last; i += width) f(Full<T, L>{i});
    if constexpr (width > 1)
        if (i < last) f(Masked<T, L>{i, last - i});
}

/// Functions that an instruction set may specialise, as simd_avx512.hpp does; likewise for Masked.
template <class L> struct LaneFunctions {
    /// The largest lane.
    static auto largest(L v) {
        alignas(L) typename L::value_type lanes[lane_count<L>];
        v.store_aligned(lanes);
        return *std::max_element(lanes, lanes + lane_count<L>);
    }
    /// Writes the lanes that are kept, in order, and their positions, lane 0 being at i; returns their number. May
    /// write up to lane_count<L> of each.
    template <class Keep, class T> static Index append(Keep keep, L v, Index i, Token* place, T* value) {
        if constexpr (lane_count<L> == 1) {
            *place = static_cast<Token>(i), *value = v;
            return keep;
        } else {
            if (!any(keep)) return 0;
            alignas(L) T lanes[lane_count<L>];
            bool kept[lane_count<L>];
            v.store_aligned(lanes);
            keep.store_unaligned(kept);
            Index count = 0;
            for (Index l = 0; l < lane_count<L>; ++l)
                if (kept[l]) place[count] = static_cast<Token>(i + l), value[count++] = lanes[l];
            return count;
        }
    }
};

/// The largest lane.
template <class L> auto lane_max(L v) {
    if constexpr (lane_count<L> == 1) return v;
    else return LaneFunctions<L>::largest(v);
}

/// A sum over a row that is the same for every instruction set: 64 bytes of lanes, in as many registers as they take,
/// each summing every so manieth number; then the upper half is added to the lower until one number is left.
template <class T, class A = Architecture> struct LaneSum {
    using L = Lanes<T, A>;
    static constexpr Index lanes = 64 / sizeof(T), width = lane_count<L>, registers = lanes / width;
    L part[registers];

    LaneSum() { std::fill_n(part, registers, L(T(0))); }
    T total() const {
        T sums[lanes];
        for (Index r = 0; r < registers; ++r) Full<T, L>{r * width}.store(sums, part[r]);
        for (Index half = lanes / 2; half > 0; half /= 2)
            for (Index l = 0; l < half; ++l) sums[l] += sums[l + half];
        return sums[0];
    }
};

/// Calls f(group, r) for the lane groups of [first, last), r being the register of a LaneSum that their terms join.
template <class T, class A = Architecture, class F> inline void sweep_sums(Index first, Index last, F&& f) {
    using L = Lanes<T, A>;
    using Sum = LaneSum<T, A>;
    Index i = first;
    for (; i + Sum::lanes <= last; i += Sum::lanes)
        for (Index r = 0; r < Sum::registers; ++r) f(Full<T, L>{i + r * Sum::width}, r);
    for (Index r = 0; i < last; i += Sum::width, ++r) {
        if (i + Sum::width <= last) f(Full<T, L>{i}, r);
        else if constexpr (Sum::width > 1) f(Masked<T, L>{i, last - i}, r);
    }
}

namespace detail {

/// exp x = 2^r e^f with r = round(x / ln 2) and |f| ≤ ln 2 / 2; e^f - 1 = f + f² P(f), P of degree 4, or 9 in double
/// (tests/reference/exponential.py).
template <class T> struct Exponential;
template <> struct Exponential<float> {
    using Bits = std::uint32_t;
    // r is read from the last bits of x / ln 2 + round_to; ln 2 has two parts, the first exact in products with r.
    static constexpr float inverse_ln2 = 1.442695041f, round_to = 0x1.8p23f, ln2 = 0.693359375f,
                           rest = -2.12194440e-4f, least = -86, largest = 89;
    static constexpr float P[] = {0.00139336882f, 0.00836320501f, 0.041666463f, 0.166665763f, 0.5f};
    static constexpr int shift = 23, bias = 126;
};
template <> struct Exponential<double> {
    using Bits = std::uint64_t;
    static constexpr double inverse_ln2 = 1.4426950408889634, round_to = 0x1.8p52, ln2 = 0.693145751953125,
                            rest = 1.4286068203094172e-06, least = -707, largest = 710;
    static constexpr double P[] = {2.5100424157005067e-08, 2.7620138719732994e-07,
                                   2.7557268378684192e-06, 2.4801521190217729e-05,
                                   0.00019841269863105968, 0.0013888888917281794,
                                   0.0083333333333300511,  0.04166666666662399,
                                   0.16666666666666669,    0.5};
    static constexpr int shift = 52, bias = 1022;
};

template <class L> struct NumberOf { using type = typename L::value_type; };
template <std::floating_point T> struct NumberOf<T> { using type = T; };

/// 2^(r-1) and e^f - 1 for x within the bounds of Exponential, or NaN.
template <class L> struct Parts {
    L half_power, rest;
    explicit Parts(L x) {
        using E = Exponential<typename NumberOf<L>::type>;
        const L shifted = x * L(E::inverse_ln2) + L(E::round_to), r = shifted - L(E::round_to);
        const L f = x - r * L(E::ln2) - r * L(E::rest);
        L p(E::P[0]);
        for (std::size_t i = 1; i < std::size(E::P); ++i) p = p * f + L(E::P[i]);
        rest = p * (f * f) + f;
        using Bits = typename E::Bits;
        if constexpr (lane_count<L> == 1) {
            half_power = std::bit_cast<L>((std::bit_cast<Bits>(shifted) + Bits{E::bias}) << E::shift);
        } else {
#ifdef XTENSOR_USE_XSIMD
            using I = xsimd::batch<Bits, typename L::arch_type>;
            half_power = std::bit_cast<L>((std::bit_cast<I>(shifted) + I(Bits{E::bias})) << E::shift);
#endif
        }
    }
};

}  // namespace detail

/// exp x within 2 units in the last place; 0 below -86, or -707 in double, so that no result is subnormal; ∞ where it
/// exceeds the largest number.
template <class L> inline L exp_lanes(L x) {
    using E = detail::Exponential<typename detail::NumberOf<L>::type>;
    const L most(E::largest), least(E::least), none(0);
    const auto small = x < least;
    const detail::Parts<L> e(choose(x > most, most, choose(small, least, x)));
    const L whole = e.rest + L(1);
    return choose(small, none, e.half_power * (whole + whole));
}
/// tanh x = ±(1 - t) / (1 + t) with t = exp(-2 |x|), within 4 units in the last place.
template <class L> inline L tanh_lanes(L x) {
    const L none(0), least(-60), twice = abs(x) * L(-2);
    const detail::Parts<L> e(choose(twice < least, least, twice));
    const L power = e.half_power + e.half_power, t_minus_1 = power * e.rest + (power - L(1)),
            size = divide(t_minus_1, L(2) + t_minus_1);
    return choose(x < none, size, -size);
}

/// 1 / (1 + exp(-x)), finite for every finite x.
template <class L> inline L sigmoid(L x) { return divide(L(1), L(1) + exp_lanes(-x)); }

}}}  // namespace isogloss::kernel

#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
#include <isogloss/kernel/simd_avx512.hpp>
#endif
