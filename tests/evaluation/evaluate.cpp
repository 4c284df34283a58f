#include <cmath>
#include <isogloss/evaluation/evaluate.hpp>
#include <isogloss/loss/augmented.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/loss/total.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/rnn.hpp>
#include <isogloss/node/softmax.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

constexpr Index V = 9, n = 5;

template <class T> struct Language {
    Graph<T> g{{.time = 4, .batch = 3}};
    Tokens x = g.tokens("x", V), y = g.tokens("y", V);
    Weight<T> E = g.weight("E", V, n, uniform(1));
    Seq<T> e = g.template add<Embedding>("embed", {.keep = 0.5}, x, E);
    Seq<T> h = g.template add<Rnn>("rnn", {.units = n, .keep = 0.5, .init = uniform(1)}, e);
    Logits<T> o = g.template add<TiedSoftmax>("head", {}, h, E);
    Loss<T> l = g.template add<CrossEntropy>("loss", {}, o, y);
    std::vector<Token> text;

    explicit Language(Index size = 50) {
        const Random random(5, 5);
        for (Index i = 0; i < size; ++i) text.push_back(static_cast<Token>(random.below(i, V)));
    }
    text::Batches batches() const {
        return {text, V, g.capacity(), {.tail = text::Tail::pad, .predict_first = 0}};
    }
    // One training pass, after which states are not zero.
    double train() {
        const std::vector<Token> a = {1, 2, 3, 4, 5, 6}, b = {2, 3, 4, 5, 6, 7};
        return g.forward(l, {x, {a.data(), 2, 3}}, {y, {b.data(), 2, 3}});
    }
};

}  // namespace

TEMPLATE_TEST_CASE("A model that knows nothing has perplexity V on any text", "[metric][evaluate]", float,
                   double) {
    Language<TestType> m(GENERATE(1, 11, 50));
    set(m.g, "E", Numbers(V * n));
    const auto p = evaluate(m.g, m.l, m.x, m.y, m.batches());
    REQUIRE(p.value() == Approx(double(V)).epsilon(1e-6));
    REQUIRE(p.tokens() == std::ssize(m.text));
    REQUIRE(p.characters() == 0);
}

TEMPLATE_TEST_CASE("evaluate() is the loop written out", "[metric][evaluate]", float, double) {
    Language<TestType> m, other;
    m.train();  // states that must not count
    Perplexity expected;
    other.g.training(false);
    for (const auto& batch : other.batches()) {
        const double nats = other.g.forward(other.l, {other.x, batch.input}, {other.y, batch.target});
        expected.add(nats, other.g.result(other.l).predicted());
    }
    const auto p = evaluate(m.g, m.l, m.x, m.y, m.batches());
    REQUIRE(p.total() == expected.total());
    REQUIRE(p.tokens() == 50);
    REQUIRE(evaluate(m.g, m.l, m.x, m.y, m.batches()).total() == p.total());
}

TEST_CASE("Training goes on after evaluate() as if nothing had happened", "[metric][evaluate]") {
    const bool training = GENERATE(true, false);
    Language<double> m, alone;
    for (auto* it : {&m, &alone}) {
        it->g.training(training);
        it->train();
    }
    const auto before = m.g.states().saved().values;
    REQUIRE(before != std::vector<Numbers>{Numbers(3 * n)});
    evaluate(m.g, m.l, m.x, m.y, m.batches());
    REQUIRE(m.g.states().saved().values == before);
    REQUIRE(m.g.training() == training);
    REQUIRE(m.g.training_step() == alone.g.training_step());
    REQUIRE(m.train() == alone.train());  // masks and states included
}

TEST_CASE("Mode and states come back after an exception too", "[metric][evaluate]") {
    Language<double> m;
    m.train();
    const auto before = m.g.states().saved().values;
    SECTION("from the graph: a text with a token of another vocabulary") {
        std::vector<Token> text = m.text;
        text[40] = V;
        const auto z = m.g.tokens("z", V + 1);
        const auto l =
            m.g.add<CrossEntropy>("other", {}, m.g.add<Softmax>("wide", {.vocabulary = V + 1}, m.h), z);
        m.train();
        const auto now = m.g.states().saved().values;
        REQUIRE_THROWS_AS(evaluate(m.g, l, m.x, z, text::Batches(text, V + 1, m.g.capacity())), DataError);
        REQUIRE(m.g.states().saved().values == now);
    }
    SECTION("from who is asked whether to go on") {
        const auto ask = [](Index, Index) -> bool { throw std::runtime_error("stop"); };
        REQUIRE_THROWS_AS(evaluate(m.g, m.l, m.x, m.y, m.batches(), ask), std::runtime_error);
        REQUIRE(m.g.states().saved().values == before);
    }
    SECTION("a loss without a cross-entropy") {
        const auto sum = m.g.add<TotalLoss>("sum", {.weights = {1, 1}}, m.l, m.l);
        REQUIRE_THROWS_MATCHES(evaluate(m.g, sum, m.x, m.y, m.batches()), UsageError, says("'sum'"));
        REQUIRE(m.g.states().saved().values == before);
    }
    REQUIRE(m.g.training());
}

TEST_CASE("evaluate() asks after each batch and stops where it is told to", "[metric][evaluate]") {
    Language<double> m;
    std::vector<std::pair<Index, Index>> asked;
    const auto p = evaluate(m.g, m.l, m.x, m.y, m.batches(), [&](Index done, Index all) {
        asked.emplace_back(done, all);
        return done < 2;
    });
    REQUIRE(asked == std::vector<std::pair<Index, Index>>{{1, 5}, {2, 5}});  // 17 steps of 3 columns, by 4
    REQUIRE(p.tokens() == 2 * 4 * 3);
}

TEST_CASE("Of an augmented loss the cross-entropy counts", "[metric][evaluate]") {
    Language<double> m;
    const auto augmented = m.g.add<AugmentedLoss>("augmented", {.temperature = 2}, m.o, m.y, m.E);
    REQUIRE(evaluate(m.g, augmented, m.x, m.y, m.batches()).value() ==
            Approx(evaluate(m.g, m.l, m.x, m.y, m.batches()).value()).epsilon(1e-12));
}
