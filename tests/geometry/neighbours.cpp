#include <cmath>
#include <isogloss/geometry/neighbours.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("nearest orders rows by the angle to the query", "[metric][neighbours]") {
    // Angles 90°, 0°, 45°, 180°, 30° to (2, 0); lengths do not count.
    const std::vector<double> table{0, 5, 3, 0, 1, 1, -4, 0, std::sqrt(3.0), 1};
    const auto found = nearest(table, 5, 2, std::vector<double>{2, 0}, 5);
    const std::vector<Index> rows{1, 4, 2, 0, 3};
    const std::vector<double> cosines{1, std::sqrt(3.0) / 2, std::sqrt(0.5), 0, -1};
    REQUIRE(found.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
        REQUIRE(found[i].row == rows[i]);
        REQUIRE(std::abs(found[i].similarity - cosines[i]) < 1e-15);
    }
}

TEST_CASE("nearest gives at most k, ties by row number", "[metric][neighbours]") {
    const std::vector<float> table{1, 0, 2, 0, 0, 1, 3, 0};
    const std::vector<float> query{1, 0};
    const auto two = nearest(table, 4, 2, query, 2);
    REQUIRE(two.size() == 2);
    REQUIRE(two[0].row == 0);
    REQUIRE(two[1].row == 1);
    REQUIRE(nearest(table, 4, 2, query, 0).empty());
    REQUIRE(nearest(table, 4, 2, query, 100).size() == 4);
    REQUIRE(nearest(std::vector<float>{}, 0, 2, query, 3).empty());
}

TEST_CASE("nearest leaves out zero rows and the row itself", "[metric][neighbours]") {
    const std::vector<float> table{1, 1, 0, 0, 1, 0.9f};
    const auto all = nearest(table, 3, 2, std::vector<float>{1, 1}, 3);
    REQUIRE(all.size() == 2);
    REQUIRE(all[0].row == 0);
    const auto others = nearest(table, 3, 2, 0, 3);
    REQUIRE(others.size() == 1);
    REQUIRE(others[0].row == 2);
    REQUIRE_THROWS_MATCHES(nearest(table, 3, 2, 1, 3), NumericError, says("query", "above 0"));
    REQUIRE_THROWS_MATCHES(nearest(table, 3, 2, 3, 1), DataError, says("row 3", "[3, 2]"));
    REQUIRE_THROWS_MATCHES(nearest(table, 3, 2, -1, 1), DataError, says("row -1"));
}

TEST_CASE("nearest sums in double and stays within -1 and 1", "[metric][neighbours]") {
    // In float, the sum of 1 and 20000 · 2⁻²⁴ would stay 1.
    std::vector<float> table(20001, 0x1p-12f), query(20001, 0x1p-12f);
    table[0] = 1;
    query[0] = 1;
    query[1] = 0;
    const double tail = 19999 * 0x1p-24, all = 20000 * 0x1p-24;
    const auto found = nearest(table, 1, 20001, query, 1);
    REQUIRE(std::abs(found[0].similarity - (1 + tail) / std::sqrt((1 + all) * (1 + tail))) < 1e-12);
    for (int i = 1; i < 200; ++i) {
        const std::vector<double> v{0.1 * i, 0.7 / i, 0.3};
        REQUIRE(nearest(v, 1, 3, v, 1)[0].similarity <= 1);
    }
}

TEST_CASE("nearest refuses sizes and numbers that make no sense", "[metric][neighbours]") {
    std::vector<float> table{1, 2, 3, 4};
    const std::vector<float> query{1, 2};
    REQUIRE_THROWS_MATCHES(nearest(table, 3, 2, query, 1), DataError, says("4 numbers", "[3, 2]"));
    REQUIRE_THROWS_MATCHES(nearest(table, 1, 3, query, 1), DataError, says("[1, 3]"));
    REQUIRE_THROWS_MATCHES(nearest(table, 4, 1, query, 1), DataError, says("a query of 2 numbers"));
    REQUIRE_THROWS_MATCHES(nearest(table, 2, 2, query, -1), DataError, says("k = -1"));
    REQUIRE_THROWS_MATCHES(nearest(table, 2, 0, query, 1), DataError, says("[2, 0]"));
    table[3] = std::numeric_limits<float>::quiet_NaN();
    REQUIRE_THROWS_MATCHES(nearest(table, 2, 2, query, 1), NumericError, says("row 1", "nan"));
    REQUIRE_THROWS_MATCHES(nearest(table, 2, 2, 1, 1), NumericError, says("query", "nan"));
}

TEST_CASE("Nearest words", "[metric][neighbours]") {
    const WordIndex words({"north", "east", "northeast", "nowhere"});
    const std::vector<float> table{0, 1, 1, 0, 1, 2, 0, 0};
    const auto found = nearest(words, table, 2, "north", 5);
    REQUIRE(found.size() == 2);
    REQUIRE(words[found[0].row] == "northeast");
    REQUIRE(std::abs(found[0].similarity - 2 / std::sqrt(5.0)) < 1e-15);
    REQUIRE(words[found[1].row] == "east");
    REQUIRE_THROWS_MATCHES(nearest(words, table, 2, "West", 1), DataError, says("'West'", "4 words"));
    const std::vector<double> in_double(table.begin(), table.end());
    REQUIRE(nearest(words, in_double, 2, "north", 5)[0].row == found[0].row);
    REQUIRE_THROWS_MATCHES(nearest(words, in_double, 2, "West", 1), DataError, says("'West'", "4 words"));
}
