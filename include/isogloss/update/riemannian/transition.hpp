/// @file update/riemannian/transition.hpp  Search steps of the networks on a sparse graph.
#pragma once

#include <isogloss/update/riemannian/search_step.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of TransitionStep.
struct TransitionOptions {
    UnitModulus modulus = UnitModulus::rbpm;
    MetricForm form = MetricForm::automatic;
    double floor = 1;  ///< ε ≥ 0 added to the diagonals; small compared to the number of symbols
};

/// RUOP or RBPM step of transition weights and start values by EdgeMetric, for Glnn, Gnn and SparseRnn.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (23)-(29), (34)-(35).
template <class T> class TransitionStep final : public SearchStep<T> {
public:
    /// `node`: the network's name. Throws UsageError when there is none of that name, or unless ε ≥ 0.
    TransitionStep(Graph<T>& g, std::string_view node, TransitionOptions options)
        : SearchStep<T>(SearchStep<T>::parameters(g, weights(g, find(g, node))),
                        {.absolute = options.floor}) {
        this->metrics_ = metrics_of(g, this->group_, options.modulus, options.form);
    }

private:
    static std::vector<Weight<T>> weights(Graph<T>& g, const EdgeRecord<T>& e) {
        if (e.rows.id < 0) return {e.tau, e.start, e.rho};
        const auto& rows = graph::Inspect::store(g).units[std::size_t(e.rows.id)];
        return {rows.sources.front().weight, rows.bias, e.start};
    }
    static const EdgeRecord<T>& find(Graph<T>& g, std::string_view node) {
        const auto networks = graph::Inspect::store(g).template all<EdgeRecord<T>>();
        for (const auto* e : networks)
            if (e->name == node) return *e;
        throw UsageError("riemannian: '", node,
                         "' is not a network on a sparse graph. There are: ", graph::names_of(networks));
    }
};

}}  // namespace isogloss
