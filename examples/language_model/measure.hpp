/// @file measure.hpp  The perplexity of a model on a text.
#pragma once

#include <isogloss/isogloss.hpp>
#include <isogloss/text/corpus.hpp>
#include <optional>

#include "model.hpp"

namespace lm {

/// Where tokens are characters, counts them as such, too.
inline void count_characters(ig::Perplexity& p, const ig::text::Vocabulary& vocabulary) {
    if (vocabulary.level() == ig::text::Level::character) p.add(0, 0, p.tokens());
}

/// Predicts every token of a corpus once, a line end being fed before the first, in so many columns that
/// run side by side. Training goes on afterwards as if nothing had happened: its carried states are put back.
///
/// `go_on(done, all)` is asked after each batch; nothing comes back where it said no.
///
/// `on`: the graph, or its columns shared by several ranks, with the same number on each.
template <class On, class GoOn>
std::optional<ig::Perplexity> measure(On& on, const Model& model, const ig::text::Corpus& corpus,
                                      const ig::text::Vocabulary& vocabulary, ig::Index columns,
                                      ig::Index time, GoOn&& go_on) {
    bool whole = true;
    ig::Perplexity perplexity = evaluate(
        on, model.nll, model.x, model.y,
        corpus.batches({time, columns}, {.tail = ig::text::Tail::pad, .predict_first = vocabulary.eos()}),
        [&](ig::Index done, ig::Index all) { return whole = go_on(done, all); });
    count_characters(perplexity, vocabulary);
    return whole ? std::optional(perplexity) : std::nullopt;
}

}  // namespace lm
