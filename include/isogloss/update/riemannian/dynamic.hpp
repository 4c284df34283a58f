/// @file update/riemannian/dynamic.hpp  Dynamic evaluation with the metric of each unit.
#pragma once

#include <algorithm>
#include <isogloss/node/edges.hpp>
#include <isogloss/update/dynamic.hpp>
#include <isogloss/update/riemannian/unit_metric.hpp>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of RiemannianDynamic.
struct RiemannianDynamicOptions {
    double rate = 1e-5;  ///< η ≥ 0, of the weights and biases that have a metric
    double damping = 1;  ///< > 0, times the mean diagonal of a unit's metric, added to its diagonal
    MetricForm form = MetricForm::quasi_diagonal;  ///< or diagonal
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
/// stands for min(1, λ R)), as is the update of all other parameters: tables, tied or not, head biases, networks on
/// sparse graphs, whose rows of weights are no units, weights that several layers share, and those with rows held at
/// norm 1. The differences from
/// DynamicRule::rms are M, a mean over positions, in place of the root of a mean over passes, and the coupling of
/// each weight with the bias of its unit, which makes the step invariant when an input is shifted.
///
/// The changes are temporary, as with DynamicUpdate. It is a DynamicStep of evaluate_dynamically(), and
/// collect_mean_squares() collects the means of both.
///
/// Memory   that of DynamicUpdate, plus four times the weights of the units
/// Errors   those of DynamicUpdate; UsageError if the group has no units, for damping 0, for the full form, and for a
///          collect() without backward(l) after the last forward pass, or after several; NumericError for a metric that
///          is not finite
/// Source   Krause, Kahembwe, Murray, Renals 2018, "Dynamic evaluation of neural sequence models", for the
///          protocol; Ollivier 2013, "Riemannian metrics for neural networks I" and "II", for the metric
///          (RUOP). Their combination is ours
template <class T> class RiemannianDynamic {
public:
    RiemannianDynamic(Graph<T>& g, Parameters<T> group, RiemannianDynamicOptions options)
        : options_(options), store_(graph::Inspect::store(g)), all_(std::move(group), options.rest) {
        rate(options.rate);
        require("riemannian dynamic update", "damping", options.damping, Exclusive{0});
        if (options.form == MetricForm::full)
            throw UsageError(
                "riemannian dynamic update: found form = full, expected quasi_diagonal or diagonal");
        const auto take = [&](Weight<T> w) {
            if (detail::place(store_, all_.group(), w) >= 0 && store_[w].uses() == 1 && !store_[w].unit_rows)
                units_.push_back(&store_[w]);
        };
        const auto networks = store_.template all<EdgeRecord<T>>();
        for (const auto& u : store_.units) {
            if (std::any_of(networks.begin(), networks.end(), [&](const EdgeRecord<T>* e) {
                    return e->rows.id >= 0 && &store_[e->rows] == &u;
                }))
                continue;
            const std::size_t before = units_.size();
            take(u.bias);
            for (const auto& s : u.sources) take(s.weight);
            if (units_.size() == before) continue;
            const Parameters<T> of_layer(
                store_, {units_.begin() + static_cast<std::ptrdiff_t>(before), units_.end()});
            layers_.push_back(
                {std::make_unique<UnitMetric<T>>(store_, of_layer, u, UnitModulus::ruop, options.form),
                 before, units_.size()});
        }
        if (units_.empty())
            throw UsageError(
                "riemannian dynamic update: the group has no weights of a layer of units, and nothing has a "
                "metric; use DynamicUpdate");
        allocate_per_parameter("riemannian dynamic update", units_, 2 * sizeof(T),
                               [&](const Parameter<T>& p) {
                                   delta_.emplace_back(p.size());
                                   gradients_.emplace_back(p.size());
                               });
        slots_.resize(units_.size());
    }

    double rate() const { return options_.rate; }
    /// Sets η ≥ 0; throws UsageError if it is out of range.
    void rate(double r) {
        require("riemannian dynamic update", "rate", r, 0.0,
                static_cast<double>(std::numeric_limits<T>::max()));
        options_.rate = r;
    }
    double decay() const { return all_.decay(); }
    void decay(double lambda) { all_.decay(lambda); }  ///< see DynamicUpdate
    /// The update of the other parameters.
    DynamicUpdate<T>& rest() { return all_; }
    const Parameters<T>& group() const { return all_.group(); }  ///< all parameters that it moves

    /// After each backward pass over training text: see DynamicUpdate::collect().
    void collect() {
        for (const auto& layer : layers_) layer.metric->require_passes();
        detail::require_one_pass("riemannian dynamic update", units_,
                                 "clear the gradients, and call collect() after each pass");
        all_.collect();  // throws if a gradient is not finite, before it enters the metrics
        const SubnormalsAreZero flush;
        const BlasOnOneThread blas;
        for (auto& layer : layers_) layer.metric->add(1);
        positions_ += static_cast<double>(store_.rows());
        finite_ = false;
    }

    /// One step; returns √(-G·Δ) of the units.
    double step() {
        const SubnormalsAreZero flush;
        if (positions_ == 0)
            throw UsageError(
                "riemannian dynamic update: there is no metric yet; call collect() after backward passes "
                "over training text first");
        if (!finite_)
            for (const auto& layer : layers_) layer.metric->require_finite();
        finite_ = true;
        const double d = all_.group().divisor(options_.rest.divisor);
        for (std::size_t k = 0; k < units_.size(); ++k)
            slots_[k] = {units_[k]->dense_gradient().data, delta_[k].data()};
        for (auto& layer : layers_)
            layer.metric->direction(
                std::span<const Slot<T>>(slots_).subspan(layer.first, layer.last - layer.first),
                positions_ / d, {.relative = options_.damping});
        const double length = detail::length_of("riemannian dynamic update", units_, delta_, d);
        direction_norm(all_.group(), d, 0);  // throws while the gradients of the units are still there
        for (std::size_t k = 0; k < units_.size(); ++k) {
            std::copy_n(units_[k]->gradient, units_[k]->size(), gradients_[k].begin());
            std::fill_n(units_[k]->gradient, units_[k]->size(), T(0));  // all_ only decays these
        }
        try {
            all_.step();
        } catch (...) {
            for (std::size_t k = 0; k < units_.size(); ++k)
                std::copy(gradients_[k].begin(), gradients_[k].end(), units_[k]->gradient);
            throw;
        }
        detail::step_along(units_, delta_, static_cast<T>(options_.rate));
        return length;
    }

    /// Restores the trained weights, bit for bit, and clears the gradients of the group.
    void restore() noexcept { all_.restore(); }

private:
    struct Layer {
        std::unique_ptr<UnitMetric<T>> metric;
        std::size_t first, last;  // its parameters among units_
    };

    RiemannianDynamicOptions options_;
    graph::Store<T>& store_;
    DynamicUpdate<T> all_;
    std::vector<Layer> layers_;
    std::vector<Parameter<T>*> units_;
    std::vector<Slot<T>> slots_;
    std::vector<std::vector<T>> delta_, gradients_;  // Δ; the gradients during a step
    double positions_ = 0;                           // N
    bool finite_ = false;                            // whether the metrics are known to be
};

}}  // namespace isogloss
