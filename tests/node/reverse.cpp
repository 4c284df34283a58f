#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/concatenate.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/reverse.hpp>
#include <isogloss/node/softmax.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

TEST_CASE("Reverse obeys the laws of a node that sees whole sentences", "[node][reverse]") {
    const Index time = GENERATE(1, 5);  // odd: a sentence cut in two has other ends
    REQUIRE(laws(
                [](auto& g) {
                    const auto y = g.tokens("y", 4);
                    return check::probe(g, g.template add<Reverse>("turn", {}, g.input("x", 3), y));
                },
                {.time = time}) == "");
}

TEMPLATE_TEST_CASE("Each column turns around within its own length", "[node][reverse]", float, double) {
    Graph<TestType> g({.time = 4, .batch = 3});
    const auto x = g.input("x", 1), w = g.input("w", 1);
    const auto targets = g.tokens("targets", 3);
    const auto y = g.template add<Reverse>("turn", {}, x, targets);
    const auto again = g.template add<Reverse>("again", {}, y, targets);
    const auto l = g.template add<Dot>("loss", {}, w, y), l2 = g.template add<Dot>("loss2", {}, w, again);
    constexpr Token none = not_predicted;
    // Lengths 3 (a gap before its end), 0 and 4.
    const std::vector<Token> ends = {none, none, 1, 0, none, 1, 2, none, 1, none, none, 1};
    const std::vector<TestType> in = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                                weights = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const auto run = [&](Loss<TestType> loss) {
        g.forward(loss, {x, in.data(), 4, 3}, {w, weights.data(), 4, 3}, {targets, {ends.data(), 4, 3}});
        g.backward(loss);
    };
    run(l);
    CHECK(flat(g.value(y)) == Numbers{7, 0, 12, 4, 0, 9, 1, 0, 6, 0, 0, 3});
    CHECK(flat(g.adjoint(x)) == Numbers{7, 0, 12, 4, 0, 9, 1, 0, 6, 0, 0, 3});
    g.template backward<Modulus>(l);
    CHECK(flat(g.modulus(x)) == Numbers{49, 0, 144, 16, 0, 81, 1, 0, 36, 0, 0, 9});
    run(l2);
    CHECK(flat(g.value(again)) == Numbers{1, 0, 3, 4, 0, 6, 7, 0, 9, 0, 0, 12});
}

TEST_CASE("A layer in the other direction sees no padding", "[node][reverse]") {
    // Two sentences side by side, the first shorter, have the states that each has alone.
    const auto states = [](Index time, Index batch, const Numbers& words, const std::vector<Token>& targets) {
        Graph<double> g({.time = time, .batch = batch});
        const auto x = g.input("x", 2);
        const auto y = g.tokens("y", 2);
        const auto turned = g.add<Lstm>("right", {.units = 3}, g.add<Reverse>("turn", {}, x, y));
        const auto both = g.add<Concatenate>("both", {}, x, g.add<Reverse>("back", {}, turned, y));
        const auto l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("tags", {.vocabulary = 2}, both), y);
        g.forward(l, {x, words.data(), time, batch}, {y, {targets.data(), time, batch}});
        return flat(g.value(both));
    };
    const Numbers a = {1, 2, 3, 4}, b = {5, 6, 7, 8, 9, 10};
    const Numbers both =
        states(3, 2, {1, 2, 5, 6, 3, 4, 7, 8, -99, 99, 9, 10}, {0, 1, 1, 1, not_predicted, 0});
    const Numbers first = states(2, 1, a, {0, 1}), second = states(3, 1, b, {1, 1, 0});
    for (Index t = 0; t < 3; ++t)
        for (Index j = 0; j < 5; ++j) {
            if (t < 2)
                CHECK(both[static_cast<std::size_t>((2 * t) * 5 + j)] ==
                      Approx(first[static_cast<std::size_t>(t * 5 + j)]));
            CHECK(both[static_cast<std::size_t>((2 * t + 1) * 5 + j)] ==
                  Approx(second[static_cast<std::size_t>(t * 5 + j)]));
        }
}
