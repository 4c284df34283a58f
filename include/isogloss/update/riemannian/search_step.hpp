/// @file update/riemannian/search_step.hpp  A direction that can be tried at several rates, and taken back.
#pragma once

#include <isogloss/graph/graph.hpp>
#include <vector>

namespace isogloss {

/// A group of parameters with a direction Δ: `move(rate)` sets w = w₀ + rate Δ, w₀ being the values when the
/// direction was solved for, and `cancel()` brings w₀ back bit by bit.
///
/// One round is: clear(); for each sequence backward (and backward<Modulus> where wants_modulus()), then
/// add(weight); solve(); then move and cancel at will. Gradients and metrics of sequences are summed with their
/// weights before anything is inverted.
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
    /// Adds gradient and metric of the last passes times `weight`. Parameters' gradients are left as they are.
    virtual void add(double weight) {
        for (auto& m : members_) {
            const T* g = m.parameter->dense_gradient().data;
            for (std::size_t i = 0; i < m.gradient.size(); ++i) m.gradient[i] += static_cast<T>(weight) * g[i];
        }
    }
    /// Works out the direction. Throws NumericError, naming the parameter, when it is not finite.
    void solve() {
        for (auto& m : members_) std::copy_n(m.parameter->value, m.parameter->size(), m.before.begin());
        direct();
        for (auto& m : members_)
            if (const Index n = m.parameter->size(); kernel::first_non_finite(n, m.direction.data()) != n)
                throw NumericError(
                    text("riemannian: the direction of '", m.parameter->name,
                         "' is not finite; nothing was changed. Start again from smaller weights, or raise the damping."));
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

    /// Δ of one of its parameters, for tests.
    const std::vector<T>& direction(std::size_t member) const { return members_[member].direction; }

protected:
    struct Member {
        Parameter<T>* parameter;
        std::vector<T> gradient, direction, before;
    };
    std::size_t member(Parameter<T>& p) {
        const auto n = static_cast<std::size_t>(p.size());
        members_.push_back({&p, std::vector<T>(n), std::vector<T>(n), std::vector<T>(n)});
        return members_.size() - 1;
    }
    virtual void direct() = 0;
    std::vector<Member> members_;
};

/// Δ = -G: plain gradient ascent of the likelihood, under the same control of rates as the metrics.
template <class T> class GradientStep final : public SearchStep<T> {
public:
    explicit GradientStep(const Parameters<T>& group) {
        for (Parameter<T>* p : group) this->member(*p);
    }

private:
    void direct() override {
        for (auto& m : this->members_)
            for (std::size_t i = 0; i < m.gradient.size(); ++i) m.direction[i] = -m.gradient[i];
    }
};

}  // namespace isogloss
