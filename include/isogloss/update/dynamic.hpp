/// @file update/dynamic.hpp  Dynamic evaluation: weights that adapt temporarily to the text they predict.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/subnormals.hpp>
#include <isogloss/update/lease.hpp>
#include <isogloss/update/rule.hpp>
#include <limits>
#include <span>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// How DynamicUpdate scales a gradient.
enum class DynamicRule {
    sgd,  ///< by the rate alone
    rms   ///< also by the root of its mean square over the training text
};

/// Options of DynamicUpdate. The defaults are those of the code published with the paper, for `rms` with
/// segments of 5 steps.
struct DynamicOptions {
    DynamicRule rule = DynamicRule::rms;
    double rate = 5e-5;                 ///< η ≥ 0
    double decay = 0.002;               ///< λ in [0, 1]: how fast weights return to the trained ones
    double epsilon = 2e-5;              ///< ε > 0, of `rms`; not below the smallest normal number of T
    Divisor divisor = Divisor::tokens;  ///< what raw sums of derivatives are divided by
};

/// The update of dynamic evaluation, which adapts a trained model to the text it has just predicted.
///
///     sgd    θ ← θ - η g + λ (θ₀ - θ)
///     rms    θ ← θ - η g / (√MS + ε) + min(1, λ R) (θ₀ - θ),    R = √MS / avg √MS
///            MS = 1/M Σ g²,  over the M backward passes followed by collect()
///
/// g is the sum of raw derivatives over the divisor, θ₀ the weights before the first step() since construction or
/// restore(), so that the model may be trained or loaded in between; operations are elementwise;
/// avg is the mean over the parameters of the mean within each; where it is 0, so is λ R. A square beyond the range of T
/// counts as the largest number. Rows of a table that were not looked up cost nothing when λ = 0.
///
/// The changes are temporary: restore() or the destructor, also after an exception, restores θ₀ bit for bit. Between
/// step() and then the weights are lent (Lease). evaluate_dynamically() runs the whole procedure.
///
/// Memory   one copy of the group's weights, two for rms
/// Errors   UsageError: options out of range; a gradient of the group that already counts at construction and
///          would be lost; step() without a backward pass since the last, under rms before collect(), and of weights
///          that are lent to another. NumericError, with nothing changed: a gradient that is not finite, a weight that
///          would become infinite, a row held at norm 1 that would lose its direction
/// Source   Krause, Kahembwe, Murray, Renals 2018, "Dynamic evaluation of neural sequence models", section 5;
///          avg and min(1, ·) as in its published code. Departure: a decay for sgd is one number, not R
template <class T> class DynamicUpdate : public Rule<T, DynamicOptions> {
public:
    DynamicUpdate(Parameters<T> group, DynamicOptions options)
        : Rule<T, DynamicOptions>("dynamic update", std::move(group), options),
          lease_(group_, "dynamic update") {
        decay(options.decay);
        require("dynamic update", "epsilon", options.epsilon,
                static_cast<double>(std::numeric_limits<T>::min()));
        group_.require_no_gradients("dynamic update");
        if (rms())
            detail::allocate_per_parameter("dynamic update", group_, sizeof(T), [&](const Parameter<T>& p) {
                squares_.emplace_back(p.size(), T(0));
            });
    }
    ~DynamicUpdate() { restore(); }
    DynamicUpdate(const DynamicUpdate&) = delete;
    DynamicUpdate& operator=(const DynamicUpdate&) = delete;

    double decay() const { return options_.decay; }
    /// Sets λ in [0, 1]; throws UsageError if it is out of range.
    void decay(double lambda) {
        require("dynamic update", "decay", lambda, 0, 1);
        options_.decay = lambda;
    }

    /// After a backward pass over training text: adds the squares of the gradient to MS and clears the gradient;
    /// under sgd only clears it. The weights are unchanged.
    void collect() {
        const SubnormalsAreZero flush;
        group_.require_gradients("dynamic update");
        const double d = group_.divisor(options_.divisor);
        direction_norm(group_, d, 0);  // throws where it is not finite
        const T factor = static_cast<T>(1 / d);
        for (std::size_t k = 0; k < group_.size(); ++k) {
            Parameter<T>& p = group_[k];
            if (rms())
                for_each_range(p, [&](const T* w, const T* g, Index n, Index) {
                    T* s = squares_[k].data() + (w - p.value);
                    for (Index i = 0; i < n; ++i)
                        s[i] =
                            std::min(s[i] + (factor * g[i]) * (factor * g[i]), std::numeric_limits<T>::max());
                });
            p.clear_gradient();
        }
        ++collected_;
        average_ = -1;
    }

    /// One step; returns the norm of the gradient.
    double step() { return step_along({}, 0, 0); }

    /// Restores the trained weights, bit for bit, and clears the gradients of the group.
    void restore() noexcept {
        lease_.restore();
        group_.clear_gradients();
    }

protected:
    using Rule<T, DynamicOptions>::group_, Rule<T, DynamicOptions>::options_;

    /// A step in which parameters with directions Δ of their own, not null, move along these:
    ///
    ///     θ ← θ + decay (θ₀ - θ) + rate · Δ,    decay = λ or min(1, λ R), as above
    ///
    /// `reach`: the most by which one of their numbers moves.
    double step_along(std::span<const T* const> directions, double rate, double reach) {
        const SubnormalsAreZero flush;
        group_.require_gradients("dynamic update");
        const double d = group_.divisor(options_.divisor), norm = direction_norm(group_, d, 0);
        if (rms() && average_ < 0) average_ = average_root();
        if (!lease_.lent()) lease_.begin();
        reach = std::max(reach, options_.rate * norm / (rms() ? options_.epsilon : 1));
        if (rms()) move<true>(d, directions, rate, reach);
        else move<false>(d, directions, rate, reach);
        return norm;
    }

private:
    bool rms() const { return options_.rule == DynamicRule::rms; }

    // avg √MS.
    double average_root() const {
        if (collected_ == 0)
            throw UsageError(
                "dynamic update: rms needs mean squares; call collect() after backward passes over ",
                "training text");
        double total = 0;
        for (const auto& squares : squares_) {
            double sum = 0;
            for (const T s : squares) sum += std::sqrt(double(s) / double(collected_));
            total += sum / double(std::max<std::size_t>(squares.size(), 1));
        }
        return total / double(squares_.size());
    }

    template <bool by_rms>
    void move(double d, std::span<const T* const> directions, double rate, double reach) {
        const T eta = static_cast<T>(options_.rate / d), epsilon = static_cast<T>(options_.epsilon),
                along = static_cast<T>(rate), scale = static_cast<T>(by_rms ? 1 / double(collected_) : 0),
                lambda = static_cast<T>(!by_rms        ? options_.decay
                                        : average_ > 0 ? options_.decay / average_
                                                       : 0);
        // For scalars or SIMD lanes.
        const auto root = [=]<class L>(L square) { return kernel::square_root(L(scale) * square); };
        const auto back = [=]<class L>(L w, L w0, L square) {
            using std::min;
            if constexpr (by_rms) return min(L(T(1)), L(lambda) * root(square)) * (w0 - w);
            else return L(lambda) * (w0 - w);
        };
        const auto by_gradient = [=]<class L>(L w, L g, L w0, L square) {
            if constexpr (by_rms)
                return w - kernel::divide(L(eta) * g, root(square) + L(epsilon)) + back(w, w0, square);
            else return w - L(eta) * g + back(w, w0, square);
        };
        const auto by_direction = [=]<class L>(L w, L delta, L w0, L square) {
            return w + back(w, w0, square) + L(along) * delta;
        };
        const auto direction_of = [&](std::size_t k) { return directions.empty() ? nullptr : directions[k]; };
        // After the step; number(array) is one of its numbers, or some.
        const auto after = [&](std::size_t k, auto&& number) {
            const T *w0 = lease_.kept(k).data(), *squares = by_rms ? squares_[k].data() : w0,
                    *w = group_[k].value;
            if (const T* delta = direction_of(k))
                return by_direction(number(w), number(delta), number(w0), number(squares));
            return by_gradient(number(w), number(group_[k].gradient), number(w0), number(squares));
        };
        for (std::size_t k = 0; k < group_.size(); ++k)
            if (group_[k].trained && (options_.decay > 0 || direction_of(k))) group_[k].dense_gradient();
        step_all(
            group_, reach,
            [&](std::size_t k, Index i) { return after(k, [i](const T* array) { return array[i]; }); },
            [&](std::size_t k, Index first, Index last) {
                kernel::sweep<T>(first, last, [&](auto lanes) {
                    lanes.store(group_[k].value, after(k, [&](const T* array) { return lanes.load(array); }));
                });
            });
    }

    Lease<T> lease_;                       // keeps θ₀
    std::vector<std::vector<T>> squares_;  // Σ g²
    Index collected_ = 0;                  // M
    double average_ = -1;                  // avg √MS; -1: not known
};

}}  // namespace isogloss
