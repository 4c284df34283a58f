/// @file scoring.hpp  Log probabilities of lines, with common prefixes read once.
#pragma once

#include <isogloss/error.hpp>
#include <isogloss/evaluation/score_hypotheses.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_file.hpp"

namespace lm {

/// A line and its scores under the model.
struct Line {
    std::string text;
    std::vector<ig::Token> tokens;  ///< line end included
    ig::Index unknowns = 0;
    double log_probability = 0;  ///< nats, the line end included
    double mean() const { return log_probability / static_cast<double>(tokens.size()); }
};

/// Scores lines in any order, each from a fresh state with a line end fed first.
inline void score_all(LoadedModel& it, std::span<Line> lines) {
    std::vector<std::vector<ig::Token>> texts;
    texts.reserve(lines.size());
    for (const Line& line : lines) {
        auto& text = texts.emplace_back();
        text.reserve(line.tokens.size() + 1);
        text.push_back(it.vocabulary.eos());
        text.insert(text.end(), line.tokens.begin(), line.tokens.end());
    }
    const auto scores =
        ig::score_hypotheses(*it.g, it.model.x, it.model.o, std::span<const std::vector<ig::Token>>(texts));
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i].log_probability = scores.log_probability[i];
}

}  // namespace lm
