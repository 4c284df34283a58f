#include <isogloss/tensor.hpp>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("matrix_view reads and writes memory owned elsewhere", "[core][tensor]") {
    double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {};
    noalias(matrix_view(b, 2, 3)) = 2 * matrix_view(static_cast<const double*>(a), 2, 3) + 1;
    REQUIRE(b[0] == 3);
    REQUIRE(b[5] == 13);
    REQUIRE(matrix_view(a, 3, 2)(2, 1) == 6);
}
