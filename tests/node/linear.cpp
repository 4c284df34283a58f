#include <functional>
#include <isogloss/node/dropout.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/gru.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/rhn.hpp>
#include <isogloss/node/rnn.hpp>
#include <isogloss/node/sum.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

TEST_CASE("Linear obeys the laws of a node", "[node][linear]") {
    const bool bias = GENERATE(true, false);
    CAPTURE(bias);
    REQUIRE(laws([=](auto& g) {
                return check::probe(
                    g, g.template add<Linear>("map", {.units = 4, .bias = bias}, g.input("x", 3)));
            }) == "");
}

TEST_CASE("Linear is x W + b, with the gradients of a matrix product", "[node][linear]") {
    Graph<double> g({.time = 2, .batch = 1});
    const auto x = g.input("x", 2), w = g.input("w", 3);
    const Seq<double> y = g.add<Linear>("map", {.units = 3}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    set(g, "map.W", {1, 2, 3, 4, 5, 6});
    set(g, "map.b", {10, 20, 30});
    const Numbers in = {1, -1, 2, 0.5}, weights = {1, 0, 2, 0, 3, 1};
    REQUIRE(g.forward(l, {x, in.data(), 2, 1}, {w, weights.data(), 2, 1}) == 7 + 54 + 3 * 26.5 + 39);
    REQUIRE(flat(g.value(y)) == Numbers{7, 17, 27, 14, 26.5, 39});
    g.backward(l);
    REQUIRE(gradient(g, "map.W") == Numbers{1, 6, 4, -1, 1.5, -1.5});
    REQUIRE(gradient(g, "map.b") == Numbers{1, 3, 3});
    REQUIRE(flat(g.adjoint(x)) == Numbers{7, 16, 9, 21});
}

TEST_CASE("Linear without a bias has none", "[node][linear]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto y = g.add<Linear>("map", {.units = 3, .bias = false}, g.input("x", 2));
    REQUIRE(y.width == 3);
    REQUIRE(g.parameters().size() == 1);
    REQUIRE(g.parameters()[0].name == "map.W");
}

TEST_CASE("Nodes refuse options out of range by their name, and leave the graph as it was", "[node]") {
    Graph<double> g({.time = 2, .batch = 2});
    const auto x = g.input("x", 3), wide = g.input("wide", 4);
    const auto w = g.tokens("w", 5);
    const auto E = g.weight("E", 5, 3, uniform(1));
    const auto memory = g.memory();
    const std::function<void()> wrong[] = {
        [&] { g.add<Linear>("node", {}, x); },
        [&] { g.add<Lstm>("node", {}, x); },
        [&] { g.add<Lstm>("node", {.units = 2, .keep = -1}, x); },
        [&] { g.add<Gru>("node", {.units = -2}, x); },
        [&] { g.add<Rnn>("node", {.units = 2, .keep = 1.2}, x); },
        [&] { g.add<Rhn>("node", {.units = 2, .depth = 0}, x); },
        [&] { g.add<Rhn>("node", {.units = 2, .depth = 1001}, x); },
        [&] { g.add<Dropout>("node", {.keep = 1e-11}, x); },
        [&] { g.add<Embedding>("node", {.keep = 0}, w, E); },
        [&] { g.add<Embedding>("node", {.keep_words = 1.5}, w, E); },
        [&] { g.add<Sum>("node", {}, x, wide); },
    };
    for (const auto& add : wrong) REQUIRE_THROWS_MATCHES(add(), UsageError, says("node 'node'"));
    REQUIRE(g.memory() == memory);
    REQUIRE(g.parameters().size() == 1);
    g.add<Lstm>("node", {.units = 2}, x);
}
