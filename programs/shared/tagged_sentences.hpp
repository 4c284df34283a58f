/// @file tagged_sentences.hpp  Sentences with a tag for each word, as batches for a tagger.
#pragma once

#include <algorithm>
#include <cstddef>
#include <isogloss/types.hpp>
#include <isogloss/word_index.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tagged_text.hpp"

namespace tagged {

namespace ig = isogloss;

/// Numbers for strings that occur at least twice in the training text; 0 for any other.
class Repeated {
public:
    ig::Index size() const { return known_.size(); }
    /// With `learn`, a string gets its number at its second occurrence, so that a model learns 0 from the first.
    ig::Token number(const std::string& s, bool learn) {
        if (!learn) return std::max(known_.find(s), ig::Token{0});
        if (seen_.find(s) >= 0) return known_.insert(s);
        seen_.insert(s);
        return 0;
    }

private:
    ig::WordIndex seen_, known_{"<unk>"};
};

/// Numbering of words, of their endings and of tags.
struct Numbers {
    Repeated word, end;
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
/// a word is its last three bytes. With `learn`, words and endings get numbers, see Repeated. Throws what
/// read_tagged does.
inline std::vector<Batch> read(const std::string& path, Numbers& numbers, std::size_t columns, bool learn) {
    const auto text = read_tagged(path, "conllu", numbers.tags);
    const auto length = [&](std::size_t s) { return text.starts[s + 1] - text.starts[s]; };
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
                b.word[at] = numbers.word.number(word, learn);
                b.end[at] = numbers.end.number(word.substr(end), learn);
                b.tag[at] = text.tags[text.starts[s] + t];
            }
        batches.push_back(std::move(b));
    }
    return batches;
}

}  // namespace tagged
