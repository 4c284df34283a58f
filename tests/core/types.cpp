#include <array>
#include <isogloss/types.hpp>
#include <type_traits>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("A token block reads row by row, a row being a time step", "[core][types]") {
    const std::array<Token, 6> tokens = {10, 11, 12, 20, 21, 22};
    const TokenBlock block{.data = tokens.data(), .time = 2, .batch = 3};
    REQUIRE(block.size() == 6);
    REQUIRE(block(0, 0) == 10);
    REQUIRE(block(0, 2) == 12);
    REQUIRE(block(1, 0) == 20);
    REQUIRE(block(1, 2) == 22);
}

TEST_CASE("A token block that nobody filled is empty", "[core][types]") {
    const TokenBlock block;
    REQUIRE(block.data == nullptr);
    REQUIRE(block.size() == 0);
}

TEST_CASE("Sizes are signed and as wide as a pointer", "[core][types]") {
    STATIC_REQUIRE(std::is_signed_v<Index>);
    STATIC_REQUIRE(sizeof(Index) == sizeof(void*));
    REQUIRE(Index{3} - Index{5} == -2);
}

TEST_CASE("No vocabulary holds the token that is not predicted", "[core][types]") {
    STATIC_REQUIRE(not_predicted < 0);
    STATIC_REQUIRE(sizeof(Token) == 4);
}
