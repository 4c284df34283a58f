/// @file vocabulary_of.hpp  What the tests of vocabularies share.
#pragma once

#include <cstdint>
#include <isogloss/text/vocabulary.hpp>
#include <sstream>
#include <string>
#include <vector>

using Strings = std::vector<std::string>;
using Counts = std::vector<std::int64_t>;

/// The vocabulary of a text in memory.
inline isogloss::text::Vocabulary vocabulary_of(const std::string& text,
                                                const isogloss::text::VocabularyOptions& options = {}) {
    std::istringstream in(text);
    return isogloss::text::Vocabulary::from_stream(in, "memory", options);
}
