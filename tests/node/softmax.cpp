#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/softmax.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

namespace {

constexpr Index V = 7, n = 4;

}  // namespace

TEST_CASE("A head of its own obeys the laws of a node", "[node][softmax]") {
    const bool bias = GENERATE(true, false);
    CAPTURE(bias);
    REQUIRE(laws([=](auto& g) {
                const auto o =
                    g.template add<Softmax>("head", {.vocabulary = V, .bias = bias}, g.input("h", n));
                return g.template add<CrossEntropy>("loss", {}, o, g.tokens("y", V));
            }) == "");
}

TEST_CASE("A tied head obeys the laws of a node", "[node][softmax]") {
    const bool bias = GENERATE(false, true), projection = GENERATE(false, true),
               embedded = GENERATE(true, false);
    CAPTURE(bias, projection, embedded);
    REQUIRE(laws([=](auto& g) {
                const auto E = g.weight("E", V, n, uniform(0.8));
                const auto h = embedded
                                   ? g.template add<Embedding>("embed", {.keep = 0.6}, g.tokens("x", V), E)
                                   : g.input("h", projection ? 3 : n);
                const auto o =
                    g.template add<TiedSoftmax>("head", {.bias = bias, .projection = projection}, h, E);
                return g.template add<CrossEntropy>("loss", {}, o, g.tokens("y", V));
            }) == "");
}

TEST_CASE("Probabilities are the softmax of W h + b", "[node][softmax]") {
    Graph<double> g({.time = 1, .batch = 2});
    const auto h = g.input("h", 2);
    const auto o = g.add<Softmax>("head", {.vocabulary = 3}, h);
    set(g, "head.W", {1, 0, 0, 1, -1, 2});
    set(g, "head.b", {0.5, 0, -1});
    const Numbers in = {0.3, -0.2, 1, 2};
    g.forward(o, {h, in.data(), 1, 2});
    const double temperature = GENERATE(1., 3.);
    const auto p = g.head(o).probabilities(temperature);
    for (std::size_t r = 0; r < 2; ++r) {
        const double a = in[2 * r], b = in[2 * r + 1];
        const Numbers e = {std::exp((a + 0.5) / temperature), std::exp(b / temperature),
                           std::exp((2 * b - a - 1) / temperature)};
        for (std::size_t v = 0; v < 3; ++v)
            REQUIRE(p(r, v) == Approx(e[v] / (e[0] + e[1] + e[2])).epsilon(1e-14));
    }
}

TEST_CASE("A tied head reads the embedding table, through the projection where there is one",
          "[node][softmax]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto E = g.weight("E", 3, 2, constant(0));
    const auto h = g.input("h", 3);
    const auto o = g.add<TiedSoftmax>("head", {.bias = true, .projection = true}, h, E);
    set(g, "E", {1, 0, 0, 1, 1, 1});
    set(g, "head.P", {1, 0, 0, 2, 0, 0});
    set(g, "head.b", {0, 0, 0.5});
    const Numbers in = {0.3, 0.4, 9};  // projected: 0.3, 0.8
    g.forward(o, {h, in.data(), 1, 1});
    const Numbers e = {std::exp(0.3), std::exp(0.8), std::exp(1.1 + 0.5)};
    for (std::size_t v = 0; v < 3; ++v)
        REQUIRE(g.head(o).probabilities()(0, v) == Approx(e[v] / (e[0] + e[1] + e[2])).epsilon(1e-14));
}

TEST_CASE("Heads refuse what does not fit and leave the graph as it was", "[node][softmax]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto h = g.input("h", 600);
    const auto E = g.weight("E", V, 650, constant(0));
    REQUIRE_THROWS_MATCHES(g.add<TiedSoftmax>("softmax", {}, h, E), UsageError, says("node 'softmax'"));
    REQUIRE_THROWS_MATCHES(g.add<Softmax>("softmax", {}, h), UsageError, says("node 'softmax'"));
    const auto o = g.add<TiedSoftmax>("softmax", {.projection = true}, h, E);
    REQUIRE(o.vocabulary == V);
    REQUIRE(g.parameters("softmax.*").size() == 1);
}
