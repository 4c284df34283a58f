/// @file word_frequencies.hpp  Words as frequent as in a text.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/random.hpp>
#include <isogloss/types.hpp>
#include <vector>

namespace measure {

/// A word as frequent as in a text, for u uniform in [0, 1): rank r with probability about 1 / (r + 10).
inline isogloss::Token word_of_text(isogloss::Index vocabulary, double u) {
    const double rank = 10 * (std::pow(double(vocabulary + 10) / 10, u) - 1);
    return std::min(static_cast<isogloss::Token>(rank), static_cast<isogloss::Token>(vocabulary - 1));
}

/// Appends tokens first … first + n - 1 of a text, first a multiple of 2: every other word is near the one before, so
/// that pairs repeat.
inline void append_text(isogloss::Index vocabulary, isogloss::Index first, isogloss::Index n,
                        std::vector<isogloss::Token>& text) {
    const isogloss::Random random(3, 3);
    for (isogloss::Index i = first; i < first + n; i += 2) {
        text.push_back(word_of_text(vocabulary, random.uniform(i)));
        if (i + 1 < first + n)
            text.push_back(static_cast<isogloss::Token>(
                (isogloss::Index{text.back()} * 7 + random.below(i + 1, 20)) % vocabulary));
    }
}

}  // namespace measure
