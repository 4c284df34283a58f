/// @file scoring.hpp  Log probabilities of lines that run side by side.
#pragma once

#include <algorithm>
#include <string>
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

/// Scores lines that run side by side, each from a fresh state with a line end fed first. Those that end
/// early are padded with positions that are not predicted.
inline void score_group(LoadedModel& it, const std::vector<Line*>& lines) {
    const auto B = static_cast<ig::Index>(lines.size()), T = it.g->capacity().time;
    std::size_t longest = 0;
    for (const Line* line : lines) longest = std::max(longest, line->tokens.size());
    std::vector<ig::Token> input, target;
    it.g->reset();
    for (std::size_t from = 0; from < longest; from += static_cast<std::size_t>(T)) {
        const std::size_t to = std::min(longest, from + static_cast<std::size_t>(T));
        input.clear();
        target.clear();
        for (std::size_t t = from; t < to; ++t)
            for (const Line* line : lines) {
                const bool inside = t < line->tokens.size();
                input.push_back(t == 0 || !inside ? it.vocabulary.eos() : line->tokens[t - 1]);
                target.push_back(inside ? line->tokens[t] : ig::not_predicted);
            }
        const auto steps = static_cast<ig::Index>(to - from);
        it.g->forward(it.model.nll, {it.model.x, ig::TokenBlock{input.data(), steps, B}},
                      {it.model.y, ig::TokenBlock{target.data(), steps, B}});
        const auto nats = it.g->by_token(it.model.nll);  // [T, B]
        for (ig::Index t = 0; t < steps; ++t)
            for (ig::Index b = 0; b < B; ++b)
                lines[static_cast<std::size_t>(b)]->log_probability -=
                    nats(static_cast<std::size_t>(t), static_cast<std::size_t>(b));
    }
}

/// Lines of similar length run side by side, so that little is padded.
inline void score_all(LoadedModel& it, std::vector<Line>& lines) {
    std::vector<Line*> order;
    order.reserve(lines.size());
    for (Line& line : lines) order.push_back(&line);
    std::stable_sort(order.begin(), order.end(),
                     [](const Line* a, const Line* b) { return a->tokens.size() < b->tokens.size(); });
    const auto B = static_cast<std::size_t>(it.g->capacity().batch);
    for (std::size_t i = 0; i < order.size(); i += B)
        score_group(it, {order.begin() + static_cast<std::ptrdiff_t>(i),
                         order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), i + B))});
}

}  // namespace lm
