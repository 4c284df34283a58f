/// @file evaluation/unigram.hpp  The unigram baseline: each word predicted by its frequency alone.
#pragma once

#include <cstdint>
#include <isogloss/elementary.hpp>
#include <isogloss/error.hpp>
#include <isogloss/text/corpus.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Mean cross-entropy of a corpus, in nats per token, under the unigram model of a vocabulary's counts: the
/// baseline to beat. Its exponential is the unigram perplexity.
///
///     H = -1/N Σ_i log p(s_i),   p(w) = (c_w + a) / (Σ_v c_v + a·V)
///
/// Options  add  a ≥ 0, added to the count of every type (1)
/// Errors   DataError: a corpus of another vocabulary, a < 0, no counts and a = 0, a token of probability 0.
inline double unigram_cross_entropy(const text::Vocabulary& vocabulary, const text::Corpus& corpus,
                                    double add = 1) {
    corpus.require_fits(vocabulary);
    require<DataError>("unigram model", "add", add, 0);
    const double mass =
        static_cast<double>(vocabulary.total()) + add * static_cast<double>(vocabulary.size());
    std::vector<std::int64_t> occurrences(vocabulary.size(), 0);
    for (const Token t : corpus.tokens()) {
        if (t < 0 || t >= vocabulary.size())  // possible in a file mapped without verification
            throw DataError("unigram model: '", corpus.source(), "' holds token ", t);
        ++occurrences[t];
    }
    double sum = 0;
    for (Token w = 0; w < vocabulary.size(); ++w) {
        const auto n = static_cast<double>(occurrences[w]);
        if (n == 0) continue;
        const double p = (static_cast<double>(vocabulary.count(w)) + add) / mass;
        if (!(p > 0))
            throw DataError("unigram model: ", in_quotes(vocabulary.word(w)),
                            " has count 0; add 1, say, to each");
        sum -= n * kernel::elementary::log(p);
    }
    return sum / static_cast<double>(corpus.size());
}

}}  // namespace isogloss
