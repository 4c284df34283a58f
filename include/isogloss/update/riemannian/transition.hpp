/// @file update/riemannian/transition.hpp  RUOP and RBPM steps of the networks on a sparse graph.
#pragma once

#include <isogloss/update/riemannian/edge_metric.hpp>
#include <isogloss/update/riemannian/metric.hpp>
#include <isogloss/update/riemannian/search_step.hpp>

namespace isogloss {

/// Options of TransitionStep.
struct TransitionOptions {
    UnitModulus modulus = UnitModulus::rbpm;
    MetricForm form = MetricForm::quasi_diagonal;
    double damping = 1;  ///< ε ≥ 0 added to the diagonals; small against the number of symbols, 1 by default
};

/// Natural step of transition weights and start values, for Glnn, Gnn and SparseRnn. For each unit j and
/// symbol x, over the inputs i of j (the always-on 0 among them):
///
///     G_i = Σ a_i^{t-1} B_j^t,   M_{ik} = Σ a_i^{t-1} a_k^{t-1} Φ_j^t + ε 1[i = k]
///
/// summed over t with x_t = x, the step is in the form
///
///     full             Δ = -M⁻¹ G
///     quasi-diagonal   Δ_i = -(G_i - G_0 M_0i/M_00) / (M_ii - M_0i²/M_00)
///                      Δ_0 = -G_0/M_00 - Σ_i (M_0i/M_00) Δ_i
///     diagonal         Δ_i = -G_i / M_ii
///
/// and of a start value Δ = -B_j^{start} / (Φ_j^{start} + ε).
///
/// B is the derivative of the loss (so steps go down), Φ = B² for RUOP, the modulus for RBPM. In SparseRnn
/// edges are shared by the symbols and each symbol has its own bias ρ: the metric is an arrow matrix, whose
/// symbol block is eliminated by a Schur complement; quasi-diagonal keeps of what remains the diagonal.
/// Inputs that never vary or symbols never seen do not move.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (23)-(29), (34)-(35); how ε
///          enters the start values is a reading.
template <class T> class TransitionStep final : public SearchStep<T> {
public:
    /// `node`: the network's name. Throws UsageError when there is none of that name or ε is not ≥ 0.
    TransitionStep(Graph<T>& g, std::string_view node, TransitionOptions options)
        : store_(g.store()),
          options_(options),
          edges_(find(g, node)),
          metric_(store_, edges_, full(), options.modulus == UnitModulus::rbpm) {
        if (!(options.damping >= 0 && std::isfinite(options.damping)))
            throw UsageError(
                message("riemannian: found damping = ", options.damping, ", expected at least 0"));
        for (const int id : {edges_.tau, edges_.start}) this->member(store_.at(store_.parameters, id));
        if (!gated()) this->member(store_.at(store_.parameters, edges_.rho));
        Index most = 0;
        for (Index j = 0; j < edges_.units; ++j) most = std::max(most, metric_.inputs(j));
        work_.resize(std::size_t(most * most)), right_.resize(std::size_t(most));
    }
    bool wants_modulus() const override { return options_.modulus == UnitModulus::rbpm; }

    void clear() override {
        SearchStep<T>::clear();
        metric_.clear();
    }

    void add(double weight) override {
        SearchStep<T>::add(weight);
        if (wants_modulus() && !store_.moduli)
            throw UsageError("riemannian: RBPM needs backward<Modulus>(loss) before add()");
        metric_.add(weight);
    }

private:
    static const graph::EdgesRecord& find(Graph<T>& g, std::string_view node) {
        std::string known;
        for (const auto& e : g.store().edges) {
            if (e.name == node) return e;
            known += (known.empty() ? "" : ", ") + e.name;
        }
        throw UsageError(message("riemannian: '", node, "' is no network on a sparse graph. There are: ",
                                 known.empty() ? "none" : known));
    }
    bool gated() const { return edges_.rho < 0; }
    bool full() const { return options_.form == MetricForm::full; }

    void direct() override {
        const Index N = edges_.units, A = metric_.symbols(), E = edges_.edges();
        auto& tau = this->members_[0];
        auto& start = this->members_[1];
        for (std::size_t j = 0; j < start.direction.size(); ++j)
            start.direction[j] = -kernel::diagonal(start.gradient[j], metric_.start[j] + damping());
        const auto of = [&](Index x, Index j, Index biases, const T* G0, const T* G, T* delta0, T* delta) {
            unit(j, biases, metric_.whole.data() + x * N + j, metric_.cross.data() + x * E,
                 metric_.squares(x, j), G0 + j, G, delta0 + j, delta);
        };
        for (Index j = 0; j < N; ++j)
            if (gated())
                for (Index x = 0; x < A; ++x) {
                    const T* G = tau.gradient.data() + x * (N + E);
                    T* delta = tau.direction.data() + x * (N + E);
                    of(x, j, 1, G, G + N, delta, delta + N);
                }
            else
                of(0, j, A, this->members_[2].gradient.data(), tau.gradient.data(),
                   this->members_[2].direction.data(), tau.direction.data());
    }

    T damping() const { return static_cast<T>(options_.damping); }

    // The step of unit j, which has `biases` biases, N apart in M00, G0 and delta0; cross has a row of edges
    // for each.
    void unit(Index j, Index biases, const T* M00, const T* cross, const T* M, const T* G0, const T* G,
              T* delta0, T* delta) {
        const Index N = edges_.units, E = edges_.edges(), first = edges_.first[std::size_t(j)],
                    m = metric_.inputs(j);
        const T eps = damping();
        const auto slope = [&](Index x, Index k) {
            const T d = M00[x * N] + eps;
            return d > 0 ? cross[x * E + first + k] / d : T(0);
        };
        T *work = work_.data(), *right = right_.data();
        for (Index k = 0; k < m; ++k) {
            T g = G[first + k];
            if (options_.form != MetricForm::diagonal)
                for (Index x = 0; x < biases; ++x) g -= slope(x, k) * G0[x * N];
            right[k] = g;
        }
        if (full()) {
            std::copy_n(M, m * m, work);
            std::vector<T>& whole = diagonal_;
            whole.assign(static_cast<std::size_t>(m), T(0));
            for (Index k = 0; k < m; ++k) {
                work[k * m + k] += eps;
                whole[std::size_t(k)] = work[k * m + k];
                for (Index l = 0; l <= k; ++l)
                    for (Index x = 0; x < biases; ++x)
                        work[k * m + l] -= slope(x, k) * cross[x * E + first + l];
            }
            // an input that is constant is left with rounding alone, which is no direction
            for (Index k = 0; k < m; ++k)
                if (!(work[k * m + k] > kernel::redundant<T> * whole[std::size_t(k)])) {
                    for (Index l = 0; l < m; ++l) work[std::max(k, l) * m + std::min(k, l)] = 0;
                    right[k] = 0;
                }
            kernel::solve_symmetric(m, work, right);
        } else
            for (Index k = 0; k < m; ++k) {
                const T whole = M[k] + eps;
                T left = whole;
                if (options_.form == MetricForm::quasi_diagonal)
                    for (Index x = 0; x < biases; ++x) left -= slope(x, k) * cross[x * E + first + k];
                right[k] = left > kernel::redundant<T> * whole ? right[k] / left : T(0);
            }
        for (Index k = 0; k < m; ++k) delta[first + k] = -right[k];
        for (Index x = 0; x < biases; ++x) {
            T d = kernel::diagonal(G0[x * N], M00[x * N] + eps);
            if (options_.form != MetricForm::diagonal)
                for (Index k = 0; k < m; ++k) d -= slope(x, k) * right[k];
            delta0[x * N] = -d;
        }
    }

    graph::Store<T>& store_;
    TransitionOptions options_;
    const graph::EdgesRecord& edges_;
    EdgeMetric<T> metric_;
    std::vector<T> work_, right_, diagonal_;
};

}  // namespace isogloss
