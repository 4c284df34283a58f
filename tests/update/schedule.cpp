#include <cmath>
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

TEST_CASE("Patience begins anew after an improvement and after a division", "[update][schedule]") {
    DivideOnPlateau s({.rate = 1, .divisor = 4, .patience = 1});
    CHECK(s.observe(5) == 1);
    CHECK(s.observe(6) == 1);
    CHECK(s.observe(4) == 1);  // better: the next failure is the first
    CHECK(s.observe(5) == 1);
    CHECK(s.observe(5) == 0.25);
    CHECK(s.observe(5) == 0.25);
    CHECK(s.observe(5) == 0.0625);
}

TEST_CASE("One cycle rises along a line and falls along half a cosine", "[update][schedule]") {
    const OneCycle cycle{.rate = 2, .warm_up = 0.2, .start = 0.25, .finish = 0.1};
    CHECK(cycle(0) == Approx(0.5));
    CHECK(cycle(0.1) == Approx(1.25));
    CHECK(cycle(0.2) == Approx(2));
    CHECK(cycle(0.6) == Approx(1.1));  // half way down: the mean of 2 and 0.2
    CHECK(cycle(0.4) == Approx(2 * (0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2)));
    CHECK(cycle(1) == Approx(0.2));
    CHECK(OneCycle{.rate = 3, .warm_up = 0}(0) == 3);
    CHECK(OneCycle{.rate = 3}(1) < 1e-12);
    REQUIRE_THROWS_MATCHES(cycle(1.5), UsageError, says("share = 1.5", "0 to 1"));
    REQUIRE_THROWS_MATCHES(DivideOnPlateau({.rate = 1, .minimum = 5}), UsageError,
                           says("minimum = 5", "0 to 1"));
    REQUIRE_THROWS_MATCHES(DivideOnPlateau({.minimum = std::nan("")}), UsageError, says("minimum = nan"));
    REQUIRE_THROWS_MATCHES((OneCycle{.warm_up = 1}(0)), UsageError, says("warm_up = 1", "below 1"));
    REQUIRE_THROWS_MATCHES((OneCycle{.rate = -1}(0)), UsageError, says("rate = -1"));
}
