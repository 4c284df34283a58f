/// @file update/riemannian/softmax_step.hpp  Search steps of a softmax head, and its start values.
#pragma once

#include <cmath>
#include <isogloss/update/riemannian/metrics.hpp>
#include <isogloss/update/riemannian/search_step.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of SoftmaxStep.
struct SoftmaxStepOptions {
    std::vector<double> frequencies = {};  ///< f_v of every word; none: 1/V each
    double floor = 1;                      ///< ε ≥ 0 of all words together, added to the diagonals
};

/// Natural step of a softmax head by SoftmaxFisher, where ε_v = floor · (f_v + machine epsilon) and f_v is
/// the frequency of word v. A head's weights are the writing weights of the source.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (17)-(21).
template <class T> class SoftmaxStep final : public SearchStep<T> {
public:
    /// `targets`: the tokens that the head predicts; positions without one do not count. Throws UsageError for arguments
    /// that do not fit.
    SoftmaxStep(Graph<T>& g, std::string_view head, Tokens targets, SoftmaxStepOptions options = {})
        : SoftmaxStep(g, head_of(g, head), targets, std::move(options.frequencies), options.floor) {}

    const SoftmaxFisher<T>& metric() const {
        return static_cast<const SoftmaxFisher<T>&>(*this->metrics_[0]);
    }

private:
    SoftmaxStep(Graph<T>& g, const graph::LogitsRecord<T>& head, Tokens targets,
                std::vector<double> frequencies, double floor)
        : SearchStep<T>(SearchStep<T>::parameters(g, {head.table, head.bias}), {.absolute = floor},
                        head.hidden) {
        const Index V = head.vocabulary;
        if (targets.id < 0 || targets.graph != graph::Inspect::store(g).serial)
            throw UsageError("riemannian: the targets are not tokens of this graph");
        for (const Parameter<T>* p : this->group_)  // behind() would leave out what the others compute
            if (p->uses() > 1)
                throw UsageError(
                    "riemannian: '", p->name, "' is used ", p->uses(), " times, expected by head '",
                    head.name,
                    "' alone; give the head a matrix of its own, as Softmax does, or train this one by "
                    "another update");
        if (frequencies.empty()) frequencies.assign(V, 1 / static_cast<double>(V));
        if (std::ssize(frequencies) != V)
            throw UsageError("riemannian: found ", frequencies.size(), " frequencies for a head of ", V,
                             " words");
        for (double& f : frequencies) {
            require("riemannian", "frequency", f, 0.0);
            f += std::numeric_limits<double>::epsilon();
        }
        this->metrics_.push_back(std::make_unique<SoftmaxFisher<T>>(
            graph::Inspect::store(g), this->group_, head,
            typename SoftmaxFisher<T>::Options{.targets = targets, .units = std::move(frequencies)}));
    }
};

/// Start values (30): every weight of a head 0, its biases log ν_v, so that the first model predicts each
/// word by its frequency among the targets. `counts`: how often each word is a target; a word that never is one
/// counts as 1e-12 of the sum. Throws UsageError for a head without a bias, one whose rows are held at norm 1, counts
/// that do not fit, a graph on shared weights, and while weights are those of WeightDrop or DynamicUpdate.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II".
template <class T>
void start_at_frequencies(Graph<T>& g, std::string_view head, const std::vector<double>& counts) {
    const auto& record = head_of(g, head);
    if (graph::Inspect::store(g).shared)
        throw UsageError(
            "start_at_frequencies: the graph is on shared weights; start the graph that owns them");
    graph::require_lasting(graph::Inspect::store(g).parameters, "start_at_frequencies", "start");
    if (record.bias.id < 0) throw UsageError("start_at_frequencies: head '", head, "' has no bias");
    double total = 0;
    for (const double c : counts) {
        require("start_at_frequencies", "count", c, 0.0);
        total += c;
    }
    if (std::ssize(counts) != record.vocabulary || !(total > 0 && std::isfinite(total)))
        throw UsageError("start_at_frequencies: found ", counts.size(), " counts that sum to ", total,
                         ", expected ", record.vocabulary, " with a sum above 0");
    auto& table = graph::Inspect::store(g)[record.table];
    if (table.unit_rows)
        throw UsageError("start_at_frequencies: the rows of '", table.name, "', the table of head '", head,
                         "', are held at norm 1 and cannot start at 0");
    std::fill_n(table.value, table.size(), T(0));
    T* b = graph::Inspect::store(g)[record.bias].value;
    for (std::size_t v = 0; v < counts.size(); ++v)
        b[v] = static_cast<T>(std::log(std::max(counts[v] / total, 1e-12)));
}

}}  // namespace isogloss
