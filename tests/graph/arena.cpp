#include <cstdint>
#include <isogloss/graph/arena.hpp>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("An arena hands out zeroed, aligned blocks that stay where they are", "[graph][arena]") {
    graph::Arena arena;
    auto* small = arena.take<float>(3);
    auto* large = arena.take<double>(300000);  // more than a chunk
    auto* none = arena.take<float>(0);
    for (const void* p : {static_cast<void*>(small), static_cast<void*>(large), static_cast<void*>(none)})
        REQUIRE(reinterpret_cast<std::uintptr_t>(p) % 64 == 0);
    for (int i = 0; i < 300000; ++i) REQUIRE(large[i] == 0);
    small[2] = 5;
    for (int i = 0; i < 1000; ++i) arena.take<float>(1000);
    REQUIRE(small[2] == 5);
    REQUIRE(arena.size() >= 300000 * sizeof(double) + 1000 * 4000);
    REQUIRE(arena.guards_intact());
}

TEST_CASE("A write beyond a block shows in its guard bands", "[graph][arena]") {
    for (const int offset : {-1, 16}) {
        graph::Arena arena;
        auto* block = arena.take<float>(16);
        arena.take<float>(16);
        REQUIRE(arena.guards_intact());
        block[offset] = 1;
        REQUIRE_FALSE(arena.guards_intact());
    }
}
