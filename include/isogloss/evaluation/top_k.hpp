/// @file evaluation/top_k.hpp  The most probable next words.
#pragma once

#include <algorithm>
#include <isogloss/graph/graph.hpp>
#include <numeric>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// A word that may come next.
struct Candidate {
    Token word;
    double log_probability;  ///< natural logarithm of its probability
    bool operator==(const Candidate&) const = default;
};

/// Indices of the k largest of n values, in descending order; ties go to the lower index. 1 ≤ k ≤ n.
template <class T> std::vector<Token> largest(Index n, const T* values, Index k) {
    require("largest", "k", k, 1, n);
    std::vector<Token> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), Token{0});
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [values](Token a, Token b) {
        return values[a] != values[b] ? values[a] > values[b] : a < b;
    });
    order.resize(static_cast<std::size_t>(k));
    return order;
}

/// The k largest entries of a row of log-probabilities [vocabulary], in descending order; among equal ones the
/// word with the smaller number comes first. 1 ≤ k ≤ vocabulary.
template <class T> std::vector<Candidate> top_k(Index vocabulary, const T* log_p, Index k) {
    require("top_k", "k", k, 1, vocabulary);
    std::vector<Candidate> best;
    for (const Token word : largest(vocabulary, log_p, k))
        best.push_back({word, static_cast<double>(log_p[word])});
    return best;
}

/// The k most probable words after the last step of the last pass, which must have reached `o`; element [b] is the
/// list for column b of the pass. Temporarily allocates B rows of the vocabulary.
///
/// Throws UsageError for k outside 1 to V, and as Graph::log_probabilities does.
template <class T> std::vector<std::vector<Candidate>> top_k(Graph<T>& g, Logits<T> o, Index k) {
    graph::Inspect::store(g).require_own(o);
    require("top_k", "k", k, 1, o.vocabulary);
    const Index B = graph::Inspect::store(g).batch, V = o.vocabulary;
    auto log_p = within_memory("top_k", bytes_of("top_k", {B, V}, sizeof(T)), [&] {
        return Tensor<T, 2>(std::array{static_cast<std::size_t>(B), static_cast<std::size_t>(V)});
    });
    g.head(o).log_probabilities(graph::Inspect::store(g).rows() - B, {log_p.data(), B, V});
    std::vector<std::vector<Candidate>> best;
    for (Index b = 0; b < B; ++b) best.push_back(top_k(V, log_p.data() + b * V, k));
    return best;
}

/// The same for a single column of the pass.
template <class T> std::vector<Candidate> top_k(Graph<T>& g, Logits<T> o, Index k, Index column) {
    graph::Inspect::store(g).require_own(o);
    require("top_k", "k", k, 1, o.vocabulary);
    const Index B = graph::Inspect::store(g).batch, V = o.vocabulary;
    require("top_k", "column", column, 0, std::max<Index>(B, 1) - 1);
    auto log_p = within_memory("top_k", bytes_of("top_k", {V}, sizeof(T)),
                               [&] { return std::vector<T>(static_cast<std::size_t>(V)); });
    g.head(o).log_probabilities(graph::Inspect::store(g).rows() - B + column, {log_p.data(), 1, V});
    return top_k(V, log_p.data(), k);
}

}}  // namespace isogloss
