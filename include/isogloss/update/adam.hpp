/// @file update/adam.hpp  Adaptive moments.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <isogloss/elementary.hpp>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/subnormals.hpp>
#include <isogloss/update/rule.hpp>
#include <limits>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of Adam.
struct AdamOptions {
    double rate = 0.001;   ///< η ≥ 0
    double beta1 = 0.9;    ///< β₁ in [0, 1), of the mean m; rounded to T too
    double beta2 = 0.999;  ///< β₂ in [0, 1), of the mean square s; rounded to T too
    double epsilon =
        1e-8;         ///< ε > 0, not below the smallest normal number of T; in float squares of gradients
                      ///< below 3e-18 are 0, so that with ε below that steps may exceed the rate
    double clip = 0;  ///< maximum norm of the whole group's gradient, ≥ 0; 0: no clipping
    double weight_decay = 0;           ///< λ ≥ 0, decoupled: w ← w - η λ w
    Divisor divisor = Divisor::batch;  ///< what raw sums are divided by before clipping
};

/// Adam with decoupled weight decay.
///
///     m ← β₁ m + (1 - β₁) g;   s ← β₂ s + (1 - β₂) g²
///     w ← w - η ( m / (1 - β₁ᵏ) / (√(s / (1 - β₂ᵏ)) + ε) + λ w )
///
/// with g divided and clipped as in Sgd, and k the number of steps of each weight, without those in which it was frozen.
/// Rows of a table that were not looked up have g = 0 and still move by their momentum, so every step visits the whole
/// group.
/// A square beyond the range of T (g from 1.3e19 in float) counts as the largest number, which decays like any other.
/// Errors   UsageError: options out of range, and as Rule::begin_step. NumericError, with nothing changed: a gradient that
///          is not finite, a weight that would become infinite, a row held at norm 1 that would lose its direction
/// Source   Kingma, Ba 2015, algorithm 1; decay: Loshchilov, Hutter 2019.
template <class T> class Adam : public Rule<T, AdamOptions> {
public:
    /// Throws UsageError for options out of range.
    Adam(Parameters<T> group, AdamOptions options) : Rule<T, AdamOptions>("adam", std::move(group), options) {
        const auto rounded = [](double x) { return static_cast<double>(static_cast<T>(x)); };
        require("adam", "beta1", rounded(options.beta1), 0, Exclusive{1});
        require("adam", "beta2", rounded(options.beta2), 0, Exclusive{1});
        require("adam", "epsilon", options.epsilon, static_cast<double>(std::numeric_limits<T>::min()));
        detail::allocate_per_parameter("adam", group_, 2 * sizeof(T), [&](const Parameter<T>& p) {
            mean_.emplace_back(p.size(), T(0));
            square_.emplace_back(p.size(), T(0));
        });
        steps_.resize(group_.size()), eta_.resize(group_.size()), scale_.resize(group_.size());
    }

    /// One step; returns the norm of the gradient before clipping.
    double step() {
        const SubnormalsAreZero flush;  // averages of gradients that have become 0 decay to 0
        const double d = this->begin_step(), norm = direction_norm(group_, d, 0);
        const T factor = static_cast<T>(clip_factor(norm, options_.clip) / d);
        const T b1 = static_cast<T>(options_.beta1), b2 = static_cast<T>(options_.beta2);
        // Of the β in use.
        const auto bias = [](T beta, Index k) {
            return 1 - kernel::elementary::power(static_cast<double>(beta), k);
        };
        // Infinity times a mean or a weight of 0 would be NaN.
        constexpr T largest = std::numeric_limits<T>::max();
        const auto finite = [](double x) { return static_cast<T>(std::min(x, double(largest))); };
        for (std::size_t j = 0; j < group_.size(); ++j) {
            if (!group_[j].trained) continue;
            group_[j].dense_gradient();
            const auto k = static_cast<Index>(steps_[j]) + 1;
            eta_[j] = finite(options_.rate / bias(b1, k)), scale_[j] = static_cast<T>(1 / bias(b2, k));
        }
        const T epsilon = static_cast<T>(options_.epsilon),
                decay = finite(options_.rate * options_.weight_decay);
        // Of one entry, or of as many as a register holds.
        const auto moved = [=]<class L>(L eta, L scale, L w, L gradient, L& m, L& s) {
            const L g = L(factor) * gradient;
            m = L(b1) * m + L(1 - b1) * g;
            s = L(b2) * s + L(1 - b2) * g * g;
            s = kernel::choose(s > L(largest), L(largest), s);
            return w - (kernel::divide(eta * m, kernel::square_root(s * scale) + L(epsilon)) + L(decay) * w);
        };
        step_all(
            group_, options_.rate / (1 - double(b1)) / (1 - double(b2)),
            [&](std::size_t j, Index i) {
                T m = mean_[j][i], s = square_[j][i];
                return moved(eta_[j], scale_[j], group_[j].value[i], group_[j].gradient[i], m, s);
            },
            [&](std::size_t j, Index first, Index last) {
                using L = kernel::Lanes<T>;
                const T* gradient = group_[j].gradient;
                T *w = group_[j].value, *mean = mean_[j].data(), *square = square_[j].data();
                const L eta(eta_[j]), scale(scale_[j]);
                kernel::sweep<T>(first, last, [&](auto at) {
                    L m = at.load(mean), s = at.load(square);
                    at.store(w, moved(eta, scale, L(at.load(w)), L(at.load(gradient)), m, s));
                    at.store(mean, m);
                    at.store(square, s);
                });
            });
        for (std::size_t j = 0; j < group_.size(); ++j) steps_[j] += group_[j].trained;
        return norm;
    }

    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        Rule<T, AdamOptions>::visit(v);
        for (std::size_t j = 0; j < group_.size(); ++j) {
            v.counter(message("steps/", group_[j].name), steps_[j]);
            v.array(message("mean/", group_[j].name), mean_[j].data(), group_[j].rows, group_[j].cols);
            v.array(message("square/", group_[j].name), square_[j].data(), group_[j].rows, group_[j].cols);
        }
    }

private:
    using Rule<T, AdamOptions>::group_, Rule<T, AdamOptions>::options_;
    std::vector<std::uint64_t> steps_;  // k - 1 of each parameter: none counts in which it was frozen
    std::vector<T> eta_, scale_;        // η / (1 - β₁ᵏ) and 1 / (1 - β₂ᵏ), by parameter
    std::vector<std::vector<T>> mean_, square_;
};

}}  // namespace isogloss
