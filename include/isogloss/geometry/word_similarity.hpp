/// @file geometry/word_similarity.hpp  Word vectors against human judgements of word pairs.
#pragma once

#include <charconv>
#include <cmath>
#include <isogloss/file/reader.hpp>
#include <isogloss/geometry/rank_correlation.hpp>
#include <isogloss/geometry/word_table.hpp>
#include <isogloss/text/words.hpp>
#include <limits>
#include <string>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Two words and their similarity as judged by people, on the set's own scale.
struct ScoredPair {
    std::string first, second;
    double score = 0;
};

/// Reads a word-similarity set: lines `word word score`, separated by blanks. Empty lines are skipped.
///
/// Errors   FileError: a file that cannot be read. DataError, with file and line: a malformed line, a score
///          that is not a finite number, a file without pairs.
inline std::vector<ScoredPair> read_scored_pairs(const std::string& path) {
    file::LineReader lines(path);
    std::vector<ScoredPair> pairs;
    for (std::string_view line; lines.next(line);) {
        std::vector<std::string_view> fields;
        text::for_each_word(line, [&](std::string_view field) { fields.push_back(field); });
        if (fields.empty()) continue;
        double score = 0;
        const char* const end = fields.back().data() + fields.back().size();
        const auto read = std::from_chars(fields.back().data(), end, score);
        if (fields.size() != 3 || read.ec != std::errc() || read.ptr != end || !std::isfinite(score))
            throw DataError(path, ":", lines.line(), ": found ", in_quotes(line),
                            ", expected two words and a number that a double can hold");
        pairs.push_back({std::string(fields[0]), std::string(fields[1]), score});
    }
    if (pairs.empty())
        throw DataError(path, ": there are no pairs; expected lines of two words and a number");
    return pairs;
}

/// The result of word_similarity.
struct WordSimilarity {
    Index pairs = 0;    ///< in the set
    Index found = 0;    ///< of these, with a vector for both words
    Index unknown = 0;  ///< distinct words of the set without a vector
    /// Over the pairs found; NaN where it is undefined.
    double spearman = std::numeric_limits<double>::quiet_NaN();
};

/// Spearman's correlation between the cosines of word vectors and the scores of a set, over the pairs of
/// which both words are known. Pairs with an unknown word are skipped and counted: report both numbers, since a
/// table that lacks the rare words looks better than it is. With fewer than 2 pairs, or equal cosines or
/// scores, it is NaN.
///
/// Source   protocol: Faruqui, Dyer 2014, "Community evaluation and exchange of word vectors".
inline WordSimilarity word_similarity(const WordTable& table, std::span<const ScoredPair> pairs) {
    WordSimilarity result;
    std::vector<double> cosines, scores;
    WordIndex unknown;
    for (const ScoredPair& pair : pairs) {
        const Index a = table.find(pair.first), b = table.find(pair.second);
        if (a < 0) unknown.insert(table.key(pair.first));
        if (b < 0) unknown.insert(table.key(pair.second));
        if (a < 0 || b < 0) continue;
        cosines.push_back(table.cosine(a, b));
        scores.push_back(pair.score);
    }
    result.pairs = std::ssize(pairs);
    result.found = std::ssize(cosines);
    result.unknown = unknown.size();
    const auto differ = [](const std::vector<double>& x) {
        return std::adjacent_find(x.begin(), x.end(), std::not_equal_to<>()) != x.end();
    };
    if (differ(cosines) && differ(scores)) result.spearman = spearman(cosines, scores);
    return result;
}

}}  // namespace isogloss
