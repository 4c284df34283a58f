/// @file scoring.hpp  Log probabilities of lines that run side by side, what they have in common but once.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model_file.hpp"

namespace lm {

/// A line and what the model thinks of it.
struct Line {
    std::string text;
    std::vector<ig::Token> tokens;  ///< line end included
    ig::Index unknowns = 0;
    double log_probability = 0;  ///< nats, the line end included
    double mean() const { return log_probability / static_cast<double>(tokens.size()); }
};

/// Scores a few lines, sorted by their tokens, each from a fresh state with a line end fed first.
///
/// A column of the batch runs for all lines that begin alike. Where they part each goes on in a column of its own from a
/// copy of the state; columns whose lines have ended make room. So every beginning and its next token are computed once.
class GroupScorer {
public:
    /// At most as many lines as the model has columns.
    GroupScorer(LoadedModel& it, std::span<Line* const> lines) : it_(it), lines_(lines) {
        it_.g->reset();
        std::vector<ig::Index> from;
        part({0, lines.size()}, 0, from);
    }
    void run() {
        while (!columns_.empty()) {
            const ig::Index steps = next_steps();
            score(steps);
            at_ += static_cast<std::size_t>(steps);
            regroup();
        }
    }

private:
    // Lines [first, last), which are alike up to the token that is predicted next.
    struct Column {
        std::size_t first, last;
    };

    const std::vector<ig::Token>& tokens(std::size_t line) const { return lines_[line]->tokens; }

    // How many tokens all lines of a column have in common: the first and the last of them, as they are sorted.
    std::size_t common(const Column& c) const {
        const auto &a = tokens(c.first), &b = tokens(c.last - 1);
        return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
    }

    // Up to where lines part, or a quarter of the columns have ended: what runs on behind an end is lost.
    ig::Index next_steps() const {
        std::size_t steps = static_cast<std::size_t>(it_.g->capacity().time);
        std::vector<std::size_t> ends;
        for (const Column& c : columns_) {
            const std::size_t shared = common(c);
            if (shared < tokens(c.last - 1).size()) steps = std::min(steps, shared - at_);
            ends.push_back(shared - at_);
        }
        const auto quarter = ends.begin() + std::ssize(ends) / 4;
        std::nth_element(ends.begin(), quarter, ends.end());
        return static_cast<ig::Index>(std::min(steps, *quarter));
    }

    void score(ig::Index steps) {
        const auto B = std::ssize(columns_);
        input_.clear(), target_.clear();
        for (std::size_t t = at_; t < at_ + static_cast<std::size_t>(steps); ++t)
            for (const Column& c : columns_) {
                const auto& line = tokens(c.first);
                const bool inside = t < line.size();
                input_.push_back(t == 0 || !inside ? it_.vocabulary.eos() : line[t - 1]);
                target_.push_back(inside ? line[t] : ig::not_predicted);
            }
        it_.g->forward(it_.model.nll, {it_.model.x, ig::TokenBlock{input_.data(), steps, B}},
                       {it_.model.y, ig::TokenBlock{target_.data(), steps, B}});
        const auto nats = it_.g->by_token(it_.model.nll);  // [T, B], 0 where nothing is predicted
        for (std::size_t b = 0; b < columns_.size(); ++b) {
            double sum = 0;
            for (ig::Index t = 0; t < steps; ++t) sum += nats(static_cast<std::size_t>(t), b);
            for (std::size_t i = columns_[b].first; i < columns_[b].last; ++i)
                lines_[i]->log_probability -= sum;
        }
    }

    // Columns for those of the lines that have a token at at_, by that token; they go on from column `of`.
    void part(Column lines, ig::Index of, std::vector<ig::Index>& from) {
        std::size_t before = lines.last;  // the line before in the column that is being made
        for (std::size_t i = lines.first; i < lines.last; ++i) {
            if (at_ >= tokens(i).size()) continue;
            if (before < i && tokens(before)[at_] == tokens(i)[at_]) {
                columns_.back().last = i + 1;
            } else {
                columns_.push_back({i, i + 1});
                from.push_back(of);
            }
            before = i;
        }
    }

    void regroup() {
        const auto old = std::exchange(columns_, {});
        std::vector<ig::Index> from;
        for (std::size_t b = 0; b < old.size(); ++b) part(old[b], static_cast<ig::Index>(b), from);
        it_.g->copy_states(from);
    }

    LoadedModel& it_;
    std::span<Line* const> lines_;
    std::vector<Column> columns_;
    std::size_t at_ = 0;  // tokens of each line that are behind
    std::vector<ig::Token> input_, target_;
};

/// Scores lines in any order. Those that begin alike run together.
inline void score_all(LoadedModel& it, std::vector<Line>& lines) {
    std::vector<Line*> order;
    order.reserve(lines.size());
    for (Line& line : lines) order.push_back(&line);
    std::stable_sort(order.begin(), order.end(),
                     [](const Line* a, const Line* b) { return a->tokens < b->tokens; });
    const auto B = static_cast<std::size_t>(it.g->capacity().batch);
    for (std::size_t i = 0; i < order.size(); i += B)
        GroupScorer(it, std::span(order).subspan(i, std::min(B, order.size() - i))).run();
}

}  // namespace lm
