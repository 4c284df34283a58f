/// @file keystrokes.hpp  What the predictions of a model save someone who types a text.
#pragma once

#include <algorithm>
#include <isogloss/file/reader.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <isogloss/text/words.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lm {

namespace ig = isogloss;

/// Counts keystrokes on a keyboard that shows the k likeliest words that begin with the letters typed so far, before
/// the first letter too. A word is typed until it is shown, and a tap then enters it with its space; else all its letters
/// and the space are typed. Words outside the vocabulary are never shown. Tokens without a letter or digit and line ends
/// are not counted.
class Keystrokes {
public:
    Keystrokes(const ig::text::Vocabulary& vocabulary, ig::Index shown)
        : vocabulary_(vocabulary), shown_(shown) {
        for (ig::Token t = 0; t < vocabulary.size(); ++t)
            if (t != vocabulary.eos() && !(vocabulary.has_unk() && t == vocabulary.unk()) &&
                is_word(vocabulary.word(t)))
                words_.push_back(t);
        std::ranges::sort(words_, {}, [&](ig::Token t) -> const std::string& { return vocabulary.word(t); });
        is_word_.resize(static_cast<std::size_t>(vocabulary.size()));
        for (const ig::Token t : words_) is_word_[static_cast<std::size_t>(t)] = true;
    }

    /// Counts the next word y of a text, given the logits of all words.
    void add(std::span<const float> z, ig::Token y) {
        if (!is_word_[at(y)]) return;
        const std::string_view word = vocabulary_.word(y);
        std::span<const ig::Token> candidates = words_;
        std::size_t bytes = 0;
        for (; bytes < word.size() && !is_shown(z, y, candidates); typed_ += 1) {
            bytes += letter_at(word, bytes);
            const auto beginning = [&](ig::Token t) {
                return std::string_view(vocabulary_.word(t)).substr(0, bytes);
            };
            const auto first = std::ranges::lower_bound(candidates, word.substr(0, bytes), {}, beginning),
                       last = std::ranges::upper_bound(candidates, word.substr(0, bytes), {}, beginning);
            candidates = {first, last};
        }
        typed_ += 1;  // the tap, or the space
        all_ += letters(word) + 1;
    }
    /// Counts the words of a text that are outside the vocabulary.
    void add_unknowns(const std::string& path) {
        ig::file::LineReader lines(path, {});
        for (std::string_view line; lines.next(line);)
            ig::text::for_each_word(line, [&](std::string_view word) {
                if (vocabulary_.find(word) || !is_word(word)) return;
                typed_ += letters(word) + 1;
                all_ += letters(word) + 1;
            });
    }

    ig::Index typed() const { return typed_; }  ///< keystrokes with the words shown
    ig::Index all() const { return all_; }      ///< letters and spaces

private:
    static std::size_t at(ig::Token t) { return static_cast<std::size_t>(t); }
    static bool is_word(std::string_view token) {
        return std::ranges::any_of(token, [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                   (static_cast<unsigned char>(c) & 0x80u) != 0;
        });
    }
    // Bytes of the letter that begins there.
    static std::size_t letter_at(std::string_view word, std::size_t first) {
        std::size_t n = 1;
        while (first + n < word.size() && (static_cast<unsigned char>(word[first + n]) & 0xC0u) == 0x80u) ++n;
        return n;
    }
    static ig::Index letters(std::string_view word) {
        ig::Index n = 0;
        for (std::size_t i = 0; i < word.size(); i += letter_at(word, i)) ++n;
        return n;
    }
    bool is_shown(std::span<const float> z, ig::Token y, std::span<const ig::Token> candidates) const {
        ig::Index before = 0;
        for (auto it = candidates.begin(); it != candidates.end() && before < shown_; ++it)
            if (z[at(*it)] > z[at(y)] || (z[at(*it)] == z[at(y)] && *it < y)) ++before;
        return before < shown_;
    }

    const ig::text::Vocabulary& vocabulary_;
    std::vector<ig::Token> words_;  // by spelling
    std::vector<bool> is_word_;
    ig::Index shown_, typed_ = 0, all_ = 0;
};

}  // namespace lm
