#include <isogloss/sizes.hpp>
//
#include <cstdint>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {
constexpr Index most = std::numeric_limits<Index>::max();
std::optional<Index> product(const std::vector<Index>& sizes, Index unit = 1) {
    return product_of(sizes, unit);
}
}  // namespace

TEST_CASE("Sizes multiply up to what can be counted, and not beyond", "[core][sizes]") {
    CHECK(product({}) == 1);
    CHECK(product({2, 3, 4}) == 24);
    CHECK(product({2, 3}, 8) == 48);
    CHECK(product({most, 1}) == most);
    CHECK(product({7, 0, 3}) == 0);
    CHECK(product({Index{1} << 31, Index{1} << 31}) == Index{1} << 62);
    CHECK_FALSE(product({Index{1} << 32, Index{1} << 31}));
    CHECK_FALSE(product({most, 2}));
    CHECK_FALSE(product({Index{1} << 62, 4}));  // wraps to 0
    CHECK_FALSE(product({0, most, 2}));         // nothing, but of sizes that no array has
    CHECK_FALSE(product({3, -1}));
    CHECK_FALSE(product({0, std::numeric_limits<Index>::min()}));
    CHECK_FALSE(product({Index{1} << 61}, 4));
}

TEST_CASE("Sizes that no array has are refused with who asks for them", "[core][sizes][errors]") {
    CHECK(elements_of("e", {5, 6}, sizeof(float)) == 30);
    CHECK(bytes_of("e", {5, 6}, sizeof(float)) == 120);
    REQUIRE_THROWS_MATCHES(elements_of("weight 'E'", {Index{1} << 33, Index{1} << 33}), UsageError,
                           says("weight 'E'", "[8589934592, 8589934592] of 8 bytes each", "2^63 - 1"));
    REQUIRE_THROWS_MATCHES(elements_of<DataError>("text", {-2}), DataError,
                           says("text", "[-2]", "at least 0"));
}

TEST_CASE("Memory that there is not becomes an error of the library, other exceptions pass",
          "[core][sizes][errors]") {
    CHECK(within_memory("e", 8, [] { return 3; }) == 3);
    REQUIRE_THROWS_MATCHES(within_memory("e", 800, []() -> int { throw std::bad_alloc(); }), UsageError,
                           says("e: needs 800 bytes, which are not available"));
    REQUIRE_THROWS_MATCHES(within_memory<DataError>("e", -1, [] { std::vector<int>().reserve(SIZE_MAX); }),
                           DataError, says("e: needs more memory than this machine has"));
    REQUIRE_THROWS_AS(within_memory("e", 1, [] { throw NumericError("x"); }), NumericError);
}
