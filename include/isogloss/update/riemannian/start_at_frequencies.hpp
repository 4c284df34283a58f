/// @file update/riemannian/start_at_frequencies.hpp  Start values of a softmax head.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/elementary.hpp>
#include <isogloss/graph/graph.hpp>
#include <numeric>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Start values (30): every weight of a head 0, its biases log ν_v, so that the first model predicts each
/// word by its frequency among the targets. `counts`: how often each word is a target; a word that never is one
/// counts as 1e-12 of the sum. Throws UsageError for a head without a bias, one whose rows are held at norm 1, counts
/// that do not fit, a graph on shared weights, and while weights are lent (Lease).
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II".
template <class T>
void start_at_frequencies(Graph<T>& g, std::string_view head, const std::vector<double>& counts) {
    const auto& heads = graph::Inspect::store(g).logits;
    const auto found =
        std::find_if(heads.begin(), heads.end(), [&](const auto& h) { return h.name == head; });
    if (found == heads.end() || found->bias.id < 0)
        throw UsageError("start_at_frequencies: '", head, "' is no softmax head with a bias; there are ",
                         graph::names_of(heads));
    const auto& record = *found;
    if (graph::Inspect::store(g).shared)
        throw UsageError("start_at_frequencies: the graph is on shared weights; start their owner");
    graph::require_unlent(graph::Inspect::store(g).parameters, "start_at_frequencies");
    const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
    if (std::ssize(counts) != record.vocabulary || !(total > 0 && std::isfinite(total)) ||
        *std::min_element(counts.begin(), counts.end()) < 0)
        throw UsageError("start_at_frequencies: found ", counts.size(), " counts that sum to ", total,
                         ", expected ", record.vocabulary, " of at least 0 with a finite sum above 0");
    auto& table = graph::Inspect::store(g)[record.table];
    if (table.unit_rows)
        throw UsageError("start_at_frequencies: the rows of '", table.name, "' are held at norm 1");
    std::fill_n(table.value, table.size(), T(0));
    T* b = graph::Inspect::store(g)[record.bias].value;
    for (std::size_t v = 0; v < counts.size(); ++v)
        b[v] = static_cast<T>(kernel::elementary::log(std::max(counts[v] / total, 1e-12)));
}

}}  // namespace isogloss
