// The metric of a softmax head.
#include <isogloss/update/riemannian/softmax_fisher.hpp>
#include <isogloss/update/riemannian/start_at_frequencies.hpp>

#include "networks.hpp"

TEST_CASE("The metric of a head is the Hessian of the loss, on the entries it keeps", "[riemannian]") {
    Net<Glnn> n(40);
    auto& W = n.g.parameter("out.W");
    auto& b = n.g.parameter("out.b");
    const auto group = n.g.parameters("out.*");
    using Metric = SoftmaxFisher<double>;
    Metric metric(graph::Inspect::store(n.g), group, graph::Inspect::store(n.g).logits[0],
                  {.targets = n.y, .budget = GENERATE(Index{1}, Index{1} << 20)});
    n.forward();
    metric.add(1);
    const auto second = [&](double& p, double& q) {  // ∂²l/∂p∂q by differences
        const double h = 1e-4, p0 = p, q0 = q;
        const auto at = [&](double dp, double dq) {
            p = p0, q = q0;
            p += dp, q += dq;
            const double l = n.forward();
            p = p0, q = q0;
            return l;
        };
        return (at(h, h) - at(h, -h) - at(-h, h) + at(-h, -h)) / (4 * h * h);
    };
    for (Index v = 0; v < 4; ++v) {
        REQUIRE(std::abs(second(b.value[v], b.value[v]) - metric.m00[std::size_t(v)]) < 1e-5);
        for (Index i = 0; i < 5; ++i) {
            REQUIRE(std::abs(second(W.value[v * 5 + i], W.value[v * 5 + i]) -
                             metric.square[std::size_t(v * 5 + i)]) < 1e-5);
            REQUIRE(std::abs(second(W.value[v * 5 + i], b.value[v]) - metric.cross[std::size_t(v * 5 + i)]) <
                    1e-5);
        }
    }
    metric.clear(0.5);
    metric.add(0.25);
    Metric once(graph::Inspect::store(n.g), group, graph::Inspect::store(n.g).logits[0], {.targets = n.y});
    once.add(0.75);
    REQUIRE(apart(metric.square, once.square) < 1e-13);
    REQUIRE(apart(metric.cross, once.cross) < 1e-13);
    REQUIRE(apart(metric.m00, once.m00) < 1e-13);
}

TEMPLATE_TEST_CASE("The step of a head is that of each weight with its bias", "[riemannian]", float, double) {
    Net<Glnn, TestType> n(40);
    const double tolerance = sizeof(TestType) == 4 ? 1e-4 : 1e-10;
    const std::vector<double> f = {0.1, 0.2, 0.3, 0.4};
    auto step = softmax_step(n.g, n.y, 1, f);
    n.forward();
    n.g.backward(n.l);
    const Numbers G = gradient(n.g, "out.W"), G0 = gradient(n.g, "out.b");
    step.add(1);
    step.solve();
    SoftmaxFisher<TestType> m(graph::Inspect::store(n.g), n.g.parameters("out.*"),
                              graph::Inspect::store(n.g).logits[0], {.targets = n.y});
    m.add(1);
    for (std::size_t v = 0; v < 4; ++v) {
        const double H00 = m.m00[v] + f[v];
        double bias = -G0[v] / H00;
        for (std::size_t i = 0; i < 5; ++i) {
            const double H = m.square[5 * v + i] + f[v], H0 = m.cross[5 * v + i];
            const double expected = -(G[5 * v + i] - G0[v] * H0 / H00) / (H - H0 * H0 / H00);
            REQUIRE(step.direction(0)[5 * v + i] == Approx(expected).epsilon(tolerance));
            bias -= H0 / H00 * expected;
        }
        REQUIRE(step.direction(1)[v] == Approx(bias).epsilon(tolerance));
    }
}

TEMPLATE_TEST_CASE("A head starts at the frequencies", "[riemannian]", float, double) {
    Net<Glnn, TestType> n(40);
    start_at_frequencies(n.g, "out", {1, 2, 5, 0});
    double expected = 0;
    for (auto& y : n.next) {
        if (y == 3) y = 2;
        if (y >= 0) expected -= std::log((y == 0 ? 1 : y == 1 ? 2 : 5) / 8.0);
    }
    REQUIRE(n.forward() == Approx(expected).epsilon(sizeof(TestType) == 4 ? 1e-6 : 1e-10));
    REQUIRE(n.g.parameter("out.b").value[3] == Approx(std::log(1e-12)));  // a word that is never a target
    Graph<TestType> shared({.time = 1, .batch = 1}, n.g.shared_weights());
    shared.template add<Softmax>("out", {.vocabulary = 4}, shared.input("u", 5));
    REQUIRE_THROWS_MATCHES(start_at_frequencies(shared, "out", {1, 2, 5, 0}), UsageError,
                           says("start_at_frequencies", "on shared weights"));
    REQUIRE_THROWS_MATCHES(start_at_frequencies(n.g, "out", {1, 2}), UsageError,
                           says("2 counts", "expected 4"));
    REQUIRE_THROWS_MATCHES(start_at_frequencies(n.g, "net", {1}), UsageError,
                           says("'net' is no softmax head"));
    REQUIRE_THROWS_MATCHES(softmax_step(n.g, n.y, 1, {1, 2}), UsageError, says("4 frequencies"));
    const auto bias = [&] { return flat(n.g.value(n.g.weight("out.b"))); };
    const Numbers before = bias();
    for (const double wrong : {-1., std::numeric_limits<double>::quiet_NaN()}) {
        REQUIRE_THROWS_MATCHES(start_at_frequencies(n.g, "out", {1, wrong, 5, 0}), UsageError,
                               says("counts", "at least 0"));
        REQUIRE_THROWS_MATCHES(softmax_step(n.g, n.y, 1, {1, 2, wrong, 1}), UsageError,
                               says("frequency = ", "at least 0"));
    }
    CHECK(bias() == before);
}
