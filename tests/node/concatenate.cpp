#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/concatenate.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/softmax.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

TEST_CASE("Concatenate obeys the laws of a node", "[node][concatenate]") {
    REQUIRE(laws([](auto& g) {
                const auto a = g.input("a", 3), b = g.input("b", 1), c = g.input("c", 2);
                return check::probe(g, g.template add<Concatenate>("all", {}, a, b, c, a));
            }) == "");
}

TEST_CASE("Concatenate puts sequences side by side and hands each its columns back", "[node][concatenate]") {
    Graph<double> g({.time = 1, .batch = 2});
    const auto a = g.input("a", 2), b = g.input("b", 1), w = g.input("w", 5);
    const auto y = g.add<Concatenate>("all", {}, a, b, a);
    REQUIRE(y.width == 5);
    const auto l = g.add<Dot>("loss", {}, w, y);
    const Numbers left = {1, 2, 3, 4}, right = {7, 8}, weights = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    g.forward(l, {a, left.data(), 1, 2}, {b, right.data(), 1, 2}, {w, weights.data(), 1, 2});
    REQUIRE(flat(g.value(y)) == Numbers{1, 2, 7, 1, 2, 3, 4, 8, 3, 4});
    g.backward(l);
    REQUIRE(flat(g.adjoint(a)) == Numbers{1 + 4, 2 + 5, 6 + 9, 7 + 10});
    REQUIRE(flat(g.adjoint(b)) == Numbers{3, 8});
    g.backward<Modulus>(l);
    REQUIRE(flat(g.modulus(a)) == Numbers{1 + 16, 4 + 25, 36 + 81, 49 + 100});
}
