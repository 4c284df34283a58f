/// @file evaluation/score_hypotheses.hpp  Probabilities of texts with common prefixes, as of an n-best list.
#pragma once

#include <algorithm>
#include <isogloss/elementary.hpp>
#include <isogloss/evaluation/evaluate.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <numeric>
#include <span>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The result of score_hypotheses.
struct HypothesisScores {
    std::vector<double>
        log_probability;  ///< log p(w_2 … w_n | w_1) of each text, in nats; 0 for a text of one token
    Index positions = 0;  ///< steps times columns of all passes; without sharing at least Σ (n - 1)
};

namespace detail {

/// Texts in lexicographic order, so that those with a common prefix are adjacent.
using SortedTexts = std::vector<std::span<const Token>>;

/// Texts first … last-1, which share the tokens read so far: one column of a pass, and the one it continues from.
struct Branch {
    std::size_t first, last;
    Index from;
};

/// The columns that continue from others: of the texts with more than `depth` tokens those that share as many.
inline std::vector<Branch> branches(const SortedTexts& texts, const std::vector<Branch>& columns,
                                    std::size_t depth) {
    std::vector<Branch> next;
    for (const Branch& c : columns) {
        const std::size_t before = next.size();
        for (std::size_t i = c.first; i < c.last; ++i) {
            if (texts[i].size() <= depth) continue;
            if (next.size() > before && texts[next.back().first][depth - 1] == texts[i][depth - 1])
                next.back().last = i + 1;
            else next.push_back({i, i + 1, &c - columns.data()});
        }
    }
    return next;
}

/// The steps of a pass over columns that share `depth` tokens: until two texts of one differ, or a quarter of the
/// columns have ended.
inline std::size_t steps_of_pass(const SortedTexts& texts, const std::vector<Branch>& columns,
                                 std::size_t depth, Index most) {
    auto steps = static_cast<std::size_t>(most);
    std::vector<std::size_t> left;  // steps of the longest text of each column
    for (const Branch& c : columns) {
        left.push_back(0);
        for (std::size_t i = c.first; i < c.last; ++i) {
            left.back() = std::max(left.back(), texts[i].size() - depth);
            if (i + 1 == c.last) continue;
            const auto differ = std::ranges::mismatch(texts[i], texts[i + 1]).in1;
            if (differ != texts[i].end())
                steps = std::min(steps, static_cast<std::size_t>(differ - texts[i].begin()) - depth + 1);
        }
    }
    const auto quarter = left.begin() + std::ssize(left) / 4;
    std::nth_element(left.begin(), quarter, left.end());
    return std::min(*quarter, steps);
}

/// The tokens of that pass, [steps, columns]; 0 where a column has ended.
inline std::vector<Token> tokens_of_pass(const SortedTexts& texts, const std::vector<Branch>& columns,
                                         std::size_t depth, std::size_t steps) {
    std::vector<Token> tokens;
    for (std::size_t read = depth; read < depth + steps; ++read)
        for (const Branch& c : columns) {
            std::size_t i = c.first;  // any text that is long enough
            while (i + 1 < c.last && texts[i].size() < read) ++i;
            tokens.push_back(texts[i].size() < read ? 0 : texts[i][read - 1]);
        }
    return tokens;
}

/// Throws as score_hypotheses for texts that cannot be scored.
inline void require_texts(std::span<const std::vector<Token>> hypotheses, Index vocabulary) {
    for (std::size_t i = 0; i < hypotheses.size(); ++i)
        if (const auto& text = hypotheses[i];
            text.empty() || std::ranges::any_of(text, [&](Token w) { return w < 0 || w >= vocabulary; }))
            throw DataError("score_hypotheses: text ", i, " is empty or holds a token of ", vocabulary,
                            " or more");
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
/// Throws DataError for a text without tokens or with one outside the vocabulary of x or o, and what
/// Graph::forward and Graph::logits do.
template <class T> HypothesisScores score_hypotheses(Graph<T>& g, Tokens x, Logits<T> o,
                                                     std::span<const std::vector<Token>> hypotheses) {
    detail::require_texts(hypotheses, std::min(x.vocabulary, o.vocabulary));
    std::vector<std::size_t> order(hypotheses.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return hypotheses[a] < hypotheses[b]; });
    detail::SortedTexts texts;
    for (const std::size_t i : order) texts.emplace_back(hypotheses[i]);
    const auto [most_steps, most_columns] = g.capacity();
    const Index V = o.vocabulary, block = std::min<Index>(64, most_steps * most_columns);
    auto logits = within_memory("score_hypotheses", bytes_of("score_hypotheses", {block, V}, sizeof(T)),
                                [&] { return std::vector<T>(static_cast<std::size_t>(block * V)); });

    HypothesisScores scores{std::vector<double>(texts.size(), 0.0)};
    const Evaluation<T> evaluation(g);
    std::vector<Index> from;
    for (std::size_t begin = 0, end = 0; begin < texts.size(); begin = end) {
        for (Index different = 0; end < texts.size(); ++end)
            if (end == begin || !std::ranges::equal(texts[end], texts[end - 1]))
                if (++different > most_columns) break;
        g.reset();
        std::size_t depth = 1;  // tokens that the texts of a column share; all but the last have been read
        auto columns = detail::branches(texts, {{begin, end, 0}}, depth);
        while (!columns.empty()) {
            const std::size_t steps = detail::steps_of_pass(texts, columns, depth, most_steps);
            const auto input = detail::tokens_of_pass(texts, columns, depth, steps);
            const Index B = std::ssize(columns), rows = std::ssize(input);
            g.forward(o, {x, TokenBlock{input.data(), static_cast<Index>(steps), B}});
            scores.positions += rows;
            for (Index r = 0; r < rows; ++r) {
                if (r % block == 0) g.head(o).logits(r, {logits.data(), std::min(block, rows - r), V});
                const T* const z = logits.data() + r % block * V;
                const T most = kernel::row_max(V, z);
                const double log_sum = static_cast<double>(most) +
                                       kernel::elementary::log(kernel::exp_sum<T>(V, z, most, T(1), nullptr));
                const std::size_t next = depth + static_cast<std::size_t>(r / B);
                const detail::Branch& c = columns[static_cast<std::size_t>(r % B)];
                for (std::size_t i = c.first; i < c.last; ++i)
                    if (next < texts[i].size())
                        scores.log_probability[order[i]] += static_cast<double>(z[texts[i][next]]) - log_sum;
            }
            depth += steps;
            columns = detail::branches(texts, columns, depth);
            from.clear();
            for (const auto& c : columns) from.push_back(c.from);
            g.states().copy(from);
        }
    }
    return scores;
}

}}  // namespace isogloss
