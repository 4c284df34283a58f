/// @file token_vectors.hpp  A vector for each word of a tagged text: states of a system, or word vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/io/word_vectors.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <vector>

#include "../shared/tagged_text.hpp"
#include "common.hpp"
#include "sentence_vectors.hpp"

namespace lt {

/// Rows of the words of a tagged text, as `embed` writes them but without line ends.
inline Features of_model(const TagCommand& o, const tagged::Text& text) {
    const auto it = lds::load_lds<float>(o.model);
    const Sentences sentences(text, it.vocabulary);
    Features all;
    if (o.states == "types") {
        const auto types = lds::type_embedding(it.system, it.xx);
        all = lds::zeros<float>(std::ssize(sentences.tokens()), lds::cols(types));
        float* to = all.data();
        for (const auto t : sentences.tokens())
            to = std::copy_n(types.data() + t * lds::cols(types), lds::cols(types), to);
    } else {
        all = sentence_vectors(token_embedding(it, o.states), sentences, before_sentence(it));
    }
    const ig::Index n = lds::cols(all);
    Features out = lds::zeros<float>(std::ssize(text.words), n);
    float* to = out.data();
    for (std::size_t s = 0; s < sentences.size(); ++s)
        to = std::copy_n(all.data() + static_cast<ig::Index>(sentences.start(s)) * n,
                         static_cast<ig::Index>(text.starts[s + 1] - text.starts[s]) * n, to);
    return out;
}

inline Features of_vectors(const TagCommand& o, const tagged::Text& text) {
    const auto v = ig::io::read_word_vectors(o.vectors);
    Features out = lds::zeros<float>(std::ssize(text.words), v.dimension);
    for (std::size_t i = 0; i < text.words.size(); ++i) {
        auto at = v.words.find(text.words[i]);
        if (at < 0) at = v.words.find(tagged::lower(text.words[i]));
        if (at < 0) at = v.words.find("<unk>");
        if (at < 0) continue;
        const auto row = v.row(at);
        std::copy(row.begin(), row.end(), out.data() + static_cast<ig::Index>(i) * v.dimension);
    }
    lds::normalise_rows(out);
    return out;
}

/// Each row concatenated with those of the surrounding words in its sentence.
inline Features with_window(const Features& x, const tagged::Text& text, ig::Index window) {
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

/// The features of `tag`: vectors of --model or --vectors with those of their neighbours, or empty rows.
inline Features token_vectors(const TagCommand& o, const tagged::Text& text) {
    if (o.model.empty() && o.vectors.empty()) return lds::zeros<float>(std::ssize(text.words), 0);
    return with_window(o.model.empty() ? of_vectors(o, text) : of_model(o, text), text, o.window);
}

}  // namespace lt
