/// @file update/sgd.hpp  Stochastic gradient descent, plain and averaged.
#pragma once

#include <algorithm>
#include <isogloss/subnormals.hpp>
#include <isogloss/update/rule.hpp>
#include <isogloss/update/weight_average.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of Sgd.
struct SgdOptions {
    double rate = 1;                   ///< learning rate η ≥ 0
    double clip = 0;                   ///< maximum norm of the whole group's direction, ≥ 0; 0: no clipping
    double weight_decay = 0;           ///< λ ≥ 0 of λ/2 Σ w², part of the direction that is clipped
    double momentum = 0;               ///< μ in [0, 1), rounded to T too; 0: none
    Divisor divisor = Divisor::batch;  ///< what raw sums are divided by before clipping
};

/// Gradient descent on a group of parameters, with clipping by the norm over the whole group.
///
///     v = g / d + λ w;    v ← v · min(1, clip / ‖v‖);    m ← μ m + v;    w ← w - η m;    g ← 0
///
/// d is the number of batch columns by default: the published recipe sums the loss over the steps of a
/// segment, averages it over the batch, and then clips. The sum m begins at 0, and is v without momentum. Rows of a
/// table that were not looked up cost nothing when λ = 0 and μ = 0; with momentum they still move by theirs.
///
/// Memory   with momentum one copy of the group's weights
/// Source   Zaremba, Sutskever, Vinyals 2014; Inan, Khosravi, Socher 2017. Momentum: Sutskever, Martens, Dahl, Hinton
///          2013, in the form of torch.optim.SGD with dampening 0 and without Nesterov's, in which η is not part of m
template <class T> class Sgd : public Rule<T, SgdOptions> {
public:
    /// Throws UsageError for options out of range.
    Sgd(Parameters<T> group, SgdOptions options) : Rule<T, SgdOptions>("sgd", std::move(group), options) {
        require("sgd", "momentum", static_cast<double>(static_cast<T>(options.momentum)), 0, Exclusive{1});
        if (options.momentum > 0)
            detail::allocate_per_parameter("sgd", group_, sizeof(T), [&](const Parameter<T>& p) {
                momentum_.emplace_back(p.size(), T(0));
            });
    }

    /// One step; returns the norm of the direction before clipping. Throws UsageError as Rule::begin_step, and
    /// NumericError and changes nothing when a gradient is not finite, a weight would become infinite, or a row held at
    /// norm 1 would lose its direction.
    double step() {
        const double d = this->begin_step(), norm = direction_norm(group_, d, options_.weight_decay);
        if (!momentum_.empty()) {
            step_by_momentum(d, norm);
            return norm;
        }
        const T factor = static_cast<T>(this->clipped_rate(norm) / d);
        const T decay = static_cast<T>(d * options_.weight_decay);
        step_all(
            group_, this->clipped_rate(norm) * norm,
            [&](std::size_t k, Index i) {
                const Parameter<T>& p = group_[k];
                return p.value[i] - factor * (p.gradient[i] + decay * p.value[i]);
            },
            [&](std::size_t k, Index first, Index last) {
                T* w = group_[k].value;
                const T* g = group_[k].gradient;
                if (decay == 0)
                    for (Index i = first; i < last; ++i) w[i] -= factor * g[i];
                else
                    for (Index i = first; i < last; ++i) w[i] -= factor * (g[i] + decay * w[i]);
            });
        return norm;
    }

    /// Shows its state to a visitor (see io/checkpoint.hpp): the rate, and m if there is momentum.
    template <class Visitor> void visit(Visitor& v) {
        Rule<T, SgdOptions>::visit(v);
        for (std::size_t k = 0; k < momentum_.size(); ++k)
            v.array(message("momentum/", group_[k].name), momentum_[k].data(), group_[k].rows,
                    group_[k].cols);
    }

private:
    void step_by_momentum(double d, double norm) {
        const SubnormalsAreZero flush;  // sums of gradients that have become 0 decay to 0
        const T mu = static_cast<T>(options_.momentum), eta = static_cast<T>(options_.rate),
                factor = static_cast<T>(clip_factor(norm, options_.clip) / d),
                decay = static_cast<T>(d * options_.weight_decay);
        const auto sum = [=](T w, T g, T m) { return mu * m + factor * (g + decay * w); };
        const double reach = this->clipped_rate(norm) * norm / (1 - options_.momentum);
        for (Parameter<T>* p : group_)
            if (p->trained) p->dense_gradient();
        step_all(
            group_, reach,
            [&](std::size_t k, Index i) {
                const Parameter<T>& p = group_[k];
                return p.value[i] - eta * sum(p.value[i], p.gradient[i], momentum_[k][i]);
            },
            [&](std::size_t k, Index first, Index last) {
                T *w = group_[k].value, *m = momentum_[k].data();
                const T* g = group_[k].gradient;
                for (Index i = first; i < last; ++i) {
                    m[i] = sum(w[i], g[i], m[i]);
                    w[i] -= eta * m[i];
                }
            });
    }

    using Rule<T, SgdOptions>::group_, Rule<T, SgdOptions>::options_;
    std::vector<std::vector<T>> momentum_;  // m, or nothing
};

/// Options of AveragedSgd.
struct AveragedSgdOptions {
    SgdOptions sgd = {};
    Index window = 5;  ///< n ≥ 1 of the non-monotone trigger, in validations
};

/// Gradient descent that starts to average its iterates when validation stops improving.
///
/// Averaging is triggered at validation t when v_t > min(v_1 … v_{t-1-n}), t > n + 1; from the next step on
///     mean ← mean + (w - mean) / k,  k = 1, 2, …
/// `swap()` exchanges the averages in for evaluation and out again for training (WeightAverage, λ = 1).
/// Source   Polyak, Juditsky 1992; trigger: Merity, Keskar, Socher 2017, algorithm 1.
template <class T> class AveragedSgd : Sgd<T> {
public:
    using Options = AveragedSgdOptions;
    /// Throws UsageError for options out of range, and for rows held at norm 1, whose averages would be shorter.
    AveragedSgd(Parameters<T> group, AveragedSgdOptions options)
        : Sgd<T>(std::move(group), options.sgd),
          window_(options.window),
          average_(this->group(), {.decay = 1}, "averaged sgd") {
        require("averaged sgd", "window", window_, 1);
    }

    /// One step of Sgd, then, once triggered, of the averages. Throws UsageError while averages are swapped
    /// in.
    double step() {
        const double norm = Sgd<T>::step();
        if (triggered_) average_.add();
        return norm;
    }

    /// Records a validation loss (or perplexity); returns whether averaging is on.
    bool observe(double validation) {
        require_finite("averaged sgd", "the validation", 1, &validation);
        const auto t = static_cast<Index>(history_.size());
        if (!triggered_ && t > window_ &&
            validation > *std::min_element(history_.begin(), history_.end() - window_))
            triggered_ = true;
        history_.push_back(validation);
        return triggered_;
    }
    bool triggered() const { return triggered_; }

    /// WeightAverage::swap.
    void swap() { average_.swap(); }
    /// WeightAverage::after_load.
    void after_load() { average_.after_load(); }

    using Sgd<T>::rate;

    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        Sgd<T>::visit(v);
        v.flag("triggered", triggered_);
        v.list("history", history_);
        average_.visit(v);
    }

private:
    Index window_;
    bool triggered_ = false;
    std::vector<double> history_;
    WeightAverage<T> average_;
};

}}  // namespace isogloss
