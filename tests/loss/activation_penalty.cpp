#include <isogloss/loss/activation_penalty.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/loss/total.hpp>
#include <isogloss/node/rnn.hpp>
#include <isogloss/node/softmax.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

TEST_CASE("ActivationPenalty obeys the laws of a node", "[loss][activation_penalty]") {
    const auto [size, change] = GENERATE(table<double, double>({{0.7, 0}, {0, 1.3}, {0.7, 1.3}}));
    CAPTURE(size, change);
    REQUIRE(laws([size = size, change = change](auto& g) {
                const auto h = g.template add<Rnn>("rnn", {.units = 4}, g.input("x", 3));
                const auto l = g.template add<CrossEntropy>(
                    "text", {}, g.template add<Softmax>("head", {.vocabulary = 5}, h), g.tokens("y", 5));
                const auto penalty =
                    g.template add<ActivationPenalty>("activations", {.size = size, .change = change}, h);
                return g.template add<TotalLoss>("total", {.weights = {1, 0.5}}, l, penalty);
            }) == "");
}

TEMPLATE_TEST_CASE("Mean squares of a sequence and of its change, by position", "[loss][activation_penalty]",
                   float, double) {
    Graph<TestType> g({.time = 3, .batch = 2});
    const auto h = g.input("h", 2);
    const auto run = [&](double size, double change, std::vector<TestType> values, Index time, Index batch) {
        static int n = 0;
        const auto l =
            g.template add<ActivationPenalty>(message("penalty", ++n), {.size = size, .change = change}, h);
        const double value = g.forward(l, {h, values.data(), time, batch});
        g.backward(l);
        const TestType* d = graph::Inspect::store(g).adjoint(h.id, 0);
        Numbers all(d, d + time * batch * 2);
        all.push_back(value);
        return all;
    };
    // One column: (1, 2), (3, -1). Squares 5 + 10, of the change from 0 on 5 + 4 + 9; both over n = 2.
    CHECK(apart(run(1, 0, {1, 2, 3, -1}, 2, 1), Numbers{1, 2, 3, -1, 7.5}) < 1e-6);
    CHECK(apart(run(0, 1, {1, 2, 3, -1}, 2, 1), Numbers{-1, 5, 2, -3, 9}) < 1e-6);
    CHECK(apart(run(2, 3, {1, 2, 3, -1}, 2, 1), Numbers{-1, 19, 12, -11, 42}) < 1e-6);
    // Columns do not mix: each its own change, from 0 at the first step.
    CHECK(apart(run(0, 2, {1, 1, 5, 5, 1, 1, 5, 5}, 2, 2), Numbers{2, 2, 10, 10, 0, 0, 0, 0, 52}) < 1e-6);
}

TEST_CASE("The change goes on from the pass before, until a reset", "[loss][activation_penalty]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto h = g.input("h", 1);
    const auto l = g.add<ActivationPenalty>("penalty", {.change = 1}, h);
    const auto run = [&](double value) { return g.forward(l, {h, &value, 1, 1}); };
    CHECK(run(3) == 9);
    CHECK(run(5) == 4);
    g.backward(l);
    CHECK(*graph::Inspect::store(g).adjoint(h.id, 0) == 4);  // 2 (5 - 3): what was before is a constant
    g.reset();
    CHECK(run(5) == 25);
}

TEST_CASE("ActivationPenalty predicts no position and refuses negative weights",
          "[loss][activation_penalty]") {
    Graph<double> g({.time = 2, .batch = 1});
    const auto h = g.input("h", 2);
    const auto l = g.add<ActivationPenalty>("penalty", {.size = 1}, h);
    const std::vector<double> in = {1, 2, 3, 4};
    g.forward(l, {h, in.data(), 2, 1});
    CHECK(g.result(l).predicted() == 0);
    REQUIRE_THROWS_MATCHES((g.add<ActivationPenalty>("a", {.size = -1}, h)), UsageError,
                           says("'a'", "size = -1"));
    REQUIRE_THROWS_MATCHES((g.add<ActivationPenalty>("b", {.change = std::nan("")}, h)), UsageError,
                           says("'b'"));
}
