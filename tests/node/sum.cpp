#include <isogloss/node/sum.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

TEST_CASE("Sum obeys the laws of a node", "[node][sum]") {
    const bool same = GENERATE(false, true);
    CAPTURE(same);
    REQUIRE(laws([=](auto& g) {
                const auto a = g.input("a", 3), b = same ? a : g.input("b", 3);
                return check::probe(g, g.template add<Sum>("sum", {}, a, b));
            }) == "");
    REQUIRE(laws([=](auto& g) {
                const auto a = g.input("a", 3), b = same ? a : g.input("b", 3), c = g.input("c", 3);
                return check::probe(g, g.template add<Sum>("sum", {}, a, c, b, b));
            }) == "");
}

TEST_CASE("Sum adds, and sends back the same to both", "[node][sum]") {
    Graph<double> g({.time = 1, .batch = 2});
    const auto a = g.input("a", 2), b = g.input("b", 2), w = g.input("w", 2);
    const auto y = g.add<Sum>("sum", {}, a, b);
    const auto l = g.add<Dot>("loss", {}, w, y);
    const Numbers left = {1, 2, 3, 4}, right = {0.5, 0, -1, 8}, weights = {1, -2, 3, -4};
    g.forward(l, {a, left.data(), 1, 2}, {b, right.data(), 1, 2}, {w, weights.data(), 1, 2});
    REQUIRE(flat(g.value(y)) == Numbers{1.5, 2, 2, 12});
    g.backward(l);
    REQUIRE(flat(g.adjoint(a)) == weights);
    REQUIRE(flat(g.adjoint(b)) == weights);
    g.backward<Modulus>(l);
    REQUIRE(flat(g.modulus(a)) == Numbers{1, 4, 9, 16});
}

TEST_CASE("A sequence added to itself counts twice, its modulus four times", "[node][sum][modulus]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto a = g.input("a", 2), w = g.input("w", 2);
    const auto y = g.add<Sum>("sum", {}, a, a);
    const auto l = g.add<Dot>("loss", {}, w, y);
    const Numbers in = {1, 2}, weights = {1, 3};
    g.forward(l, {a, in.data(), 1, 1}, {w, weights.data(), 1, 1});
    REQUIRE(flat(g.value(y)) == Numbers{2, 4});
    g.backward(l);
    REQUIRE(flat(g.adjoint(a)) == Numbers{2, 6});
    g.backward<Modulus>(l);
    REQUIRE(flat(g.modulus(a)) == Numbers{4, 36});
}
