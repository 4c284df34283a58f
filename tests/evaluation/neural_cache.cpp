#include <algorithm>
#include <cmath>
#include <isogloss/evaluation.hpp>
#include <isogloss/isogloss.hpp>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"
#include "graphs.hpp"
#include "tolerance.hpp"

using namespace isogloss;

namespace {

// States and next words of a text.
template <class T> struct History {
    Index n;
    std::vector<T> h;
    std::vector<Token> next;

    History(Index steps, Index width, Index words, double scale = 1) : n(width) {
        for (const double v : numbers(steps * width, 3)) h.push_back(static_cast<T>(scale * v));
        const Random random(8, 8);
        for (Index i = 0; i < steps; ++i) next.push_back(static_cast<Token>(random.below(i, words)));
    }
    Index size() const { return std::ssize(next); }
    const T* state(Index i) const { return h.data() + i * n; }

    // p_cache(w | h_t) as it is written: a sum over the N steps before t.
    double by_definition(Index t, Token w, Index window, double theta) const {
        double above = 0, below = 0;
        for (Index i = std::max(Index{0}, t - window); i < t; ++i) {
            double product = 0;
            for (Index k = 0; k < n; ++k) product += double(state(t)[k]) * double(state(i)[k]);
            below += std::exp(theta * product);
            if (next[std::size_t(i)] == w) above += std::exp(theta * product);
        }
        return above / below;
    }
};

template <class T> struct Model {
    static constexpr Index V = 7, n = 5;
    Graph<T> g{{.time = 6, .batch = 2}};
    Tokens x = g.tokens("x", V), y = g.tokens("y", V);
    Weight<T> E = g.weight("E", V, n, uniform(1));
    Seq<T> e = g.template add<Embedding>("embed", {.keep = 0.5}, x, E);
    Seq<T> h = g.template add<Rnn>("rnn", {.units = n, .keep = 0.5, .init = uniform(1)}, e);
    Logits<T> o = g.template add<TiedSoftmax>("head", {}, h, E);
    Loss<T> l = g.template add<CrossEntropy>("loss", {}, o, y);
    std::vector<Token> text = History<T>(50, 1, V).next;

    text::Batches batches(Index columns = 1) const {
        return {text, V, {6, columns}, {.tail = text::Tail::pad, .predict_first = 0}};
    }
    auto trials(Index window, std::vector<double> flatness, std::vector<double> weights) {
        return evaluate_neural_cache(g, l, g.head(o).hidden(), x, y, batches(), window, std::move(flatness),
                                     std::move(weights));
    }
};

}  // namespace

TEMPLATE_TEST_CASE("With flatness 0 the cache is the relative frequencies in its window", "[metric][cache]",
                   float, double) {
    const History<TestType> s(6, 3, 9);
    NeuralCache<TestType> cache(3, {.window = 4, .flatness = 0});
    const std::vector<Token> words = {5, 2, 5, 2, 2, 7};
    for (Index i = 0; i < 6; ++i) cache.add(s.state(i), words[std::size_t(i)]);
    REQUIRE(cache.size() == 4);  // 5 2 2 7
    REQUIRE(cache.probability(s.state(0), 2) == 0.5);
    REQUIRE(cache.probability(s.state(1), 5) == 0.25);
    REQUIRE(cache.probability(s.state(1), 7) == 0.25);
    REQUIRE(cache.probability(s.state(1), 3) == 0);
    cache.clear();
    cache.add(s.state(0), 3);
    REQUIRE(cache.probability(s.state(1), 3) == 1);
}

TEMPLATE_TEST_CASE("The cache is its definition, step by step and in segments", "[metric][cache]", float,
                   double) {
    using T = TestType;
    const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-12;
    const Index window = GENERATE(1, 3, 64, 150, 1000);
    const History<T> s(400, 6, 12);
    const std::vector<double> thetas = {0, 0.4, 2.5};
    for (const Index segment : {Index{1}, Index{7}, Index{130}, s.size()}) {
        CAPTURE(window, segment);
        NeuralCache<T> cache(s.n, {.window = window});
        Index seen = 0;
        double worst = 0;
        for (Index first = 0; first < s.size(); first += segment) {
            const Index rows = std::min(segment, s.size() - first);
            cache.follow({s.state(first), rows, s.n}, s.next.data() + first, thetas,
                         [&](Index r, std::span<const double> p) {
                             const Index t = first + r;
                             REQUIRE(t == seen++);
                             REQUIRE(p.size() == (t == 0 ? 0 : thetas.size()));
                             for (std::size_t k = 0; k < p.size(); ++k)
                                 worst =
                                     worse(worst, std::abs(p[k] - s.by_definition(t, s.next[std::size_t(t)],
                                                                                  window, thetas[k])));
                         });
        }
        REQUIRE(seen == s.size());
        REQUIRE(worst < tolerance);
    }
    for (const double theta : thetas) {
        NeuralCache<T> cache(s.n, {.window = window, .flatness = theta});
        double worst = 0;
        for (Index t = 0; t < s.size(); ++t) {
            if (t > 0)
                for (const Token w : {Token{0}, s.next[std::size_t(t)]})
                    worst = worse(worst, std::abs(cache.probability(s.state(t), w) -
                                                  s.by_definition(t, w, window, theta)));
            cache.add(s.state(t), s.next[std::size_t(t)]);
        }
        REQUIRE(worst < tolerance);
    }
}

TEST_CASE("Where a segment is broken off the steps before it are remembered", "[metric][cache]") {
    const History<double> s(60, 4, 5);
    NeuralCache<double> cache(4, {.window = 7});
    const std::vector<double> theta = {0.5};
    REQUIRE_THROWS_AS(cache.follow({s.state(0), 30, 4}, s.next.data(), theta,
                                   [](Index r, std::span<const double>) {
                                       if (r == 10) throw std::runtime_error("stop");
                                   }),
                      std::runtime_error);
    cache.follow({s.state(10), 50, 4}, s.next.data() + 10, theta, [&](Index r, std::span<const double> p) {
        REQUIRE(p[0] == Approx(s.by_definition(10 + r, s.next[std::size_t(10 + r)], 7, 0.5)).epsilon(1e-12));
    });
}

TEMPLATE_TEST_CASE("Large states do not overflow, those that are not finite are refused", "[metric][cache]",
                   float, double) {
    using T = TestType;
    NeuralCache<T> cache(2, {.window = 3, .flatness = 10});
    const std::vector<T> a = {300, 0}, b = {0, 300};
    cache.add(a.data(), 4), cache.add(b.data(), 5), cache.add(a.data(), 6);  // exponents 900,000 and 0
    REQUIRE(cache.probability(a.data(), 4) == 0.5);
    REQUIRE(cache.probability(a.data(), 5) == 0);
    REQUIRE(cache.probability(b.data(), 5) == 1);
    const std::vector<T> bad = {1, std::numeric_limits<T>::quiet_NaN()};
    const std::vector<T> huge = {std::sqrt(std::numeric_limits<T>::max()) * 2, 0};
    for (const auto* state : {&bad, &huge}) {
        REQUIRE_THROWS_AS((cache.add(state->data(), 1), cache.probability(state->data(), 1)), NumericError);
        cache.clear();
    }
}

TEST_CASE("A cache refuses options out of range, and asks for no memory after its construction",
          "[metric][cache]") {
    using C = NeuralCache<double>;
    CHECK_THROWS_MATCHES(C(3, {.window = 0}), UsageError, says("window = 0"));
    CHECK_THROWS_MATCHES(C(0, {}), UsageError, says("width = 0"));
    CHECK_THROWS_MATCHES(C(3, {.flatness = -1}), UsageError, says("flatness = -1"));
    CHECK_THROWS_MATCHES(C(3, {.weight = 1.5}), UsageError, says("weight = 1.5"));
    CHECK_THROWS_AS(C(3, {.window = Index{1} << 60}), UsageError);
    Model<float> in_float;  // where a flatness may be infinite
    CHECK_THROWS_AS(in_float.trials(5, {0.1, 1e39}, {0.1}), NumericError);
    C cache(3, {.window = 5});
    const History<double> s(30, 3, 4);
    CHECK_THROWS_AS(cache.probability(s.state(0), 1), UsageError);
    CHECK_THROWS_AS(cache.add(s.state(0), -1), UsageError);
    const auto nothing = [](Index, std::span<const double>) {};
    const std::vector<double> theta = {0.1};
    CHECK_THROWS_AS(cache.follow({s.state(0), 2, 2}, s.next.data(), theta, nothing), UsageError);
    CHECK(cache.size() == 0);
    cache.follow({s.state(0), 10, 3}, s.next.data(), theta, nothing);
    const auto before = allocations();
    cache.follow({s.state(10), 20, 3}, s.next.data() + 10, theta, nothing);
    cache.add(s.state(0), 1);
    cache.probability(s.state(1), 1);
    CHECK(allocations() == before);
}

TEMPLATE_TEST_CASE("The perplexity with a cache is that of the mixture, for every setting in one pass",
                   "[metric][cache]", float, double) {
    using T = TestType;
    const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-11;
    Model<T> m;
    const auto trials = m.trials(9, {0, 0.5, 3}, {0, 0.2, 0.9});
    REQUIRE(trials.all().size() == 9);
    const auto plain = evaluate(m.g, m.l, m.x, m.y, m.batches());
    for (const auto& trial : trials.all()) {
        CAPTURE(trial.flatness, trial.weight);
        double nats = 0;
        {
            const Evaluation<T> evaluation(m.g);
            History<T> s(0, Model<T>::n, 1);
            for (const auto& batch : m.batches()) {
                m.g.forward(m.o, {m.x, batch.input});
                const auto p = m.g.head(m.o).probabilities();
                const auto h = m.g.value(m.h);
                for (Index t = 0; t < batch.target.time; ++t) {
                    const Token y = batch.target.data[t];
                    s.h.insert(s.h.end(), h.data() + t * s.n, h.data() + (t + 1) * s.n);
                    const double model = double(p(t, y));
                    nats -= std::log(s.size() == 0 ? model
                                                   : (1 - trial.weight) * model +
                                                         trial.weight *
                                                             s.by_definition(s.size(), y, 9, trial.flatness));
                    s.next.push_back(y);
                }
            }
        }
        CHECK(trial.perplexity.tokens() == 50);
        CHECK(trial.perplexity.nats() == Approx(nats / 50).epsilon(tolerance));
        if (trial.weight == 0) CHECK(trial.perplexity.total() == Approx(plain.total()).epsilon(1e-13));
        const NeuralCacheOptions alone{.window = 9, .flatness = trial.flatness, .weight = trial.weight};
        CHECK(evaluate_neural_cache(m.g, m.l, m.h, m.x, m.y, m.batches(), alone).total() ==
              trial.perplexity.total());
        CHECK(trials.best().perplexity.value() <= trial.perplexity.value());
    }
}

TEST_CASE("Targets that are not predicted are left out of the cache", "[metric][cache]") {
    Model<double> m;
    const std::vector<Token> x = {1, 2, 3, 1, 2, 3}, y = {2, -1, 3, -1, -1, 2};
    m.g.training(false);
    m.g.forward(m.l, {m.x, {x.data(), 6, 1}}, {m.y, {y.data(), 6, 1}});
    NeuralCacheTrials<double> trials(5, 10, {0}, {0.5});
    trials.add(m.g, m.l, m.h, {y.data(), 6, 1});
    const auto nats = m.g.result(m.l).by_token();
    const std::vector<Token> many(64, 2);  // more than the pass had
    REQUIRE_THROWS_AS(trials.add(m.g, m.l, m.h, {many.data(), 64, 1}), UsageError);
    REQUIRE(trials.best().perplexity.tokens() == 3);
    REQUIRE(
        trials.best().perplexity.total() ==  // the second word is not in the cache, the third is half of it
        Approx(nats.data()[0] + nats.data()[2] + std::log(2.) -
               std::log(0.5 * std::exp(-nats.data()[5]) + 0.5 * 0.5)));
    m.g.forward(m.l, {m.x, {x.data(), 3, 2}}, {m.y, {y.data(), 3, 2}});
    REQUIRE_THROWS_AS(trials.add(m.g, m.l, m.h, {y.data(), 6, 1}), UsageError);
}

TEST_CASE("A word of probability 0 leaves all trials with the same words", "[metric][cache]") {
    Model<double> m;
    const std::vector<Token> x = {1, 2, 1, 3}, y = {2, 2, 3, 2};  // the third is not in the window
    m.g.training(false);
    m.g.forward(m.l, {m.x, {x.data(), 4, 1}}, {m.y, {y.data(), 4, 1}});
    NeuralCacheTrials<double> trials(5, 10, {0}, {0.5, 1, 0.1});
    REQUIRE_THROWS_AS(trials.add(m.g, m.l, m.h, {y.data(), 4, 1}), NumericError);
    for (const auto& trial : trials.all()) CHECK(trial.perplexity.tokens() == 2);
}

TEST_CASE("After an evaluation with a cache the graph is as before, after an error too", "[metric][cache]") {
    Model<double> m;
    const std::vector<Token> a = {1, 2, 3, 4}, b = {2, 3, 4, 5};
    m.g.forward(m.l, {m.x, {a.data(), 2, 2}}, {m.y, {b.data(), 2, 2}});
    const auto before = m.g.states().saved();
    m.trials(5, {1}, {0.5});
    CHECK(m.g.states().saved() == before);
    CHECK(m.g.training());
    CHECK_THROWS_AS(m.trials(5, {1}, {1}), NumericError);
    CHECK(m.g.states().saved() == before);
    CHECK(m.g.training());
    CHECK_THROWS_AS(m.trials(5, {}, {1}), UsageError);
    CHECK_THROWS_MATCHES(m.trials(5, {1}, {0.5, -1}), UsageError, says("weight = -1"));
    CHECK_THROWS_AS(evaluate_neural_cache(m.g, m.l, m.h, m.x, m.y, m.batches(2), {.window = 5}), UsageError);
    const auto augmented = m.g.add<AugmentedLoss>("augmented", {.temperature = 2}, m.o, m.y, m.E);
    CHECK_THROWS_AS(evaluate_neural_cache(m.g, augmented, m.h, m.x, m.y, m.batches(), {.window = 5}),
                    UsageError);
    CHECK_THROWS_AS(NeuralCacheTrials<double>(5, 3, {1}, {0.5}).best(), UsageError);
}
