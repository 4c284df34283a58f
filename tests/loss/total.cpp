#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/loss/total.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/softmax.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

namespace {

// Two losses on one hidden layer, one on another vocabulary.
template <class T> Loss<T> two_losses(Graph<T>& g, double first, double second) {
    const auto h = g.template add<Linear>("hidden", {.units = 4}, g.input("x", 3));
    const auto y = g.tokens("y", 7), c = g.tokens("class", 2);
    const auto words =
        g.template add<CrossEntropy>("words", {}, g.template add<Softmax>("head", {.vocabulary = 7}, h), y);
    const auto classes = g.template add<CrossEntropy>(
        "classes", {}, g.template add<Softmax>("classifier", {.vocabulary = 2}, h), c);
    return g.template add<TotalLoss>("total", {.weights = {first, second}}, words, classes);
}

}  // namespace

TEST_CASE("TotalLoss obeys the laws of a node", "[loss][total]") {
    const double second = GENERATE(1., -0.3, 0.);
    CAPTURE(second);
    REQUIRE(laws([=](auto& g) { return two_losses(g, 0.7, second); }) == "");
    REQUIRE(laws([=](auto& g) {
                const auto both = two_losses(g, 0.7, second);
                const auto a = check::probe(g, g.sequence("hidden.z"));
                return g.template add<TotalLoss>("all", {.weights = {0.5, second, -1}}, both, a, both);
            }) == "");
}

TEST_CASE("TotalLoss weighs values and gradients", "[loss][total]") {
    const std::vector<Token> y = {3, not_predicted, 6, 0}, c = {not_predicted, 1, 0, not_predicted};
    const Numbers in = numbers(12, 1);
    const auto run = [&](double first, double second) {
        Graph<double> g({.time = 2, .batch = 2});
        const auto l = two_losses(g, first, second);
        const auto& s = graph::Inspect::store(g);
        const double value =
            g.forward(l, {Seq<double>{0, 3, s.serial}, in.data(), 2, 2},
                      {Tokens{0, 7, s.serial}, {y.data(), 2, 2}}, {Tokens{1, 2, s.serial}, {c.data(), 2, 2}});
        g.backward(l);
        Numbers all = gradient(g, "hidden.W");
        for (const auto& name : {"head.W", "classifier.b"})
            for (const double v : gradient(g, name)) all.push_back(v);
        all.push_back(value);
        REQUIRE(g.result(l).predicted() == 3);
        return all;
    };
    const Numbers words = run(1, 0), classes = run(0, 1), both = run(2, -0.5);
    Numbers expected;
    for (std::size_t i = 0; i < words.size(); ++i) expected.push_back(2 * words[i] - 0.5 * classes[i]);
    REQUIRE(apart(both, expected) < 1e-14);
}

TEST_CASE("TotalLoss refuses weights that are not finite and keeps no loss by position", "[loss][total]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto a = g.input("a", 1);
    const auto l = check::probe(g, a);
    REQUIRE_THROWS_MATCHES(g.add<TotalLoss>("total", {.weights = {1, NAN}}, l, l), UsageError,
                           says("node 'total'"));
    REQUIRE_THROWS_MATCHES(g.add<TotalLoss>("total", {.weights = {1, 2, 3}}, l, l), UsageError,
                           says("node 'total'"));
    const auto total = g.add<TotalLoss>("total", {.weights = {1, 2}}, l, l);
    const Numbers in = {0.5};
    const double value = g.forward(total, {a, in.data(), 1, 1});
    REQUIRE(value == Approx(3 * g.result(l).nats()));
    g.backward(total);
    REQUIRE(g.adjoint(a)(0, 0) == Approx(3 * check::Probe<double>::weight(0)));
    REQUIRE_THROWS_MATCHES(g.result(total).by_token(), UsageError, says("'total'"));
    REQUIRE_THROWS_MATCHES(g.result(total).cross_entropy(), UsageError, says("'total'"));
}
