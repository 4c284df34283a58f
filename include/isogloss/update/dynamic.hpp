/// @file update/dynamic.hpp  Dynamic evaluation: weights that adapt temporarily to the text they predict.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/subnormals.hpp>
#include <isogloss/update/rule.hpp>
#include <limits>
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
/// avg is the mean over the parameters of the mean within each. Rows of a table that were not
/// looked up cost nothing when λ = 0.
///
/// The changes are temporary: restore() or the destructor, also after an exception, restores θ₀ bit for bit. Between
/// step() and then a checkpoint refuses to save or load the weights. The graph must outlive this object.
/// evaluate_dynamically() runs the whole procedure.
///
/// Memory   one copy of the group's weights, two for rms
/// Errors   UsageError: options out of range; a gradient of the group that already counts at construction and
///          would be lost; step() under rms before collect(). NumericError, with nothing changed: a gradient
///          that is not finite, one in collect() under rms with which Σ g² could exceed T, a row held at norm 1
///          that would lose its direction, mean squares all 0, or too small for T, with λ > 0
/// Source   Krause, Kahembwe, Murray, Renals 2018, "Dynamic evaluation of neural sequence models", section 5;
///          avg and min(1, ·) as in its published code. Departure: a decay for sgd is one number, not R
template <class T> class DynamicUpdate : public Rule<T, DynamicOptions> {
public:
    DynamicUpdate(Parameters<T> group, DynamicOptions options)
        : Rule<T, DynamicOptions>("dynamic update", std::move(group), options) {
        decay(options.decay);
        require("dynamic update", "epsilon", options.epsilon,
                static_cast<double>(std::numeric_limits<T>::min()));
        group_.require_no_gradients("dynamic update");
        const std::size_t unit = (rms() ? 2 : 1) * sizeof(T);
        allocate_per_parameter("dynamic update", group_, unit, [&](const Parameter<T>& p) {
            trained_.emplace_back(p.value, p.value + p.size());
            if (rms()) squares_.emplace_back(p.size(), T(0));
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
        const double d = this->divisor(),
                     norm = direction_norm(group_, d, 0);  // throws where it is not finite
        const T factor = static_cast<T>(1 / d);
        const double bound = bound_ + norm * norm;  // of every sum of squares
        if (rms() && !(bound <= static_cast<double>(std::numeric_limits<T>::max()) / 2))
            throw NumericError(
                "dynamic update: found gradients of the norm ", norm,
                " over the training text, whose squares are not numbers of this type; nothing was ",
                "changed. Use DynamicRule::sgd, or a model whose gradients are smaller");
        for (std::size_t k = 0; k < group_.size(); ++k) {
            Parameter<T>& p = group_[k];
            if (rms())
                for_each_range(p, [&](const T* w, const T* g, Index n, Index) {
                    T* s = squares_[k].data() + (w - p.value);
                    for (Index i = 0; i < n; ++i) s[i] += (factor * g[i]) * (factor * g[i]);
                });
            p.clear_gradient();
        }
        ++collected_;
        bound_ = bound;
        average_ = -1;
    }

    /// One step; returns the norm of the gradient.
    double step() {
        const SubnormalsAreZero flush;
        const double d = this->divisor(), norm = direction_norm(group_, d, 0);
        if (rms() && !(average_ > 0)) average_ = average_root();  // 0 is an error only with a decay
        const T eta = static_cast<T>(options_.rate / d), epsilon = static_cast<T>(options_.epsilon);
        const T scale = static_cast<T>(rms() ? 1 / static_cast<double>(collected_) : 0);
        const T lambda = static_cast<T>(options_.decay == 0 ? 0
                                        : rms()             ? options_.decay / average_
                                                            : options_.decay);
        // For scalars or SIMD lanes.
        const auto by_sgd = [=]<class L>(L w, L g, L w0, L) { return w - L(eta) * g + L(lambda) * (w0 - w); };
        const auto by_rms = [=]<class L>(L w, L g, L w0, L square) {
            using std::min, std::sqrt;
            const L root = sqrt(L(scale) * square);
            return w - L(eta) * g / (root + L(epsilon)) + min(L(T(1)), L(lambda) * root) * (w0 - w);
        };
        if (rms()) move(by_rms);
        else move(by_sgd);
        return norm;
    }

    /// Restores the trained weights, bit for bit, and clears the gradients of the group.
    void restore() noexcept {
        for (std::size_t k = 0; k < trained_.size() && moved_; ++k) {
            std::copy(trained_[k].begin(), trained_[k].end(), group_[k].value);
            *group_[k].temporary = {};
        }
        moved_ = false;
        group_.clear_gradients();
    }

private:
    using Rule<T, DynamicOptions>::group_, Rule<T, DynamicOptions>::options_;

    bool rms() const { return options_.rule == DynamicRule::rms; }

    // avg √MS.
    double average_root() const {
        if (collected_ == 0)
            throw UsageError(
                "dynamic update: the rule rms needs mean squares; call collect() after backward "
                "passes over training text first");
        double total = 0;
        for (const auto& squares : squares_) {
            double sum = 0;
            for (const T s : squares) sum += std::sqrt(double(s) / double(collected_));
            total += sum / double(std::max<std::size_t>(squares.size(), 1));
        }
        if (total == 0 && options_.decay > 0)
            throw NumericError(
                "dynamic update: all gradients that were collected are 0, or so small that their squares are "
                "0, "
                "so the decay has no scale; collect over a longer text, or use decay 0");
        return total / double(squares_.size());
    }

    // Replaces each number w by moved(w, g, w0, square).
    template <class Moved> void move(const Moved& moved) {
        if (!moved_) {
            graph::require_lasting(group_, "dynamic update", "step()");  // of another owner
            for (std::size_t k = 0; k < group_.size(); ++k)
                std::copy_n(group_[k].value, group_[k].size(), trained_[k].begin());
        }
        const auto square = [&](std::size_t k) { return rms() ? squares_[k].data() : trained_[k].data(); };
        for (std::size_t k = 0; k < group_.size(); ++k) {
            Parameter<T>& p = group_[k];
            if (options_.decay > 0) p.dense_gradient();
            require_directions(p, [&, s = square(k)](Index i) {
                return moved(p.value[i], p.gradient[i], trained_[k][std::size_t(i)], s[i]);
            });
        }
        moved_ = true;
        for (std::size_t k = 0; k < group_.size(); ++k) {
            Parameter<T>& p = group_[k];
            *p.temporary = "dynamic update";
            for_each_range(p, [&](T* w, const T* g, Index n, Index) {
                const T *w0 = trained_[k].data() + (w - p.value), *s = square(k) + (w - p.value);
                kernel::sweep<T>(0, n, [&](auto at) {
                    at.store(w, moved(at.load(w), at.load(g), at.load(w0), at.load(s)));
                });
            });
            finish_step(p);
        }
    }

    std::vector<std::vector<T>> trained_, squares_;  // θ₀; Σ g²
    Index collected_ = 0;                            // M
    double bound_ = 0;                               // Σ ‖g‖²
    double average_ = -1;                            // avg √MS; -1: not known
    bool moved_ = false;                             // whether the weights are temporary ones
};

}}  // namespace isogloss
