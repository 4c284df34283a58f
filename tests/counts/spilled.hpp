/// @file spilled.hpp  Counts put aside in files, as the tests of SpilledCounts make them.
#pragma once

#include <algorithm>
#include <isogloss/counts/files.hpp>
#include <isogloss/counts/spilled_counts.hpp>
#include <span>
#include <string>
#include <vector>

namespace isogloss::spilled {

using namespace isogloss::counts;

// Memory for blocks of the least size and `more` tokens.
inline SpillOptions tight(Index V, SpillOptions options, Index more = 0) {
    options.memory = SpilledCounts::least_memory(V, options) + 16 * more;
    return options;
}

// Gives a text in pieces of uneven sizes.
inline void give(SpilledCounts& counts, const std::vector<Token>& text, std::size_t piece = 700) {
    std::span<const Token> left = text;
    for (std::size_t i = 1; !left.empty(); ++i) {
        const auto some = left.first(std::min(left.size(), piece * (1 + i % 3)));
        counts.add(some);
        left = left.subspan(some.size());
    }
}

inline LagCounts in_memory(const std::vector<Token>& text, Index V, const SpillOptions& o) {
    LagCounts counts(V, {.lags = o.lags, .boundary = o.boundary});
    counts.add(text);
    return counts;
}

inline text::Vocabulary words(Index V) {
    std::vector<std::string> all;
    for (Index i = 0; i < V; ++i) all.push_back("w" + std::to_string(i));
    return text::Vocabulary::from_words(all, {}, {.eos_per_line = false});
}

// What a file of the counts gives back; calls finish().
inline LagCounts saved(SpilledCounts& counts, const std::string& path) {
    save_counts(path, counts, words(counts.vocabulary()));
    return load_counts(path).counts;
}

}  // namespace isogloss::spilled
