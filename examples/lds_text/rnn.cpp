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

namespace {

/// Embedding → Rnn → Softmax with its loss.
struct RecurrentModel {
    RecurrentModel(const RnnCommand& o, ig::Index V, ig::Index h)
        : time(o.bptt),
          batch(o.batch),
          g({.time = time, .batch = batch, .seed = o.seed}),
          x(g.tokens("x", V)),
          y(g.tokens("y", V)) {
        const auto init = ig::uniform(o.init);
        const auto E = g.weight("E", V, h, init);
        const auto hidden =
            g.add<ig::Rnn>("rnn", {.units = h, .init = init}, g.add<ig::Embedding>("embed", {}, x, E));
        loss = g.add<ig::CrossEntropy>(
            "loss", {}, g.add<ig::Softmax>("softmax", {.vocabulary = V, .init = init}, hidden), y);
    }

    /// As the start from a system: what goes in, goes in as it is, and words begin at their frequencies.
    void start_at_frequencies(const ig::text::Vocabulary& vocabulary) {
        auto w = g.parameter("rnn.W").values();
        for (ig::Index i = 0; i < w.rows; ++i)
            for (ig::Index j = 0; j < w.cols; ++j) w.row(i)[j] = i == j ? 1.0f : 0.0f;
        float* b = g.parameter("softmax.b").value;
        const double all = static_cast<double>(vocabulary.total()) + static_cast<double>(vocabulary.size());
        for (const auto count : vocabulary.counts())
            *b++ = static_cast<float>(std::log((static_cast<double>(count) + 1) / all));
    }

    double perplexity(const ig::text::Corpus& corpus, ig::Token before_first) {
        return ig::evaluate(g, loss, x, y,
                            corpus.batches({time, batch},
                                           {.tail = ig::text::Tail::pad, .predict_first = before_first}))
            .value();
    }

    /// Trains on the whole text; returns its perplexity on the way.
    double epoch(const ig::text::Corpus& corpus, ig::Sgd<float>& sgd) {
        double nats = 0;
        ig::Index n = 0;
        g.reset();
        for (const auto& part : corpus.batches({time, batch})) {
            if (part.first) g.reset();
            nats += g.forward(loss, {x, part.input}, {y, part.target});
            n += g.predicted(loss);
            g.backward(loss);
            sgd.step();
        }
        return std::exp(nats / static_cast<double>(n));
    }

    ig::Index time, batch;
    ig::Graph<float> g;
    ig::Tokens x, y;
    ig::Loss<float> loss;
};

/// The learning rate: constant until validation stops improving, then geometric until it stops again.
struct Schedule {
    double rate, decay, before;
    bool falling = false, over = false;

    void validated(double perplexity) {
        const bool improved = perplexity < before * 0.997;
        bad += !improved && falling;
        over = bad >= 2;
        falling = falling || !improved;
        if (falling) rate *= decay;
        before = perplexity;
    }
    int bad = 0;
};

}  // namespace

int rnn(const RnnCommand& o) {
    ig::threads(o.threads);
    files::Outputs()
        .read("--train", o.train)
        .read("--valid", o.valid)
        .read("--test", o.test)
        .read("--model", o.model)
        .write("--log", o.log, files::table("log of `lds_text rnn`", rnn_header))
        .check();
    std::optional<lds::LdsFile<float>> start;
    if (!o.model.empty()) start = lds::load_lds<float>(o.model);
    const auto vocabulary = start ? start->vocabulary : ig::text::Vocabulary::from_file(o.train);
    const ig::Index V = vocabulary.size(), h = start ? start->system.states() : o.units;
    const auto train = ig::text::Corpus::read(o.train, vocabulary),
               valid = ig::text::Corpus::read(o.valid, vocabulary);

    RecurrentModel network(o, V, h);
    if (start)
        lds::start_rnn(network.g, start->system, lds::steady_state(start->system), start->xx_filtered,
                       {.rms = o.rms, .gain = o.gain, .power = o.power});
    else network.start_at_frequencies(vocabulary);
    const auto perplexity = [&](const ig::text::Corpus& text) {
        return network.perplexity(text, vocabulary.eos());
    };

    const files::CsvLog log(o.log, rnn_header, [](std::string_view) { return false; });
    std::optional<ig::text::Corpus> test;
    if (!o.test.empty()) test = ig::text::Corpus::read(o.test, vocabulary);
    double best = perplexity(valid), at_best = test ? perplexity(*test) : 0;
    ig::Index best_epoch = 0;
    Schedule schedule{.rate = o.rate, .decay = o.patience_decay, .before = best};
    // the test text is read where validation is the best so far; the column is empty elsewhere
    const auto row = [&](ig::Index epoch, double trained, double validated, bool tested, double seconds) {
        log.append(ig::message(epoch, ',', schedule.rate, ',', trained > 0 ? ig::message(trained) : "", ',',
                               validated, ',', tested ? ig::message(at_best) : "", ',', seconds));
    };
    say("%td words, %td units, %s start; validation before training %.2f\n", V, h,
        start ? "system's" : "random", best);
    row(0, 0, best, test.has_value(), 0);
    ig::Sgd<float> sgd(network.g.parameters(), {.rate = schedule.rate, .clip = o.clip});
    for (ig::Index epoch = 1; epoch <= o.epochs && !schedule.over; ++epoch) {
        Stopwatch clock;
        const double trained = network.epoch(train, sgd), now = perplexity(valid), seconds = clock.lap();
        const bool better = now < best;
        if (better) {
            best = now;
            best_epoch = epoch;
            if (test) at_best = perplexity(*test);
        }
        say("epoch %td: rate %.4f, train %.2f, validation %.2f; %.1f s\n", epoch, schedule.rate, trained, now,
            seconds);
        row(epoch, trained, now, better && test, seconds);
        schedule.validated(now);
        sgd.rate(schedule.rate);
    }
    say("best validation %.2f in epoch %td", best, best_epoch);
    if (test) say(", there on test %.2f", at_best);
    say("\n");
    return 0;
}

}  // namespace lt
