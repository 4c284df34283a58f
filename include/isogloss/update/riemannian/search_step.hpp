/// @file update/riemannian/search_step.hpp  A direction that can be tried at several rates, and cancelled.
#pragma once

#include <functional>
#include <isogloss/update/riemannian/metrics.hpp>
#include <isogloss/update/rule.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of SearchStep.
struct SearchOptions {
    UnitModulus modulus = UnitModulus::ruop;
    MetricForm form = MetricForm::automatic;
    double damping = 1e-3;  ///< > 0, times the mean diagonal of a unit's metric, added to the diagonal
    double floor = 1;       ///< ≥ 0, also added to the diagonal; small compared to the number of positions
    Tokens targets = {};    ///< what heads predict, as in RiemannianOptions
};

/// A group of parameters with a direction Δ = -(M + ε)⁻¹ G by metrics of any kind: `move(rate)` sets
/// w = w₀ + rate Δ, where w₀ are the values at the time of solve(), and `cancel()` restores w₀ bit for bit.
///
/// One round is: clear(); for each sequence backward (and backward<Modulus> if wants_modulus()), then
/// add(weight), then clear the gradients of the graph, which the next backward would add to; solve(); then move and
/// cancel as needed. Gradients and metrics of sequences are summed with their weights before inversion.
/// AlternatingTraining runs such rounds. solve(), move() and cancel() throw UsageError while the weights are those of
/// WeightDrop or DynamicUpdate, which restore others. Comparing losses between trials requires a model without
/// dropout. w₀ + rate Δ has no rows of norm 1: a group with rows held there is refused.
template <class T> class SearchStep {
public:
    /// The trained parameters of a group of g, with the metrics of metrics_of. Throws UsageError as that does, for
    /// options out of range, a group of which nothing is trained, and rows held at norm 1.
    SearchStep(Graph<T>& g, Parameters<T> group, SearchOptions options)
        : SearchStep(group, {options.damping, options.floor}) {
        require("riemannian", "damping", options.damping, Exclusive{0});
        metrics_ = metrics_of(g, group_, options.modulus, options.form, options.targets);
    }
    /// The parameters whose names match `pattern`.
    SearchStep(Graph<T>& g, std::string_view pattern, SearchOptions options)
        : SearchStep(g, g.parameters(pattern), options) {}
    virtual ~SearchStep() = default;
    SearchStep(const SearchStep&) = delete;
    SearchStep& operator=(const SearchStep&) = delete;

    /// Discards what was added.
    void clear() {
        for (auto& m : members_) std::fill(m.gradient.begin(), m.gradient.end(), T(0));
        for (auto& metric : metrics_) metric->clear(0);
    }
    /// Adds gradient and metric of the last passes times `weight`. Gradients of parameters are unchanged. Throws
    /// UsageError, with nothing added, unless backward, and backward<Modulus> if wants_modulus(), ran after the last
    /// forward pass, and where a gradient is a sum over several backward passes, whose metric is that of the last.
    void add(double weight) {
        detail::require_passes(metrics_, group_);
        if (!group_.carried())
            throw UsageError(
                "riemannian: found no backward(loss) since the last forward pass; call it before add()");
        if (!metrics_.empty())
            detail::require_one_pass("riemannian", group_,
                                     "clear the gradients, and call add() after each pass");
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
        graph::require_lasting(group_, "riemannian", "solve()");
        for (std::size_t k = 0; k < members_.size(); ++k)  // first: cancel() may follow whatever is thrown
            std::copy_n(group_[k].value, group_[k].size(), members_[k].before.begin());
        for (const auto& metric : metrics_) metric->require_finite();
        for (std::size_t k = 0; k < members_.size(); ++k) {
            auto& m = members_[k];
            require_finite(k, "gradient", m.gradient);
            std::transform(m.gradient.begin(), m.gradient.end(), m.direction.begin(), std::negate<T>());
            slots_[k] = {m.gradient.data(), m.direction.data()};
        }
        const Damping damping{damping_.relative, weight * damping_.absolute};
        for (auto& metric : metrics_) metric->direction(slots_, 1, damping);
        if (conjugate_) conjugate();
        for (std::size_t k = 0; k < members_.size(); ++k)
            require_finite(k, "direction", members_[k].direction);
    }
    void move(double rate) {
        graph::require_lasting(group_, "riemannian", "move()");
        for (std::size_t k = 0; k < members_.size(); ++k) {
            const auto& m = members_[k];
            for (std::size_t i = 0; i < m.before.size(); ++i)
                group_[k].value[i] = m.before[i] + static_cast<T>(rate) * m.direction[i];
        }
    }
    void cancel() {
        graph::require_lasting(group_, "riemannian", "cancel()");
        for (std::size_t k = 0; k < members_.size(); ++k)
            std::copy(members_[k].before.begin(), members_[k].before.end(), group_[k].value);
    }
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

protected:
    /// The trained parameters of a group, none of whose rows is held at norm 1. The derived class supplies the metrics;
    /// without one Δ = -G. `behind`: see behind().
    SearchStep(const Parameters<T>& group, Damping damping, Seq<T> behind = {})
        : group_(group.trained()), damping_(damping), behind_(behind) {
        require("riemannian", "damping", damping.relative, 0.0);
        require("riemannian", "floor", damping.absolute, 0.0);
        if (group_.size() == 0)
            throw UsageError(
                "riemannian: the group of parameters is empty, or none of it is trained; choose another, or "
                "call "
                "Parameters::trained(true) before making the step");
        for (const Parameter<T>* p : group_)
            if (p->unit_rows)
                throw UsageError(
                    "riemannian: the rows of '", p->name,
                    "' are held at norm 1, which a search along a straight line leaves; exclude it from the "
                    "group, or use Riemannian or another update");
        allocate_per_parameter("riemannian", group_, 3 * sizeof(T), [&](const Parameter<T>& p) {
            const auto n = static_cast<std::size_t>(p.size());
            members_.push_back(
                {std::vector<T>(n), std::vector<T>(n), std::vector<T>(p.value, p.value + n), {}, {}});
        });
        slots_.resize(members_.size());
    }
    /// The parameters of these handles, except empty ones.
    static Parameters<T> parameters(Graph<T>& g, const std::vector<Weight<T>>& weights) {
        std::vector<Parameter<T>*> members;
        for (const Weight<T> w : weights)
            if (w.id >= 0) members.push_back(&graph::Inspect::store(g)[w]);
        return {graph::Inspect::store(g), std::move(members)};
    }

    Parameters<T> group_;
    Metrics<T> metrics_;

private:
    struct Member {
        std::vector<T> gradient, direction, before;
        std::vector<T> gradient_before, direction_before;  // of conjugate directions
    };

    void require_finite(std::size_t k, std::string_view what, const std::vector<T>& numbers) const {
        if (const Index n = std::ssize(numbers); kernel::first_non_finite(n, numbers.data()) != n)
            throw NumericError("riemannian: the ", what, " of '", group_[k].name,
                               "' is not finite; nothing was changed. Start again from smaller weights, "
                               "or raise the damping.");
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

    std::vector<Member> members_;
    std::vector<Slot<T>> slots_;
    Damping damping_;
    Seq<T> behind_;
    bool conjugate_ = false;
    double slope_before_ = 0;
};

/// Plain gradient descent, under the same rate control as the metrics.
template <class T> class GradientStep final : public SearchStep<T> {
public:
    /// `behind`: see SearchStep::behind().
    explicit GradientStep(const Parameters<T>& group, Seq<T> behind = {})
        : SearchStep<T>(group, {}, behind) {}
};

}}  // namespace isogloss
