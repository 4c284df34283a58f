#include <isogloss/isogloss.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

// A product that is subnormal, out of sight of the compiler.
float below_all() {
    volatile float a = std::numeric_limits<float>::min(), b = 0.25f;
    return a * b;
}

}  // namespace

TEST_CASE("Subnormal numbers are 0 as long as somebody asks for it", "[core][subnormals]") {
    REQUIRE(below_all() > 0);
#if defined(__SSE2__)
    {
        const SubnormalsAreZero outer;
        REQUIRE(below_all() == 0);
        {
            const SubnormalsAreZero inner;
            REQUIRE(SubnormalsAreZero::active());
        }
        REQUIRE(below_all() == 0);
        threads(2);
        std::vector<float> seen(64, 1.0f);
        parallel(64, 1, 64, [&](Index first, Index last, Index) {
            for (Index i = first; i < last; ++i) seen[static_cast<std::size_t>(i)] = below_all();
        });
        threads(1);
        REQUIRE(seen == std::vector<float>(64, 0.0f));
    }
#endif
    REQUIRE(!SubnormalsAreZero::active());
    REQUIRE(below_all() > 0);
    threads(2);  // threads that were born above are as the host's
    std::vector<float> after(64, 0.0f);
    parallel(64, 1, 64, [&](Index first, Index last, Index) {
        for (Index i = first; i < last; ++i) after[static_cast<std::size_t>(i)] = below_all();
    });
    threads(1);
    for (const float v : after) REQUIRE(v > 0);
}

TEST_CASE("A pass and an update leave the host's arithmetic as it was", "[core][subnormals]") {
    Graph<float> g({.time = 2, .batch = 1});
    const auto x = g.tokens("x", 3), y = g.tokens("y", 3);
    const auto e = g.add<Embedding>("embed", {}, x, g.weight("E", 3, 2, constant(1e-30)));
    const auto z = g.add<Linear>("map", {.units = 2, .init = constant(1e-12)}, e);
    const auto l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("out", {.vocabulary = 3}, z), y);
    const std::vector<Token> in = {0, 1}, next = {1, 2};
    Adam<float> adam(g.parameters(), {});
    g.forward(l, {x, {in.data(), 2, 1}}, {y, {next.data(), 2, 1}});
    REQUIRE(below_all() > 0);
#if defined(__SSE2__)
    REQUIRE(g.value(z)(0, 0, 0) == 0);  // 2e-42
#endif
    g.backward(l);
    REQUIRE(below_all() > 0);
    adam.step();
    REQUIRE(below_all() > 0);
}
