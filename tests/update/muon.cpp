#include <isogloss/factor.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/update/muon.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

// The first step of weights that are 0 on a random gradient of this size, divided by the rate.
template <class T> Tensor<T, 2> first_step(Index rows, Index cols, Index gates = 1, double size = 1) {
    Graph<T> g({});
    const auto w = g.weight("w", rows, cols, constant(0));
    Muon<T> muon(g.parameters(), {.rate = 0.5, .gates = gates});
    const Random random(rows, 7);
    Index i = 0;
    for (T& v : g.gradient(w)) v = static_cast<T>(size * random.normal(i++));
    muon.step();
    Tensor<T, 2> step = g.value(w);
    for (T& v : step) v *= T(-2);
    return step;
}

}  // namespace

TEMPLATE_TEST_CASE("Singular values of a step of Muon are near 1, times the scale of the shape",
                   "[update][muon]", float, double) {
    const auto [rows, cols, gates] =
        GENERATE(std::tuple<Index, Index, Index>(20, 50, 1), std::tuple<Index, Index, Index>(50, 20, 1),
                 std::tuple<Index, Index, Index>(12, 96, 4));
    const auto step = first_step<TestType>(rows, cols, gates);
    const Index n = cols / gates;
    const double scale = std::sqrt(std::max(1.0, double(n) / double(rows)));
    for (Index k = 0; k < gates; ++k) {
        auto block = dense::zeros<TestType>(rows, n);
        for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < n; ++j)
                block(std::size_t(i), std::size_t(j)) = step(std::size_t(i), std::size_t(k * n + j));
        for (const double s : dense::singular_values(block)) {
            CHECK(s > 0.68 * scale);
            CHECK(s < 1.21 * scale);
        }
    }
}

TEMPLATE_TEST_CASE("Muon takes the steps of an implementation in Python", "[update][muon]", float, double) {
    // def ns(X):                                     # lin((k, M), …): Σ k M
    //     n = sqrt(sum(x * x for r in X for x in r)); X = [[x / n for x in r] for r in X]
    //     for _ in range(5):
    //         A = mul(X, T(X)); X = lin((3.4445, X), (1, mul(lin((-4.775, A), (2.0315, mul(A, A))), X)))
    //     return X
    // for g in …: m = lin((0.9, m), (1, g)); u = lin((1, g), (0.9, m))
    //     W = lin((1 - 0.1 * 0.2, W), (-0.1 * sqrt(3 / 2), ns(u)))
    using T = TestType;
    const double gradients[2][6] = {{1, 2, -1, 0.5, 0, 3}, {-2, 0.25, 1, 1, 1, -1}};
    const Numbers expected[2] = {
        {-0.038823475743, -0.078922479610, 0.043287824176, -0.019284185059, 0.002551056247, -0.124633807221},
        {0.069221697631, -0.146315126499, 0.005730010070, -0.094488452290, -0.051780464080, -0.136392341088}};
    Graph<T> g({});
    const auto w = g.weight("w", 2, 3, constant(0));
    Muon<T> muon(g.parameters(), {.rate = 0.1, .momentum = 0.9, .weight_decay = 0.2});
    for (int k = 0; k < 2; ++k) {
        const double* from = gradients[k];
        for (T& v : g.gradient(w)) v = static_cast<T>(*from++);
        const double norm = muon.step();
        REQUIRE(apart(flat(g.value(w)), expected[k]) < (sizeof(T) == 4 ? 1e-6 : 1e-11));
        REQUIRE((k > 0 || norm == Approx(std::sqrt(15.25))));
    }
}

TEMPLATE_TEST_CASE("A step of Muon does not depend on the size of the gradient", "[update][muon]", float,
                   double) {
    const auto one = first_step<TestType>(6, 8);
    for (const double size : {1e-12, 1e6, 1e15})
        REQUIRE(apart(flat(one), flat(first_step<TestType>(6, 8, 1, size))) <
                (sizeof(TestType) == 4 ? 1e-5 : 1e-12));
    REQUIRE(flat(first_step<TestType>(6, 8, 1, 0)) == Numbers(48, 0));
}

TEST_CASE("Muon clips what enters its momentum", "[update][muon]") {
    const auto second = [](double first, double clip) {
        Graph<double> g({});
        const auto w = g.weight("w", 2, 2, constant(0));
        Muon<double> muon(g.parameters(), {.clip = clip});
        for (const double size : {first, 1.0}) {
            Numbers v = numbers(4, 3 + (size == 1.0));
            Index i = 0;
            for (double& x : g.gradient(w)) x = size * v[std::size_t(i++)];
            muon.step();
        }
        return flat(g.value(w));
    };
    REQUIRE(apart(second(1e3, 0.01), second(1e6, 0.01)) < 1e-12);
    REQUIRE(apart(second(1e3, 0), second(1, 0)) > 1e-3);
}

TEST_CASE("Muon leaves frozen weights and their momentum, and all weights where a gradient is not finite",
          "[update][muon][trained][errors]") {
    Graph<float> g({});
    const auto a = g.weight("a", 2, 3, uniform(1)), b = g.weight("b", 3, 2, uniform(1));
    Muon<float> muon(g.parameters(), {});
    const auto step = [&](float to_a) {
        for (float& v : g.gradient(b)) v = 1;
        if (g.parameter("a").trained)
            for (float& v : g.gradient(a)) v = to_a;
        muon.step();
    };
    g.parameters("a").trained(false);
    const Numbers before = flat(g.value(a)), moves = flat(g.value(b));
    step(0);
    CHECK(flat(g.value(a)) == before);
    CHECK(flat(g.value(b)) != moves);
    g.parameters("a").trained(true);
    step(1);
    CHECK(flat(g.value(a)) != before);
    const Numbers last = flat(g.value(a)), of_b = flat(g.value(b));
    for (const float wrong : {std::numeric_limits<float>::infinity(), 3e38f}) {
        REQUIRE_THROWS_AS(step(wrong), NumericError);
        CHECK(flat(g.value(a)) == last);
        CHECK(flat(g.value(b)) == of_b);
        g.parameters().clear_gradients();
    }
    muon.rate(3e38);
    REQUIRE_THROWS_AS((step(1), step(1), step(1), step(1), step(1), step(1)), NumericError);
}

TEST_CASE("Muon refuses what is no matrix between layers", "[update][muon][errors]") {
    Graph<double> g({});
    const auto x = g.tokens("x", 5);
    const auto e = g.add<Embedding>("embed", {}, x, g.weight("E", 5, 4, uniform(1)));
    g.add<Lstm>("lstm", {.units = 3}, e);
    REQUIRE_THROWS_MATCHES(Muon<double>(g.parameters("E"), {}), UsageError, says("'E'"));
    REQUIRE_THROWS_MATCHES(Muon<double>(g.parameters("lstm.*"), {}), UsageError, says("'lstm.b'"));
    REQUIRE_THROWS_MATCHES(Muon<double>(g.parameters("lstm.W"), {.gates = 5}), UsageError,
                           says("[4, 12]", "5 gates"));
    REQUIRE_THROWS_AS(Muon<double>(g.parameters("lstm.W"), {.gates = 12}), UsageError);
    REQUIRE_THROWS_MATCHES(Muon<double>(g.parameters("lstm.W"), {.gates = 0}), UsageError, says("gates = 0"));
    REQUIRE_THROWS_MATCHES(Muon<double>(g.parameters("lstm.W"), {.momentum = 1}), UsageError,
                           says("momentum = 1"));
    REQUIRE_NOTHROW(Muon<double>(g.parameters("lstm.W, lstm.U"), {.gates = 4}));
}
