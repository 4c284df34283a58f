#include <cmath>
#include <isogloss/evaluation/perplexity.hpp>
#include <limits>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("A uniform model over V words has perplexity V, log2 V bits", "[metric][perplexity]") {
    Perplexity p;
    for (int i = 0; i < 3; ++i) p.add(5 * std::log(64.0), 5, 20);
    CHECK(p.value() == Approx(64));
    CHECK(p.nats() == Approx(std::log(64.0)));
    CHECK(p.bits_per_token() == Approx(6));
    CHECK(p.bits_per_character() == Approx(1.5));
    CHECK(p.tokens() == 15);
    CHECK(p.characters() == 60);
    CHECK(p.total() == Approx(15 * std::log(64.0)));
}

TEST_CASE("Perplexity refuses to average nothing, and what is not a number", "[metric][perplexity]") {
    Perplexity p;
    REQUIRE_THROWS_AS(p.value(), UsageError);
    p.add(1, 1);
    REQUIRE_THROWS_AS(p.bits_per_character(), UsageError);
    REQUIRE_THROWS_AS(p.add(std::numeric_limits<double>::quiet_NaN(), 1), NumericError);
    REQUIRE_THROWS_MATCHES(p.add(1, -1), UsageError, says("tokens = -1"));
    CHECK(p.nats() == 1);
}
