/// @file kernel/rows.hpp  Elementwise work on contiguous rows: masks, sums, norms, finiteness.
///
/// multiply_rows, add_multiplied_rows, add and scale are plain loops, which compilers vectorise by
/// themselves; the others have a plain reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/error.hpp>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/random.hpp>
#include <limits>
#include <string_view>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {
namespace kernel {

/// Plain loops with sums in double, against which the kernels below are tested. Only dot has other uses: the sum
/// when a product exceeds the range of T, and wherever a sum is to be in double.
namespace plain {

template <class T> void add_column_sums(Index rows, Index width, const T* x, T* sums) {
    for (Index j = 0; j < width; ++j) {
        double sum = static_cast<double>(sums[j]);
        for (Index r = 0; r < rows; ++r) sum += static_cast<double>(x[r * width + j]);
        sums[j] = static_cast<T>(sum);
    }
}
template <class T> void draw_mask(const Random& random, Index first, Index n, double keep, T* mask) {
    for (Index i = 0; i < n; ++i)
        mask[i] = random.uniform(first + i) < keep ? static_cast<T>(1 / keep) : T(0);
}
template <class T> double dot(Index n, const T* x, const T* y) {
    double sum = 0;
    for (Index i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    return sum;
}
template <class T> Index first_non_finite(Index n, const T* x) {
    Index i = 0;
    while (i < n && std::isfinite(x[i])) ++i;
    return i;
}

}  // namespace plain

/// Number of terms added in T before the sum moves to double.
inline constexpr Index chunk = 512;

/// n entries of a dropout mask: 1/keep where uniform(first + i) < keep, 0 < keep ≤ 1, else 0. Numbers are drawn by the four
/// of a block, at the cost of one.
template <class T> void draw_mask(const Random& random, Index first, Index n, double keep, T* mask) {
    const T kept = static_cast<T>(1 / keep);
    for (Index i = 0; i < n;) {
        const Index place = first + i, block = place / 4;
        const auto u = random.uniforms(block);
        const Index past = std::min<Index>(4, n - i + place % 4);
        for (Index k = place % 4; k < past; ++k, ++i)
            mask[i] = u[static_cast<std::size_t>(k)] < keep ? kept : T(0);
    }
}

/// out = x ∘ mask for x [rows, width]; row r = t·batch + b takes row b of mask [batch, width].
template <class T>
void multiply_rows(Index rows, Index batch, Index width, const T* x, const T* mask, T* out) {
    const Index block = batch * width;
    for (Index r = 0; r < rows; r += batch, x += block, out += block)
        for (Index j = 0; j < block; ++j) out[j] = x[j] * mask[j];
}

/// out += x ∘ mask, or x ∘ mask² when squared; shapes as in multiply_rows.
template <bool squared, class T>
void add_multiplied_rows(Index rows, Index batch, Index width, const T* x, const T* mask, T* out) {
    const Index block = batch * width;
    for (Index r = 0; r < rows; r += batch, x += block, out += block)
        for (Index j = 0; j < block; ++j) out[j] += x[j] * (squared ? mask[j] * mask[j] : mask[j]);
}

/// y += x
template <class T> void add(Index n, const T* x, T* y) {
    for (Index i = 0; i < n; ++i) y[i] += x[i];
}

/// x *= factor
template <class T> void scale(Index n, T factor, T* x) {
    for (Index i = 0; i < n; ++i) x[i] *= factor;
}

/// sums[j] += Σ_r x[r, j] for x [rows, width], by blocks of rows so that long sums stay accurate.
template <class T, class A = Architecture>
void add_column_sums(Index rows, Index width, const T* x, T* sums) {
    using L = Lanes<T, A>;
    sweep<T, A>(0, width, [&](auto at) {
        L total(T(0));
        for (Index r = 0; r < rows;) {
            L part(T(0));
            for (const Index end = std::min(rows, r + 32); r < end; ++r) part += at.load(x + r * width);
            total += part;
        }
        at.store(sums, at.load(sums) + total);
    });
}

/// Σ term(group) over n numbers, in T by chunks, in double over the chunks.
template <class T, class A = Architecture, class F> double chunked_sum(Index n, F&& term) {
    double total = 0;
    for (Index i = 0; i < n; i += chunk) {
        LaneSum<T, A> sum;
        sweep_sums<T, A>(i, std::min(n, i + chunk), [&](auto at, Index r) { sum.part[r] += term(at); });
        total += static_cast<double>(sum.total());
    }
    return total;
}

/// Σ x² for finite x; right as long as it lies in the range of double, even if a square exceeds the range of T or is
/// too small for it.
template <class T, class A = Architecture> double sum_of_squares(Index n, const T* x) {
    const double sum = chunked_sum<T, A>(n, [&](auto at) {
        const auto v = at.load(x);
        return v * v;
    });
    // Squares below the smallest normal number may be lost; a sum that small would lack a share of itself.
    using Limits = std::numeric_limits<T>;
    const bool complete =
        std::isfinite(sum) && sum > double(n) * double(Limits::min()) / double(Limits::epsilon());
    return complete ? sum : plain::dot(n, x, x);
}

/// x / ‖x‖, in place; returns ‖x‖, its Euclidean norm. A row whose norm is 0 or not finite stays as it is; squares
/// may exceed the range of double or be too small for it.
template <class T, class A = Architecture> double normalise(Index n, T* x) {
    double norm = std::sqrt(sum_of_squares<T, A>(n, x));
    if (norm >= 1e-15 && norm <= 1e15) {
        scale(n, static_cast<T>(1 / norm), x);
    } else if (!std::isnan(norm)) {  // squares, or 1 / ‖x‖, may exceed the range of T or of double
        double largest = 0;
        for (Index i = 0; i < n; ++i) largest = std::max(largest, std::abs(double(x[i])));
        if (largest == 0 || !std::isfinite(largest)) return largest;
        double squares = 0;
        for (Index i = 0; i < n; ++i) squares += double(x[i]) / largest * (double(x[i]) / largest);
        norm = largest * std::sqrt(squares);
        if (!std::isfinite(norm)) return norm;
        for (Index i = 0; i < n; ++i) x[i] = static_cast<T>(double(x[i]) / largest / std::sqrt(squares));
    }
    return norm;
}

/// Σ x y for finite x and y; right as long as it lies in the range of double, even if a product exceeds that of T.
/// Products below the smallest normal number of T count as 0.
template <class T, class A = Architecture> double dot(Index n, const T* x, const T* y) {
    const double sum = chunked_sum<T, A>(n, [&](auto at) { return at.load(x) * at.load(y); });
    return std::isfinite(sum) ? sum : plain::dot(n, x, y);
}

/// The same for `rows` rows of y, `stride` apart, read side by side; each sum has the bits that it has alone.
template <int rows, class T, class A = Architecture>
void dots(Index n, const T* x, const T* y, Index stride, double* sums) {
    std::fill_n(sums, rows, 0.0);
    for (Index i = 0; i < n; i += chunk) {
        LaneSum<T, A> parts[rows];
        sweep_sums<T, A>(i, std::min(n, i + chunk), [&](auto at, Index r) {
            const auto v = at.load(x);
            for (int q = 0; q < rows; ++q) parts[q].part[r] += v * at.load(y + q * stride);
        });
        for (int q = 0; q < rows; ++q) sums[q] += static_cast<double>(parts[q].total());
    }
    for (int q = 0; q < rows; ++q)
        if (!std::isfinite(sums[q])) sums[q] = plain::dot(n, x, y + q * stride);
}

/// Position of the first element that is not finite, or n.
template <class T, class A = Architecture> Index first_non_finite(Index n, const T* x) {
    using L = Lanes<T, A>;
    const L zero(T(0));
    for (Index i = 0; i < n; i += chunk) {
        const Index end = std::min(n, i + chunk);
        LaneSum<T, A> probe;  // 0 · x is 0 for finite x and NaN otherwise
        sweep_sums<T, A>(i, end,
                         [&](auto at, Index r) { probe.part[r] += at.mask(at.load(x), T(0)) * zero; });
        if (!(probe.total() == T(0)))
            for (Index j = i; j < end; ++j)
                if (!std::isfinite(x[j])) return j;
    }
    return n;
}

}  // namespace kernel

/// Throws E (NumericError), naming `who`, unless the n numbers of `name` are finite.
///
///     require_finite("save_lds", "A", a.size(), a.data());
///     // save_lds: found nan in A, number 3, expected finite numbers
template <class E = NumericError, class T>
void require_finite(std::string_view who, std::string_view name, Index n, const T* x) {
    if (const Index bad = kernel::first_non_finite(n, x); bad < n)
        throw E(who, ": found ", x[bad], " in ", name, ", number ", bad, ", expected finite numbers");
}

}}  // namespace isogloss
