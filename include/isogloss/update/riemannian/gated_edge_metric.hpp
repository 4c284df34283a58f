/// @file update/riemannian/gated_edge_metric.hpp  The metric of a network on a graph that is gated by a sequence.
#pragma once

#include <array>
#include <isogloss/graph/affine.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/update/riemannian/start_sums.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The metric of P, b and start values of a Glnn or Gnn whose row of transition weights is u_t P + b. Unit j then
/// sums the products u_k a_i with weights P_{k,ij}, k over the inputs and i over the units into j, where u_0 = 1
/// stands for b and a_0 = 1 for the always-on unit:
///
///     V_j^t = leak · V_j^{t-1} + Σ_k Σ_i P_{k,ij} u_k^t a_i^{t-1}
///
/// The quasi-diagonal form regresses each product on the products of fewer factors. With z = u_k a_i, and p
/// the products without u_k, without a_i, or without both (1, a_i and u_k; for u_k and for a_i alone: 1), in
/// sums weighted by Φ_j over the positions,
///
///     s = (Σ p pᵀ)⁻¹ Σ p z,   η = (G_z - s·G_p) / (Σ z² - s·Σ p z),   Δ_z = -η,   Δ_p gains s η
///
/// where for the constant η = G_1 / Σ 1. The residuals z - s·p of different products are treated as independent.
/// The step is invariant under affine changes of the activities and of the inputs, and without u (b alone) it
/// is that of EdgeMetric. The diagonal form is Δ_z = -G_z / Σ z². There is no full form: its matrix would have a
/// row for each product. ε is relative to the mean of a unit's diagonal, and added to every Σ z².
///
/// All sums are those of u_k^p a_i^q Φ_j with p, q from 0 to 2: one matrix product, [1 + 2 m, N + 2 E], over
/// the positions for m inputs, N units and E edges.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", remark 2 and eqs. (34)-(35); the
///          grouping of the products is our extension of these to two factors.
template <class T> class GatedEdgeMetric final : public Metric<T> {
public:
    /// Throws UsageError when some of the network's parameters are not in `group`, for the full form, and when
    /// memory does not suffice.
    GatedEdgeMetric(graph::Store<T>& store, const Parameters<T>& group, const EdgeRecord<T>& record,
                    UnitModulus modulus, MetricForm form)
        : Metric<T>(store, message("riemannian: '", record.name, "'"), form, modulus),
          start(store, group, record),
          record_(record),
          edges_(record.edges),
          input_(source().input),
          P_(detail::place(store, group, source().weight)),
          b_(detail::place(store, group, store.units[std::size_t(record.rows.id)].bias)) {
        if (P_ < 0 || b_ < 0 || !start.grouped())
            throw UsageError("riemannian: the metric of '", record.name,
                             "' covers all its parameters, P, b and start; include them all in the group, "
                             "and train P and b");
        if (full())
            throw UsageError("riemannian: '", record.name,
                             "' is gated by a sequence; its metric is quasi_diagonal or diagonal");
        this->take_sums(message("moments/", record.name), moments, 1 + 2 * inputs(), width());
        this->take_sums(message("start/", record.name), start.phi, 1, edges_.units);
        this->take(left_, block, 1 + 2 * inputs()), this->take(right_, block, width());
        this->take(bias_step_, edges_.units + edges_.count());
    }

    /// Σ u_k^p a_i^q Φ_j [1 + 2 m, N + 2 E]: rows p = 0, then p = 1 and p = 2 by input; columns q = 0 by unit,
    /// then q = 1 and q = 2 by edge.
    std::vector<T> moments;
    detail::StartSums<T> start;  ///< of the start values

    void clear(double keep) override {
        this->decay(moments, keep);
        start.clear(keep);
    }
    bool due() const override { return start.due(); }
    /// Start values are averaged over the passes that begin a sequence.
    bool additive() const override { return false; }

    void add(double weight) override {
        this->require_passes();
        const bool rbpm = this->wants_modulus();
        const Index N = edges_.units, E = edges_.count(), m = inputs(), rows = store_.rows();
        const T c = static_cast<T>(weight), *before = store_.value(record_.activity.id, -1),
                *flow = store_.adjoint(record_.potential.id, rbpm), *u = store_.value(input_.id);
        for (Index first = 0; first < rows; first += block) {
            const Index count = std::min(block, rows - first);
            for (Index r = 0; r < count; ++r) {
                T* left = left_.data() + r * (1 + 2 * m);
                const T* in = u + (first + r) * m;
                *left++ = 1;
                for (Index k = 0; k < m; ++k) left[k] = in[k], left[m + k] = in[k] * in[k];
                T* right = right_.data() + r * width();
                const T *a = before + (first + r) * N, *B = flow + (first + r) * N;
                for (Index j = 0; j < N; ++j) right[j] = this->modulus(B[j]);
                edges_.for_each([&](Index e, Index i, Index j) {
                    right[N + e] = a[i] * right[j];
                    right[N + E + e] = a[i] * a[i] * right[j];
                });
            }
            gemm<T>(c, t(MatrixRef<const T>(left_.data(), count, 1 + 2 * m)), {right_.data(), count, width()},
                    T(1), {moments.data(), 1 + 2 * m, width()});
        }
        start.add(c, rbpm, [&](T v) { return this->modulus(v); });
    }

    void direction(std::span<const typename Metric<T>::Slot> group, double scale,
                   const Damping& damping) override {
        const T part = static_cast<T>(scale);
        start.direction(group, part, damping);
        std::fill(bias_step_.begin(), bias_step_.end(), T(0));
        for (Index j = 0; j < edges_.units; ++j)
            if (form_ == MetricForm::diagonal) solve_each(group, j, part, damping);
            else solve_beside(group, j, part, damping);
        std::copy(bias_step_.begin(), bias_step_.end(), group[std::size_t(b_)].direction);
    }

private:
    static constexpr Index block = 64;  // positions at a time

    const graph::Source<T>& source() const {
        return store_.units[std::size_t(record_.rows.id)].sources.front();
    }
    Index inputs() const { return input_.width; }
    Index width() const { return edges_.units + 2 * edges_.count(); }
    Index row() const { return edges_.units + edges_.count(); }  // of transition weights

    // Σ u_k^p a_i^q Φ_j; i by edge, in a column `at` of a row of transition weights (j, or N + e).
    T sum(Index p, Index k, Index q, Index at) const {
        const Index first = p == 0 ? 0 : 1 + (p - 1) * inputs() + k,
                    column = q == 2 ? at + edges_.count() : at;
        return moments[std::size_t(first * width() + column)];
    }
    // ε of unit j.
    T damp(Index j, const Damping& damping) const {
        T trace = sum(0, 0, 0, j);
        const auto add = [&](Index p, Index k) {
            if (p > 0) trace += sum(p, k, 0, j);
            for (Index e = edges_.first[j]; e < edges_.first[j + 1]; ++e)
                trace += sum(p, k, 2, edges_.units + e);
        };
        add(0, 0);
        for (Index k = 0; k < inputs(); ++k) add(2, k);
        return damping.epsilon(trace, (1 + inputs()) * (1 + edges_.first[j + 1] - edges_.first[j]));
    }

    void solve_each(std::span<const typename Metric<T>::Slot> group, Index j, T part,
                    const Damping& damping) {
        const T epsilon = damp(j, damping);
        const typename Metric<T>::Slot &P = group[std::size_t(P_)], &b = group[std::size_t(b_)];
        const auto of_column = [&](Index at, Index q) {
            bias_step_[std::size_t(at)] = -detail::ratio(part * b.gradient[at], sum(0, 0, q, at) + epsilon);
            for (Index k = 0; k < inputs(); ++k)
                P.direction[k * row() + at] =
                    -detail::ratio(part * P.gradient[k * row() + at], sum(2, k, q, at) + epsilon);
        };
        of_column(j, 0);
        for (Index e = edges_.first[j]; e < edges_.first[j + 1]; ++e) of_column(edges_.units + e, 2);
    }

    void solve_beside(std::span<const typename Metric<T>::Slot> group, Index j, T part,
                      const Damping& damping) {
        const T epsilon = damp(j, damping), m00 = sum(0, 0, 0, j) + epsilon;
        const typename Metric<T>::Slot &P = group[std::size_t(P_)], &b = group[std::size_t(b_)];
        const T* G0 = b.gradient;
        T* step0 = bias_step_.data();
        // one product with the constant: its step, and its contribution to the constant's
        const auto beside_constant = [&](T G, T cross, T square) {
            const T slope = detail::ratio(cross, m00), diagonal = square + epsilon;
            const T eta =
                detail::quasi_diagonal(part * (G - slope * G0[j]), diagonal - slope * cross, diagonal);
            step0[j] += slope * eta;
            return -eta;
        };
        step0[j] -= detail::ratio(part * G0[j], m00);
        for (Index e = edges_.first[j]; e < edges_.first[j + 1]; ++e) {
            const Index at = edges_.units + e;
            step0[at] += beside_constant(G0[at], sum(0, 0, 1, at), sum(0, 0, 2, at));
        }
        for (Index k = 0; k < inputs(); ++k) {
            const T* G = P.gradient + k * row();
            T* step = P.direction + k * row();
            step[j] = beside_constant(G[j], sum(1, k, 0, j), sum(2, k, 0, j));
            for (Index e = edges_.first[j]; e < edges_.first[j + 1]; ++e) {
                const Index at = edges_.units + e;
                const std::array<T, 3> cross{sum(1, k, 1, at), sum(1, k, 2, at), sum(2, k, 1, at)};
                std::array<T, 9> M{m00,
                                   0,
                                   0,
                                   sum(0, 0, 1, at),
                                   sum(0, 0, 2, at) + epsilon,
                                   0,
                                   sum(1, k, 0, j),
                                   cross[0],
                                   sum(2, k, 0, j) + epsilon};
                std::array<T, 3> s = cross;
                detail::solve_symmetric<T>(3, M.data(), s.data());
                const T diagonal = sum(2, k, 2, at) + epsilon,
                        left = diagonal - s[0] * cross[0] - s[1] * cross[1] - s[2] * cross[2];
                const T eta = detail::quasi_diagonal(
                    part * (G[at] - s[0] * G0[j] - s[1] * G0[at] - s[2] * G[j]), left, diagonal);
                step[at] = -eta;
                step0[j] += s[0] * eta, step0[at] += s[1] * eta, step[j] += s[2] * eta;
            }
        }
    }

    using Metric<T>::store_, Metric<T>::full, Metric<T>::form_;
    const EdgeRecord<T>& record_;
    const Edges& edges_;
    Seq<T> input_;                             // u
    int P_, b_;                                // indices in the group
    std::vector<T> left_, right_, bias_step_;  // u^p and a^q Φ of a block of positions; Δ of b
};

}}  // namespace isogloss
