#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/loss/squared_error.hpp>
#include <isogloss/loss/total.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/rnn.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
#include "tolerance.hpp"

using namespace isogloss;

TEST_CASE("SquaredError obeys the laws of a node", "[loss][squared_error]") {
    const bool masked = GENERATE(false, true);
    CAPTURE(masked);
    REQUIRE(laws(
                [=](auto& g) {
                    const auto h = g.template add<Linear>(
                        "out", {.units = 2}, g.template add<Rnn>("rnn", {.units = 4}, g.input("x", 3)));
                    const auto y = g.input("y", 2);
                    return masked ? g.template add<SquaredError>("loss", {}, h, y, g.tokens("where", 1))
                                  : g.template add<SquaredError>("loss", {}, h, y);
                },
                {.hold = "y"}) == "");
}

TEMPLATE_TEST_CASE("Half the squares of what is missing, by position", "[loss][squared_error]", float,
                   double) {
    using T = TestType;
    Graph<T> g({.time = 3, .batch = 1});
    const auto h = g.input("h", 2), y = g.input("y", 2);
    const auto where = g.tokens("where", 5);
    const auto all = g.template add<SquaredError>("all", {}, h, y);
    const auto some = g.template add<SquaredError>("some", {}, h, y, where);
    const std::vector<T> in = {1, 2, 3, 4, 5, 6}, target = {1, 0, 2, 6, 0, 0};
    const std::vector<Token> given = {4, not_predicted, 0};
    CHECK(g.forward(all, {h, in.data(), 3, 1}, {y, target.data(), 3, 1}) == 2 + 2.5 + 30.5);
    CHECK(g.result(all).predicted() == 3);
    CHECK(g.forward(some, {h, in.data(), 3, 1}, {y, target.data(), 3, 1}, {where, given}) == 2 + 30.5);
    CHECK(g.result(some).predicted() == 2);
    CHECK(flat(g.result(some).by_token()) == Numbers{2, 0, 30.5});
    CHECK_THROWS_AS(g.result(some).cross_entropy(), UsageError);
    g.backward(some);
    g.template backward<Modulus>(some);
    CHECK(flat(g.adjoint(h)) == Numbers{0, 2, 0, 0, 5, 6});
    CHECK(flat(g.modulus(h)) == Numbers{1, 1, 0, 0, 1, 1});
    CHECK(flat(g.adjoint(y)) == Numbers(6));  // a target is data
}

TEST_CASE("Weights of a total scale gradient and modulus, a negative one the modulus by its size",
          "[loss][squared_error]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto h = g.input("h", 1), y = g.input("y", 1);
    const auto a = g.add<SquaredError>("a", {}, h, y), b = g.add<SquaredError>("b", {}, h, y);
    const auto l = g.add<TotalLoss>("l", {.weights = {2, -0.5}}, a, b);
    const double in = 3, target = 1;
    CHECK(g.forward(l, {h, &in, 1, 1}, {y, &target, 1, 1}) == 3);
    g.backward(l);
    g.backward<Modulus>(l);
    CHECK(g.adjoint(h)(0, 0) == 3);
    CHECK(g.modulus(h)(0, 0) == 2.5);
}

// x = [0.5, -1, 2]; y = [1, 0.25, -0.5]; w = b = 0
// n = 3; mx = sum(x) / n; my = sum(y) / n
// w = sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)      # -0.25
// b = my - w * mx                                                                         # 0.375
TEST_CASE("A step of rate 1 in the metric is the regression line", "[loss][squared_error][riemannian]") {
    // The Fisher metric of a unit of one input and a bias is whole in the quasi-diagonal form: Newton's method.
    const auto step = [](UnitModulus modulus) {
        Graph<double> g({.time = 3, .batch = 1});
        const auto x = g.input("x", 1), y = g.input("y", 1);
        const auto l = g.add<SquaredError>("loss", {}, g.add<Linear>("line", {.units = 1}, x), y);
        const Numbers in = {0.5, -1, 2}, out = {1, 0.25, -0.5};
        Riemannian<double> update(g, "*", {.modulus = modulus, .rate = 1, .damping = 1e-12, .floor = 0});
        g.forward(l, {x, in.data(), 3, 1}, {y, out.data(), 3, 1});
        g.backward(l);
        if (update.wants_modulus()) g.backward<Modulus>(l);
        update.step();
        return Numbers{g.parameter("line.W").value[0], g.parameter("line.b").value[0]};
    };
    CHECK(apart(step(UnitModulus::rbpm), Numbers{-0.25, 0.375}) < 1e-10);
    CHECK(apart(step(UnitModulus::ruop), Numbers{-0.25, 0.375}) > 0.1);
}

TEST_CASE("Updates divide by the positions with a target", "[loss][squared_error]") {
    Graph<double> g({.time = 4, .batch = 1});
    const auto x = g.input("x", 1), y = g.input("y", 1);
    const auto where = g.tokens("where", 1);
    const auto l =
        g.add<SquaredError>("loss", {}, g.add<Linear>("out", {.units = 1, .init = constant(0)}, x), y, where);
    Sgd<double> sgd(g.parameters("out.b"), {.rate = 1, .divisor = Divisor::tokens});
    const Numbers in(4), out = {1, 2, 100, 6};
    const std::vector<Token> given = {0, 0, not_predicted, 0};
    g.forward(l, {x, in.data(), 4, 1}, {y, out.data(), 4, 1}, {where, given});
    g.backward(l);
    sgd.step();
    CHECK(g.parameter("out.b").value[0] == 3);  // the mean of three
    const std::vector<Token> none(4, not_predicted);
    CHECK(g.forward(l, {x, in.data(), 4, 1}, {y, out.data(), 4, 1}, {where, none}) == 0);
    CHECK_THROWS_MATCHES(g.backward(l), UsageError, says("'loss'"));
}

TEST_CASE("SquaredError refuses a target of another width", "[loss][squared_error]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto h = g.input("h", 3), y = g.input("y", 2);
    REQUIRE_THROWS_MATCHES(g.add<SquaredError>("loss", {}, h, y), UsageError,
                           says("'loss'", "'h'", "3", "'y'", "2"));
}
