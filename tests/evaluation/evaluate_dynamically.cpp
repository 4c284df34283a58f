#include <isogloss/evaluation.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/update/riemannian/dynamic.hpp>
#include <limits>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

template <class T> struct Model {
    static constexpr Index V = 9, n = 6;
    Graph<T> g{{.time = 5, .batch = 4}};
    Tokens x = g.tokens("x", V), y = g.tokens("y", V);
    Weight<T> E = g.weight("E", V, n, uniform(0.5));
    Seq<T> h;
    Loss<T> l;
    std::vector<Token> text;

    explicit Model(double keep = 0.5) {
        const auto e = g.template add<Embedding>("embed", {.keep = keep}, x, E);
        h = g.template add<Lstm>("lstm", {.units = n, .keep = keep, .init = uniform(0.5)}, e);
        l = g.template add<CrossEntropy>("loss", {},
                                         g.template add<TiedSoftmax>("head", {.bias = true}, h, E), y);
        for (Token i = 0; i < 60; ++i) text.push_back(i % 7 % 5);  // 0 1 2 3 4 0 1 and again
    }
    text::Batches batches(Index steps = 5, Index columns = 1) const {
        return {text, V, {steps, columns}, {.tail = text::Tail::pad, .predict_first = 8}};
    }
    Numbers weights() {
        Numbers all;
        for (const auto* p : g.parameters()) all.insert(all.end(), p->value, p->value + p->size());
        return all;
    }
    bool has_gradients() {
        for (const auto* p : g.parameters())
            if (p->condition != Parameter<T>::Condition::empty) return true;
        return false;
    }
    // One training pass, after which states are not zero.
    void train() {
        const std::vector<Token> a = {1, 2, 3, 4}, b = {2, 3, 4, 5};
        g.forward(l, {x, {a.data(), 2, 2}}, {y, {b.data(), 2, 2}});
    }
};

}  // namespace

TEMPLATE_TEST_CASE("With rate 0 dynamic evaluation is plain evaluation, to the bit", "[metric][dynamic]",
                   float, double) {
    Model<TestType> m;
    const auto rule = GENERATE(DynamicRule::sgd, DynamicRule::rms);
    DynamicUpdate<TestType> update(m.g.parameters(), {.rule = rule, .rate = 0, .decay = 0.3});
    collect_mean_squares(m.g, m.l, m.x, m.y, m.batches(5, 3), update);
    const auto p = evaluate_dynamically(m.g, m.l, m.x, m.y, m.batches(), update);
    const auto plain = evaluate(m.g, m.l, m.x, m.y, m.batches());
    REQUIRE(p.total() == plain.total());
    REQUIRE(p.tokens() == 60);
}

TEMPLATE_TEST_CASE("Dynamic evaluation counts, then moves by the gradient without dropout",
                   "[metric][dynamic]", float, double) {
    using T = TestType;
    Model<T> m(0.5), other(1);  // the same weights; the other has no masks and can be trained as it is
    Sgd<T> sgd(other.g.parameters(), {.rate = 0.5, .divisor = Divisor::tokens});
    Perplexity expected;
    for (const auto& batch : other.batches(4)) {
        const double nats = other.g.forward(other.l, {other.x, batch.input}, {other.y, batch.target});
        expected.add(nats, batch.predicted);
        other.g.backward(other.l);
        sgd.step();
    }
    DynamicUpdate<T> update(m.g.parameters(), {.rule = DynamicRule::sgd, .rate = 0.5, .decay = 0});
    const auto p = evaluate_dynamically(m.g, m.l, m.x, m.y, m.batches(4), update);
    REQUIRE(p.total() == Approx(expected.total()).epsilon(std::is_same_v<T, float> ? 1e-5 : 1e-12));
    REQUIRE(p.value() < 0.8 * evaluate(m.g, m.l, m.x, m.y, m.batches(4)).value());  // the text repeats
}

TEMPLATE_TEST_CASE("Weights, states, mode and gradients are as before, after an exception too",
                   "[metric][dynamic]", float, double) {
    using T = TestType;
    Model<T> m;
    m.train();
    const auto states = m.g.states().saved();
    const Numbers weights = m.weights();
    const auto step = m.g.training_step();
    DynamicUpdate<T> update(m.g.parameters(), {.rule = DynamicRule::sgd, .rate = 0.5});
    const auto as_before = [&] {
        return m.g.states().saved() == states && m.weights() == weights && m.g.training() &&
               !m.has_gradients() && m.g.training_step() == step;
    };
    bool moved = false;
    evaluate_dynamically(m.g, m.l, m.x, m.y, m.batches(), update, [&](const text::Batch& batch) {
        moved = moved || (batch.index > 0 && m.weights() != weights && !m.g.training());
        return batch.index < 3;
    });
    REQUIRE(moved);
    REQUIRE(as_before());
    REQUIRE_THROWS_AS(evaluate_dynamically(m.g, m.l, m.x, m.y, m.batches(), update,
                                           [](const text::Batch& batch) -> bool {
                                               if (batch.index == 4) throw std::runtime_error("stop");
                                               return true;
                                           }),
                      std::runtime_error);
    REQUIRE(as_before());
    REQUIRE_THROWS_AS(evaluate_dynamically(m.g, m.l, m.x, m.y, m.batches(), update,
                                           [&](const text::Batch& batch) {
                                               auto& E = m.g.parameter("E");
                                               if (batch.index == 2)
                                                   std::fill_n(E.value, E.size(),
                                                               std::numeric_limits<T>::quiet_NaN());
                                               return true;
                                           }),
                      NumericError);
    REQUIRE(as_before());
    REQUIRE_THROWS_AS(
        collect_mean_squares(m.g, m.l, m.x, m.y, m.batches(), update,
                             [](const text::Batch&) -> bool { throw std::runtime_error("stop"); }),
        std::runtime_error);
    REQUIRE(as_before());
}

TEST_CASE("Gradients of weights that do not move do not add up", "[metric][dynamic]") {
    Model<double> m, all;
    DynamicUpdate<double> update(m.g.parameters("lstm*"), {.rule = DynamicRule::sgd, .rate = 0.5});
    bool empty = true;
    evaluate_dynamically(m.g, m.l, m.x, m.y, m.batches(), update, [&](const text::Batch&) {
        empty = empty && !m.has_gradients();
        return m.g.parameter("E").value[0] == all.g.parameter("E").value[0];
    });
    CHECK(empty);
    CHECK(m.weights() == all.weights());
}

TEST_CASE("An update of another graph is refused", "[metric][dynamic][errors]") {
    Model<double> m, other;
    DynamicUpdate<double> update(other.g.parameters("lstm*"), {.rule = DynamicRule::sgd, .rate = 0.5});
    CHECK_THROWS_AS(evaluate_dynamically(m.g, m.l, m.x, m.y, m.batches(), update), UsageError);
    CHECK_THROWS_AS(collect_mean_squares(m.g, m.l, m.x, m.y, m.batches(), update), UsageError);
    RiemannianDynamic<double> by_metric(other.g, other.g.parameters(), {});
    CHECK_THROWS_AS(evaluate_dynamically(m.g, m.l, m.x, m.y, m.batches(), by_metric), UsageError);
}

TEST_CASE("A gradient that already counts is not lost", "[metric][dynamic]") {
    Model<double> m;
    DynamicUpdate<double> update(m.g.parameters("lstm*"), {.rule = DynamicRule::sgd, .rate = 0.5});
    m.train();
    m.g.backward(m.l);
    const Numbers before = gradient(m.g, "E");
    CHECK_THROWS_AS(evaluate_dynamically(m.g, m.l, m.x, m.y, m.batches(), update), UsageError);
    CHECK_THROWS_AS(collect_mean_squares(m.g, m.l, m.x, m.y, m.batches(), update), UsageError);
    CHECK(gradient(m.g, "E") == before);
    CHECK(m.g.parameter("lstm.b").condition == Parameter<double>::Condition::dense);
}

TEST_CASE("Mean squares are those of each batch, without dropout", "[metric][dynamic]") {
    // A stand-in for the update: what it sees is the gradient.
    struct Look {
        Graph<double>& g;
        std::vector<Numbers> seen = {};
        void collect() { seen.push_back(gradient(g, "E")); }
    };
    Model<double> m(0.5), other(1);
    Look look{m.g}, expected{other.g};
    collect_mean_squares(m.g, m.l, m.x, m.y, m.batches(5, 3), look);
    for (const auto& batch : other.batches(5, 3)) {
        other.g.forward(other.l, {other.x, batch.input}, {other.y, batch.target});
        other.g.backward(other.l);
        expected.collect();
        other.g.parameters().clear_gradients();
    }
    REQUIRE(look.seen.size() == 4);
    for (std::size_t k = 0; k < 4; ++k) CHECK(apart(look.seen[k], expected.seen[k]) < 1e-12);
    CHECK(!m.has_gradients());
}
