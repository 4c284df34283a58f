/// @file update/sgd.hpp  Stochastic gradient descent, plain and averaged.
#pragma once

#include <algorithm>
#include <isogloss/update/rule.hpp>
#include <vector>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// Options of Sgd.
struct SgdOptions {
    double rate = 1;                   ///< learning rate η ≥ 0
    double clip = 0;                   ///< maximum norm of the whole group's direction, ≥ 0; 0: no clipping
    double weight_decay = 0;           ///< λ ≥ 0 of λ/2 Σ w², part of the direction that is clipped
    Divisor divisor = Divisor::batch;  ///< what raw sums are divided by before clipping
};

/// Gradient descent on a group of parameters, with clipping by the norm over the whole group.
///
///     v = g / d + λ w;    v ← v · min(1, clip / ‖v‖);    w ← w - η v;    g ← 0
///
/// d is the number of batch columns by default: the published recipe sums the loss over the steps of a
/// segment, averages it over the batch, and then clips. Rows of a table that were not looked up
/// cost nothing when λ = 0.
/// Source   Zaremba, Sutskever, Vinyals 2014; Inan, Khosravi, Socher 2017.
template <class T> class Sgd : public Rule<T, SgdOptions> {
public:
    /// Throws UsageError for options out of range.
    Sgd(Parameters<T> group, SgdOptions options) : Rule<T, SgdOptions>("sgd", std::move(group), options) {}

    /// One step; returns the norm of the direction before clipping. Throws NumericError and changes
    /// nothing when a gradient is not finite, or a row held at norm 1 would lose its direction.
    double step() {
        const double d = this->divisor(), norm = direction_norm(group_, d, options_.weight_decay);
        const T factor = static_cast<T>(this->clipped_rate(norm) / d);
        const T decay = static_cast<T>(d * options_.weight_decay);
        for (const Parameter<T>* p : group_)
            require_directions(
                *p, [&](Index i) { return p->value[i] - factor * (p->gradient[i] + decay * p->value[i]); });
        for (Parameter<T>* p : group_) {
            for_each_range(*p, [&](T* w, const T* g, Index n, Index) {
                if (decay == 0)
                    for (Index i = 0; i < n; ++i) w[i] -= factor * g[i];
                else
                    for (Index i = 0; i < n; ++i) w[i] -= factor * (g[i] + decay * w[i]);
            });
            finish_step(*p);
        }
        return norm;
    }

private:
    using Rule<T, SgdOptions>::group_, Rule<T, SgdOptions>::options_;
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
/// `swap()` exchanges the averages in for evaluation and out again for training.
/// Source   Polyak, Juditsky 1992; trigger: Merity, Keskar, Socher 2017, algorithm 1.
template <class T> class AveragedSgd : Sgd<T> {
public:
    using Options = AveragedSgdOptions;
    /// Throws UsageError for options out of range, and for rows held at norm 1, whose averages would be shorter.
    AveragedSgd(Parameters<T> group, AveragedSgdOptions options)
        : Sgd<T>(std::move(group), options.sgd), window_(options.window) {
        require("averaged sgd", "window", window_, 1);
        for (const Parameter<T>* p : this->group())
            if (p->unit_rows)
                throw UsageError(
                    "averaged sgd: the rows of '", p->name,
                    "' are held at norm 1, which their averages are not; exclude it from the group");
        allocate_per_parameter("averaged sgd", this->group(), sizeof(T),
                               [&](const Parameter<T>& p) { mean_.emplace_back(p.size(), T(0)); });
    }

    /// One step of Sgd, then, once triggered, of the averages. Throws UsageError while averages are swapped
    /// in.
    double step() {
        if (swapped_)
            throw UsageError("averaged sgd: step() while the averages are in use; call swap() first");
        const double norm = Sgd<T>::step();
        if (!triggered_) return norm;
        ++averaged_;
        const T weight = static_cast<T>(1.0 / static_cast<double>(averaged_));
        for (std::size_t k = 0; k < mean_.size(); ++k) {
            const T* w = this->group()[k].value;
            T* m = mean_[k].data();
            over_numbers(std::ssize(mean_[k]), [&](Index first, Index last, Index) {
                for (Index i = first; i < last; ++i) m[i] += weight * (w[i] - m[i]);
            });
        }
        return norm;
    }

    /// Records a validation loss (or perplexity); returns whether averaging is on.
    bool observe(double validation) {
        if (!std::isfinite(validation))
            throw NumericError("averaged sgd: observed the validation value ", validation);
        const auto t = static_cast<Index>(history_.size());
        if (!triggered_ && t > window_ &&
            validation > *std::min_element(history_.begin(), history_.end() - window_))
            triggered_ = true;
        history_.push_back(validation);
        return triggered_;
    }
    bool triggered() const { return triggered_; }

    /// Exchanges weights and averages; without effect before the first averaged step. Call it twice
    /// around an evaluation, and write no other weights in between: the second call would replace them.
    void swap() {
        if (averaged_ == 0) return;
        swapped_ = !swapped_;
        for (std::size_t k = 0; k < mean_.size(); ++k)
            std::swap_ranges(mean_[k].begin(), mean_[k].end(), this->group()[k].value);
    }

    /// Called by Checkpoint::load before one of parameters alone, see io/checkpoint.hpp: throws UsageError while the
    /// averages are swapped in.
    void before_load_of_parameters() const {
        if (swapped_)
            throw UsageError(
                "averaged sgd: a load of parameters while the averages are in use, which the next swap() "
                "would "
                "replace by the weights before it; call swap() first");
    }

    using Sgd<T>::rate;

    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        Sgd<T>::visit(v);
        v.flag("triggered", triggered_);
        v.flag("swapped", swapped_);
        v.counter("averaged", averaged_);
        v.list("history", history_);
        for (std::size_t k = 0; k < mean_.size(); ++k) {
            const auto& p = this->group()[k];
            v.array(message("mean/", p.name), mean_[k].data(), p.rows, p.cols);
        }
    }

private:
    Index window_;
    bool triggered_ = false, swapped_ = false;
    std::uint64_t averaged_ = 0;
    std::vector<double> history_;
    std::vector<std::vector<T>> mean_;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
