/// @file update/riemannian/start_metric.hpp  The metric of the start values of a network on a sparse graph.
#pragma once

#include <algorithm>
#include <isogloss/graph/store.hpp>
#include <isogloss/node/edges.hpp>
#include <isogloss/update/riemannian/metric.hpp>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The metric of the start values V⁰ of Glnn, Gnn, LeakyRnn and SparseRnn, one number Φ_j for each unit: the step
/// is
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
          start_(this->serve(group, record.start)) {
        this->take_sums(message("start/", record.name), sums, 1, units() + 1);
        this->take(passing_, units() + 1);
    }

    std::vector<T> sums;  ///< Φ_j [N], and the number of columns

    void clear(double keep) override {
        if (keep == 0) this->decay(sums, 0);
        keep_ = keep;
    }

    bool irregular() const override { return true; }
    bool due() const override {
        const T* started = store_.value(record_.started.id, -1);
        return std::any_of(started, started + store_.batch, [](T v) { return !(v > 0); });
    }

    void add(double weight) override {
        std::fill(passing_.begin(), passing_.end(), T(0));
        const T* flow = store_.adjoint(record_.potential.id, this->wants_modulus(), -1);
        for (Index b = 0; b < store_.batch; ++b)
            if (!(store_.value(record_.started.id, -1)[b] > 0)) {
                for (Index j = 0; j < units(); ++j) passing_[j] += this->modulus(flow[b * units() + j]);
                passing_[units()] += 1;
            }
        average(passing_, keep_, weight);
        if (passing_[units()] > 0) keep_ = 1;
    }

    void average(std::span<const T> given, double keep, double weight) override {
        if (given[std::size_t(units())] == 0) return;
        const bool first = sums[std::size_t(units())] == 0;
        Metric<T>::average(given, keep, first && keep < 1 ? weight / (1 - keep) : weight);
    }

    void direction(std::span<const typename Metric<T>::Slot> group, double scale,
                   const Damping& damping) override {
        const auto& [G, delta] = group[start_];
        for (std::size_t j = 0; j < std::size_t(units()); ++j)
            delta[j] = -detail::ratio(static_cast<T>(scale) * G[j], sums[j] + damping.epsilon(sums[j], 1));
    }

private:
    Index units() const { return record_.edges.units; }  // N

    using Metric<T>::store_;
    const EdgeRecord<T>& record_;
    int start_;               // its index in the group
    double keep_ = 1;         // factor of the sums at the next add()
    std::vector<T> passing_;  // the sums of a pass
};

}}  // namespace isogloss
