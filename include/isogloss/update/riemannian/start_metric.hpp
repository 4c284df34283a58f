/// @file update/riemannian/start_metric.hpp  The metric of the start values of a network on a sparse graph.
#pragma once

#include <algorithm>
#include <isogloss/graph/store.hpp>
#include <isogloss/node/edges.hpp>
#include <isogloss/update/riemannian/metric.hpp>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The metric of the start values V⁰ of Glnn, Gnn and SparseRnn, one number Φ_j for each unit: the step is
///
///     Δ_j = -B_j / (Φ_j + ε_j)
///
/// where B is the derivative of the loss at the start and Φ = B² for RUOP, the modulus for RBPM. The sums are over the
/// columns that begin there: only passes in which some column begins contribute, and only these decay the sums; the
/// first one counts in full. How ε is added is our reading of the source.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eq. (29).
template <class T> class StartMetric final : public Metric<T> {
public:
    /// Throws UsageError when memory does not suffice.
    StartMetric(graph::Store<T>& store, const Parameters<T>& group, const EdgeRecord<T>& record,
                UnitModulus modulus)
        : Metric<T>(store, message("riemannian: '", record.name, "'"), MetricForm::full, modulus),
          record_(record),
          start_(detail::place(store, group, record.start)) {
        this->take_sums(message("start/", record.name), sums, 1, record.edges.units);
    }

    std::vector<T> sums;  ///< Φ_j [N]

    void clear(double keep) override {
        if (keep == 0) this->decay(sums, 0);
        keep_ = keep;
    }

    bool due() const override {
        const T* started = store_.value(record_.started.id, -1);
        return std::any_of(started, started + store_.batch, [](T v) { return !(v > 0); });
    }
    bool additive() const override { return false; }

    void add(double weight) override {
        if (!due()) return;
        const double keep = std::exchange(keep_, 1);
        const bool known = std::any_of(sums.begin(), sums.end(), [](T v) { return v != 0; });
        this->decay(sums, keep);
        T c = static_cast<T>(weight);
        if (!known && keep < 1) c /= static_cast<T>(1 - keep);
        const Index N = record_.edges.units;
        const T* flow = store_.adjoint(record_.potential.id, this->wants_modulus(), -1);
        for (Index b = 0; b < store_.batch; ++b)
            if (!(store_.value(record_.started.id, -1)[b] > 0))
                for (Index j = 0; j < N; ++j) sums[j] += c * this->modulus(flow[b * N + j]);
    }

    void direction(std::span<const typename Metric<T>::Slot> group, double scale,
                   const Damping& damping) override {
        const auto& [G, delta] = group[start_];
        for (std::size_t j = 0; j < sums.size(); ++j)
            delta[j] = -detail::ratio(static_cast<T>(scale) * G[j], sums[j] + damping.epsilon(sums[j], 1));
    }

private:
    using Metric<T>::store_;
    const EdgeRecord<T>& record_;
    int start_;        // its index in the group
    double keep_ = 1;  // factor of the sums at the next add()
};

}}  // namespace isogloss
