/// @file comparison.hpp  The predictions of a text by two models, side by side.
#pragma once

#include <array>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"

namespace lm {

/// The first line of the table that `compare --csv` writes.
inline constexpr const char* comparison_header =
    "position,target,log_p_first,log_p_second,unk_first,unk_second,neighbours_first,neighbours_second,"
    "frequent_first,frequent_second";

/// A sum over positions, for each model.
struct Mean {
    std::array<double, 2> sum = {};
    ig::Index count = 0, second_higher = 0;

    void add(double a, double b) {
        sum[0] += a;
        sum[1] += b;
        ++count;
        second_higher += b > a;
    }
    double of(std::size_t k) const { return count ? sum[k] / static_cast<double>(count) : 0; }
};

/// A position to be shown: its context, and the most probable words under each model.
struct Shown {
    double gain = 0;  ///< ln p(target) of the second model minus that of the first
    ig::Index at = 0;
    std::array<std::vector<std::pair<ig::Token, float>>, 2> likeliest;
};

/// A row of the table written for `--csv`.
struct ComparedPosition {
    ig::Index at = 0;
    std::array<double, 8> values = {};  ///< ln p of the target, then p of <unk>, neighbours, frequent words
};

/// The result of a pass of both models over a text. Each pair begins with the first model's value.
struct Comparison {
    const ig::text::Vocabulary* vocabulary = nullptr;  ///< of both models; outlives this
    std::span<const ig::Token> text;                   ///< outlives this
    Mean log_p, target;
    std::array<Mean, 2> neighbours;  ///< by the table of the first and of the second model
    Mean unknown, frequent;
    std::vector<std::pair<ig::Token, Mean>> words;  ///< those of --word
    std::vector<Shown> gains, losses;               ///< the largest differences first
    std::vector<ComparedPosition> positions;        ///< in order; empty without --csv

    /// A word in printed form.
    std::string word(ig::Token v) const { return ig::shown(vocabulary->word(v)); }
    /// The word at a position of the text.
    std::string word_at(ig::Index at) const { return word(text[static_cast<std::size_t>(at)]); }
};

/// Prints the means, and the positions at which the models differ most. `o`: with all its defaults.
void print(const CompareOptions& o, const Comparison& c);

/// Writes a row for each position.
void write(const std::string& path, const Comparison& c);

}  // namespace lm
