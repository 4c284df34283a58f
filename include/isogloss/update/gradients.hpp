/// @file update/gradients.hpp  What first-order updates do before a step: divide, decay, clip.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/error.hpp>
#include <isogloss/graph/parameters.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <numeric>
#include <string_view>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace kernel {
/// Maximum number of pieces of over_numbers.
inline constexpr Index most_pieces = 64;

/// Calls f(first, last, piece) for pieces of n numbers, piece < most_pieces, which threads() share; a small n is one
/// piece.
template <class F> void over_numbers(Index n, F&& f) {
    constexpr Index worth_sharing = Index{1} << 16;
    parallel_pieces(n, kernel::chunk, n < worth_sharing ? 1 : most_pieces, f);
}
}  // namespace kernel

/// Calls f(i) for the rows of a parameter in which its gradient can differ from zero, without the frozen ones.
template <class T, class F> void for_each_row(const Parameter<T>& p, F&& f) {
    const auto visit = [&](Index i) {
        if (!p.is_frozen(i)) f(i);
    };
    if (p.condition == Parameter<T>::Condition::dense)
        for (Index i = 0; i < p.rows; ++i) visit(i);
    else if (p.condition == Parameter<T>::Condition::rows)
        for (const Index i : p.touched) visit(i);
}

/// Calls f(w, g, n, piece) for the contiguous ranges of a parameter in which its gradient can differ from
/// zero: everything, in at most 64 pieces that threads() share, the rows of for_each_row, or nothing.
template <class T, class F> void for_each_range(Parameter<T>& p, F&& f) {
    if (p.condition == Parameter<T>::Condition::dense && p.frozen.empty())
        kernel::over_numbers(p.size(), [&](Index first, Index last, Index piece) {
            f(p.value + first, p.gradient + first, last - first, piece);
        });
    else
        for_each_row(p, [&](Index i) { f(p.value + i * p.cols, p.gradient + i * p.cols, p.cols, Index{0}); });
}

namespace detail {
/// Calls allocate(p) for each parameter of a group, which takes `unit` bytes for each of its numbers. Throws
/// UsageError, naming `who` and the bytes of all, if memory does not suffice.
template <class Group, class F>
void allocate_per_parameter(std::string_view who, const Group& group, std::size_t unit, F&& allocate) {
    Index numbers = 0;
    for (const auto* p : group) numbers += p->size();
    within_memory(who, bytes_of(who, {numbers}, unit), [&] {
        for (const auto* p : group) allocate(*p);
    });
}
}  // namespace detail

/// The norm of the direction g / divisor + decay · w over a whole group, from sums in double; with decay ≠ 0 all
/// gradients become dense, without a change of their values. Throws NumericError, naming the parameter, when a
/// gradient is not finite.
template <class T> double direction_norm(const Parameters<T>& group, double divisor, double decay) {
    const T shrink = static_cast<T>(divisor * decay);
    double total = 0;
    for (Parameter<T>* p : group) {
        if (decay != 0 && p->trained) p->dense_gradient();
        double by_piece[kernel::most_pieces] = {};
        for_each_range(*p, [&](const T* w, const T* g, Index n, Index piece) {
            if (decay == 0) {
                by_piece[piece] += kernel::sum_of_squares(n, g);
                return;
            }
            T sum[kernel::chunk];
            for (Index first = 0, count; first < n; first += count) {
                count = std::min(kernel::chunk, n - first);
                for (Index i = 0; i < count; ++i) sum[i] = g[first + i] + shrink * w[first + i];
                by_piece[piece] += kernel::sum_of_squares(count, sum);
            }
        });
        const double squares = std::accumulate(by_piece, by_piece + kernel::most_pieces, 0.0);
        if (!std::isfinite(squares))
            throw NumericError("update: the gradient of '", p->name,
                               "' is not finite; nothing was changed. Lower ",
                               "the learning rate, or find the first node with Graph::checking(true)");
        total += squares;
    }
    return std::sqrt(total) / divisor;
}

/// The factor by which clipping scales a direction: min(1, clip / norm); clip = 0: no clipping.
inline double clip_factor(double norm, double clip) { return clip > 0 && norm > clip ? clip / norm : 1; }

/// Clips the gradients of a group by their joint norm, before updates of parts of it step at their own rates:
///
///     g ← g · min(1, clip / ‖g / d‖);    returns ‖g / d‖ before
///
/// clip ≥ 0 is the maximum norm, 0: no clipping; divisor is d, that of the updates that follow. What an update
/// adds to g, such as the weight decay of Sgd, comes later and is not included. Throws NumericError, naming the
/// parameter, when a gradient is not finite, and UsageError for a negative clip; nothing has been changed then.
template <class T>
double clip_gradients(const Parameters<T>& group, double clip, Divisor divisor = Divisor::batch) {
    require("clip_gradients", "clip", clip, 0.0);
    const double norm = direction_norm(group, group.divisor(divisor), 0);
    const T factor = static_cast<T>(clip_factor(norm, clip));
    if (factor != 1)
        for (Parameter<T>* p : group)
            for_each_range(*p, [&](T*, T* g, Index n, Index) { kernel::scale(n, factor, g); });
    return norm;
}

/// Renormalises those rows held at norm 1 that moved, and clears the gradient.
template <class T> void finish_step(Parameter<T>& p) {
    if (p.unit_rows) for_each_row(p, [&](Index i) { graph::normalise_row(p, i); });
    p.clear_gradient();
}

/// Steps all parameters of a group, or none: throws NumericError, with nothing changed, if a number would become infinite,
/// or a row held at norm 1 lose its direction. moved(k, i) is element i of parameter k after the step,
/// move(k, first, last) moves those elements of it, for the ranges of for_each_range; the gradient is then cleared.
/// `reach` is the most by which an element moves: a step so short that no number of them overflows is not looked at.
template <class T, class Moved, class Move>
void step_all(const Parameters<T>& group, double reach, Moved&& moved, Move&& move) {
    const bool may_overflow = !(reach <= std::sqrt(static_cast<double>(std::numeric_limits<T>::max())));
    for (std::size_t k = 0; k < group.size(); ++k) {
        const Parameter<T>& p = group[k];
        if (!p.unit_rows && !may_overflow) continue;
        for_each_row(p, [&](Index row) {
            T part[kernel::chunk];
            double squares = 0;
            bool finite = true;
            for (Index first = 0, count; first < p.cols; first += count) {
                count = std::min(kernel::chunk, p.cols - first);
                for (Index i = 0; i < count; ++i) part[i] = moved(k, row * p.cols + first + i);
                squares += kernel::sum_of_squares(count, part);
                finite = finite && kernel::first_non_finite(count, part) == count;
            }
            if (p.unit_rows ? !(squares > 0) || !std::isfinite(squares) : !finite)
                throw NumericError("update: the step takes row ", row, " of '", p.name, "' to the norm ",
                                   std::sqrt(squares), "; nothing was changed. Lower the learning rate");
        });
    }
    for (std::size_t k = 0; k < group.size(); ++k) {
        Parameter<T>& p = group[k];
        for_each_range(p,
                       [&](const T* w, const T*, Index n, Index) { move(k, w - p.value, w - p.value + n); });
        finish_step(p);
    }
}

}}  // namespace isogloss
