/// @file update/riemannian/dynamic.hpp  Dynamic evaluation with the metric of each unit.
#pragma once

#include <algorithm>
#include <isogloss/update/dynamic.hpp>
#include <isogloss/update/riemannian/metrics.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of RiemannianDynamic. The metric is a mean of squares, not its root, so `rate` is of another order than that
/// of DynamicRule::rms, and a rate a few times too large does harm at once: choose it on a validation text, around the
/// default, which is for segments of 5 steps.
struct RiemannianDynamicOptions {
    double rate = 1e-5;  ///< η ≥ 0, of the weights and biases that have a metric
    double damping = 1;  ///< > 0, times the mean diagonal of a unit's metric, added to its diagonal
    MetricForm form = MetricForm::quasi_diagonal;
    DynamicOptions rest = {};  ///< of all other parameters; its decay and its divisor are those of all
};

/// The update of dynamic evaluation whose steps for the declared units of nodes (Linear, Rnn, Lstm, Gru, Rhn,
/// …: every z = Σ a W + b) use a Riemannian metric averaged over the training text. For unit j with inputs z
/// (z_0 = 1 where it has a bias), over the N positions of the M backward passes followed by collect():
///
///     M_j = 1/N Σ (∂l/∂z_j)² z zᵀ                                           quasi-diagonal: M_ii, M_0i, M_00
///     w_j ← w_j - η (M_j + ε_j)⁻¹ G_j + min(1, λ R) (w_j⁰ - w_j)           G_j = Σ z ∂l/∂z_j / d over the segment
///
/// ε_j is `damping` times the mean diagonal of M_j; λ and R are those of DynamicUpdate (under DynamicRule::sgd λ
/// stands for min(1, λ R)), as is the update of all other parameters: tables, tied or not, head biases, what networks on
/// sparse graphs select by symbols, weights that several layers share, and those with rows held at norm 1. The
/// differences from DynamicRule::rms are M, a mean over positions, in place of the root of a mean over passes, and the
/// coupling of each weight with the bias of its unit, which makes the step invariant when an input is shifted.
///
/// The changes are temporary, as with DynamicUpdate. It is a DynamicStep of evaluate_dynamically(), and
/// collect_mean_squares() collects the means of both.
///
/// Memory   that of DynamicUpdate, plus three times the weights of the units
/// Errors   those of DynamicUpdate; UsageError if the group has no units, for damping 0, and for a
///          collect() of gradients that are not those of the last forward pass alone; NumericError for a metric that is
///          not finite
/// Source   Krause, Kahembwe, Murray, Renals 2018, "Dynamic evaluation of neural sequence models", for the
///          protocol; Ollivier 2013, "Riemannian metrics for neural networks I" and "II", for the metric
///          (RUOP). Their combination is ours
template <class T> class RiemannianDynamic : DynamicUpdate<T> {
public:
    RiemannianDynamic(Graph<T>& g, Parameters<T> parameters, RiemannianDynamicOptions options)
        : DynamicUpdate<T>(std::move(parameters), options.rest),
          options_(options),
          store_(graph::Inspect::store(g)),
          units_(units_of(store_, group_)),
          directions_(who, units_),
          by_parameter_(group_.size(), nullptr) {
        rate(options.rate);
        require(who, "damping", options.damping, Exclusive{0});
        metrics_ = detail::metrics_of(g, units_, UnitModulus::ruop, options.form);
        for (std::size_t k = 0; k < units_.size(); ++k)
            by_parameter_[std::size_t(std::find(group_.begin(), group_.end(), &units_[k]) - group_.begin())] =
                directions_[k].data();
    }

    double rate() const { return options_.rate; }
    /// Sets η ≥ 0; throws UsageError if it is out of range.
    void rate(double r) {
        this->require_rate(r);
        options_.rate = r;
    }
    using DynamicUpdate<T>::decay, DynamicUpdate<T>::group, DynamicUpdate<T>::restore;
    /// The update of the other parameters, for its rate.
    DynamicUpdate<T>& rest() { return *this; }

    /// After each backward pass over training text: see DynamicUpdate::collect().
    void collect() {
        detail::require_passes(metrics_, &units_);
        DynamicUpdate<T>::collect();  // throws if a gradient is not finite, before it enters the metrics
        const SubnormalsAreZero flush;
        const BlasOnOneThread blas;
        for (auto& m : metrics_) m->add(1);
        positions_ += static_cast<double>(store_.rows());
        checked_ = false;
    }

    /// One step; returns √(-G·Δ) of the units.
    double step() {
        const SubnormalsAreZero flush;
        if (positions_ == 0)
            throw UsageError(who,
                             ": there is no metric; call collect() after backward passes over training text");
        if (!checked_)
            for (const auto& m : metrics_) m->check_sums();
        checked_ = true;
        const double d = group_.divisor(options_.rest.divisor);
        const double length =
            directions_.solve(who, metrics_, positions_ / d, {.relative = options_.damping}, d);
        this->step_along(by_parameter_, options_.rate, options_.rate * directions_.longest());
        return length;
    }

private:
    static constexpr const char* who = "riemannian dynamic update";
    using DynamicUpdate<T>::group_;

    // The members that belong to one layer of units alone.
    static Parameters<T> units_of(graph::Store<T>& store, const Parameters<T>& group) {
        std::vector<Parameter<T>*> units;
        const auto take = [&](Weight<T> w) {
            if (detail::place(store, group, w) >= 0 && store[w].uses() == 1 && !store[w].unit_rows)
                units.push_back(&store[w]);
        };
        for (const auto& u : store.units) {
            take(u.bias);
            for (const auto& s : u.sources) take(s.weight);
        }
        if (units.empty())
            throw UsageError(who, ": the group has no weights of a layer of units; use DynamicUpdate");
        return {store, std::move(units)};
    }

    RiemannianDynamicOptions options_;
    graph::Store<T>& store_;
    Parameters<T> units_;
    detail::Directions<T> directions_;
    std::vector<const T*> by_parameter_;  // the direction of each of the group, or null
    Metrics<T> metrics_;
    double positions_ = 0;  // N
    bool checked_ = false;  // the sums, since the last collect()
};

}}  // namespace isogloss
