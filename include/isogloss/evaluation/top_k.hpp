/// @file evaluation/top_k.hpp  The most probable next words.
#pragma once

#include <algorithm>
#include <isogloss/graph/graph.hpp>
#include <numeric>
#include <span>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// A word that may come next.
struct Candidate {
    Token word;
    double log_probability;  ///< natural logarithm of its probability
    bool operator==(const Candidate&) const = default;
};

/// The k largest entries of a row of log-probabilities [vocabulary], in descending order; among equal ones the
/// word with the smaller number comes first. 1 ≤ k ≤ vocabulary.
template <class T> std::vector<Candidate> top_k(Index vocabulary, const T* log_p, Index k) {
    require("top_k", "k", k, 1, vocabulary);
    std::vector<Token> order(static_cast<std::size_t>(vocabulary));
    std::iota(order.begin(), order.end(), Token{0});
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [log_p](Token a, Token b) {
        return log_p[a] != log_p[b] ? log_p[a] > log_p[b] : a < b;
    });
    std::vector<Candidate> best;
    for (const Token word : std::span(order).first(static_cast<std::size_t>(k)))
        best.push_back({word, static_cast<double>(log_p[word])});
    return best;
}

namespace detail {

/// The candidates for `columns` columns from `first` on, after the last step of the last pass.
template <class T> std::vector<std::vector<Candidate>> top_of_columns(Graph<T>& g, Logits<T> o, Index k,
                                                                      Index first, Index columns) {
    const Index V = o.vocabulary, rows = graph::Inspect::store(g).rows(), B = graph::Inspect::store(g).batch;
    auto log_p = within_memory("top_k", bytes_of("top_k", {columns, V}, sizeof(T)),
                               [&] { return std::vector<T>(static_cast<std::size_t>(columns * V)); });
    g.head(o).log_probabilities(rows - B + first, {log_p.data(), columns, V});
    std::vector<std::vector<Candidate>> best;
    for (Index b = 0; b < columns; ++b) best.push_back(top_k(V, log_p.data() + b * V, k));
    return best;
}

}  // namespace detail

/// The k most probable words after the last step of the last pass, which must have reached `o`; element [b] is the
/// list for column b of the pass. Temporarily allocates B rows of the vocabulary.
///
/// Throws UsageError for k outside 1 to V, and as Graph::log_probabilities does.
template <class T> std::vector<std::vector<Candidate>> top_k(Graph<T>& g, Logits<T> o, Index k) {
    graph::Inspect::store(g).require_own(o);
    return detail::top_of_columns(g, o, k, 0, graph::Inspect::store(g).batch);
}

/// The same for a single column of the pass.
template <class T> std::vector<Candidate> top_k(Graph<T>& g, Logits<T> o, Index k, Index column) {
    graph::Inspect::store(g).require_own(o);
    require("top_k", "column", column, 0, std::max<Index>(graph::Inspect::store(g).batch, 1) - 1);
    return detail::top_of_columns(g, o, k, column, 1)[0];
}

}}  // namespace isogloss
