#include <isogloss/lds/dynamics.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::lds;

TEST_CASE("Directions are singular vectors, whatever the basis, with the words that lie in them",
          "[lds][dynamics]") {
    // Whitened states: the first leads to the second at half its strength, the second is forgotten.
    Lds<double> s;
    s.whitening = Whitening::of_frequencies({0.2, 0.2, 0.2, 0.2, 0.15, 0.05}, 1);
    const SmallMatrix A = {{0.0, 0.1}, {0.5, 0.0}},
                      C = {{1, 0}, {0.5, 0}, {0, 1}, {0, 0.5}, {-1, -1}, {2, 2}};
    const SmallMatrix B = {{2.0, 1.0}, {-0.5, 3.0}};  // any basis
    const SmallMatrix back = inverse(B, "test");
    s.A = product(B, A, back);
    s.C = product(C, back);
    s.M = dense::identity(2);
    const auto found = dynamics(s, product_t(B, B), 2, 2, 0.1);
    REQUIRE(found.size() == 4);
    CHECK(found[0].strength == Approx(0.5));
    CHECK(found[2].strength == Approx(0.1));
    const auto& one = found[0].from[0] == 0 ? found[0] : found[1];
    CHECK(one.from == std::vector<Token>{0, 1});
    CHECK(one.to == std::vector<Token>{2, 3});
    const auto& other = found[0].from[0] == 0 ? found[1] : found[0];
    CHECK(other.from[0] == 4);
    CHECK(other.to[0] == 4);
    REQUIRE_THROWS_MATCHES(dynamics(s, dense::identity(2), 3, 2), UsageError, says("pairs = 3", "1 to 2"));
    REQUIRE_THROWS_MATCHES(dynamics(s, dense::identity(2), 1, 0), UsageError, says("words = 0"));
    REQUIRE_THROWS_MATCHES(dynamics(s, dense::identity(2), 1, 1, 2), UsageError, says("min_frequency = 2"));
    const SmallMatrix xx = dense::identity(3);
    REQUIRE_THROWS_MATCHES(dynamics(s, xx, 1, 1), UsageError, says("averages [3, 3]", "expected [2, 2]"));
}
