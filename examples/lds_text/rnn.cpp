/// @file rnn.cpp  A recurrent language model, from random numbers or from a system.
#include <cmath>
#include <isogloss/isogloss.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <limits>
#include <optional>

#include "../shared/csv_log.hpp"
#include "common.hpp"

namespace lt {

int rnn(const RnnCommand& o) {
    ig::threads(o.threads);
    files::Outputs()
        .read("--train", o.train)
        .read("--valid", o.valid)
        .read("--test", o.test)
        .read("--model", o.model)
        .write("--log", o.log, files::table("log of `lds_text rnn`", rnn_header))
        .check();
    std::optional<ig::LdsFile<float>> start;
    if (!o.model.empty()) start = ig::load_lds<float>(o.model);
    const auto vocabulary = start ? start->vocabulary : ig::text::Vocabulary::from_file(o.train);
    const ig::Index V = vocabulary.size(), h = start ? start->system.states() : o.units;
    const auto train = ig::text::Corpus::read(o.train, vocabulary),
               valid = ig::text::Corpus::read(o.valid, vocabulary);

    ig::Graph<float> g({.time = o.bptt, .batch = o.batch, .seed = o.seed});
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    const auto init = ig::uniform(o.init);
    const auto E = g.weight("E", V, h, init);
    const auto hidden =
        g.add<ig::Rnn>("rnn", {.units = h, .init = init}, g.add<ig::Embedding>("embed", {}, x, E));
    const auto loss = g.add<ig::CrossEntropy>(
        "loss", {}, g.add<ig::Softmax>("softmax", {.vocabulary = V, .init = init}, hidden), y);
    if (start) {
        ig::start_rnn(g, start->system, ig::steady_state(start->system), start->xx_filtered,
                      {.rms = o.rms, .gain = o.gain, .power = o.power});
    } else {  // as the start from a system: what goes in, goes in as it is, and words begin at their
              // frequencies
        auto w = g.parameter("rnn.W").values();
        for (ig::Index i = 0; i < h; ++i)
            for (ig::Index j = 0; j < h; ++j) w.row(i)[j] = i == j ? 1.0f : 0.0f;
        float* b = g.parameter("softmax.b").value;
        for (ig::Index i = 0; i < V; ++i)
            b[i] = static_cast<float>(
                std::log((static_cast<double>(vocabulary.counts()[std::size_t(i)]) + 1) /
                         (static_cast<double>(vocabulary.total()) + static_cast<double>(V))));
    }
    const auto perplexity = [&](const ig::text::Corpus& corpus) {
        return ig::evaluate(g, loss, x, y,
                            corpus.batches({o.bptt, o.batch},
                                           {.tail = ig::text::Tail::pad, .predict_first = vocabulary.eos()}))
            .value();
    };

    const files::CsvLog log(o.log, rnn_header, [](std::string_view) { return false; });
    std::optional<ig::text::Corpus> test;
    if (!o.test.empty()) test = ig::text::Corpus::read(o.test, vocabulary);
    double best = perplexity(valid), rate = o.rate, at_best = test ? perplexity(*test) : 0;
    // the test text is read where validation is the best so far; the column is empty elsewhere
    const auto row = [&](ig::Index epoch, double trained, double validated, bool tested, double seconds) {
        log.append(ig::message(epoch, ',', rate, ',', trained > 0 ? ig::message(trained) : "", ',', validated,
                               ',', tested ? ig::message(at_best) : "", ',', seconds));
    };
    say("%td words, %td units, %s start; validation before training %.2f\n", V, h,
        start ? "system's" : "random", best);
    row(0, 0, best, test.has_value(), 0);
    ig::Index bad = 0, best_epoch = 0;
    bool falling = false;
    ig::Sgd<float> sgd(g.parameters(), {.rate = rate, .clip = o.clip});
    double before = best;
    for (ig::Index epoch = 1; epoch <= o.epochs && bad < 2; ++epoch) {
        Stopwatch clock;
        double nats = 0;
        ig::Index n = 0;
        g.reset();
        for (const auto& batch : train.batches({o.bptt, o.batch})) {
            if (batch.first) g.reset();
            nats += g.forward(loss, {x, batch.input}, {y, batch.target});
            n += g.predicted(loss);
            g.backward(loss);
            sgd.step();
        }
        const double now = perplexity(valid), trained = std::exp(nats / static_cast<double>(n)),
                     seconds = clock.lap();
        const bool better = now < best;
        if (better) {
            best = now;
            best_epoch = epoch;
            if (test) at_best = perplexity(*test);
        }
        say("epoch %td: rate %.4f, train %.2f, validation %.2f; %.1f s\n", epoch, rate, trained, now,
            seconds);
        row(epoch, trained, now, better && test, seconds);
        // constant until validation stops improving, then geometric until it stops again
        const bool improved = now < before * 0.997;
        if (!improved && falling) ++bad;
        falling = falling || !improved;
        if (falling) sgd.rate(rate *= o.patience_decay);
        before = now;
    }
    say("best validation %.2f in epoch %td", best, best_epoch);
    if (test) say(", there on test %.2f", at_best);
    say("\n");
    return 0;
}

}  // namespace lt
