/// @file update/riemannian/riemannian.hpp  RUOP and RBPM updates of any node's declared units, for
/// minibatches.
#pragma once

#include <isogloss/update/riemannian/metrics.hpp>
#include <isogloss/update/rule.hpp>
#include <span>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of Riemannian.
struct RiemannianOptions {
    UnitModulus modulus = UnitModulus::ruop;
    MetricForm form = MetricForm::automatic;
    double rate = 0.01;     ///< learning rate η ≥ 0
    double damping = 1e-3;  ///< > 0, times the mean diagonal of a unit's metric, added to the diagonal
    double floor = 1e-5;    ///< ≥ 0, also added to the diagonal: the metric of a weight without any data
    double decay = 0.95;    ///< γ in [0, 1) of the metric's average over refreshes; a plain mean at first
    Index every = 4;  ///< n ≥ 1: refreshed at every n-th step; at every step while it is a plain mean,
                      ///< and whenever a network on a graph begins a sequence
    double clip = 0;  ///< maximum length of the direction in the metric, √(-G·Δ), ≥ 0; 0: no clipping
    Divisor divisor = Divisor::tokens;  ///< what raw sums of gradient and metric are divided by
};

/// Natural gradient on minibatches, at a fixed rate, with running averages of the metrics (metrics_of): of
/// the units that nodes declare (Linear, Rnn, Lstm, Gru, Rhn, …: every z = Σ a W + b), of softmax heads and
/// of networks on sparse graphs. For unit j with inputs z (z_0 = 1 where it has a bias), modulus Φ_j and
/// gradient G_j = Σ z ∂l/∂z_j / d:
///
///     M_j ← γ M_j + (1-γ) Σ Φ_j z zᵀ / d,     w_j ← w_j - η (M_j + ε_j + f)⁻¹ G_j     in the chosen form
///
/// The damping ε_j is proportional to the mean diagonal of M_j and leaves the step unchanged when a unit's
/// outputs are rescaled. The floor f does not. It is for units that still have little effect on the loss, as at
/// the start of training: M_j is then close to 0, the step M_j⁻¹ G_j too long, and M_j grows by orders of
/// magnitude within one step. With the floor such a unit takes a gradient step of rate η / f. Invariance
/// holds in the limit of damping and floor 0.
///
/// RUOP uses Φ = (∂l/∂z_j)²; RBPM uses the modulus of backward<Modulus>(l), which must run before a step for
/// which wants_modulus() is true. No other forward pass, such as an evaluation, may run between these passes and a step
/// that refreshes the metric. Heads use the Fisher metric of their losses, Φ_v = p_v (1 - p_v) for the cross-entropy,
/// with either modulus; a tied table adds that of its lookups (TableMetric).
///
/// Networks on sparse graphs (Glnn, Gnn, LeakyRnn, SparseRnn) have a matrix M_jx for each unit and symbol (EdgeMetric),
/// and one number for each start value, averaged over the passes that begin a sequence; the metric is
/// refreshed in each of these. The average of a symbol that occurs only in a fraction p of the refreshed
/// minibatches decays by γ at each refresh, whether it occurs or not: its steps are 1/p times as long as they
/// would be if it always occurred.
///
/// RUOP's Φ is the square of the gradient. On text that is fully predictable the loss goes to 0, and M⁻¹ G, of
/// the order of 1 / (∂l/∂z), grows without bound. It is limited by the floor (a step is at most η |G| / f in
/// the full form), `clip`, and a decreasing rate.
///
/// The quasi-diagonal form costs two products of the size of the weight's gradient per refresh, plus the logits
/// for heads.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks I" and "II", eqs. (23)-(28), (34)-(35);
///          minibatches with decayed metrics: Marceau-Caron, Ollivier 2016, "Practical Riemannian neural
///          networks". Departures: refreshing at every n-th step, damping relative to the unit, the floor,
///          clipping by the metric.
template <class T> class Riemannian : public Rule<T, RiemannianOptions> {
public:
    /// The trained parameters of a group of g; `own` makes a metric for some of them. Throws UsageError for options out
    /// of range, and as metrics_of.
    Riemannian(Graph<T>& g, Parameters<T> group, RiemannianOptions options, const MetricMaker<T>& own = {})
        : Rule<T, RiemannianOptions>("riemannian", std::move(group), options),
          directions_("riemannian", group_) {
        require("riemannian", "damping", options.damping, Exclusive{0});
        require("riemannian", "floor", options.floor, 0.0);
        require("riemannian", "decay", options.decay, 0, Exclusive{1});
        require("riemannian", "every", options.every, 1);
        metrics_ = detail::metrics_of(g, group_, options.modulus, options.form, own);
    }
    /// The parameters whose names match `pattern`.
    Riemannian(Graph<T>& g, std::string_view pattern, RiemannianOptions options,
               const MetricMaker<T>& own = {})
        : Riemannian(g, g.parameters(pattern), options, own) {}

    /// Whether the next step needs backward<Modulus>(l) after backward(l); valid after the forward pass.
    bool wants_modulus() const { return options_.modulus == UnitModulus::rbpm && refreshes(); }

    /// Size of the metric's sums that the next step needs from the passes before it; 0 if it refreshes nothing.
    /// If these passes are shards of a batch, take the sums after each and give their total, in place of those
    /// of the last pass alone (distributed::DataParallel does this):
    ///
    ///     update.take_sums(numbers);     // raw, unweighted sums over the positions of the last passes
    ///     update.give_sums(total);       // for the next step
    ///
    /// Throws UsageError for start values of networks on sparse graphs unless `every` is 1: which batches begin a
    /// sequence is known only after them.
    Index sums() const {
        if (options_.every > 1)
            for (const auto& m : metrics_)
                if (m->irregular())
                    throw UsageError("riemannian: found every = ", options_.every,
                                     ", expected 1 for shards and ",
                                     "start values of a network on a sparse graph; set it, or freeze those");
        if (!refreshes()) return 0;
        Index n = 0;
        for (const auto& m : metrics_) n += numbers(*m);
        return n;
    }
    /// Writes sums() numbers; the averages are unchanged. Throws UsageError unless there is room for sums() numbers.
    void take_sums(std::span<T> numbers) {
        require("riemannian", "numbers of take_sums", std::ssize(numbers), sums(), sums());
        if (numbers.empty()) return;
        const SubnormalsAreZero flush;
        const BlasOnOneThread blas;
        detail::require_passes<T>(metrics_, nullptr);
        T* next = numbers.data();
        for (auto& m : metrics_) {
            std::vector<std::vector<T>> averages;
            for (const auto& s : m->sums())
                averages.push_back(std::exchange(*s.values, std::vector<T>(s.values->size())));
            m->clear(0);
            m->add(1);
            for (std::size_t k = 0; k < averages.size(); ++k) {
                auto& values = *m->sums()[k].values;
                next = std::copy(values.begin(), values.end(), next);
                values = std::move(averages[k]);
            }
        }
    }
    /// See sums(). Throws UsageError unless there are sums() numbers.
    void give_sums(std::span<const T> numbers) {
        require("riemannian", "numbers of give_sums", std::ssize(numbers), sums(), sums());
        given_.assign(numbers.begin(), numbers.end());
    }

    /// One step; returns √(-G·Δ), the direction's length in the metric before clipping. Throws NumericError
    /// and changes no weight when a gradient or the metric is not finite, or a weight would become infinite; the averages
    /// of a metric that is not start anew. Throws UsageError when the metric is to be refreshed and the gradient of a
    /// parameter is not that of the last backward pass alone: it did not reach it, others had, see sums(), or the gradient
    /// was summed elsewhere.
    double step() {
        const SubnormalsAreZero flush;
        const double d = this->begin_step();
        direction_norm(group_, d, 0);
        const bool refreshed = refreshes();
        if (refreshed) accumulate(d);
        double length = 0;
        try {
            for (const auto& m : metrics_)
                if (refreshed) m->check_sums();
            length = directions_.solve("riemannian", metrics_, 1 / d, {options_.damping, options_.floor}, d);
        } catch (const NumericError&) {
            refreshments_ = 0;
            throw;
        }
        const T eta = static_cast<T>(this->clipped_rate(length));
        step_all(
            group_, static_cast<double>(eta) * directions_.longest(),
            [&](std::size_t k, Index i) { return group_[k].value[i] + eta * directions_[k][i]; },
            [&](std::size_t k, Index first, Index last) {
                T* w = group_[k].value;
                const T* delta = directions_[k].data();
                for (Index i = first; i < last; ++i) w[i] += eta * delta[i];
            });
        ++steps_;
        return length;
    }

    /// Δ of a parameter of the group, from the last step.
    const std::vector<T>& direction(std::size_t k) const { return directions_[k]; }

    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        Rule<T, RiemannianOptions>::visit(v);
        v.counter("steps", steps_);
        v.counter("refreshments", refreshments_);
        for (auto& m : metrics_)
            for (const auto& s : m->sums())
                v.array(s.name, s.values->data(), s.rows, std::ssize(*s.values) / s.rows);
    }

private:
    // The weight of the old average at the next refresh, if it is a plain mean.
    double plain() const {
        return static_cast<double>(refreshments_) / static_cast<double>(refreshments_ + 1);
    }
    bool refreshes() const {
        return steps_ % static_cast<std::uint64_t>(options_.every) == 0 || refreshments_ == 0 ||
               plain() < options_.decay ||
               std::any_of(metrics_.begin(), metrics_.end(), [](auto& m) { return m->due(); });
    }

    // How many its sums are.
    static Index numbers(const Metric<T>& m) {
        Index n = 0;
        for (const auto& s : m.sums()) n += std::ssize(*s.values);
        return n;
    }

    void accumulate(double d) {
        const double keep = std::min(options_.decay, plain());
        if (given_.empty()) detail::require_passes(metrics_, &group_, true);
        ++refreshments_;
        if (!given_.empty()) {
            std::span<const T> rest = given_;
            for (auto& m : metrics_) {
                m->average(rest.first(std::size_t(numbers(*m))), keep, (1 - keep) / d);
                rest = rest.subspan(std::size_t(numbers(*m)));
            }
            return given_.clear();
        }
        const BlasOnOneThread blas;
        for (auto& m : metrics_) {
            m->clear(keep);
            m->add((1 - keep) / d);
        }
    }

    using Rule<T, RiemannianOptions>::group_, Rule<T, RiemannianOptions>::options_;
    detail::Directions<T> directions_;
    Metrics<T> metrics_;
    std::vector<T> given_;  // sums of the batch for the next step, if not those of the last pass
    std::uint64_t steps_ = 0, refreshments_ = 0;
};

}}  // namespace isogloss
