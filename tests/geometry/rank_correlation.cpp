#include <cmath>
#include <isogloss/geometry/rank_correlation.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using V = std::vector<double>;

TEST_CASE("Ranks begin at 1 and are shared by equal numbers", "[metric][rank_correlation]") {
    REQUIRE(isogloss::detail::ranks(V{10, -3, 7}) == V{3, 1, 2});
    REQUIRE(isogloss::detail::ranks(V{5, 1, 5, 5, 0}) == V{4, 2, 4, 4, 1});
    REQUIRE(isogloss::detail::ranks(V{}).empty());
}

TEST_CASE("Spearman's correlation is 1 for any rising relation and -1 for any falling one",
          "[metric][rank_correlation]") {
    const V x = {0.3, -2, 5, 1, 0};
    V rising, falling;
    for (const double v : x) {
        rising.push_back(std::exp(v));
        falling.push_back(-v * v * v);
    }
    REQUIRE(spearman(x, rising) == Approx(1));
    REQUIRE(spearman(x, falling) == Approx(-1));
    // Without ties it is 1 - 6 Σ d² / (n (n² - 1)): d = 0, 1, 1, 1, 1 here.
    REQUIRE(spearman(V{1, 2, 3, 4, 5}, V{1, 3, 2, 6, 5}) == Approx(1 - 6.0 * (0 + 1 + 1 + 1 + 1) / (5 * 24)));
}

TEST_CASE("Spearman's correlation under ties", "[metric][rank_correlation][reference]") {
    // scipy.stats.spearmanr([1, 2, 2, 3, 9, 9], [4, 1, 6, 6, 6, 7]): ranks 1, 2.5, 2.5, 4, 5.5, 5.5 and 2, 1,
    // 4, 4, 4, 6
    const double both = 2.5 * 1.5 + 1 * 2.5 - 1 * 0.5 + 0.5 * 0.5 + 2 * 0.5 + 2 * 2.5;
    const double x = 2.5 * 2.5 + 1 + 1 + 0.25 + 4 + 4, y = 2.25 + 6.25 + 3 * 0.25 + 6.25;
    REQUIRE(spearman(V{1, 2, 2, 3, 9, 9}, V{4, 1, 6, 6, 6, 7}) ==
            Approx(both / std::sqrt(x * y)).epsilon(1e-14));
}

TEST_CASE("Spearman's correlation refuses what has no order", "[metric][rank_correlation][errors]") {
    REQUIRE_THROWS_MATCHES(spearman(V{1, 2}, V{1, 2, 3}), DataError, says("2 and 3 numbers"));
    REQUIRE_THROWS_MATCHES(spearman(V{1}, V{1}), DataError, says("at least 2"));
    REQUIRE_THROWS_MATCHES(spearman(V{1, 1}, V{1, 2}), NumericError, says("equal"));
    REQUIRE_THROWS_MATCHES(spearman(V{1, std::nan("")}, V{1, 2}), NumericError,
                           says("nan in a list, number 1"));
}
