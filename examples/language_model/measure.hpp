/// @file measure.hpp  The perplexity of a model on a text.
#pragma once

#include <isogloss/isogloss.hpp>
#include <isogloss/text/corpus.hpp>
#include <optional>
#include <utility>

#include "model.hpp"

namespace lm {

/// Predicts every token of a corpus once, a line end being fed before the first, in so many columns that
/// run side by side. Training goes on afterwards as if nothing had happened: its carried states are put back.
///
/// `go_on(done, all)` is asked after each batch; nothing comes back where it said no.
template <class GoOn> std::optional<ig::Perplexity> measure(Graph& g, const Model& model,
                                                            const ig::text::Corpus& corpus,
                                                            const ig::text::Vocabulary& vocabulary,
                                                            ig::Index columns, ig::Index time, GoOn&& go_on) {
    auto batches =
        corpus.batches({time, columns}, {.tail = ig::text::Tail::pad, .predict_first = vocabulary.eos()});
    const auto carried = g.carried();
    const bool training = g.training();
    g.training(false);
    ig::Perplexity perplexity;
    bool whole = true;
    for (const auto& batch : batches) {
        if (batch.first) g.reset();
        const double nats = g.forward(model.nll, {model.x, batch.input}, {model.y, batch.target});
        const bool characters = vocabulary.level() == ig::text::Level::character;
        perplexity.add(nats, g.predicted(model.nll), characters ? g.predicted(model.nll) : 0);
        whole = go_on(batch.index + 1, batches.count());
        if (!whole) break;
    }
    g.training(training);
    g.carry(carried);
    return whole ? std::optional(perplexity) : std::nullopt;
}

}  // namespace lm
