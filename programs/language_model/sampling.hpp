/// @file sampling.hpp  A text, sampled token by token from a model.
#pragma once

#include <algorithm>
#include <isogloss/kernel/softmax.hpp>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "commands.hpp"
#include "likeliest.hpp"
#include "model_file.hpp"

namespace lm {

/// Runs the first column of a model over tokens, from its current states, in as few passes as its capacity
/// allows. Returns the row of the last pass that belongs to the last token and predicts the next.
inline ig::Index feed(LoadedModel& it, std::span<const ig::Token> tokens) {
    ig::Index steps = 0;
    for (; !tokens.empty(); tokens = tokens.subspan(static_cast<std::size_t>(steps))) {
        steps = std::min(it.g->capacity().time, std::ssize(tokens));
        it.g->forward(it.model.o, {it.model.x, ig::TokenBlock{tokens.data(), steps, 1}});
    }
    return steps - 1;
}

/// The most words of one sample: a day's work; anything above is taken for a typing error.
inline constexpr ig::Index most_words = 1000000000;

/// Throws UsageError for options of `sample` out of range.
inline void require_sampling(const SampleOptions& o) {
    ig::require("sample", "--words", o.length, 1, most_words);
    // Outside this range the inverse soon leaves that of a float.
    if (o.temperature != 0 && !(o.temperature >= 0.01 && o.temperature <= 100))
        throw ig::UsageError("sample: found --temperature = ", o.temperature,
                             ", expected 0, for the most probable word each time, or 0.01 to 100");
    ig::require("sample", "--top-k", o.top_k, 0);
    ig::require("sample", "--top-p", o.top_p, ig::Exclusive{0}, 1);
    ig::require("sample", "--samples", o.samples, 1);
}

/// Samples a continuation of the prompt from a model of at least one column, and calls show(token) for each
/// token as soon as it is drawn, those of the prompt first. Determined by seed and sample number. Returns how many
/// were drawn, line ends not counted: fewer than requested of a model that draws little but line ends.
template <class Show>
ig::Index draw_text(LoadedModel& it, const SampleOptions& o, ig::Index number, Show&& show) {
    it.g->reset();
    const auto& vocabulary = it.vocabulary;
    const ig::Token unk = vocabulary.has_unk() ? vocabulary.unk() : -1, eos = vocabulary.eos();
    std::vector<ig::Token> begun = {eos};
    vocabulary.encode_prefix(o.prompt, begun);
    for (const ig::Token token : std::span(begun).subspan(1)) show(token);

    std::vector<float> p(static_cast<std::size_t>(vocabulary.size()));
    const ig::Random random(o.seed, ig::stream_of("sample"), static_cast<std::uint64_t>(number));
    ig::Index row = feed(it, begun), drawn = 0;
    // The bound on i stops a model that draws only line ends.
    for (ig::Index i = 0; drawn < o.length && i < 20 * o.length; ++i) {
        it.g->head(it.model.o).logits(row, {p.data(), 1, vocabulary.size()});
        // Before the softmax: at a low temperature <unk> may have a probability that leaves 0 for all others.
        if (!o.unknowns && unk >= 0)
            p[static_cast<std::size_t>(unk)] = -std::numeric_limits<float>::infinity();
        ig::Token token;
        if (o.temperature == 0) {
            token = static_cast<ig::Token>(std::max_element(p.begin(), p.end()) - p.begin());
        } else {
            ig::kernel::softmax(vocabulary.size(), p.data(), static_cast<float>(1 / o.temperature));
            keep_likeliest(p, o.top_k, o.top_p);
            token = ig::sample(p, random.uniform(i));
        }
        show(token);
        if (token != eos) ++drawn;
        row = feed(it, {&token, 1});
    }
    return drawn;
}

/// The whole of sample 0 of draw_text, with a line end at the end. Calls watch() after each token: an exception
/// from it ends the work.
template <class Watch> std::string sample_text(LoadedModel& it, const SampleOptions& o, Watch&& watch) {
    require_sampling(o);
    std::vector<ig::Token> shown;
    draw_text(it, o, 0, [&](ig::Token token) {
        shown.push_back(token);
        watch();
    });
    std::string text = it.vocabulary.decode(shown);
    if (text.empty() || text.back() != '\n') text += '\n';
    return text;
}

}  // namespace lm
