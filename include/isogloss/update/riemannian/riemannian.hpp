/// @file update/riemannian/riemannian.hpp  RUOP and RBPM updates of any node's declared units, for
/// minibatches.
#pragma once

#include <isogloss/update/gradients.hpp>
#include <isogloss/update/riemannian/unit_metric.hpp>
#include <isogloss/update/riemannian/writing.hpp>
#include <memory>

namespace isogloss {

/// Options of Riemannian.
struct RiemannianOptions {
    UnitModulus modulus = UnitModulus::ruop;
    MetricForm form = MetricForm::quasi_diagonal;
    double rate = 0.01;     ///< learning rate η ≥ 0
    double damping = 1e-3;  ///< ε > 0, added to the diagonal as a share of its mean over the unit's weights
    double floor = 1e-5;    ///< ≥ 0, added to the diagonal too: what a weight's metric is without any data
    double decay = 0.95;    ///< γ in [0, 1) of the metric's average over refreshments; a plain mean at first
    Index every = 4;        ///< ≥ 1: refreshed at every so manieth step, but at every one of the plain mean
    double clip = 0;        ///< longest direction, measured in the metric: √(-G·Δ), ≥ 0; 0: no clipping
    Divisor divisor = Divisor::tokens;  ///< what raw sums are divided by, of gradient and metric alike
};

/// Natural gradient with a metric for each unit, on minibatches. The units are those that nodes declare
/// (Linear, Rnn, Lstm, Gru, Rhn, …: every z = Σ a W + b) and the words of softmax heads. For unit j with
/// inputs z (z_0 = 1 where it has a bias), modulus Φ_j and gradient G_j = Σ z ∂l/∂z_j / d:
///
///     M_j ← γ M_j + (1-γ) Σ Φ_j z zᵀ / d,     w_j ← w_j - η (M_j + ε_j + f)⁻¹ G_j     in the form asked for
///
/// The damping ε_j is a share of M_j's own mean diagonal and leaves the step as it is when a unit's outputs
/// are rescaled. The floor f does not: where little hangs on a unit yet, as at the start of a training, M_j
/// is next to nothing, M_j⁻¹ G_j is as long as you please, and M_j has changed before the step is done; with
/// the floor the step is there the gradient's, of rate η / f. Both 0 in the limit is what invariance holds
/// for.
///
/// RUOP takes Φ = (∂l/∂z_j)²; RBPM takes the modulus of backward<Modulus>(l), which has to run before a step
/// for which wants_modulus() is true. Heads take their Fisher metric, Φ_v = p_v (1 - p_v), with either
/// modulus (all positions count in it, also those that are not predicted).
///
/// The quasi-diagonal form costs two products of the size of the weight's gradient per refreshment, heads
/// their logits on top; full costs a matrix of (inputs + 1)² for each unit and is for small layers.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks I" and "II", eqs. (23)-(28), (34)-(35);
///          minibatches with decayed metrics: Marceau-Caron, Ollivier 2016, "Practical Riemannian neural
///          networks". Departures: refreshing at every so manieth step, damping relative to the unit,
///          the floor, clipping by the metric.
template <class T> class Riemannian {
public:
    using Options = RiemannianOptions;
    /// The parameters whose names match `pattern`. Throws UsageError for options out of range, or when a
    /// parameter belongs to no unit (a table that is looked up), or to several (a tied one): name the others
    /// by a pattern of their own and give those to another update.
    Riemannian(Graph<T>& g, std::string_view pattern, RiemannianOptions options)
        : group_(g.parameters(pattern)), options_(options), store_(g.store()) {
        constexpr double no_limit = std::numeric_limits<double>::infinity();
        require_range("riemannian", "rate", options.rate, 0, no_limit);
        require_range("riemannian", "damping", options.damping, std::numeric_limits<double>::min(), no_limit);
        require_range("riemannian", "floor", options.floor, 0, no_limit);
        require_range("riemannian", "decay", options.decay, 0, std::nextafter(1.0, 0.0));
        require_range("riemannian", "every", static_cast<double>(options.every), 1, no_limit);
        require_range("riemannian", "clip", options.clip, 0, no_limit);
        for (Parameter<T>* p : group_) {
            if (p->uses != 1)
                throw UsageError(
                    message("riemannian: '", p->name, "' is used ", p->uses,
                            " times, and only what belongs to one layer of units has a metric. Choose the "
                            "others by name and train this one by another update"));
            within_memory("riemannian", bytes_of("riemannian", {p->size()}, sizeof(T)),
                          [&] { delta_.emplace_back(static_cast<std::size_t>(p->size())); });
        }
        std::vector<bool> taken(group_.size(), false);
        const auto place = [&](int id) {
            if (id >= 0)
                for (std::size_t k = 0; k < group_.size(); ++k)
                    if (&group_[k] == &store_.at(store_.parameters, id))
                        return taken[k] = true, static_cast<int>(k);
            return -1;
        };
        for (auto& u : store_.units) {
            std::vector<int> weights;
            bool any = false;
            for (const auto& s : u.sources) any |= (weights.push_back(place(s.weight)), weights.back() >= 0);
            const int bias = place(u.bias);
            if (any || bias >= 0)
                layers_.emplace_back(store_, u, std::move(weights), bias, options.modulus, options.form);
        }
        for (auto& h : store_.logits) {
            const int table = place(h.table), bias = place(h.bias);
            if (table >= 0) heads_.push_back({std::make_unique<WritingMetric<T>>(store_, h), table, bias});
            else if (bias >= 0)
                throw UsageError(message("riemannian: the table of head '", h.name, "' is not in the group"));
        }
        for (std::size_t k = 0; k < taken.size(); ++k)
            if (!taken[k])
                throw UsageError(
                    message("riemannian: '", group_[k].name,
                            "' belongs to no units and has no metric; train it by another update"));
    }

    /// Whether the next step needs backward<Modulus>(l) after backward(l).
    bool wants_modulus() const { return options_.modulus == UnitModulus::rbpm && refreshes(); }

    /// One step; returns √(-G·Δ), the direction's length in the metric before clipping. Throws NumericError
    /// and changes no weight when a gradient or the metric is not finite.
    double step() {
        const SubnormalsAreZero flush;
        const double d = group_.divisor(options_.divisor);
        direction_norm(group_, d, 0);
        if (refreshes()) refresh(d);
        ++steps_;
        for (auto& layer : layers_) layer.direct(group_, delta_, 1 / d, options_.damping, options_.floor);
        for (auto& head : heads_) direct(head, 1 / d);
        double slope = 0;
        for (std::size_t k = 0; k < group_.size(); ++k)
            slope -= kernel::dot(group_[k].size(), group_[k].gradient, delta_[k].data()) / d;
        if (!std::isfinite(slope))
            throw NumericError(
                "riemannian: the direction is not finite; nothing was changed. Raise the damping, "
                "or find the first node with Graph::checking(true)");
        const double length = std::sqrt(std::max(slope, 0.0));
        const T eta = static_cast<T>(options_.rate * clip_factor(length, options_.clip));
        for (std::size_t k = 0; k < group_.size(); ++k)
            require_directions(group_[k],
                               [&](Index i) { return group_[k].value[i] + eta * delta_[k][std::size_t(i)]; });
        for (std::size_t k = 0; k < group_.size(); ++k) {
            T* w = group_[k].value;
            for (Index i = 0; i < group_[k].size(); ++i) w[i] += eta * delta_[k][std::size_t(i)];
            finish_step(group_[k]);
        }
        return length;
    }

    double rate() const { return options_.rate; }
    /// Sets η ≥ 0.
    void rate(double r) {
        require_range("riemannian", "rate", r, 0, std::numeric_limits<double>::infinity());
        options_.rate = r;
    }
    const Parameters<T>& group() const { return group_; }
    /// Δ of a parameter of the group, from the last step.
    const std::vector<T>& direction(std::size_t k) const { return delta_[k]; }

    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        v.number("rate", options_.rate);
        v.counter("steps", steps_);
        v.counter("refreshments", refreshments_);
        for (auto& layer : layers_) layer.visit(v);
        for (std::size_t k = 0; k < heads_.size(); ++k) {
            const auto& p = group_[static_cast<std::size_t>(heads_[k].table)];
            auto& m = *heads_[k].metric;
            v.array(isogloss::message("square/", p.name), m.square.data(), p.rows, p.cols);
            v.array(isogloss::message("cross/", p.name), m.cross.data(), p.rows, p.cols);
            v.array(isogloss::message("whole/", p.name), m.whole.data(), 1, p.rows);
        }
    }

private:
    struct Head {
        std::unique_ptr<WritingMetric<T>> metric;
        int table, bias;
    };
    // What share of the old average stays at the next refreshment, if it is a plain mean.
    double plain() const {
        return static_cast<double>(refreshments_) / static_cast<double>(refreshments_ + 1);
    }
    bool refreshes() const {
        return steps_ % static_cast<std::uint64_t>(options_.every) == 0 || plain() < options_.decay;
    }

    void refresh(double d) {
        const double keep = std::min(options_.decay, plain());
        ++refreshments_;
        const BlasOnOneThread blas;
        for (auto& layer : layers_) layer.refresh(keep, (1 - keep) / d);
        for (auto& head : heads_) {
            head.metric->scale(keep);
            head.metric->add(nullptr, (1 - keep) / d);
        }
    }

    void direct(Head& head, double per) {
        auto& table = group_[static_cast<std::size_t>(head.table)];
        const Index V = table.rows, n = table.cols;
        const T *G = table.dense_gradient().data, share = static_cast<T>(per);
        const T* G0 =
            head.bias >= 0 ? group_[static_cast<std::size_t>(head.bias)].dense_gradient().data : nullptr;
        T* delta = delta_[static_cast<std::size_t>(head.table)].data();
        const bool with_bias = G0 && options_.form != MetricForm::diagonal;
        for (Index v = 0; v < V; ++v) {
            const T *H = head.metric->square.data() + v * n, *H0 = head.metric->cross.data() + v * n;
            const T H00 = head.metric->whole[std::size_t(v)];
            T mean = 0;
            for (Index i = 0; i < n; ++i) mean += H[i];
            const T eps = std::max(static_cast<T>(options_.damping) * mean / static_cast<T>(n) +
                                       static_cast<T>(options_.floor),
                                   std::numeric_limits<T>::min() * 1024),
                    whole = H00 + eps;
            const T g0 = G0 ? share * G0[v] : T(0), inverse = 1 / whole;
            T d0 = -g0 * inverse;
            T* d = delta + v * n;
            const T* g = G + v * n;
            if (with_bias) {
                for (Index i = 0; i < n; ++i) {  // no branch, so that several are worked out at once
                    const T slope = H0[i] * inverse, all = H[i] + eps, left = all - slope * H0[i];
                    const T step = -(share * g[i] - slope * g0) / left;
                    d[i] = left > kernel::redundant<T> * all ? step : T(0);
                }
                for (Index i = 0; i < n; ++i) d0 -= H0[i] * inverse * d[i];
            } else {
                for (Index i = 0; i < n; ++i) d[i] = -share * g[i] / (H[i] + eps);
            }
            if (G0) delta_[static_cast<std::size_t>(head.bias)][std::size_t(v)] = d0;
        }
    }

    Parameters<T> group_;
    RiemannianOptions options_;
    graph::Store<T>& store_;
    std::vector<UnitMetric<T>> layers_;
    std::vector<Head> heads_;
    std::vector<std::vector<T>> delta_;
    std::uint64_t steps_ = 0, refreshments_ = 0;
};

}  // namespace isogloss
