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

/// The k most probable words after the last step of the last pass, which must have reached `o`; element [b] is the
/// list for column b of the pass. Temporarily allocates B rows of the vocabulary.
///
/// Throws UsageError for k outside 1 to V, and as Graph::log_probabilities does.
template <class T> std::vector<std::vector<Candidate>> top_k(Graph<T>& g, Logits<T> o, Index k) {
    const auto& store = graph::Inspect::store(g);
    const Index V = o.vocabulary, B = store.batch;
    const auto head = g.head(o);
    auto log_p = within_memory("top_k", bytes_of("top_k", {B, V}, sizeof(T)),
                               [&] { return std::vector<T>(static_cast<std::size_t>(B * V)); });
    head.log_probabilities(store.rows() - B, {log_p.data(), B, V});
    std::vector<std::vector<Candidate>> best;
    for (Index b = 0; b < B; ++b) best.push_back(top_k(V, log_p.data() + b * V, k));
    return best;
}

/// The same for a single column of the pass.
template <class T> std::vector<Candidate> top_k(Graph<T>& g, Logits<T> o, Index k, Index column) {
    const auto best = top_k(g, o, k);
    require("top_k", "column", column, 0, std::ssize(best) - 1);
    return best[static_cast<std::size_t>(column)];
}

}}  // namespace isogloss
