// The sign test of lds_text against sums of binomial coefficients, and known values.
#include "../../programs/lds_text/sign_test.hpp"

#include <cmath>

#include "catch.hpp"

using lt::sign_test;

TEST_CASE("The sign test has its exact values") {
    // 2 · 21700 / 2²⁰, from 1 + 20 + 190 + 1140 + 4845 + 15504 = 21700
    CHECK(sign_test(5, 15) == Approx(2 * 21700 / 1048576.0).epsilon(1e-13));
    CHECK(sign_test(15, 5) == sign_test(5, 15));
    CHECK(sign_test(0, 5) == Approx(0.0625).epsilon(1e-13));
    CHECK(sign_test(0, 1) == 1);
    CHECK(sign_test(1, 2) == 1);
    CHECK(sign_test(0, 0) == 1);
    CHECK(sign_test(7, 7) == 1);
}

TEST_CASE("The sign test is the sum of its terms") {
    for (const std::size_t n : {1u, 2u, 9u, 24u, 60u}) {
        double coefficient = 1, sum = 0;  // below 2⁵³, and exact
        for (std::size_t k = 0; 2 * k <= n; ++k) {
            sum += coefficient;
            CHECK(sign_test(k, n - k) == Approx(std::min(1.0, 2 * std::ldexp(sum, -int(n)))).epsilon(1e-12));
            coefficient = coefficient * double(n - k) / double(k + 1);
        }
    }
}

TEST_CASE("The sign test of many words is finite") {
    CHECK(sign_test(50000, 50000) == 1);
    CHECK(sign_test(49500, 50500) ==
          Approx(0.0015823598788515956).epsilon(1e-9));  // by whole numbers of 10⁵ bits
    CHECK(sign_test(0, 100000) == 0);                    // 2^-99999 is below every double
    CHECK(sign_test(0, 1000) == Approx(std::ldexp(1.0, -999)).epsilon(1e-9));
}
