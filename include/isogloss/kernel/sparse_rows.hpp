/// @file kernel/sparse_rows.hpp  Unbiased sampling of a few entries of a row, and sums of rows weighted by them.
#pragma once

#include <cmath>
#include <isogloss/kernel/simd.hpp>
#include <limits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// Room that sample() needs behind the entries it keeps, and the number of samples it takes side by side.
inline constexpr Index sample_lanes = 16;

/// What sample() has kept of a row.
struct Sampled {
    Index kept = 0;
    double expected =
        0;  ///< mean of `kept` over u, a function of the row alone; ∞ if the room did not suffice
};

/// The start of sample l out of 16, below 1: evenly spaced, each uniform in [0, 1) if u is.
template <class T> T sample_start(double u, Index l) {
    const double start = u + double(l) / sample_lanes;
    return std::min(static_cast<T>(start - std::floor(start)), 1 - std::numeric_limits<T>::epsilon() / 2);
}

/// Straightforward versions, against which the kernels below are tested.
namespace plain {

template <class T>
Sampled sample(Index n, const T* g, T threshold, double u, Index room, Token* column, T* value) {
    T gathered[sample_lanes];
    for (Index l = 0; l < sample_lanes; ++l) gathered[l] = sample_start<T>(u, l) * threshold;
    Sampled s;
    T before = 0, after = 0;
    for (const T start : gathered) before += start;
    for (Index i = 0; i < n; ++i) {
        if (i % sample_lanes == 0 && s.kept + sample_lanes > room)
            return {s.kept, std::numeric_limits<double>::infinity()};
        T& sum = gathered[i % sample_lanes];
        const T size = std::abs(g[i]);
        if (size < threshold) {
            sum += size;
            if (size == 0 || sum < threshold) continue;
            sum -= threshold;
        }
        column[s.kept] = static_cast<Token>(i);
        value[s.kept++] = size < threshold ? std::copysign(threshold, g[i]) : g[i];
    }
    for (const T end : gathered) after += end;
    s.expected = double(s.kept) + (double(after) - double(before)) / double(threshold);
    return s;
}

template <class T> void add_weighted_rows(Index n, Index count, const Token* index, const T* weight,
                                          const T* x, Index stride, T* out) {
    for (Index j = 0; j < n; ++j) {
        double sum = 0;
        for (Index k = 0; k < count; ++k) sum += double(weight[k]) * double(x[index[k] * stride + j]);
        out[j] = static_cast<T>(double(out[j]) + sum);
    }
}

}  // namespace plain

/// A sparse row whose mean over u, uniform in [0, 1), is the row g [n]: entries of at least the threshold ε > 0 in
/// absolute value are kept; one below it becomes ±ε with probability |g_i| / ε, else 0. Nonzero entries are
/// written as (column, value), in order; NaN is kept.
///
/// The small entries are drawn by systematic sampling, sixteen samples side by side, sample l from the entries
/// i ≡ l modulo 16: their absolute values are summed, beginning at ε (u + l/16 modulo 1); where the sum reaches ε,
/// that entry is drawn and ε subtracted. One random number serves a row; `kept` is less than 16 from its mean.
///
/// Variance  of an entry below ε: |g_i| (ε - |g_i|), the sum over a row below ε Σ |g_i|.
/// `column` and `value` have `room` places; if these do not suffice the row is abandoned, see Sampled.
/// Sums are computed in T: in float an entry counts with a relative error of up to 2⁻²⁴ ε / |g_i|, which is 2e-4
/// for the entries of a flat row of a million at ε = 1/256.
template <class T, class A = Architecture>
Sampled sample(Index n, const T* g, T threshold, double u, Index room, Token* column, T* value) {
    using L = Lanes<T, A>;
    constexpr Index width = lane_count<L>, groups = sample_lanes / width;
    static_assert(groups * width == sample_lanes);
    L gathered[groups];
    const L most(threshold), none(T(0));
    T before = 0, after = 0;
    for (Index j = 0; j < groups; ++j) {
        T start[width];
        for (Index l = 0; l < width; ++l) before += start[l] = sample_start<T>(u, j * width + l) * threshold;
        gathered[j] = Full<T, L>{0}.load(start);
    }
    Sampled s;
    const auto take = [&](L& sum, auto at) {
        const L x = at.mask(at.load(g), T(0)), size = abs(x);
        const auto small = size < most;
        const L next = sum + choose(small, size, none);
        const auto drawn = small & (next >= most) & (size > none), keep = drawn | !small;
        sum = choose(drawn, next - most, next);
        s.kept += LaneFunctions<L>::append(keep, choose(small, choose(x < none, -most, most), x), at.i,
                                           column + s.kept, value + s.kept);
    };
    for (Index i = 0; i < n; i += sample_lanes) {
        if (s.kept + sample_lanes > room) return {s.kept, std::numeric_limits<double>::infinity()};
        for (Index j = 0; j < groups; ++j)
            sweep<T, A>(i + j * width, std::min(n, i + (j + 1) * width),
                        [&](auto at) { take(gathered[j], at); });
    }
    for (Index j = 0; j < groups; ++j) {
        T end[width];
        Full<T, L>{0}.store(end, gathered[j]);
        for (Index l = 0; l < width; ++l) after += end[l];
    }
    s.expected = double(s.kept) + (double(after) - double(before)) / double(threshold);
    return s;
}

namespace detail {

// Holds `full` lane groups of the sum and, if `tail` > 0, that many elements after them, in registers.
template <Index full, bool has_tail, class T, class L>
void add_weighted_panel(Index tail, Index count, const Token* index, const T* weight, const T* x,
                        Index stride, T* out) {
    constexpr Index groups = full + has_tail;
    L sum[groups];
    const auto each = [&](auto&& f) {
        for (Index g = 0; g < full; ++g) f(sum[g], Full<T, L>{g * lane_count<L>});
        if constexpr (has_tail) f(sum[full], Masked<T, L>{full * lane_count<L>, tail});
    };
    each([&](L& s, auto at) { s = at.load(out); });
    for (Index k = 0; k < count; ++k) {
        const T* const row = x + index[k] * stride;
        const L w(weight[k]);
        each([&](L& s, auto at) { s += w * at.load(row); });
    }
    each([&](L& s, auto at) { at.store(out, s); });
}

}  // namespace detail

/// out [n] += Σ_k weight_k x_{index_k} for rows x [·, n] that are `stride` apart.
template <class T, class A = Architecture> void add_weighted_rows(Index n, Index count, const Token* index,
                                                                  const T* weight, const T* x, Index stride,
                                                                  T* out) {
    using L = Lanes<T, A>;
    if (count == 0) return;  // out is not even read
    constexpr Index width = lane_count<L>, registers = 12;
    const Index tail = n % width;
    const auto panel = [&]<Index full, bool has_tail>() {
        detail::add_weighted_panel<full, has_tail, T, L>(tail, count, index, weight, x, stride, out);
        x += full * width, out += full * width, n -= full * width;
    };
    // The tail joins the last full groups: each panel is a loop over all indices.
    const auto panels = [&]<Index full>() {
        while (n >= (full + 1) * width || n == full * width) panel.template operator()<full, false>();
        if constexpr (width > 1)
            if (n > full * width) {
                panel.template operator()<full, true>();
                n = 0;
            }
    };
    panels.template operator()<registers>();
    panels.template operator()<4>();
    panels.template operator()<1>();
    if constexpr (width > 1)
        if (n > 0) panel.template operator()<0, true>();
}

}}}  // namespace isogloss::kernel
