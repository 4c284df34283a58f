/// @file evaluation/score_hypotheses.hpp  Probabilities of texts with common prefixes, as of an n-best list.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/evaluation/evaluate.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <limits>
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

/// Throws as score_hypotheses for texts that cannot be scored.
inline void require_texts(std::span<const std::vector<Token>> hypotheses, Index vocabulary) {
    for (std::size_t i = 0; i < hypotheses.size(); ++i)
        if (const auto& text = hypotheses[i];
            text.empty() || std::ranges::any_of(text, [&](Token w) { return w < 0 || w >= vocabulary; }))
            throw DataError("score_hypotheses: text ", i, " is empty or holds a token of ", vocabulary,
                            " or more");
}

/// The passes of score_hypotheses over sorted texts.
template <class T> class HypothesisPasses {
public:
    HypothesisPasses(Graph<T>& g, Tokens x, Logits<T> o, const SortedTexts& texts)
        : log_probability(texts.size(), 0.0), g_(g), x_(x), o_(o), texts_(texts) {
        const auto [most_steps, most_columns] = g.capacity();
        block_ = std::min<Index>(64, most_steps * most_columns);
        within_memory("score_hypotheses", bytes_of("score_hypotheses", {block_, o.vocabulary}, sizeof(T)),
                      [&] { logits_.resize(static_cast<std::size_t>(block_ * o.vocabulary)); });
    }

    std::vector<double> log_probability;  ///< of each text, in their order
    Index positions = 0;                  ///< steps times columns so far

    /// Scores texts first … last-1, of which at most as many differ as the graph has columns.
    void score(std::size_t first, std::size_t last) {
        g_.reset();
        depth_ = 1;
        columns_.clear();
        branch(texts_, {first, last, 0}, 0, depth_, columns_);
        while (!columns_.empty()) {
            const std::size_t steps = steps_of_pass();
            read(steps);
            add_scores();
            depth_ += steps;
            branch_columns();
        }
    }

private:
    // Until texts of a column diverge, or a quarter of the columns have ended.
    std::size_t steps_of_pass() {
        std::size_t parts = std::numeric_limits<std::size_t>::max();
        ends_.clear();
        for (const Branch& c : columns_) {
            ends_.push_back(0);
            for (std::size_t i = c.first; i < c.last; ++i)
                ends_.back() = std::max(ends_.back(), texts_[i].size() - depth_);
            parts = std::min(parts, parting(texts_, c, depth_));
        }
        const auto quarter = ends_.begin() + std::ssize(ends_) / 4;
        std::nth_element(ends_.begin(), quarter, ends_.end());
        const std::size_t steps = std::min(*quarter, static_cast<std::size_t>(g_.capacity().time));
        return parts < depth_ + steps ? parts - depth_ + 1 : steps;
    }
    // One forward pass over the next tokens of all columns.
    void read(std::size_t steps) {
        input_.clear();
        for (std::size_t t = 0; t < steps; ++t)
            for (const Branch& c : columns_) {
                std::size_t i = c.first;  // any text that is long enough
                while (i + 1 < c.last && texts_[i].size() < depth_ + t) ++i;
                input_.push_back(texts_[i].size() < depth_ + t ? 0 : texts_[i][depth_ + t - 1]);
            }
        g_.forward(o_, {x_, TokenBlock{input_.data(), static_cast<Index>(steps), std::ssize(columns_)}});
        positions += std::ssize(input_);
    }
    // Adds log p of the next word of every text that has one, at all positions of the pass.
    void add_scores() {
        const Index B = std::ssize(columns_), rows = std::ssize(input_), V = o_.vocabulary;
        for (Index first = 0, count; first < rows; first += count) {
            count = std::min(block_, rows - first);
            g_.head(o_).logits(first, {logits_.data(), count, V});
            for (Index r = first; r < first + count; ++r) {
                const T* const z = logits_.data() + (r - first) * V;
                const T most = kernel::row_max(V, z);
                const double log_sum =
                    static_cast<double>(most) + std::log(kernel::exp_sum<T>(V, z, most, T(1), nullptr));
                const std::size_t at = depth_ + static_cast<std::size_t>(r / B);
                const Branch& c = columns_[static_cast<std::size_t>(r % B)];
                for (std::size_t i = c.first; i < c.last; ++i)
                    if (at < texts_[i].size())
                        log_probability[i] += static_cast<double>(z[texts_[i][at]]) - log_sum;
            }
        }
    }
    // The columns of the next pass, which continue from copies of the states of this one.
    void branch_columns() {
        next_.clear(), from_.clear();
        for (std::size_t b = 0; b < columns_.size(); ++b)
            branch(texts_, columns_[b], static_cast<Index>(b), depth_, next_);
        for (const Branch& c : next_) from_.push_back(c.from);
        columns_.swap(next_);
        g_.states().copy(from_);
    }

    Graph<T>& g_;
    Tokens x_;
    Logits<T> o_;
    const SortedTexts& texts_;
    Index block_;  // rows of logits at a time
    std::vector<T> logits_;
    std::vector<Branch> columns_, next_;
    std::size_t depth_ = 1;          // tokens of the branches, of which all but the last have been read
    std::vector<std::size_t> ends_;  // remaining steps of the longest text of each column
    std::vector<Token> input_;
    std::vector<Index> from_;
};

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

    const Evaluation<T> evaluation(g);
    detail::HypothesisPasses<T> passes(g, x, o, texts);
    for (std::size_t begin = 0, end = 0; begin < texts.size(); begin = end) {
        for (Index different = 0; end < texts.size(); ++end)
            if (end == begin || !std::ranges::equal(texts[end], texts[end - 1]))
                if (++different > g.capacity().batch) break;
        passes.score(begin, end);
    }
    HypothesisScores scores{std::vector<double>(texts.size()), passes.positions};
    for (std::size_t i = 0; i < order.size(); ++i)
        scores.log_probability[order[i]] = passes.log_probability[i];
    return scores;
}

}}  // namespace isogloss
