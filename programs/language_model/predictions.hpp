/// @file predictions.hpp  The probability of every token of a text under a model, at a softmax temperature.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/isogloss.hpp>
#include <isogloss/text/corpus.hpp>
#include <vector>

#include "model_file.hpp"

namespace lm {

/// Throws UsageError if a temperature is combined with the cache or --dynamic.
inline void require_not_adaptive(bool tempered, bool cache, bool dynamic) {
    if (tempered && (cache || dynamic))
        throw ig::UsageError(ig::message("--softmax-temperature is given with ",
                                         cache ? "the cache" : "--dynamic",
                                         ", expected one of the two; leave one of them out"));
}

/// The mean of -log softmax(o / T) over the tokens of a text, as a function of β = 1/T, and two derivatives.
///
///     f = log Σ_v exp(β o_v) - β o_y,   f' = E[o] - o_y,   f'' = Var[o],   under p = softmax(β o)
///
/// f is convex, and Newton's method finds its minimum.
struct AtTemperature {
    double nats = 0, slope = 0, curvature = 0;
};

/// -log p of each token of a text, in text order, under softmax(o / temperature): every token once, in
/// `columns` parallel columns, with a line end fed first. `of_beta`, if given, receives the mean and its
/// derivatives. `go_on` is called after each batch; false ends the pass.
template <class GoOn> std::vector<double> token_nats(LoadedModel& it, const ig::text::Corpus& corpus,
                                                     ig::Index columns, double temperature, GoOn&& go_on,
                                                     AtTemperature* of_beta = nullptr) {
    constexpr ig::Index block = 64;  // rows of logits at a time
    Graph& g = *it.g;
    const Model& m = it.model;
    const ig::Index V = it.vocabulary.size();
    const bool logits = temperature != 1 || of_beta;
    const auto beta = static_cast<float>(1 / temperature);
    std::vector<double> nats(static_cast<std::size_t>(corpus.size()));
    std::vector<float> z(static_cast<std::size_t>(logits ? block * V : 0)),
        e(static_cast<std::size_t>(of_beta ? V : 0));
    AtTemperature sum;

    const ig::Evaluation<float> evaluation(g);
    auto batches = corpus.batches({g.capacity().time, columns},
                                  {.tail = ig::text::Tail::pad, .predict_first = it.vocabulary.eos()});
    ig::Index before = 0;  // steps of a column in earlier batches
    for (const auto& batch : batches) {
        const ig::Index B = batch.input.batch, rows = batch.input.time * B;
        const auto each = [&](ig::Index first, ig::Index last, auto&& value) {
            for (ig::Index r = first; r < last; ++r)
                if (const ig::Token y = batch.target.data[r]; y != ig::not_predicted)
                    nats[static_cast<std::size_t>(r % B * batches.length() + before + r / B)] =
                        value(r - first, y);
        };
        if (!logits) {
            g.forward(m.nll, {m.x, batch.input}, {m.y, batch.target});
            const auto found = g.result(m.nll).by_token();
            each(0, rows, [&](ig::Index r, ig::Token) { return static_cast<double>(found.data()[r]); });
        } else {
            g.forward(m.o, {m.x, batch.input});
            for (ig::Index first = 0; first < rows; first += block) {
                const ig::Index some = std::min(block, rows - first);
                g.head(m.o).logits(first, {z.data(), some, V});
                each(first, first + some, [&](ig::Index r, ig::Token y) {
                    const float *row = z.data() + r * V, most = ig::kernel::row_max(V, row);
                    const double of_target = double(row[y]) - double(most),
                                 mass = ig::kernel::exp_sum(V, row, most, beta, of_beta ? e.data() : nullptr);
                    if (of_beta) {
                        double mean = 0, square = 0;
                        for (ig::Index v = 0; v < V; ++v) {
                            const double d = double(row[v]) - double(most),
                                         p = double(e[static_cast<std::size_t>(v)]) / mass;
                            mean += p * d, square += p * d * d;
                        }
                        sum.slope += mean - of_target;
                        sum.curvature += square - mean * mean;
                    }
                    return std::log(mass) - double(beta) * of_target;
                });
            }
        }
        before += batch.input.time;
        if (!go_on(batch.index + 1, batches.count())) break;
    }
    if (of_beta) {
        for (const double x : nats) sum.nats += x;
        const auto n = static_cast<double>(corpus.size());
        *of_beta = {sum.nats / n, sum.slope / n, sum.curvature / n};
    }
    return nats;
}

/// A temperature, and the mean of -log p of a text under it.
struct Tempered {
    double temperature = 1, nats = 0;
};

/// The temperature of least cross-entropy on a text, by Newton's method from 1, until the next step is
/// predicted to gain at most 10⁻⁶ nats per token, 0.0001 at perplexity 100. `note(temperature, nats)` follows
/// each pass.
template <class Note, class GoOn> Tempered tune_temperature(LoadedModel& it, const ig::text::Corpus& corpus,
                                                            ig::Index columns, Note&& note, GoOn&& go_on) {
    Tempered best;
    double beta = 1;
    for (int pass = 0; pass < 20; ++pass) {
        AtTemperature f;
        token_nats(it, corpus, columns, 1 / beta, go_on, &f);
        note(1 / beta, f.nats);
        if (pass == 0 || f.nats < best.nats) best = {1 / beta, f.nats};
        const double promised = f.curvature > 0 ? f.slope * f.slope / (2 * f.curvature) : 0;
        if (!(promised > 1e-6)) break;
        // Within a factor of 2, and the range of --softmax-temperature.
        const double next =
            std::clamp(beta - f.slope / f.curvature, std::max(0.01, beta / 2), std::min(100., 2 * beta));
        if (next == beta) break;
        beta = next;
    }
    return best;
}

}  // namespace lm
