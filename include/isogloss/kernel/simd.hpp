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

#ifdef XTENSOR_USE_XSIMD
#include <xsimd/xsimd.hpp>
#endif

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

#ifdef XTENSOR_USE_XSIMD
using Architecture = xsimd::default_arch;
template <class T, class A = Architecture> using Lanes = xsimd::batch<T, A>;
template <class L> inline constexpr Index lane_count = static_cast<Index>(L::size);
#else
struct Scalar {};  ///< stands in for an instruction set of xsimd
using Architecture = Scalar;
template <class T, class A = Architecture> using Lanes = T;
template <class L> inline constexpr Index lane_count = 1;
using std::abs;
using std::exp;
using std::fma;
using std::log;
using std::max;
using std::tanh;
#endif

/// a b + c, in one rounding where xsimd or the compiler fuses the two operations.
template <class L> inline L fma_lanes(L a, L b, L c) { return fma(a, b, c); }

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

/// f(x) for an f that is saturated at ±bound. Without AVX-512 xsimd converts doubles to integers in plain
/// C++, which is undefined for huge numbers and NaN: f is then called with neither.
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

/// Functions that an instruction set may specialise, as simd_avx512.hpp does; likewise for Masked.
template <class L> struct LaneFunctions {
    /// The largest lane.
    static auto largest(L v) {
        alignas(L) typename L::value_type lanes[lane_count<L>];
        v.store_aligned(lanes);
        return *std::max_element(lanes, lanes + lane_count<L>);
    }
    static L exponential(L x) {
        return within(1000, x, [](L v) { return exp(v); });
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

/// The sum of all lanes. Unqualified names inside `requires` are looked up at instantiation, which distinguishes
/// xsimd 8 from later versions.
template <class L> auto lane_sum(L v) {
    if constexpr (lane_count<L> == 1) return v;
    else if constexpr (requires { reduce_add(v); }) return reduce_add(v);
    else return hadd(v);
}
/// The largest lane.
template <class L> auto lane_max(L v) {
    if constexpr (lane_count<L> == 1) return v;
    else return LaneFunctions<L>::largest(v);
}

/// exp and tanh of any number.
template <class L> inline L exp_lanes(L x) { return LaneFunctions<L>::exponential(x); }
template <class L> inline L tanh_lanes(L x) {  ///< see above
    return within(50, x, [](L v) { return tanh(v); });
}

/// 1 / (1 + exp(-x)), finite for every finite x.
template <class L> inline L sigmoid(L x) { return L(1) / (L(1) + exp_lanes(-x)); }

}}}  // namespace isogloss::kernel

#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
#include <isogloss/kernel/simd_avx512.hpp>
#endif
