// Dynamic evaluation by the metric of each unit.
#include <isogloss/evaluation/evaluate_dynamically.hpp>
#include <isogloss/update/riemannian/dynamic.hpp>
#include <limits>

#include "networks.hpp"

namespace {

constexpr Index T = Map<>::T, B = Map<>::B;

template <class Number> RiemannianDynamic<Number> update_of(Map<Number>& m, RiemannianDynamicOptions o) {
    o.rest.divisor = Divisor::none;
    return {m.g, m.g.parameters(), o};
}

template <class Number> Numbers all_values(Graph<Number>& g) {
    Numbers all;
    for (const auto* p : g.parameters()) all.insert(all.end(), p->value, p->value + p->size());
    return all;
}

/// A tied model of a text that goes round.
template <class Number> struct Tied {
    Graph<Number> g{GraphOptions{.time = 5, .batch = 2}};
    Tokens x = g.tokens("x", 6), y = g.tokens("y", 6);
    Weight<Number> E = g.weight("E", 6, 4, uniform(0.5));
    Loss<Number> l = g.template add<CrossEntropy>(
        "loss", {},
        g.template add<TiedSoftmax>(
            "softmax", {},
            g.template add<Lstm>("lstm", {.units = 4}, g.template add<Embedding>("embed", {}, x, E)), E),
        y);
    std::vector<Token> text;
    Tied() {
        for (int i = 0; i < 60; ++i) text.push_back(1 + i % 3);
    }
    text::Batches batches(Index columns) const {
        return {text, 6, {.time = 5, .batch = columns}, {.predict_first = 0}};
    }
};

}  // namespace

TEMPLATE_TEST_CASE("A step of units follows from their metric over the training text",
                   "[riemannian][dynamic]", float, double) {
    const MetricForm form = GENERATE(MetricForm::quasi_diagonal, MetricForm::diagonal);
    Map<TestType> m;
    auto update = update_of(m, {.rate = 0.1, .damping = 0.2, .form = form, .rest = {.rate = 7, .decay = 0}});
    std::vector<Numbers> M(2, Numbers(16, 0));  // inputs 0, 1, 2, then the bias
    const auto input = [&](std::size_t r) {
        return Numbers{m.in[3 * r], m.in[3 * r + 1], m.in[3 * r + 2], 1};
    };
    for (const std::uint64_t seed : {2, 3}) {
        m.weights = numbers(T * B * 2, seed);
        m.backward();
        update.collect();
        for (std::size_t j = 0; j < 2; ++j)
            for (std::size_t r = 0; r < T * B; ++r) {
                const double flow = m.weights[2 * r + j];
                for (std::size_t i = 0; i < 16; ++i)
                    M[j][i] += flow * flow * input(r)[i / 4] * input(r)[i % 4] / (2. * T * B);
            }
    }
    m.weights = numbers(T * B * 2, 4);
    const Numbers W = flat(m.g.value(m.g.weight("map.W")));
    m.backward();
    const double length = update.step();
    double square = 0;
    for (std::size_t j = 0; j < 2; ++j) {
        Numbers& Mj = M[j];
        Numbers G(4, 0), expected(4);
        for (std::size_t r = 0; r < T * B; ++r)
            for (std::size_t i = 0; i < 4; ++i) G[i] += input(r)[i] * m.weights[2 * r + j];
        const double epsilon = 0.2 * (Mj[0] + Mj[5] + Mj[10] + Mj[15]) / 4;
        for (std::size_t i = 0; i < 4; ++i) Mj[5 * i] += epsilon;
        expected[3] = G[3] / Mj[15];
        for (std::size_t i = 0; i < 3; ++i) {
            const double slope = form == MetricForm::diagonal ? 0 : Mj[4 * i + 3] / Mj[15];
            expected[i] = (G[i] - slope * G[3]) / (Mj[5 * i] - slope * Mj[4 * i + 3]);
            expected[3] -= slope * expected[i];
        }
        for (std::size_t i = 0; i < 4; ++i) square += G[i] * expected[i];
        for (std::size_t i = 0; i < 3; ++i)
            CHECK(double(m.g.parameter("map.W").value[2 * i + j]) ==
                  Approx(W[2 * i + j] - 0.1 * expected[i]).epsilon(1e-4));
        CHECK(double(m.g.parameter("map.b").value[j]) == Approx(-0.1 * expected[3]).epsilon(1e-4));
    }
    CHECK(length == Approx(std::sqrt(square)).epsilon(1e-4));
    update.restore();
    CHECK(flat(m.g.value(m.g.weight("map.W"))) == W);
}

TEMPLATE_TEST_CASE("Weights return to the trained ones, and tables move, as by rms", "[riemannian][dynamic]",
                   float, double) {
    Tied<TestType> a, b;
    const Numbers trained = all_values(a.g);
    const DynamicOptions rest{.rate = 0.01, .decay = 0.3};
    RiemannianDynamic<TestType> update(a.g, a.g.parameters(), {.rate = 0.02, .rest = rest});
    DynamicUpdate<TestType> rms(b.g.parameters(), rest);
    collect_mean_squares(a.g, a.l, a.x, a.y, a.batches(2), update);
    collect_mean_squares(b.g, b.l, b.x, b.y, b.batches(2), rms);
    const auto step = [](auto& net, auto& by) {
        for (const auto& batch : net.batches(1)) {
            net.g.forward(net.l, {net.x, batch.input}, {net.y, batch.target});
            net.g.backward(net.l);
            by.step();
            return;
        }
    };
    step(a, update), step(b, rms);
    CHECK(flat(a.g.value(a.E)) == flat(b.g.value(b.E)));  // nothing has been anywhere else yet
    CHECK(apart(flat(a.g.value(a.g.weight("lstm.W"))), flat(b.g.value(b.g.weight("lstm.W")))) > 1e-6);
    for (auto* net : {&a, &b})
        for (auto* p : net->g.parameters()) std::fill_n(p->value, p->size(), TestType(0.5));
    rms.rate(0), update.rate(0), update.rest().rate(0);
    step(a, update), step(b, rms);
    CHECK(all_values(a.g) == all_values(b.g));
    update.restore();
    CHECK(all_values(a.g) == trained);

    const double before = evaluate(a.g, a.l, a.x, a.y, a.batches(1)).value();
    update.rate(1e-3);  // the units alone: of both together so small a network makes leaps
    CHECK(evaluate_dynamically(a.g, a.l, a.x, a.y, a.batches(1), update).value() < 0.95 * before);
    CHECK(all_values(a.g) == trained);
}

TEST_CASE("Dynamic evaluation by metrics says what it cannot be", "[riemannian][dynamic]") {
    Map<> m;
    REQUIRE_THROWS_AS(update_of(m, {.damping = 0}), UsageError);
    REQUIRE_THROWS_AS(update_of(m, {.rate = -1}), UsageError);
    Tied<double> tied;
    REQUIRE_THROWS_WITH(RiemannianDynamic<double>(tied.g, tied.g.parameters("E"), {}),
                        Catch::Matchers::ContainsSubstring("no weights of a layer of units"));
    auto update = update_of(m, {});
    m.backward();
    REQUIRE_THROWS_WITH(update.step(), Catch::Matchers::ContainsSubstring("call collect()"));
    m.g.gradient(m.g.weight("map.W"))(0, 0) = std::numeric_limits<double>::infinity();
    REQUIRE_THROWS_AS(update.collect(), NumericError);
    m.g.parameters().clear_gradients();
    m.backward();
    REQUIRE_THROWS_WITH(update.step(),
                        Catch::Matchers::ContainsSubstring("call collect()"));  // nothing was collected
    update.collect();
    const Numbers before = all_values(m.g);
    m.backward();
    m.g.gradient(m.g.weight("map.W"))(0, 0) = std::numeric_limits<double>::infinity();
    REQUIRE_THROWS_AS(update.step(), NumericError);
    CHECK(all_values(m.g) == before);
}

TEMPLATE_TEST_CASE("Units whose rows are held at norm 1 are updated as the rest", "[riemannian][dynamic]",
                   float, double) {
    Map<TestType> m;
    auto& W = m.g.parameter("map.W");
    W.unit_rows = true;
    normalise_rows(W);
    auto update = update_of(m, {.rate = 0.1, .rest = {.rule = DynamicRule::sgd, .rate = 0.1, .decay = 0.1}});
    m.backward();
    update.collect();
    m.backward();
    const Numbers before = all_values(m.g);
    update.step();
    REQUIRE(apart(all_values(m.g), before) > 1e-3);
    for (Index i = 0; i < W.rows; ++i)
        REQUIRE(kernel::sum_of_squares(W.cols, W.value + i * W.cols) == Approx(1).epsilon(1e-6));
}
