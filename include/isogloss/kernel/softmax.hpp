/// @file kernel/softmax.hpp  Row kernels of the softmax losses, each with a plain reference.
///
/// A row holds the logits z of one position over the vocabulary. Sums over the vocabulary run in T over
/// chunks of 512 and in double over the chunks; the maximum is always subtracted first.
#pragma once

#include <cmath>
#include <concepts>
#include <isogloss/elementary.hpp>
#include <isogloss/kernel/rows.hpp>
#include <limits>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// max z, n ≥ 1. Does not detect NaN, which shows in the log-sum-exp.
template <class T, class A = Architecture> T row_max(Index n, const T* z) {
    using L = Lanes<T, A>;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    L m(lowest);
    sweep<T, A>(0, n, [&](auto at) { m = max(at.mask(at.load(z), lowest), m); });
    return lane_max(m);
}

/// Σ exp(scale (z - shift)) and, unless out is null, out = exp(scale (z - shift)); out may be z.
template <class T, class A = Architecture> double exp_sum(Index n, const T* z, T shift, T scale, T* out) {
    using L = Lanes<T, A>;
    const L s(scale), m(shift);
    return chunked_sum<T, A>(n, [&](auto at) {
        const L e = exp_lanes(s * (at.load(z) - m));
        if (out) at.store(out, e);
        return at.mask(e, T(0));
    });
}

/// z ← softmax(scale z), for scale > 0; returns log Σ exp(scale z), which is NaN if the row holds NaN or +∞, or only
/// -∞.
template <class T, class A = Architecture> double softmax(Index n, T* z, T scale = T(1)) {
    const T m = row_max<T, A>(n, z);
    const double sum = exp_sum<T, A>(n, z, m, scale, z);
    kernel::scale(n, static_cast<T>(1 / sum), z);
    return double(scale) * double(m) + elementary::log(sum);
}

/// z ← log softmax(scale z), for scale > 0, without underflow; returns log Σ exp(scale z), which is NaN if the
/// row holds NaN or +∞, or only -∞.
template <class T, class A = Architecture> double log_softmax(Index n, T* z, T scale = T(1)) {
    using L = Lanes<T, A>;
    const T m = row_max<T, A>(n, z);
    const double log_sum = elementary::log(exp_sum<T, A>(n, z, m, scale, static_cast<T*>(nullptr)));
    const L s(scale), shift(m), of_all(static_cast<T>(log_sum));
    sweep<T, A>(0, n, [&](auto at) { at.store(z, s * (at.load(z) - shift) - of_all); });
    return double(scale) * double(m) + log_sum;
}

/// -log softmax(z)[target]; with `gradient` z ← upstream (softmax(z) - 1_target), else z is unchanged.
template <class T, class A = Architecture>
double cross_entropy(Index n, T* z, Index target, double upstream = 1, bool gradient = true) {
    const T m = row_max<T, A>(n, z);
    const double of_target = double(z[target]) - double(m);
    const double sum = exp_sum<T, A>(n, z, m, T(1), gradient ? z : nullptr);
    if (gradient) {
        kernel::scale(n, static_cast<T>(upstream / sum), z);
        z[target] -= static_cast<T>(upstream);
    }
    return elementary::log(sum) - of_target;
}
/// Deleted, as any number would pass for `gradient`, even one meant for `upstream`.
template <class T, class G>
requires(!std::same_as<G, bool>) double cross_entropy(Index, T*, Index, double, G) = delete;

/// z ← e = exp(scale (z - shift)); returns Σ e and sets cross = Σ e · scale (z - shift).
template <class T, class A = Architecture>
double exp_sum_and_cross(Index n, T* z, T shift, T scale, double& cross) {
    using L = Lanes<T, A>;
    const L s(scale), m(shift);
    double total = 0;
    cross = 0;
    for (Index i = 0; i < n; i += chunk) {
        LaneSum<T, A> part, cross_part;
        sweep_sums<T, A>(i, std::min(n, i + chunk), [&](auto at, Index r) {
            const L d = s * (at.load(z) - m), e = at.mask(exp_lanes(d), T(0));
            at.store(z, e);
            part.part[r] += e;
            cross_part.part[r] += e * d;
        });
        total += static_cast<double>(part.total());
        cross += static_cast<double>(cross_part.total());
    }
    return total;
}

/// difference ← n s - Σ_r z_r over the columns [first, last) of n rows z_r [rows, stride]: the difference of
/// logits s from those of n positions, given the raw logits of all.
template <class T, class A = Architecture> void sum_of_differences(Index first, Index last, Index n,
                                                                   const T* s, const T* z, Index stride,
                                                                   T* difference) {
    using L = Lanes<T, A>;
    const L count(static_cast<T>(n));
    sweep<T, A>(first, last, [&](auto at) {
        L d = count * at.load(s);
        for (Index r = 0; r < n; ++r) d -= at.load(z + r * stride);
        at.store(difference, d);
    });
}

/// e ← scale e (inverse_temperature difference + shift): the derivative by the logits of a soft target.
template <class T, class A = Architecture>
void through_softmax(Index n, T scale, T* e, T inverse_temperature, const T* difference, T shift) {
    using L = Lanes<T, A>;
    const L k(scale), it(inverse_temperature), c(shift);
    sweep<T, A>(0, n, [&](auto at) { at.store(e, k * at.load(e) * (it * at.load(difference) + c)); });
}

/// What one pass over the logits of a position yields for the augmented loss.
struct TwoTemperatures {
    double sum = 0;       ///< Σ exp(z - max)
    double soft_sum = 0;  ///< Σ exp((z - max) / τ)
    double cross = 0;     ///< Σ weight · (z - max) / τ
};

/// z ← exp(z - m) and soft ← exp((z - m) / τ), with their sums and the cross term with `weight`, in one
/// pass; inverse_temperature is 1/τ.
template <class T, class A = Architecture>
TwoTemperatures exp_two_temperatures(Index n, T* z, T m, T inverse_temperature, const T* weight, T* soft) {
    using L = Lanes<T, A>;
    const L it(inverse_temperature), mm(m);
    TwoTemperatures r;
    for (Index i = 0; i < n; i += chunk) {
        LaneSum<T, A> sum, soft_sum, cross;
        sweep_sums<T, A>(i, std::min(n, i + chunk), [&](auto at, Index k) {
            const L d = at.load(z) - mm, e = exp_lanes(d), d_soft = it * d, e_soft = exp_lanes(d_soft);
            at.store(z, e);
            at.store(soft, e_soft);
            sum.part[k] += at.mask(e, T(0));
            soft_sum.part[k] += at.mask(e_soft, T(0));
            cross.part[k] += at.load(weight) * d_soft;
        });
        r.sum += static_cast<double>(sum.total());
        r.soft_sum += static_cast<double>(soft_sum.total());
        r.cross += static_cast<double>(cross.total());
    }
    return r;
}

/// KL(p ‖ q) for p = e / Σe and q = f / Σf, as Σ p (u - log(1 + u)) with u = q/p - 1: every term is at least 0, so
/// that nothing cancels where p and q nearly agree. Where e has underflowed to 0 the term is its limit, q; where f
/// alone has, the sum is infinite. In double.
template <class T> double divergence(Index n, const T* e, double e_sum, const T* f, double f_sum) {
    constexpr double by_series = 1. / 32;  // there the next term of the series is below 3e-10 of the first
    const double ratio = e_sum / f_sum;
    double total = 0;
    for (Index i = 0; i < n; ++i) {
        if (!(e[i] > T(0))) {
            total += double(f[i]) * ratio;
            continue;
        }
        const double u = double(f[i]) / double(e[i]) * ratio - 1,
                     series =
                         u * u * (1. / 2 - u * (1. / 3 - u * (1. / 4 - u * (1. / 5 - u * (1. / 6 - u / 7))))),
                     term = std::abs(u) < by_series ? series : u - elementary::log(1 + u);
        total += double(e[i]) * term;
    }
    return total / e_sum;
}

/// z ← a z + b soft + c weight: combines the two softmaxes and the soft target into a derivative.
template <class T, class A = Architecture>
void combine(Index n, T a, T* z, T b, const T* soft, T c, const T* weight) {
    using L = Lanes<T, A>;
    const L la(a), lb(b), lc(c);
    sweep<T, A>(0, n,
                [&](auto at) { at.store(z, la * at.load(z) + lb * at.load(soft) + lc * at.load(weight)); });
}

/// Straightforward versions in double, against which the kernels above are tested.
namespace plain {

/// log Σ exp(scale z)
template <class T> double log_sum_exp(Index n, const T* z, double scale = 1) {
    double m = -std::numeric_limits<double>::infinity(), s = 0;
    for (Index i = 0; i < n; ++i) m = std::max(m, scale * double(z[i]));
    for (Index i = 0; i < n; ++i) s += std::exp(scale * double(z[i]) - m);
    return m + std::log(s);
}

/// softmax(scale z)
template <class T> std::vector<double> softmax(Index n, const T* z, double scale = 1) {
    const double log_sum = log_sum_exp(n, z, scale);
    std::vector<double> p;
    for (Index i = 0; i < n; ++i) p.push_back(std::exp(scale * double(z[i]) - log_sum));
    return p;
}

/// -log softmax(z)[target]
template <class T> double cross_entropy(Index n, const T* z, Index target) {
    return log_sum_exp(n, z) - double(z[target]);
}

/// KL(softmax(s / τ) ‖ softmax(z / τ))
template <class T> double soft_divergence(Index n, const T* s, const T* z, double temperature) {
    const double ls = log_sum_exp(n, s, 1 / temperature), lz = log_sum_exp(n, z, 1 / temperature);
    double kl = 0;
    for (Index i = 0; i < n; ++i) {
        const double log_target = double(s[i]) / temperature - ls;
        kl += std::exp(log_target) * (log_target - (double(z[i]) / temperature - lz));
    }
    return kl;
}

}  // namespace plain
}}}  // namespace isogloss::kernel
