/// @file sampling.hpp  A text, drawn token by token from the model's own predictions.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "commands.hpp"
#include "model_file.hpp"

namespace lm {

/// The prompt and what a model of one column or more writes after it, with a line end at the end; the same for the same
/// seed.
inline std::string sample_text(LoadedModel& it, const SampleOptions& o) {
    ig::require("sample", "--words", o.length, 1);
    ig::require("sample", "--temperature", o.temperature, 0);
    it.g->reset();
    const auto& vocabulary = it.vocabulary;
    const ig::Token unk = vocabulary.has_unk() ? vocabulary.unk() : -1, eos = vocabulary.eos();

    std::vector<ig::Token> shown;
    vocabulary.encode_prefix(o.prompt, shown);

    std::vector<float> p(static_cast<std::size_t>(vocabulary.size()));
    const auto feed = [&](ig::Token token) {
        it.g->forward(it.model.o, {it.model.x, std::span<const ig::Token>(&token, 1)});
    };
    const ig::Random random(o.seed, ig::stream_of("sample"));
    feed(eos);
    for (const ig::Token token : shown) feed(token);
    ig::Index drawn = 0;
    // A model that ends line after line comes to an end too.
    for (ig::Index i = 0; drawn < o.length && i < 20 * o.length; ++i) {
        const bool likeliest = o.temperature == 0;
        it.g->probabilities(it.model.o, 0, {p.data(), 1, vocabulary.size()}, likeliest ? 1 : o.temperature);
        if (!o.unknowns && unk >= 0) p[static_cast<std::size_t>(unk)] = 0;
        const auto most = std::max_element(p.begin(), p.end());
        const ig::Token token = likeliest   ? static_cast<ig::Token>(most - p.begin())
                                : *most > 0 ? ig::sample(p, random.uniform(i))
                                            : eos;  // it is sure of <unk>
        shown.push_back(token);
        if (token != eos) ++drawn;
        feed(token);
    }
    std::string text = vocabulary.decode(shown);
    if (text.empty() || text.back() != '\n') text += '\n';
    return text;
}

}  // namespace lm
