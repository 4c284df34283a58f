/// @file geometry/analogies.hpp  Evaluation of word vectors on analogies: a is to b as c is to ….
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <isogloss/array.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/geometry/word_table.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/text/words.hpp>
#include <string>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// a : b = c : d
using Analogy = std::array<std::string, 4>;

/// A part of a set of analogies, about one relation.
struct AnalogySection {
    std::string name;
    std::vector<Analogy> questions;
};

/// Reads a set of analogies: a line `: name` opens a section, all others are four words. Empty lines are skipped.
///
/// Errors   FileError: a file that cannot be read. DataError, with file and line: a malformed line, a question
///          before the first section, a file without questions.
inline std::vector<AnalogySection> read_analogies(const std::string& path) {
    file::LineReader lines(path);
    std::vector<AnalogySection> sections;
    bool any = false;
    for (std::string_view line; lines.next(line);) {
        std::vector<std::string> words;
        text::for_each_word(line, [&](std::string_view word) { words.emplace_back(word); });
        if (words.empty()) continue;
        const auto refuse = [&](const char* expected) {
            throw DataError(path, ":", lines.line(), ": found ", in_quotes(line), ", expected ", expected);
        };
        if (words[0] == ":") {
            if (words.size() != 2) refuse("': name' with one name");
            sections.push_back({words[1], {}});
            continue;
        }
        if (sections.empty()) refuse("': name' before the first question");
        if (words.size() != 4) refuse("four words");
        sections.back().questions.push_back({words[0], words[1], words[2], words[3]});
        any = true;
    }
    if (!any) throw DataError(path, ": there are no questions; expected ': name' and lines of four words");
    return sections;
}

/// The result of analogies for a section.
struct AnalogyScore {
    std::string name;
    Index questions = 0;  ///< in the set
    Index asked = 0;      ///< of these, with a vector for all four words
    Index correct = 0;    ///< of those asked
    /// Fraction of the questions asked that were answered correctly; 0 if none was asked.
    double accuracy() const { return asked ? double(correct) / double(asked) : 0; }
};

namespace detail {

/// A question as rows of a table, and its section.
struct KnownQuestion {
    std::array<Index, 4> row;
    std::size_t section;
};

/// The questions whose words all have a vector; `scores` receives the sections, unanswered.
inline Array<KnownQuestion> known_questions(const WordTable& table, std::span<const AnalogySection> sections,
                                            std::vector<AnalogyScore>& scores) {
    Array<KnownQuestion> known;
    for (const auto& section : sections) {
        for (const Analogy& words : section.questions) {
            KnownQuestion q{{}, scores.size()};
            for (std::size_t k = 0; k < 4; ++k) q.row[k] = table.find(words[k]);
            if (std::ranges::all_of(q.row, [](Index i) { return i >= 0; })) known.push_back(q);
        }
        scores.push_back({section.name, std::ssize(section.questions), 0, 0});
    }
    return known;
}

}  // namespace detail

/// Answers each question with the word whose vector is nearest to b - a + c, excluding a, b and c:
///
///     d = argmax_{w ≠ a, b, c} cos(w, b - a + c),   vectors of norm 1
///
/// Questions with an unknown word are skipped and counted. Ties go to the first word in the table; a table without
/// other words than a, b and c has no answer. The cosines are computed as matrix products over blocks of questions
/// within 64 MiB.
///
/// Source   Mikolov, Chen, Corrado, Dean 2013; Mikolov, Yih, Zweig 2013 ("3CosAdd" in Levy, Goldberg 2014).
inline std::vector<AnalogyScore> analogies(const WordTable& table, std::span<const AnalogySection> sections) {
    std::vector<AnalogyScore> scores;
    const auto questions = detail::known_questions(table, sections, scores);
    const BlasOnOneThread blas;
    const Index V = table.size(), n = table.dimension(), count = std::ssize(questions);
    if (count == 0) return scores;
    const Index block = std::clamp<Index>((Index{64} << 20) / (V * Index{sizeof(float)}), 1, count);
    Array<float> queries(block * n), cosines(block * V);
    for (Index first = 0; first < count; first += block) {
        const Index rows = std::min(block, count - first);
        for (Index i = 0; i < rows; ++i) {
            const auto& [a, b, c, d] = questions[first + i].row;
            for (Index k = 0; k < n; ++k)
                queries[i * n + k] = table.row(b)[k] - table.row(a)[k] + table.row(c)[k];
        }
        gemm<float>(1.f, {queries.data(), rows, n}, t(MatrixRef<const float>(table.row(0), V, n)), 0.f,
                    {cosines.data(), rows, V});
        for (Index i = 0; i < rows; ++i) {
            const detail::KnownQuestion& q = questions[first + i];
            float* row = cosines.data() + i * V;
            for (std::size_t k = 0; k < 3; ++k) row[q.row[k]] = -std::numeric_limits<float>::infinity();
            AnalogyScore& score = scores[q.section];
            ++score.asked;
            const float* const best = std::max_element(row, row + V);
            score.correct += best - row == q.row[3] && !std::isinf(*best);  // infinite: one of the question
        }
    }
    return scores;
}

/// The sum of several scores, with a name of its own.
inline AnalogyScore sum_of(std::string name, std::span<const AnalogyScore> scores) {
    AnalogyScore sum{std::move(name), 0, 0, 0};
    for (const AnalogyScore& s : scores) {
        sum.questions += s.questions;
        sum.asked += s.asked;
        sum.correct += s.correct;
    }
    return sum;
}

}}  // namespace isogloss
