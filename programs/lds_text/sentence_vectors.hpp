/// @file sentence_vectors.hpp  How all commands feed a text to a system, and the vectors of its tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <isogloss/file/reader.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../shared/tagged_text.hpp"
#include "common.hpp"
#include "texts.hpp"

namespace lt {

/// Vectors of all tokens of a text, one row each.
using Features = lds::TallMatrix<float>;

/// The token of a word: as spelled, else in lower case, else that of unknown words.
inline ig::Token known(const ig::text::Vocabulary& v, const std::string& word) {
    if (const auto t = v.find(word)) return *t;
    if (const auto t = v.find(tagged::lower(word))) return *t;
    return v.unk();
}

/// Sentences as tokens of a vocabulary, in sequence, each with its line end if line ends are tokens.
class Sentences {
public:
    explicit Sentences(const ig::text::Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}

    /// The sentences of texts, one per line; in a token file a sentence extends to each line end.
    Sentences(const std::vector<std::string>& paths, const ig::text::Vocabulary& vocabulary)
        : Sentences(vocabulary) {
        for (const std::string& path : paths) {
            if (is_token_file(path)) add_tokens(ig::text::Corpus::map(path, vocabulary).tokens());
            else add_lines(path);
        }
    }

    /// The sentences of a tagged text.
    Sentences(const tagged::Text& text, const ig::text::Vocabulary& vocabulary) : Sentences(vocabulary) {
        for (std::size_t s = 0; s + 1 < text.starts.size(); ++s) {
            for (std::size_t i = text.starts[s]; i < text.starts[s + 1]; ++i) push(text.words[i]);
            end();
        }
    }

    const std::vector<ig::Token>& tokens() const { return tokens_; }
    /// The same without the lower-case lookup, as `fit --dev` reads the text.
    const std::vector<ig::Token>& as_spelled() const { return spelled_; }
    std::size_t size() const { return ends_.size(); }
    /// The first token of a sentence; for size(), the end of all.
    std::size_t start(std::size_t sentence) const { return sentence == 0 ? 0 : ends_[sentence - 1]; }
    std::span<const ig::Token> operator[](std::size_t sentence) const {
        return std::span(tokens_).subspan(start(sentence), start(sentence + 1) - start(sentence));
    }

private:
    void end() {
        if (vocabulary_->eos_per_line()) push(vocabulary_->eos());
        ends_.push_back(tokens_.size());
    }
    void push(ig::Token token) {
        tokens_.push_back(token);
        spelled_.push_back(token);
    }
    void push(const std::string& word) {
        push(known(*vocabulary_, word));
        if (vocabulary_->has_unk() && !vocabulary_->find(word)) spelled_.back() = vocabulary_->unk();
    }
    void push_characters(std::string_view line) {
        vocabulary_->encode_prefix(line, tokens_);
        spelled_.insert(spelled_.end(), tokens_.begin() + std::ssize(spelled_), tokens_.end());
    }
    void add_tokens(std::span<const ig::Token> all) {
        for (const ig::Token token : all) {
            push(token);
            if (vocabulary_->eos_per_line() && token == vocabulary_->eos()) ends_.push_back(tokens_.size());
        }
        if (start(size()) < tokens_.size()) ends_.push_back(tokens_.size());
    }
    void add_lines(const std::string& path) {
        ig::file::LineReader lines(path);
        for (std::string_view line; lines.next(line);) {
            if (vocabulary_->level() == ig::text::Level::word)
                ig::text::for_each_word(line, [&](std::string_view word) { push(std::string(word)); });
            else push_characters(line);
            end();
        }
        if (lines.line() == 0)
            throw ig::DataError(ig::message(path, ": the text is empty; expected at least one line"));
    }

    const ig::text::Vocabulary* vocabulary_;
    std::vector<ig::Token> tokens_, spelled_;
    std::vector<std::size_t> ends_;
};

/// The token that a system is fed before each sentence, -1 for none. In running text a sentence follows the
/// line end of the previous one; if pairs do not cross line ends (--sentences), nothing was counted after
/// one.
inline ig::Token before_sentence(const lds::LdsFile<float>& it) {
    return it.vocabulary.eos_per_line() && !of_sentences(it) ? it.vocabulary.eos() : ig::Token{-1};
}

/// The vectors of tokens of a system, "smoother" or "filter".
inline lds::TokenEmbedding<float> token_embedding(const lds::LdsFile<float>& it, const std::string& states) {
    return {it.system, lds::steady_state(it.system), it,
            states == "filter" ? lds::TokenStates::filter : lds::TokenStates::smoother};
}

/// A row of norm 1 for each token, [tokens, states]. Every sentence is started afresh, after `before`
/// (before_sentence), and read up to its line end:
///
///     running text:  <eos> w_1 … w_n <eos>      --sentences:  w_1 … w_n <eos>
///
/// so that a vector depends on its sentence alone. Sentences run in parallel, about 2¹⁸ tokens at a time,
/// which bounds the memory in addition to the rows.
inline Features sentence_vectors(const lds::TokenEmbedding<float>& embedding, const Sentences& text,
                                 ig::Token before) {
    constexpr std::size_t together = std::size_t{1} << 18;
    const ig::Index n = embedding.width(), lead = before >= 0 ? 1 : 0;
    Features out = lds::zeros<float>(std::ssize(text.tokens()), n);
    float* to = out.data();
    std::vector<ig::Token> fed;
    std::vector<std::span<const ig::Token>> spans;
    for (std::size_t first = 0, last = 0; first < text.size(); first = last) {
        fed.clear(), spans.clear();
        for (; last < text.size() && fed.size() < together; ++last) {
            if (lead) fed.push_back(before);
            fed.insert(fed.end(), text[last].begin(), text[last].end());
        }
        std::span<const ig::Token> left = fed;
        for (std::size_t s = first; s < last; ++s) {
            const std::size_t size = text[s].size() + static_cast<std::size_t>(lead);
            spans.push_back(left.first(size));
            left = left.subspan(size);
        }
        const Features some = embedding(spans);
        const float* from = some.data();
        for (std::size_t s = first; s < last; ++s) {
            const ig::Index size = std::ssize(text[s]);
            to = std::copy_n(from + lead * n, size * n, to);
            from += (size + lead) * n;
        }
    }
    return out;
}

}  // namespace lt
