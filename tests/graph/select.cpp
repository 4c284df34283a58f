// Parameters and sequences by name.
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/lstm.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

TEST_CASE("What nodes keep within them is read by name", "[graph]") {
    Graph<double> g({.time = 3, .batch = 2});
    const auto x = g.input("x", 2);
    const auto h = g.add<Lstm>("lstm", {.units = 2, .init = uniform(1)}, x);
    CHECK(g.sequence("lstm.h").id == h.id);
    const Numbers in = numbers(12, 5);
    g.forward(h, {x, in.data(), 3, 2});
    const auto c = g.value(g.sequence("lstm.c")), gates = g.value(g.sequence("lstm.z")), out = g.value(h);
    REQUIRE(gates.shape(1) == 8);
    for (std::size_t r = 0; r < 6; ++r)
        for (std::size_t i = 0; i < 2; ++i) {  // gates i, f, g, o
            const double before = r < 2 ? 0 : c(r - 2, i);
            CHECK(c(r, i) == Approx(gates(r, 2 + i) * before + gates(r, i) * gates(r, 4 + i)));
            CHECK(out(r, i) == Approx(gates(r, 6 + i) * std::tanh(c(r, i))));
        }
    REQUIRE_THROWS_MATCHES(g.sequence("lstm.gates"), UsageError, says("'lstm.gates'"));
    REQUIRE_THROWS_AS(Graph<float>({}).sequence("x"), UsageError);
}

TEST_CASE("Names match patterns", "[graph]") {
    CHECK(graph::matches("*", "lstm1.W"));
    CHECK(graph::matches("lstm*", "lstm1.W"));
    CHECK(graph::matches("*.W", "lstm1.W"));
    CHECK(graph::matches("l*1*W", "lstm1.W"));
    CHECK(graph::matches("E", "E"));
    CHECK_FALSE(graph::matches("E", "Ex"));
    CHECK_FALSE(graph::matches("*.b", "lstm1.W"));
    CHECK_FALSE(graph::matches("", "E"));
    CHECK(graph::matches("**", ""));
    CHECK(graph::matches("*ab", "aab"));  // the first a is not that of the pattern
    CHECK(graph::matches("*.W", "a..W"));
}
