// The states that a graph carries from one pass to the next.
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/gru.hpp>
#include <isogloss/node/lstm.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

template <class T> std::vector<T> fed(Index n, std::uint64_t seed) {
    const Numbers v = numbers(n, seed);
    return {v.begin(), v.end()};
}

}  // namespace

TEMPLATE_TEST_CASE("States are read, written and copied by name and by column", "[graph][carry]", float,
                   double) {
    Graph<TestType> g({.time = 2, .batch = 3});
    const auto x = g.input("x", 2);
    const auto h = g.template add<Lstm>("lstm", {.units = 2, .init = uniform(1)}, x);
    const auto in = fed<TestType>(12, 5), one = fed<TestType>(6, 6);
    const auto step = [&] {
        g.forward(h, {x, one.data(), 1, 3});
        return flat(g.value(h));
    };
    CHECK(g.state_names() == std::vector<std::string>{"lstm.h", "lstm.c"});
    g.forward(h, {x, in.data(), 2, 3});
    const Numbers states = flat(g.value(h));
    CHECK(flat(g.state("lstm.h")) == Numbers(states.end() - 6, states.end()));
    const auto before = g.carried();
    const Numbers all = step();

    g.carry(before);
    g.reset(1);
    CHECK(g.state("lstm.c")(1, 0) == 0);
    const Numbers reset = step();
    CHECK(Numbers(reset.begin(), reset.begin() + 2) == Numbers(all.begin(), all.begin() + 2));
    CHECK(Numbers(reset.begin() + 4, reset.end()) == Numbers(all.begin() + 4, all.end()));
    CHECK(Numbers(reset.begin() + 2, reset.begin() + 4) != Numbers(all.begin() + 2, all.begin() + 4));

    g.carry(before);
    g.copy_state(2, 0);
    g.copy_state(1, 1);
    for (const char* name : {"lstm.h", "lstm.c"}) CHECK(g.state(name)(0, 1) == g.state(name)(2, 1));
    CHECK(step() != all);

    g.carry(before);
    g.state("lstm.c")(0, 0) = 7;  // written by hand: what the next pass starts from
    const Numbers written = step();
    CHECK(written[0] != all[0]);
    CHECK(Numbers(written.begin() + 2, written.end()) == Numbers(all.begin() + 2, all.end()));

    REQUIRE_THROWS_MATCHES(g.reset(3), UsageError, says("reset", "column = 3", "0 to 2"));
    REQUIRE_THROWS_MATCHES(g.copy_state(0, -1), UsageError, says("copy_state", "column = -1"));
    REQUIRE_THROWS_MATCHES(g.state("lstm.z"), UsageError, says("'lstm.z'", "lstm.h, lstm.c"));
}

TEMPLATE_TEST_CASE("Columns go on from the states of others, all at once", "[graph][carry]", float, double) {
    Graph<TestType> g({.time = 2, .batch = 3});
    const auto x = g.input("x", 2);
    g.template add<Gru>("above", {.units = 3},
                        g.template add<Lstm>("lstm", {.units = 2, .init = uniform(1)}, x));
    const auto in = fed<TestType>(12, 5);
    g.forward(g.sequence("above.h"), {x, in.data(), 2, 3});
    const auto before = g.carried();
    const std::vector<Index> from = {2, 0, 2};  // in place 0 would be lost before column 1 has read it
    g.copy_states(from);
    const auto after = g.carried();
    const std::vector<Index> widths = {2, 2, 3};
    REQUIRE(after.values.size() == 3);
    for (std::size_t s = 0; s < 3; ++s)
        for (Index b = 0; b < 3; ++b)
            for (Index i = 0; i < widths[s]; ++i)
                CHECK(after.values[s][std::size_t(b * widths[s] + i)] ==
                      before.values[s][std::size_t(from[std::size_t(b)] * widths[s] + i)]);
    g.carry(before);
    g.copy_states(std::vector<Index>{1});  // the others stay
    CHECK(g.state("lstm.c")(0, 1) == before.values[1][3]);
    CHECK(g.state("lstm.c")(1, 1) == before.values[1][3]);
    CHECK(g.state("lstm.c")(2, 0) == before.values[1][4]);
    g.carry(before);
    REQUIRE_THROWS_MATCHES(g.copy_states(std::vector<Index>{0, 3}), UsageError,
                           says("copy_states", "column = 3", "0 to 2"));
    REQUIRE_THROWS_MATCHES(g.copy_states(std::vector<Index>{0, 0, 0, 0}), UsageError,
                           says("copy_states: found 4 columns, expected at most 3"));
    CHECK(g.carried() == before);
}

TEST_CASE("A state that an earlier pass left without a finite number is named as the cause",
          "[graph][carry][errors]") {
    const bool checking = GENERATE(false, true);
    CAPTURE(checking);
    Graph<double> g({.time = 2, .batch = 3});
    const auto x = g.input("x", 2), w = g.input("w", 2);
    const auto l = g.add<Dot>("loss", {}, w, g.add<Lstm>("lstm", {.units = 2}, x));
    const Numbers good = numbers(12, 5);
    Numbers bad = good;
    bad[2] = NAN;
    const auto pass = [&](const Numbers& in) {
        return g.forward(l, {x, in.data(), 2, 3}, {w, good.data(), 2, 3});
    };
    REQUIRE_THROWS_MATCHES(pass(bad), NumericError, says("The input 'x' is nan"));
    g.checking(checking);
    REQUIRE_THROWS_MATCHES(
        pass(good), NumericError,
        says("The carried state 'lstm.h' was nan before the pass, in batch row 1", "reset()"));
    g.reset();
    CHECK(std::isfinite(pass(good)));
}
