/// @file measure.hpp  The perplexity of a model on a text.
#pragma once

#include <isogloss/isogloss.hpp>
#include <isogloss/text/corpus.hpp>
#include <optional>

#include "model.hpp"

namespace lm {

/// If tokens are characters, counts them as characters, too.
inline void count_characters(ig::Perplexity& p, const ig::text::Vocabulary& vocabulary) {
    if (vocabulary.level() == ig::text::Level::character) p.add(0, 0, p.tokens());
}

/// Predicts every token of a corpus once, in parallel columns, with a line end fed before the first. Training
/// is unaffected: its carried states are restored afterwards.
///
/// `go_on(done, all)` is called after each batch; if it returns false, nothing is returned.
///
/// `on`: the graph, or the DataParallel of ranks that share its columns; all ranks return the same value.
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
