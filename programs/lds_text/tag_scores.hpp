/// @file tag_scores.hpp  How well a text is tagged, and whether one tagger is better than another.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/file/reader.hpp>
#include <isogloss/random.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "../shared/json.hpp"
#include "../shared/tagged_text.hpp"
#include "common.hpp"
#include "sign_test.hpp"

namespace lt {

/// Share of words with the right tag, or F1 of entities.
inline double score(const tagged::Text& text, const std::vector<ig::Token>& found, const tagged::Tags& tags,
                    bool of_entities) {
    if (!of_entities) {
        std::size_t right = 0;
        for (std::size_t i = 0; i < found.size(); ++i) right += found[i] == text.tags[i];
        return static_cast<double>(right) / static_cast<double>(found.size());
    }
    const auto a = entities(text, text.tags, tags), b = entities(text, found, tags);
    const std::set<tagged::Entity> gold(a.begin(), a.end());
    std::size_t right = 0;
    for (const auto& e : b) right += gold.count(e);
    return 2 * static_cast<double>(right) /
           static_cast<double>(std::max<std::size_t>(1, a.size() + b.size()));
}

/// How often F1 differs by at least the observed amount when the answers of two taggers are swapped in random
/// sentences: a test of the null hypothesis that the two are equivalent.
inline double randomised(const tagged::Text& text, const std::vector<ig::Token>& mine,
                         const std::vector<ig::Token>& theirs, const tagged::Tags& tags, std::uint64_t seed) {
    struct Sentence {
        double found[2], right[2], gold;
    };
    std::vector<Sentence> sentences(text.starts.size() - 1);
    const auto sentence_of = [&](const tagged::Entity& e) -> Sentence& {
        return sentences[std::size_t(std::upper_bound(text.starts.begin(), text.starts.end(), e.first) -
                                     text.starts.begin() - 1)];
    };
    const auto gold = entities(text, text.tags, tags);
    const std::set<tagged::Entity> known(gold.begin(), gold.end());
    for (const tagged::Entity& e : gold) sentence_of(e).gold += 1;
    for (const int side : {0, 1})
        for (const tagged::Entity& e : entities(text, side == 0 ? mine : theirs, tags)) {
            sentence_of(e).found[side] += 1;
            sentence_of(e).right[side] += static_cast<double>(known.count(e));
        }
    constexpr ig::Index rounds = 10000;
    const ig::Random random(seed, ig::stream_of("randomisation"));
    const auto difference = [&](ig::Index round) {  // round 0: as observed
        double found[2] = {0, 0}, right[2] = {0, 0}, all = 0;
        for (std::size_t i = 0; i < sentences.size(); ++i) {
            const auto draw = round * std::ssize(sentences) + static_cast<ig::Index>(i);
            const int swapped = round > 0 && random.uniform(draw) < 0.5 ? 1 : 0;
            for (const int side : {0, 1}) {
                found[side] += sentences[i].found[side ^ swapped];
                right[side] += sentences[i].right[side ^ swapped];
            }
            all += sentences[i].gold;
        }
        return std::abs(2 * right[0] / std::max(1.0, found[0] + all) -
                        2 * right[1] / std::max(1.0, found[1] + all));
    };
    const double observed = difference(0);
    ig::Index as_large = 1;
    for (ig::Index round = 1; round <= rounds; ++round) as_large += difference(round) >= observed - 1e-12;
    return static_cast<double>(as_large) / static_cast<double>(rounds + 1);
}

/// How one tagger compares with another on the same text.
struct Comparison {
    std::size_t alone = 0, other_alone = 0;  ///< words that only the one, or only the other, gets right
    double chi_squared = 0, p = 1;           ///< McNemar's test of these, and p of its exact form
    double other_f1 = 0, p_f1 = 1;           ///< entities: F1 of the other, and randomised()
};

/// The tags of --against, `--predictions` of another call; none without it. Throws DataError unless there is
/// one for each word of the test text.
inline std::vector<std::string> read_tags(const TagCommand& o, const tagged::Text& text) {
    std::vector<std::string> out;
    if (o.against.empty()) return out;
    ig::file::LineReader lines(o.against);
    for (std::string_view line; lines.next(line);) {
        out.emplace_back(line);
        tagged::require_tag(out.back(), o.format, o.against, lines.line());
    }
    if (out.size() != text.words.size())
        throw ig::DataError(ig::message(o.against, ": holds ", out.size(), " tags, but the test text has ",
                                        text.words.size(), " words"));
    return out;
}

/// Compares tags with those of another tagger, read_tags().
inline Comparison compare(const TagCommand& o, const tagged::Text& text, const std::vector<ig::Token>& found,
                          const std::vector<std::string>& of_other, tagged::Tags& tags) {
    std::vector<ig::Token> other;
    for (const std::string& tag : of_other) other.push_back(tags.number(tag));
    Comparison c;
    for (std::size_t i = 0; i < found.size(); ++i) {
        c.alone += found[i] == text.tags[i] && other[i] != text.tags[i];
        c.other_alone += found[i] != text.tags[i] && other[i] == text.tags[i];
    }
    const auto n = static_cast<double>(c.alone + c.other_alone),
               d = std::abs(double(c.alone) - double(c.other_alone));
    c.chi_squared = n > 0 ? std::pow(std::max(0.0, d - 1), 2) / n : 0;
    c.p = sign_test(c.alone, c.other_alone);
    if (o.format == "conll") {
        c.other_f1 = score(text, other, tags, true);
        c.p_f1 = randomised(text, found, other, tags, o.seed);
    }
    return c;
}

inline void print(const TagCommand& o, const Comparison& c) {
    say("against %s: right alone on %zu words, wrong alone on %zu; McNemar chi² %.2f, exact p = %.2g\n",
        o.against.c_str(), c.alone, c.other_alone, c.chi_squared, c.p);
    if (o.format == "conll")
        say("F1 there %.2f %%; approximate randomisation over sentences, p = %.2g\n", 100 * c.other_f1,
            c.p_f1);
}

inline program::Json as_json(const TagCommand& o, const Comparison& c) {
    program::Json all = {{"file", o.against},
                         {"right_alone", c.alone},
                         {"wrong_alone", c.other_alone},
                         {"mcnemar_chi_squared", c.chi_squared},
                         {"p", c.p}};
    if (o.format == "conll") all["F1"] = c.other_f1, all["p_F1"] = c.p_f1;
    return all;
}

}  // namespace lt
