/// @file update/riemannian/search_step.hpp  A direction that can be tried at several rates, and cancelled.
#pragma once

#include <functional>
#include <isogloss/update/lease.hpp>
#include <isogloss/update/riemannian/metrics.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of SearchStep.
struct SearchOptions {
    UnitModulus modulus = UnitModulus::ruop;
    MetricForm form = MetricForm::automatic;
    double damping = 1e-3;  ///< ≥ 0, times the mean diagonal of a unit's metric, added to the diagonal
    double floor = 1;       ///< ≥ 0, also added to the diagonal; small compared to the number of positions
    /// f_v ≥ 0 of every word of the heads: the floor of word v is floor · (f_v + machine epsilon). None: floor for each
    std::vector<double> frequencies = {};
};

/// A group of parameters with a direction Δ = -(M + ε)⁻¹ G by metrics of any kind: `move(rate)` sets
/// w = w₀ + rate Δ, where w₀ are the values at the first move(), and `cancel()` restores w₀ bit for bit.
///
/// One round is: clear(); for each sequence backward (and backward<Modulus> if wants_modulus()), then
/// add(weight), then clear the gradients of the graph, which the next backward would add to; solve(); then move and
/// accept or cancel as needed. Gradients and metrics of sequences are summed with their weights before inversion.
/// AlternatingTraining runs such rounds. From the first move() to accept(), cancel(), the next solve() or the end of this
/// object the weights are lent (Lease): they may be saved, and no update steps them. Comparing losses between trials requires a model without
/// dropout. w₀ + rate Δ has no rows of norm 1: a group with rows held there is refused.
///
/// The steps of the source are those with damping 0: of a network on a sparse graph `SearchStep(g, "net.*", {.modulus =
/// UnitModulus::rbpm, .damping = 0})`, of a softmax head `SearchStep(g, "out.*", {.damping = 0,
/// .frequencies = f})`, with f_v = 1/V where nothing is known.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (17)-(29), (34)-(35).
template <class T> class SearchStep {
public:
    /// The trained parameters of a group of g, with the metrics of metrics_of; `own` makes one for some of them. Throws UsageError as that does, for
    /// options out of range, a group of which nothing is trained, and rows held at norm 1.
    SearchStep(Graph<T>& g, const Parameters<T>& group, SearchOptions options, const MetricMaker<T>& own = {})
        : SearchStep(group) {
        require("riemannian", "damping", options.damping, 0.0);
        require("riemannian", "floor", options.floor, 0.0);
        for (double& f : options.frequencies) {
            require("riemannian", "frequency", f, 0.0);
            f += std::numeric_limits<double>::epsilon();
        }
        damping_ = {options.damping, options.floor};
        metrics_ = detail::metrics_of(g, group_, options.modulus, options.form, own, options.frequencies);
        behind_ = hidden_of(graph::Inspect::store(g));
    }
    /// The parameters whose names match `pattern`.
    SearchStep(Graph<T>& g, std::string_view pattern, SearchOptions options, const MetricMaker<T>& own = {})
        : SearchStep(g, g.parameters(pattern), std::move(options), own) {}
    /// Without a metric, Δ = -G: plain gradient descent, under the same rate control. `behind`: see behind().
    explicit SearchStep(const Parameters<T>& group, Seq<T> behind = {})
        : group_(group.trained_for("riemannian", false)),
          behind_(behind),
          lease_(group_, "search step", true) {
        detail::allocate_per_parameter("riemannian", group_, 2 * sizeof(T), [&](const Parameter<T>& p) {
            const auto n = static_cast<std::size_t>(p.size());
            members_.push_back({std::vector<T>(n), std::vector<T>(n), {}, {}});
        });
        slots_.resize(members_.size());
    }

    /// Discards what was added.
    void clear() {
        for (auto& m : members_) std::fill(m.gradient.begin(), m.gradient.end(), T(0));
        for (auto& metric : metrics_) metric->clear(0);
    }
    /// Adds gradient and metric of the last passes times `weight`. Gradients of parameters are unchanged. Throws
    /// UsageError, with nothing added, unless a gradient counts, and with metrics unless backward, and backward<Modulus> if
    /// wants_modulus(), ran after the last forward pass and no other backward pass has added to the gradients.
    void add(double weight) {
        group_.require_gradients("riemannian");
        detail::require_passes(metrics_, &group_);
        const BlasOnOneThread blas;
        for (std::size_t k = 0; k < members_.size(); ++k) {
            const T* g = group_[k].dense_gradient().data;
            auto& sum = members_[k].gradient;
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<T>(weight) * g[i];
        }
        for (auto& metric : metrics_) metric->add(weight);
    }
    /// Computes the direction. `weight`: the mean weight of what was added; it multiplies the absolute part of
    /// the damping, so that a direction does not depend on the unit of the weights. Throws NumericError, naming
    /// the parameter, when it, a gradient or the metric is not finite.
    void solve(double weight = 1) {
        accept();
        for (const auto& metric : metrics_) metric->check_sums();
        for (std::size_t k = 0; k < members_.size(); ++k) {
            auto& m = members_[k];
            check(k, "gradient", m.gradient);
            std::transform(m.gradient.begin(), m.gradient.end(), m.direction.begin(), std::negate<T>());
            slots_[k] = {m.gradient.data(), m.direction.data()};
        }
        const Damping damping{damping_.relative, weight * damping_.absolute};
        for (auto& metric : metrics_) metric->direction(slots_, 1, damping);
        for (std::size_t k = 0; k < members_.size(); ++k)
            group_[k].clear_frozen_rows(members_[k].direction.data());
        if (conjugate_) conjugate();
        for (std::size_t k = 0; k < members_.size(); ++k) check(k, "direction", members_[k].direction);
    }
    /// Sets w = w₀ + rate Δ. The first one after solve(), accept() or cancel() takes the present values as w₀.
    void move(double rate) {
        if (!lease_.lent()) lease_.begin();
        for (std::size_t k = 0; k < members_.size(); ++k) {
            const std::vector<T>&before = lease_.kept(k), &direction = members_[k].direction;
            for (std::size_t i = 0; i < before.size(); ++i)
                group_[k].value[i] = before[i] + static_cast<T>(rate) * direction[i];
        }
    }
    /// Leaves the weights where they are.
    void accept() { lease_.keep(); }
    /// Restores w₀.
    void cancel() { lease_.restore(); }
    bool wants_modulus() const {
        return std::any_of(metrics_.begin(), metrics_.end(), [](auto& m) { return m->wants_modulus(); });
    }
    /// A sequence that depends on none of the parameters, which only affect what follows it: passes then begin
    /// and end there. None by default.
    Seq<T> behind() const { return behind_; }

    /// Conjugate directions: with G the gradient, Δ = -M⁻¹G the step of the metric and D the direction used,
    ///
    ///     D ← Δ + β D,   β = max(0, Δ·(G - G₋) / (Δ₋·G₋))
    ///
    /// and D ← Δ where that is not a descent direction. Products of a gradient with a step do not depend on how
    /// activities are represented, so D has the invariances of the metric. Off by default, as in the source.
    /// Source   Polak, Ribière 1969, preconditioned.
    void conjugate(bool on) {
        conjugate_ = on;
        forget_direction();
    }
    /// Restarts conjugate directions, after all trials were cancelled or weights were changed elsewhere.
    void forget_direction() { slope_before_ = 0; }

    /// Δ of one of its parameters, for tests.
    const std::vector<T>& direction(std::size_t k) const { return members_[k].direction; }

    /// Shows the conjugate direction, if enabled, to a visitor (see io/checkpoint.hpp); names begin with
    /// `prefix`.
    template <class Visitor> void visit(Visitor& v, const std::string& prefix = "") {
        if (!conjugate_) return;
        v.number(prefix + "slope", slope_before_);
        for (std::size_t k = 0; k < members_.size(); ++k) {
            auto& m = members_[k];
            const auto& p = group_[k];
            m.gradient_before.resize(m.gradient.size()), m.direction_before.resize(m.gradient.size());
            v.array(prefix + "gradient/" + p.name, m.gradient_before.data(), p.rows, p.cols);
            v.array(prefix + "direction/" + p.name, m.direction_before.data(), p.rows, p.cols);
        }
    }

private:
    struct Member {
        std::vector<T> gradient, direction;
        std::vector<T> gradient_before, direction_before;  // of conjugate directions
    };

    // The hidden state of a head, if the group is of that head alone, and nothing else uses its table.
    Seq<T> hidden_of(graph::Store<T>& store) const {
        for (const auto& head : store.logits)
            if (store[head.table].uses() == 1 &&
                std::all_of(group_.begin(), group_.end(), [&](const Parameter<T>* p) {
                    return p == &store[head.table] || (head.bias.id >= 0 && p == &store[head.bias]);
                }))
                return head.hidden;
        return {};
    }

    void check(std::size_t k, std::string_view what, const std::vector<T>& numbers) const {
        require_finite("riemannian", message("the ", what, " of '", group_[k].name, "'"), std::ssize(numbers),
                       numbers.data());
    }

    void conjugate() {
        double slope = 0, change = 0, along_before = 0;
        for (auto& m : members_) {
            m.gradient_before.resize(m.gradient.size()), m.direction_before.resize(m.gradient.size());
            for (std::size_t i = 0; i < m.gradient.size(); ++i) {
                const double delta = static_cast<double>(m.direction[i]),
                             g = static_cast<double>(m.gradient[i]);
                slope += delta * g;
                change += delta * (g - static_cast<double>(m.gradient_before[i]));
                along_before += g * static_cast<double>(m.direction_before[i]);
            }
        }
        double beta = slope_before_ < 0 ? std::max(0.0, change / slope_before_) : 0;
        if (!(slope + beta * along_before < 0)) beta = 0;
        slope_before_ = slope;
        for (auto& m : members_) {
            m.gradient_before = m.gradient;
            for (std::size_t i = 0; i < m.gradient.size(); ++i)
                if (beta > 0) m.direction[i] += static_cast<T>(beta) * m.direction_before[i];
            m.direction_before = m.direction;
        }
    }

    Parameters<T> group_;
    Metrics<T> metrics_;
    std::vector<Member> members_;
    std::vector<typename Metric<T>::Slot> slots_;
    Damping damping_;
    Seq<T> behind_;
    Lease<T> lease_;
    bool conjugate_ = false;
    double slope_before_ = 0;
};

}}  // namespace isogloss
