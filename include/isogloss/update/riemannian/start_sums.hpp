/// @file update/riemannian/start_sums.hpp  The metric of the start values of networks on graphs.
#pragma once

#include <isogloss/node/edges.hpp>
#include <isogloss/update/riemannian/metric.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace detail {

/// The metric of the start values of a network on a graph, one number for each unit: Φ_j of V before the first
/// step, over the columns that begin there. Only passes in which some column begins contribute, and only these
/// decay the sums: the average is over these passes, as the gradient is. The first one counts in full.
///
///     Δ = -B_j^{start} / (Φ_j^{start} + ε)
///
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eq. (29). How ε is added is our reading.
template <class T> class StartSums {
public:
    StartSums(graph::Store<T>& store, const Parameters<T>& group, const EdgeRecord<T>& record)
        : store_(store), record_(record), place_(place(store, group, record.start)) {}

    std::vector<T> phi;  ///< Φ_j [N], allocated and named by the metric that owns these sums

    /// Whether the start values are in the group, or frozen (Parameters::trained) and so out of every group.
    bool grouped() const { return place_ >= 0 || !store_[record_.start].is_trained(); }

    /// As Metric::clear.
    void clear(double keep) {
        if (keep == 0) std::fill(phi.begin(), phi.end(), T(0));
        keep_ = keep;
    }
    /// Whether some column of the last pass begins at the start values.
    bool due() const {
        const T* started = store_.value(record_.started.id, -1);
        return std::any_of(started, started + store_.batch, [](T v) { return !(v > 0); });
    }
    /// Adds the columns of the last pass that begin there; modulus(v) is Φ of the gradient or modulus v.
    template <class F> void add(T weight, bool rbpm, F&& modulus) {
        if (!due()) return;
        const double keep = std::exchange(keep_, 1);
        const bool known = std::any_of(phi.begin(), phi.end(), [](T v) { return v != 0; });
        if (keep == 0) std::fill(phi.begin(), phi.end(), T(0));
        else kernel::scale(std::ssize(phi), static_cast<T>(keep), phi.data());
        if (!known && keep < 1) weight /= static_cast<T>(1 - keep);
        const Index N = std::ssize(phi);
        const T* flow = store_.adjoint(record_.potential.id, rbpm, -1);
        for (Index b = 0; b < store_.batch; ++b)
            if (!(store_.value(record_.started.id, -1)[b] > 0))
                for (Index j = 0; j < N; ++j) phi[std::size_t(j)] += weight * modulus(flow[b * N + j]);
    }
    /// As Metric::direction, with `part` the scale of the gradient.
    void direction(std::span<const typename Metric<T>::Slot> group, T part, const Damping& damping) const {
        if (place_ < 0) return;
        const auto& slot = group[std::size_t(place_)];
        for (std::size_t j = 0; j < phi.size(); ++j)
            slot.direction[j] = -ratio(part * slot.gradient[j], phi[j] + damping.epsilon(phi[j], 1));
    }

private:
    graph::Store<T>& store_;
    const EdgeRecord<T>& record_;
    int place_;        // index of the start values in the group, or -1
    double keep_ = 1;  // factor of the sums at the next add()
};

}}}  // namespace isogloss::detail
