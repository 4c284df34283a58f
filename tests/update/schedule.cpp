#include <isogloss/update/schedule.hpp>
#include <limits>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("The published schedule: constant, then a factor each epoch", "[update][schedule]") {
    const ConstantThenDecay small{.rate = 1, .constant = 5, .factor = 0.9};
    CHECK(small(1) == 1);
    CHECK(small(5) == 1);
    CHECK(small(6) == Approx(0.9));
    CHECK(small(8) == Approx(0.729));
    REQUIRE_THROWS_MATCHES(small(0), UsageError, says("epoch = 0", "at least 1"));
    REQUIRE_THROWS_MATCHES((ConstantThenDecay{.factor = 0}(1)), UsageError, says("factor = 0"));
}

TEST_CASE("The rate is divided when validation does not improve", "[update][schedule]") {
    DivideOnPlateau s({.rate = 1, .divisor = 4, .patience = 1, .minimum = 0.1});
    CHECK(s.observe(5) == 1);
    CHECK(s.observe(6) == 1);     // the one that is let pass
    CHECK(s.observe(5) == 0.25);  // no better than the best
    CHECK(s.observe(4) == 0.25);
    CHECK(s.observe(4) == 0.25);
    CHECK(s.observe(4) == 0.1);  // not below the minimum
    REQUIRE_THROWS_AS(s.observe(std::numeric_limits<double>::quiet_NaN()), NumericError);
    REQUIRE_THROWS_MATCHES(DivideOnPlateau({.divisor = 1}), UsageError, says("divisor = 1", "above 1"));
}
