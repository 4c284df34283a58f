/// @file update/riemannian/search_step.hpp  A direction that can be tried at several rates, and taken back.
#pragma once

#include <isogloss/graph/graph.hpp>
#include <vector>

namespace isogloss {

/// A group of parameters with a direction Δ: `move(rate)` sets w = w₀ + rate Δ, w₀ being the values when the
/// direction was solved for, and `cancel()` brings w₀ back bit by bit.
///
/// One round is: clear(); for each sequence backward (and backward<Modulus> where wants_modulus()), then
/// add(weight); solve(); then move and cancel at will. Gradients and metrics of sequences are summed with
/// their weights before anything is inverted.
template <class T> class SearchStep {
public:
    virtual ~SearchStep() = default;
    SearchStep() = default;
    SearchStep(const SearchStep&) = delete;
    SearchStep& operator=(const SearchStep&) = delete;

    /// Forgets what was added.
    virtual void clear() {
        for (auto& m : members_) std::fill(m.gradient.begin(), m.gradient.end(), T(0));
    }
    /// Adds gradient and metric of the last passes times `weight`. Parameters' gradients are left as they
    /// are.
    virtual void add(double weight) {
        for (auto& m : members_) {
            const T* g = m.parameter->dense_gradient().data;
            for (std::size_t i = 0; i < m.gradient.size(); ++i)
                m.gradient[i] += static_cast<T>(weight) * g[i];
        }
    }
    /// Works out the direction. Throws NumericError, naming the parameter, when it is not finite.
    void solve() {
        for (auto& m : members_) std::copy_n(m.parameter->value, m.parameter->size(), m.before.begin());
        direct();
        if (conjugate_) conjugate();
        for (auto& m : members_)
            if (const Index n = m.parameter->size(); kernel::first_non_finite(n, m.direction.data()) != n)
                throw NumericError(message("riemannian: the direction of '", m.parameter->name,
                                           "' is not finite; nothing was changed. Start again from smaller "
                                           "weights, or raise the damping."));
    }
    void move(double rate) {
        for (auto& m : members_)
            for (std::size_t i = 0; i < m.before.size(); ++i)
                m.parameter->value[i] = m.before[i] + static_cast<T>(rate) * m.direction[i];
    }
    void cancel() {
        for (auto& m : members_) std::copy(m.before.begin(), m.before.end(), m.parameter->value);
    }
    virtual bool wants_modulus() const { return false; }
    /// A sequence that none of its parameters has a part in, only what comes after it: passes then begin and
    /// end there. None by default.
    virtual Seq<T> behind() const { return {}; }

    /// Conjugate directions: with G the gradient, Δ = -M⁻¹G the step of the metric and D the direction used,
    ///
    ///     D ← Δ + β D,   β = max(0, Δ·(G - G₋) / (Δ₋·G₋))
    ///
    /// and D ← Δ where that would not go down. Products of a gradient with a step do not depend on how
    /// activities are represented, so what the metric is invariant under D is invariant under too. Off by
    /// default, as in the source.
    /// Source   Polak, Ribière 1969, preconditioned.
    void conjugate(bool on) {
        conjugate_ = on;
        forget_direction();
    }
    /// Starts conjugate directions anew, after steps that were cancelled for good or weights changed
    /// elsewhere.
    void forget_direction() { slope_before_ = 0; }

    /// Δ of one of its parameters, for tests.
    const std::vector<T>& direction(std::size_t member) const { return members_[member].direction; }

protected:
    struct Member {
        Parameter<T>* parameter;
        std::vector<T> gradient, direction, before;
        std::vector<T> gradient_before = {}, direction_before = {};  // of conjugate directions
    };
    std::size_t member(Parameter<T>& p) {
        const auto n = static_cast<std::size_t>(p.size());
        within_memory("riemannian", bytes_of("riemannian", {p.size(), 3}, sizeof(T)), [&] {
            members_.push_back({&p, std::vector<T>(n), std::vector<T>(n), std::vector<T>(n)});
        });
        return members_.size() - 1;
    }
    virtual void direct() = 0;

private:
    void conjugate() {
        double slope = 0, change = 0, along_before = 0;
        for (auto& m : members_) {
            m.gradient_before.resize(m.gradient.size()), m.direction_before.resize(m.gradient.size());
            for (std::size_t i = 0; i < m.gradient.size(); ++i) {
                const double step = static_cast<double>(m.direction[i]),
                             g = static_cast<double>(m.gradient[i]);
                slope += step * g;
                change += step * (g - static_cast<double>(m.gradient_before[i]));
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

    bool conjugate_ = false;
    double slope_before_ = 0;

protected:
    std::vector<Member> members_;
};

/// Δ = -G: plain gradient ascent of the likelihood, under the same control of rates as the metrics.
template <class T> class GradientStep final : public SearchStep<T> {
public:
    /// `behind`: see SearchStep::behind().
    explicit GradientStep(const Parameters<T>& group, Seq<T> behind = {}) : behind_(behind) {
        for (Parameter<T>* p : group) this->member(*p);
    }
    Seq<T> behind() const override { return behind_; }

private:
    void direct() override {
        for (auto& m : this->members_)
            for (std::size_t i = 0; i < m.gradient.size(); ++i) m.direction[i] = -m.gradient[i];
    }
    Seq<T> behind_;
};

}  // namespace isogloss
