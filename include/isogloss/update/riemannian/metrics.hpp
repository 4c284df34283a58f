/// @file update/riemannian/metrics.hpp  The metrics of a group of parameters of any kind.
#pragma once

#include <algorithm>
#include <functional>
#include <isogloss/update/riemannian/edge_metric.hpp>
#include <isogloss/update/riemannian/start_metric.hpp>
#include <isogloss/update/riemannian/table_metric.hpp>
#include <isogloss/update/riemannian/unit_metric.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Makes a metric of one's own for parameters of a group, see Metric.
template <class T> using MetricMaker = std::function<std::unique_ptr<Metric<T>>(const Parameters<T>& group)>;

namespace detail {

/// A metric for every layer of units (Linear, Rnn, Lstm, Gru, Rhn, …: every z = Σ a W + b), word table (looked up, in a
/// head, or tied) and network on a sparse graph that has parameters in `group`; transition weights that a sequence
/// gates are those of a layer of units. What the metric of `own` serves has no other. Throws UsageError when a parameter
/// belongs to none of these or to several layers: use another update for it; and for RUOP of anything but heads where
/// gradients are sampled. `words` is a factor of the absolute damping of each word of heads, see TableMetric.
template <class T> Metrics<T> metrics_of(Graph<T>& g, const Parameters<T>& group, UnitModulus modulus,
                                         MetricForm form, const MetricMaker<T>& own = {},
                                         const std::vector<double>& words = {}) {
    auto& store = graph::Inspect::store(g);
    if (!group.are_of(store))
        throw UsageError("riemannian: '", group[0].name, "' is a parameter of another graph");
    Metrics<T> metrics;
    enum class Served { no, in_one_use, in_all };
    std::vector<Served> served(group.size(), Served::no);
    const auto add = [&](std::unique_ptr<Metric<T>> metric, Served how) {
        for (const int k : metric->serves()) {
            if (served[std::size_t(k)] == Served::in_all)
                throw UsageError("riemannian: '", group[std::size_t(k)].name,
                                 "' has a metric of your own, which must ",
                                 "serve the other weights of its layer in the group too");
            served[std::size_t(k)] = how;
        }
        metrics.push_back(std::move(metric));
    };
    if (own) add(own(group), Served::in_all);
    // Whether one of these is in the group and has no metric of all its uses.
    const auto open = [&](std::initializer_list<Weight<T>> weights) {
        return std::any_of(weights.begin(), weights.end(), [&](Weight<T> w) {
            const int k = place(store, group, w);
            return k >= 0 && served[std::size_t(k)] != Served::in_all;
        });
    };
    for (const auto& u : store.units) {
        bool any = open({u.bias});
        for (const auto& s : u.sources) any |= open({s.weight});
        if (any) add(std::make_unique<UnitMetric<T>>(store, group, u, modulus, form), Served::in_one_use);
    }
    for (const auto* e :
         store.template all<EdgeRecord<T>>()) {  // completes the biases' steps, see EdgeMetric
        if (open({e->tau, e->rho}))
            add(std::make_unique<EdgeMetric<T>>(store, group, *e, modulus, form), Served::in_one_use);
        if (open({e->start}))
            add(std::make_unique<StartMetric<T>>(store, group, *e, modulus), Served::in_one_use);
    }
    bool squares = metrics.size() > (own ? 1 : 0);  // of gradients
    const auto add_table = [&](Weight<T> table) {
        if (!open({table})) return;
        const typename TableMetric<T>::Options options{.modulus = modulus, .form = form, .words = words};
        add(std::make_unique<TableMetric<T>>(store, group, table, options), Served::in_all);
    };
    for (const auto& head : store.logits) add_table(head.table);
    for (const auto* lookup : store.template all<LookupRecord<T>>()) {
        squares |= place(store, group, lookup->table) >= 0;
        add_table(lookup->table);
    }
    if (squares && modulus == UnitModulus::ruop && store.epsilon > 0)
        throw UsageError(
            "riemannian: RUOP squares gradients, and the squares of those that a sample estimates are too ",
            "large; use UnitModulus::rbpm, or GraphOptions::epsilon = 0");
    for (std::size_t k = 0; k < served.size(); ++k)
        if (served[k] == Served::no || (served[k] == Served::in_one_use && group[k].uses() > 1))
            throw UsageError(
                "riemannian: '", group[k].name,
                "' has no metric: it is not the weight of one layer of units, nor a word table or its "
                "bias; train it by another update");
    return metrics;
}

}
}}  // namespace isogloss::detail
