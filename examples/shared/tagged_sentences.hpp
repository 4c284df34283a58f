/// @file tagged_sentences.hpp  Sentences with a tag for each word, as batches for a tagger.
#pragma once

#include <algorithm>
#include <cstddef>
#include <isogloss/text/word_index.hpp>
#include <isogloss/types.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tagged_text.hpp"

namespace tagged {

namespace ig = isogloss;

/// Numbering of words, of their endings and of tags.
struct Numbers {
    ig::text::WordIndex seen;                         ///< all of the training text
    ig::text::WordIndex word{"<unk>"}, end{"<unk>"};  ///< those that occur twice there; 0: any other
    Tags tags;
};

/// Sentences in columns; each array is [time, columns].
struct Batch {
    ig::Index time = 0, columns = 0;
    std::vector<ig::Token> word, end, tag;  ///< after the end of a sentence 0, 0 and not_predicted

    ig::TokenBlock block(const std::vector<ig::Token>& of) const { return {of.data(), time, columns}; }
};

/// How many tags a batch has, and for how many `scores` [time · columns, tags] are highest for the right one.
inline ig::Index count(const Batch& b) {
    return std::ssize(b.tag) - std::ranges::count(b.tag, ig::not_predicted);
}
inline ig::Index count_correct(const auto& scores, const Batch& b) {  ///< see count()
    ig::Index correct = 0;
    for (std::size_t i = 0, tags = scores.shape()[1]; i < b.tag.size(); ++i) {
        const auto* row = scores.data() + i * tags;
        correct += std::max_element(row, row + tags) - row == b.tag[i];
    }
    return correct;
}

/// The sentences of a CoNLL-U file, those of similar length in one batch of at most `columns`. The ending of
/// a word is its last three bytes. With `learn`, words and endings get numbers at their second occurrence, so
/// that a model learns `<unk>` from the first. Throws what read_tagged does.
inline std::vector<Batch> read(const std::string& path, Numbers& numbers, std::size_t columns, bool learn) {
    const auto text = read_tagged(path, "conllu", numbers.tags);
    const auto length = [&](std::size_t s) { return text.starts[s + 1] - text.starts[s]; };
    const auto number = [&](ig::text::WordIndex& known, const std::string& s) {
        if (!learn) return std::max(known.find(s), ig::Token{0});
        if (numbers.seen.find(s) >= 0) return known.insert(s);
        numbers.seen.insert(s);
        return ig::Token{0};
    };
    std::vector<std::size_t> order(text.starts.size() - 1);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return length(a) < length(b); });
    std::vector<Batch> batches;
    for (std::size_t first = 0, count; first < order.size(); first += count) {
        count = std::min(columns, order.size() - first);
        const std::size_t time = length(order[first + count - 1]);
        const std::vector<ig::Token> zeros(time * count, 0);
        Batch b{static_cast<ig::Index>(time), static_cast<ig::Index>(count), zeros, zeros,
                std::vector<ig::Token>(time * count, ig::not_predicted)};
        for (std::size_t c = 0; c < count; ++c)
            for (std::size_t t = 0, s = order[first + c]; t < length(s); ++t) {
                const std::string& word = text.words[text.starts[s] + t];
                const std::size_t at = t * count + c,
                                  end = word.size() - std::min<std::size_t>(3, word.size());
                b.word[at] = number(numbers.word, word);
                b.end[at] = number(numbers.end, "-" + word.substr(end));  // seldom a word in `seen`
                b.tag[at] = text.tags[text.starts[s] + t];
            }
        batches.push_back(std::move(b));
    }
    return batches;
}

}  // namespace tagged
