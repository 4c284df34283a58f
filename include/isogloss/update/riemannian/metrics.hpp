/// @file update/riemannian/metrics.hpp  The metrics of a group of parameters of any kind.
#pragma once

#include <algorithm>
#include <isogloss/update/riemannian/edge_metric.hpp>
#include <isogloss/update/riemannian/softmax_fisher.hpp>
#include <isogloss/update/riemannian/start_metric.hpp>
#include <isogloss/update/riemannian/unit_metric.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace detail {

/// A metric for every layer of units (Linear, Rnn, Lstm, Gru, Rhn, …: every z = Σ a W + b), softmax head and
/// network on a sparse graph that has parameters in `group`; transition weights that a sequence gates are those of a layer
/// of units. Throws UsageError when one of them belongs to no units (a table that is looked up) or to several (a tied
/// one): use another update for it. `targets` are what heads predict, `units` a factor of the absolute damping of each of
/// their words, see SoftmaxFisher.
template <class T> Metrics<T> metrics_of(Graph<T>& g, const Parameters<T>& group, UnitModulus modulus,
                                         MetricForm form, Tokens targets = {},
                                         const std::vector<double>& units = {}) {
    auto& store = graph::Inspect::store(g);
    if (targets.id >= 0) store.require_own(targets, "riemannian");
    if (!group.are_of(store))
        throw UsageError("riemannian: '", group[0].name, "' is a parameter of another graph");
    Metrics<T> metrics;
    std::vector<bool> taken(group.size(), false);
    const auto take = [&](std::initializer_list<Weight<T>> weights) {
        bool any = false;
        for (const Weight<T> w : weights)
            if (const int k = detail::place(store, group, w); k >= 0) any = taken[k] = true;
        return any;
    };
    for (const auto* e : store.template all<EdgeRecord<T>>()) {
        if (take({e->tau, e->rho}))
            metrics.push_back(std::make_unique<EdgeMetric<T>>(store, group, *e, modulus, form));
        if (take({e->start})) metrics.push_back(std::make_unique<StartMetric<T>>(store, group, *e, modulus));
    }
    for (const auto& u : store.units) {
        bool any = take({u.bias});
        for (const auto& s : u.sources) any |= take({s.weight});
        if (any) metrics.push_back(std::make_unique<UnitMetric<T>>(store, group, u, modulus, form));
    }
    for (const auto& h : store.logits)
        if (take({h.table, h.bias}))
            metrics.push_back(std::make_unique<SoftmaxFisher<T>>(
                store, group, h,
                typename SoftmaxFisher<T>::Options{.form = form, .targets = targets, .units = units}));
    for (std::size_t k = 0; k < taken.size(); ++k)
        if (!taken[k] || group[k].uses() > 1)
            throw UsageError("riemannian: '", group[k].name,
                             "' has no metric, as it belongs to no layer of units or to several; train it by "
                             "another update");
    return metrics;
}

}}}  // namespace isogloss::detail
