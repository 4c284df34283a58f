// What a graph does with sizes beyond all memory, and when it gets none.
#include <isogloss/isogloss.hpp>
#include <new>
#include <optional>

#include "allocations.hpp"
#include "catch.hpp"

using namespace isogloss;

TEST_CASE("An arena that got no memory is as it was", "[graph][memory]") {
    graph::Arena arena;
    auto* first = arena.take<float>(10);
    const std::size_t size = arena.size();
    {
        const LargestAllocation small(std::size_t{4} << 20);
        REQUIRE_THROWS_AS(arena.take<float>(Index{2} << 20, "weight 'E'"), UsageError);
        REQUIRE(arena.size() == size);
        float* const later = arena.take<float>(600'000);  // larger than a chunk, smaller than what failed
        for (Index i = 0; i < 600'000; ++i) later[i] = 1;
    }
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
        const FailingAllocation fail(k);  // of the chunk, of the list of chunks
        try {
            arena.take<float>(600'000);
        } catch (const UsageError&) {
        }
        CHECK(fail.happened());
    }
    float* const again = arena.take<float>(500'000);
    for (Index i = 0; i < 500'000; ++i) again[i] = 1;
    REQUIRE(first[9] == 0);
    REQUIRE(arena.guards_intact());
    REQUIRE_THROWS_AS(arena.take<float>(-1), UsageError);
    REQUIRE_THROWS_AS(arena.take<double>(Index{1} << 61), UsageError);
    REQUIRE_THROWS_AS(arena.take<float>({Index{1} << 33, Index{1} << 33}), UsageError);
}

TEST_CASE("An arena gives back what was taken since a mark", "[graph][memory]") {
    graph::Arena arena;
    arena.take<float>(10);
    const auto mark = arena.mark();
    const std::size_t size = arena.size();
    const auto held = blocks_held();
    float* const small = arena.take<float>(20);
    small[3] = 7;
    arena.take<float>(1'000'000);
    arena.back_to(mark);
    REQUIRE(arena.size() == size);
    REQUIRE(blocks_held() == held);
    REQUIRE(arena.take<float>(20) == small);
    REQUIRE(small[3] == 0);
    REQUIRE(arena.guards_intact());
}

TEST_CASE("Sizes beyond what can be counted are refused where they are given", "[graph][memory][errors]") {
    constexpr Index huge = Index{1} << 62;
    REQUIRE_THROWS_AS(Graph<float>({.time = huge, .batch = 4}), UsageError);
    Graph<float> g({.time = 3, .batch = 2});
    g.weight("first", 2, 2, constant(1));
    const std::size_t memory = g.memory();
    REQUIRE_THROWS_AS(g.weight("E", Index{1} << 33, Index{1} << 33, constant(1)), UsageError);
    REQUIRE_THROWS_AS(g.input("q", Index{1} << 61), UsageError);
    REQUIRE_THROWS_MATCHES(g.tokens("x", Index{1} << 33), UsageError, says("'x'", "vocabulary = 8589934592"));
    const auto u = g.input("u", 2);
    const std::size_t with_input = g.memory();
    REQUIRE_THROWS_AS(g.add<Lstm>("h", {.units = Index{1} << 60}, u), UsageError);
    REQUIRE_THROWS_MATCHES(g.add<Rhn>("h", {.units = 1, .depth = Index{1} << 40}, u), UsageError,
                           says("'h'"));
    CHECK(with_input > memory);
    CHECK(g.memory() == with_input);
    CHECK(g.parameters().size() == 1);
}

TEST_CASE("A handle of a graph that is gone is known, also where another has its address",
          "[graph][memory][errors]") {
    std::optional<Graph<float>> g;
    g.emplace(GraphOptions{.time = 2, .batch = 1});
    const auto* address = &*g;
    const auto x = g->tokens("x", 9);
    const auto u = g->input("u", 3);
    const auto E = g->weight("E", 9, 3, uniform(0.1));
    const auto e = g->add<Embedding>("e", {}, x, E);
    const auto o = g->add<TiedSoftmax>("o", {}, e, E);
    const auto l = g->add<CrossEntropy>("l", {}, o, x);
    g.emplace(GraphOptions{.time = 2, .batch = 1});
    REQUIRE(&*g == address);
    const auto x2 = g->tokens("x", 4);
    const auto u2 = g->input("u", 6);
    const auto E2 = g->weight("E", 4, 6, uniform(0.1));
    g->add<Embedding>("e", {}, x2, E2);
    REQUIRE_THROWS_AS(g->add<Linear>("y", {.units = 2}, u), UsageError);
    REQUIRE_THROWS_AS(g->add<Embedding>("f", {}, x2, E), UsageError);
    REQUIRE_THROWS_AS(g->add<Embedding>("f", {}, x, E2), UsageError);
    REQUIRE_THROWS_AS(g->value(E), UsageError);
    REQUIRE_THROWS_AS(g->result(l), UsageError);
    const std::vector<Token> old = {8, 8};
    REQUIRE_THROWS_AS(g->forward(u2, {x, TokenBlock{old.data(), 2, 1}}), UsageError);
    REQUIRE_THROWS_AS(g->head(o).probabilities(), UsageError);
}

TEST_CASE("Probabilities are written only where there is room", "[graph][memory][errors]") {
    Graph<double> g({.time = 4, .batch = 2});
    const auto x = g.tokens("x", 5);
    const auto E = g.weight("E", 5, 3, uniform(0.5));
    const auto o = g.add<TiedSoftmax>("o", {}, g.add<Embedding>("e", {}, x, E), E);
    const std::vector<Token> words = {0, 1, 2, 3, 4, 0, 1, 2};
    g.forward(o, {x, TokenBlock{words.data(), 4, 2}});
    std::vector<double> room(50);
    double* const p = room.data();
    constexpr Index most = std::numeric_limits<Index>::max();
    const auto ask = [&](Index first, MatrixRef<double> out) { g.head(o).probabilities(first, out); };
    REQUIRE_THROWS_AS(ask(most, {p, 2, 5}), UsageError);
    REQUIRE_THROWS_AS(ask(-1, {p, 2, 5}), UsageError);
    REQUIRE_THROWS_AS(ask(7, {p, 2, 5}), UsageError);
    REQUIRE_THROWS_AS(ask(0, {p, -1, 5}), UsageError);
    REQUIRE_THROWS_AS(ask(0, {p, 2, 5, 2}), UsageError);
    REQUIRE_THROWS_AS(ask(0, {nullptr, 2, 5}), UsageError);
    ask(6, {p, 2, 5, 7});
    CHECK(p[0] + p[1] + p[2] + p[3] + p[4] == Approx(1));
    CHECK(p[5] == 0);
    ask(8, {p, 0, 5});
}
