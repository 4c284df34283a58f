/// @file token_vectors.hpp  One vector for each word of a tagged text: states of a system, or word vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/io/word_vectors.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <span>
#include <string>
#include <vector>

#include "common.hpp"
#include "tagged_text.hpp"

namespace lt {

/// Vectors of all words of a text, one row each.
using Features = lds::TallMatrix<float>;

/// Words of the text in the vocabulary: as spelled, in lower case, or unknown.
inline ig::Token known(const ig::text::Vocabulary& v, const std::string& word) {
    if (const auto t = v.find(word)) return *t;
    if (const auto t = v.find(lower(word))) return *t;
    return v.unk();
}

inline Features of_model(const TagCommand& o, const TaggedText& text) {
    const auto it = lds::load_lds<float>(o.model);
    std::vector<std::vector<ig::Token>> sentences;
    const bool eos = it.vocabulary.has_eos();
    for (std::size_t s = 0; s + 1 < text.starts.size(); ++s) {
        auto& tokens = sentences.emplace_back();
        if (eos) tokens.push_back(it.vocabulary.eos());
        for (std::size_t i = text.starts[s]; i < text.starts[s + 1]; ++i)
            tokens.push_back(known(it.vocabulary, text.words[i]));
        if (eos) tokens.push_back(it.vocabulary.eos());
    }
    Features all;
    if (o.states == "types") {
        const auto types = lds::type_embedding(it.system, it.xx);
        ig::Index rows = 0;
        for (const auto& tokens : sentences) rows += std::ssize(tokens);
        all = lds::zeros<float>(rows, lds::cols(types));
        float* to = all.data();
        for (const auto& tokens : sentences)
            for (const auto t : tokens)
                to = std::copy_n(types.data() + t * lds::cols(types), lds::cols(types), to);
    } else {
        const bool filter = o.states == "filter";
        const std::vector<std::span<const ig::Token>> spans(sentences.begin(), sentences.end());
        all = lds::TokenEmbedding<float>(
            it.system, lds::steady_state(it.system), filter ? it.xx_filtered : it.xx,
            filter ? lds::TokenStates::filter : lds::TokenStates::smoother)(spans);
    }
    // without the line ends around each sentence
    const ig::Index n = lds::cols(all);
    Features out = lds::zeros<float>(std::ssize(text.words), n);
    float* to = out.data();
    const float* from = all.data();
    for (const auto& tokens : sentences) {
        const auto words = std::ssize(tokens) - (eos ? 2 : 0);
        to = std::copy_n(from + (eos ? n : 0), words * n, to);
        from += std::ssize(tokens) * n;
    }
    return out;
}

inline Features of_vectors(const TagCommand& o, const TaggedText& text) {
    const auto v = ig::io::read_word_vectors(o.vectors);
    Features out = lds::zeros<float>(std::ssize(text.words), v.dimension);
    for (std::size_t i = 0; i < text.words.size(); ++i) {
        auto at = v.words.find(text.words[i]);
        if (at < 0) at = v.words.find(lower(text.words[i]));
        if (at < 0) at = v.words.find("<unk>");
        if (at < 0) continue;
        const auto row = v.row(at);
        std::copy(row.begin(), row.end(), out.data() + static_cast<ig::Index>(i) * v.dimension);
    }
    lds::normalise_rows(out);
    return out;
}

/// Each row with those of the words around it in its sentence.
inline Features with_window(const Features& x, const TaggedText& text, ig::Index window) {
    const ig::Index n = lds::cols(x), width = n * (2 * window + 1);
    Features out = lds::zeros<float>(lds::rows(x), width);
    for (std::size_t s = 0; s + 1 < text.starts.size(); ++s) {
        const auto first = static_cast<ig::Index>(text.starts[s]),
                   end = static_cast<ig::Index>(text.starts[s + 1]);
        for (ig::Index i = first; i < end; ++i)
            for (ig::Index d = -window; d <= window; ++d)
                if (i + d >= first && i + d < end)
                    std::copy_n(x.data() + (i + d) * n, n, out.data() + i * width + (d + window) * n);
    }
    // entries of about unit size
    const float scale = std::sqrt(static_cast<float>(n));
    for (float& value : out) value *= scale;
    return out;
}

/// What `tag` was given: vectors of --model or --vectors with their neighbours', or rows of no numbers where there is neither.
inline Features token_vectors(const TagCommand& o, const TaggedText& text) {
    if (o.model.empty() && o.vectors.empty()) return lds::zeros<float>(std::ssize(text.words), 0);
    return with_window(o.model.empty() ? of_vectors(o, text) : of_model(o, text), text, o.window);
}

}  // namespace lt
