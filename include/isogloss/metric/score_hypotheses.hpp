/// @file metric/score_hypotheses.hpp  Probabilities of texts with common prefixes, as of an n-best list.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/metric/evaluate.hpp>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// The result of score_hypotheses.
struct HypothesisScores {
    std::vector<double>
        log_probability;  ///< log p(w_2 … w_n | w_1) of each text, in nats; 0 for a text of one token
    Index positions = 0;  ///< steps times columns of all passes; without sharing at least Σ (n - 1)
};

namespace detail {

/// Texts in lexicographic order, so that those with a common prefix are adjacent.
using SortedTexts = std::vector<std::span<const Token>>;

/// Texts first … last-1, which share their first `depth` tokens: one column, and the one it continues from.
struct Branch {
    std::size_t first, last;
    Index from;
};

/// The branches at `depth` of a branch of depth - 1, for texts that continue there.
inline void branch(const SortedTexts& texts, const Branch& b, Index column, std::size_t depth,
                   std::vector<Branch>& into) {
    const std::size_t before = into.size();
    for (std::size_t i = b.first; i < b.last; ++i) {
        if (texts[i].size() <= depth) continue;
        if (into.size() > before && texts[into.back().first][depth - 1] == texts[i][depth - 1])
            into.back().last = i + 1;
        else into.push_back({i, i + 1, column});
    }
}

/// The first position from `depth` on at which two texts of a branch differ; the largest number if none do.
inline std::size_t parting(const SortedTexts& texts, const Branch& b, std::size_t depth) {
    std::size_t at = std::numeric_limits<std::size_t>::max();
    for (std::size_t i = b.first; i + 1 < b.last; ++i) {
        const std::size_t both = std::min(texts[i].size(), texts[i + 1].size());
        for (std::size_t k = depth; k < both && k < at; ++k)
            if (texts[i][k] != texts[i + 1][k]) at = k;
    }
    return at;
}

}  // namespace detail

/// The probability of texts under a language model, with x its input tokens and o its prediction of the next.
/// Each text begins with a token that is given and not scored, such as the end of a sentence, in the state of a
/// reset graph.
///
///     const auto scores = score_hypotheses(g, x, o, texts);   // texts[i] = {eos, w_2, …, w_n}
///
/// Common prefixes are read and scored once: texts with a common prefix share a column, a pass runs until texts
/// of a column diverge, and their new columns continue from copies of its state. A pass also ends when a quarter
/// of its columns have ended, so that little is computed past the end of a text. More texts than the graph has
/// columns are processed in groups in lexicographic order, and share prefixes within these. The bits of a
/// score may depend on the other texts, through the order of sums in matrix products of another size.
///
/// Short passes read all weights for few rows: a graph on packed weights (Graph::packed_weights) does that
/// several times as fast.
///
/// The graph is in evaluation mode meanwhile; its mode and states are restored. Needs memory for 64 rows of
/// logits in addition.
///
/// Throws UsageError for a text without tokens, DataError for a token outside the vocabulary of x or o, and what
/// Graph::forward and Graph::logits do.
template <class T> HypothesisScores score_hypotheses(Graph<T>& g, Tokens x, Logits<T> o,
                                                     std::span<const std::vector<Token>> hypotheses) {
    const Index V = std::min(x.vocabulary, o.vocabulary);
    for (std::size_t i = 0; i < hypotheses.size(); ++i) {
        if (hypotheses[i].empty())
            throw UsageError("score_hypotheses: text ", i,
                             " is empty, expected at least the first token, which is given");
        for (std::size_t k = 0; k < hypotheses[i].size(); ++k)
            if (const Token w = hypotheses[i][k]; w < 0 || w >= V)
                throw DataError("score_hypotheses: text ", i, " holds token ", w, " at position ", k,
                                "; expected 0 to ", V - 1);
    }
    std::vector<std::size_t> order(hypotheses.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return hypotheses[a] < hypotheses[b]; });
    detail::SortedTexts texts;
    for (const std::size_t i : order) texts.emplace_back(hypotheses[i]);

    HypothesisScores scores{std::vector<double>(texts.size(), 0.0)};
    const Evaluation<T> evaluation(g);
    const auto [most_steps, most_columns] = g.capacity();
    const Index block = std::min<Index>(64, most_steps * most_columns);
    auto logits =
        within_memory("score_hypotheses", bytes_of("score_hypotheses", {block, o.vocabulary}, sizeof(T)),
                      [&] { return std::vector<T>(static_cast<std::size_t>(block * o.vocabulary)); });
    std::vector<detail::Branch> columns, next;
    std::vector<std::size_t> ends;  // remaining steps of the longest text of each column
    std::vector<Token> input;
    std::vector<Index> from;

    for (std::size_t begin = 0, end = 0; begin < texts.size(); begin = end) {
        for (Index different = 0; end < texts.size(); ++end)
            if (end == begin || !std::ranges::equal(texts[end], texts[end - 1]))
                if (++different > most_columns) break;
        g.reset();
        std::size_t depth = 1;  // tokens of the branches, of which all but the last have been read
        columns.clear();
        detail::branch(texts, {begin, end, 0}, 0, depth, columns);
        while (!columns.empty()) {
            std::size_t parts = std::numeric_limits<std::size_t>::max();
            input.clear(), ends.clear();
            for (const auto& c : columns) {
                ends.push_back(0);
                for (std::size_t i = c.first; i < c.last; ++i)
                    ends.back() = std::max(ends.back(), texts[i].size() - depth);
                parts = std::min(parts, detail::parting(texts, c, depth));
            }
            const auto quarter = ends.begin() + std::ssize(ends) / 4;
            std::nth_element(ends.begin(), quarter, ends.end());
            std::size_t steps = std::min(*quarter, static_cast<std::size_t>(most_steps));
            if (parts < depth + steps) steps = parts - depth + 1;
            for (std::size_t t = 0; t < steps; ++t)
                for (const auto& c : columns) {
                    std::size_t i = c.first;  // any text that is long enough
                    while (i + 1 < c.last && texts[i].size() < depth + t) ++i;
                    input.push_back(texts[i].size() < depth + t ? 0 : texts[i][depth + t - 1]);
                }
            const Index B = std::ssize(columns), rows = std::ssize(input);
            g.forward(o, {x, TokenBlock{input.data(), rows / B, B}});
            scores.positions += rows;
            for (Index first = 0, count; first < rows; first += count) {
                count = std::min(block, rows - first);
                g.logits(o, first, {logits.data(), count, o.vocabulary});
                for (Index r = first; r < first + count; ++r) {
                    const T* const z = logits.data() + (r - first) * o.vocabulary;
                    const T most = kernel::row_max(o.vocabulary, z);
                    const double log_sum = static_cast<double>(most) +
                                           std::log(kernel::exp_sum<T>(o.vocabulary, z, most, T(1), nullptr));
                    const std::size_t at = depth + static_cast<std::size_t>(r / B);
                    const auto& c = columns[static_cast<std::size_t>(r % B)];
                    for (std::size_t i = c.first; i < c.last; ++i)
                        if (at < texts[i].size())
                            scores.log_probability[order[i]] +=
                                static_cast<double>(z[texts[i][at]]) - log_sum;
                }
            }
            depth += steps;
            next.clear(), from.clear();
            for (Index b = 0; b < B; ++b)
                detail::branch(texts, columns[static_cast<std::size_t>(b)], b, depth, next);
            for (const auto& c : next) from.push_back(c.from);
            columns.swap(next);
            g.copy_states(from);
        }
    }
    return scores;
}

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
