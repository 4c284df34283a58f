/// @file geometry/word_table.hpp  Word vectors of any origin, normalised for comparison.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/error.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/types.hpp>
#include <isogloss/word_index.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of WordTable.
struct WordTableOptions {
    bool fold_case = false;  ///< "Athens", "athens", "ATHENS" are one word, the first in the table; ASCII
    Index restrict_to = 0;   ///< use only this many first words, ≥ 0; 0: all
};

namespace detail {

/// A word with its ASCII capitals in lower case.
inline std::string folded(std::string_view word) {
    std::string out(word);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

}  // namespace detail

/// A copy of word vectors with rows of norm 1, so that an inner product is a cosine.
///
///     WordTable of_a_file(vectors.words.words(), vectors.dimension, vectors.values);
///     const auto& E = g.parameter("E");
///     WordTable of_a_model(vocabulary.words(), E.cols, {E.value, size_t(E.size())});
///
/// A vector of zeros has no direction: its word counts as missing.
///
/// Shapes   words: V of them, the first of duplicates counts;  values [V, n], row-major
/// Options  see WordTableOptions
/// Errors   DataError: sizes that do not fit, no words. NumericError: a vector whose norm is not finite. UsageError: an
///          index that no word has
class WordTable {
public:
    WordTable(std::span<const std::string> words, Index dimension, std::span<const float> values,
              WordTableOptions options = {})
        : dimension_(dimension), options_(options) {
        if (words.empty() || dimension < 1 || std::ssize(values) % dimension != 0 ||
            std::ssize(values) / dimension != std::ssize(words))
            throw DataError("word table: found ", words.size(), " words, dimension ", dimension, ", ",
                            values.size(), " values");
        require<DataError>("word table", "restrict_to", options.restrict_to, 0);
        if (options.restrict_to > 0 && options.restrict_to < std::ssize(words))
            words = words.first(options.restrict_to);
        std::vector<float> row(dimension);
        const float* next = values.data();
        for (const std::string& word : words) {
            std::copy_n(next, dimension, row.begin());
            next += dimension;
            const double norm = kernel::normalise(dimension, row.data());
            require_finite("word table", "the norm of '" + word + "'", 1, &norm);
            if (norm == 0 || find(word) >= 0) continue;
            index_.insert(key(word));
            unit_.insert(unit_.end(), row.begin(), row.end());
        }
    }

    /// Number of words that have a direction.
    Index size() const { return index_.size(); }
    Index dimension() const { return dimension_; }  ///< n
    /// The index of a word in this table, or -1.
    Index find(std::string_view word) const { return index_.find(key(word)); }
    /// What a word is looked up as: folded, if the table folds case.
    std::string key(std::string_view word) const {
        return options_.fold_case ? detail::folded(word) : std::string(word);
    }
    /// Word `i`, as it is looked up.
    const std::string& word(Index i) const { return index_.words()[checked(i)]; }
    /// Its vector, of norm 1.
    const float* row(Index i) const { return unit_.data() + checked(i) * dimension_; }
    /// Cosine of the angle between two words' vectors, -1 … 1; exactly 1 for equal rows, whose norm is 1 only within
    /// the precision of float.
    double cosine(Index i, Index j) const {
        const auto dot = [this](const float* x, const float* y) {
            return kernel::plain::dot(dimension_, x, y);
        };
        const float *const a = row(i), *const b = row(j);
        return std::clamp(dot(a, b) / std::sqrt(dot(a, a) * dot(b, b)), -1., 1.);
    }

private:
    Index checked(Index i) const {
        require("word table", "index", i, 0, size() - 1);
        return i;
    }

    Index dimension_;
    WordTableOptions options_;
    WordIndex index_;
    std::vector<float> unit_;
};

}}  // namespace isogloss
