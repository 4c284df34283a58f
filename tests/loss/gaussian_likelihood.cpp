#include <isogloss/loss/gaussian_likelihood.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/rnn.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
#include "tolerance.hpp"

using namespace isogloss;

TEST_CASE("GaussianLikelihood obeys the laws of a node", "[loss][gaussian_likelihood]") {
    const bool predicted = GENERATE(false, true), masked = GENERATE(false, true);
    CAPTURE(predicted, masked);
    REQUIRE(laws(
                [=](auto& g) {
                    const auto rnn = g.template add<Rnn>("rnn", {.units = 4}, g.input("x", 3));
                    const auto h = g.template add<Linear>("mean", {.units = 2}, rnn), y = g.input("y", 2);
                    if (!predicted)
                        return masked ? g.template add<GaussianLikelihood>("loss", {.scale = 0.7}, h, y,
                                                                           g.tokens("where", 1))
                                      : g.template add<GaussianLikelihood>("loss", {.scale = 0.7}, h, y);
                    const auto s = g.template add<Linear>("scale", {.units = 2}, rnn);
                    return masked
                               ? g.template add<GaussianLikelihood>("loss", {}, h, s, y, g.tokens("where", 1))
                               : g.template add<GaussianLikelihood>("loss", {}, h, s, y);
                },
                {.hold = "y"}) == "");
}

// import math
// h, s, y = [0.2, -1], [-0.5, 0.3], [1, 0.5]
// print(sum(-math.log(math.exp(-(b - a) ** 2 / 2 / math.exp(2 * c)) / math.exp(c) / math.sqrt(2 * math.pi))
//           for a, c, b in zip(h, s, y)))                                                  # 3.1251403421220196
// e = 1e-6; the differences of that by h and s, over 2 e:
// -2.174625, -0.823217    and    -0.739700, -0.234826
TEMPLATE_TEST_CASE("The density of a Gaussian, by position", "[loss][gaussian_likelihood]", float, double) {
    using T = TestType;
    Graph<T> g({.time = 2, .batch = 1});
    const auto h = g.input("h", 2), s = g.input("s", 2), y = g.input("y", 2);
    const auto where = g.tokens("where", 1);
    const auto l = g.template add<GaussianLikelihood>("loss", {}, h, s, y, where);
    const std::vector<T> mean = {7, 7, T(0.2), -1}, scale = {1, 2, T(-0.5), T(0.3)}, target = {0, 0, 1, 0.5};
    const std::vector<Token> given = {not_predicted, 0};
    const double nats = g.forward(l, {h, mean.data(), 2, 1}, {s, scale.data(), 2, 1},
                                  {y, target.data(), 2, 1}, {where, given});
    CHECK(nats == to_rounding<T>(3.1251403421220196, 1e-6, 1e-14));
    CHECK(g.result(l).predicted() == 1);
    CHECK(flat(g.result(l).by_token()) == Numbers{0, nats});
    g.backward(l);
    g.template backward<Modulus>(l);
    CHECK(apart(flat(g.adjoint(h)), Numbers{0, 0, -2.174625, -0.823217}) < 1e-6);
    CHECK(apart(flat(g.adjoint(s)), Numbers{0, 0, -0.739700, -0.234826}) < 1e-6);
    CHECK(apart(flat(g.modulus(h)), Numbers{0, 0, std::exp(1.), std::exp(-0.6)}) < 1e-6);
    CHECK(flat(g.modulus(s)) == Numbers{0, 0, 2, 2});
}

TEST_CASE("A learned scale comes to the standard deviation, by steps of the gradient and of the metric",
          "[loss][gaussian_likelihood][riemannian]") {
    const Numbers in = {0, 0, 0, 0}, out = {1, -3, 2, 4};  // mean 1; deviations 0, -4, 1, 3
    Graph<double> g({.time = 4, .batch = 1});
    const auto x = g.input("x", 1), y = g.input("y", 1);
    const auto l = g.add<GaussianLikelihood>("loss", {.scale = 2}, g.add<Linear>("mean", {.units = 1}, x), y);
    REQUIRE(g.parameter("loss.log_scale").value[0] == std::log(2));
    const auto pass = [&] {
        g.forward(l, {x, in.data(), 4, 1}, {y, out.data(), 4, 1});
        g.backward(l);
    };
    // The metric is diagonal: of the bias 4 / σ², of log σ 2 · 4. A step of it takes the mean at once, and log σ
    // by (Σ e² / 4 - 1) / 2.
    Riemannian<double> update(g, "mean.b, loss.log_scale",
                              {.modulus = UnitModulus::rbpm, .rate = 1, .damping = 1e-12, .floor = 0});
    pass();
    g.backward<Modulus>(l);
    update.step();
    CHECK(g.parameter("mean.b").value[0] == Approx(1));
    CHECK(g.parameter("loss.log_scale").value[0] ==
          Approx(std::log(2) + ((1 + 9 + 4 + 16) / 4. / 4 - 1) / 2));
    Sgd<double> sgd(g.parameters(), {.rate = 0.2, .divisor = Divisor::tokens});
    for (int i = 0; i < 200; ++i) pass(), sgd.step();
    CHECK(std::exp(g.parameter("loss.log_scale").value[0]) == Approx(std::sqrt(26 / 4.)));
}

TEST_CASE("GaussianLikelihood refuses other widths and scales that are not positive",
          "[loss][gaussian_likelihood]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto h = g.input("h", 3), s = g.input("s", 2), y = g.input("y", 3);
    const auto before = g.memory();
    CHECK_THROWS_MATCHES(g.add<GaussianLikelihood>("loss", {}, h, s, y), UsageError, says("'loss'", "'s'"));
    CHECK_THROWS_MATCHES(g.add<GaussianLikelihood>("loss", {}, h, s), UsageError, says("'loss'", "'h'"));
    CHECK_THROWS_MATCHES(g.add<GaussianLikelihood>("loss", {.scale = 0}, h, y), UsageError,
                         says("'loss'", "scale"));
    CHECK(g.memory() == before);
}
