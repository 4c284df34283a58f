#include <cmath>
#include <isogloss/elementary.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <numbers>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("log, power and cosine agree with those of the C library in more digits", "[core][elementary]") {
    for (int i = 1; i < 20000; ++i) {
        const double v = i / 20000.;
        for (const double x : {v, 1 + v, 1 / v, std::ldexp(1 + v, i % 2000 - 1000)}) {
            const long double exact = std::log(static_cast<long double>(x));
            CAPTURE(x);
            REQUIRE(std::abs(kernel::elementary::log(x) - double(exact)) <=
                    4e-16 * std::abs(double(exact)) + 1e-300);
        }
        const long double cosine =
            std::cos(2 * std::numbers::pi_v<long double> * static_cast<long double>(v));
        REQUIRE(std::abs(kernel::elementary::cosine_of_turns(v) - double(cosine)) <= 4e-16);
    }
    REQUIRE(kernel::elementary::log(1) == 0);
    REQUIRE(kernel::elementary::log(0) == -std::numeric_limits<double>::infinity());
    REQUIRE(kernel::elementary::log(5e-324) == std::log(5e-324));
    REQUIRE(std::isnan(kernel::elementary::log(-1)));
    REQUIRE(std::isnan(kernel::elementary::log(std::nan(""))));
    REQUIRE(std::isinf(kernel::elementary::log(std::numeric_limits<double>::infinity())));
    for (const Index n : {-5, 0, 1, 2, 13, 1000}) {
        CAPTURE(n);
        REQUIRE(kernel::elementary::power(0.9, n) == Approx(std::pow(0.9, double(n))).epsilon(1e-13));
    }
    REQUIRE(kernel::elementary::power(0, 3) == 0);
}
