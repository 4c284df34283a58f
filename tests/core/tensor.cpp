#include <isogloss/tensor.hpp>
#include <string>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("matrix_view reads and writes memory owned elsewhere", "[core][tensor]") {
    double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {};
    noalias(matrix_view(b, 2, 3)) = 2 * matrix_view(static_cast<const double*>(a), 2, 3) + 1;
    REQUIRE(b[0] == 3);
    REQUIRE(b[5] == 13);
    REQUIRE(matrix_view(a, 3, 2)(2, 1) == 6);
}

TEMPLATE_TEST_CASE("Assignment to a matrix_view writes numbers of its shape, and only these",
                   "[core][tensor]", float, double) {
    using T = TestType;
    T a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {};
    auto to = matrix_view(b, 2, 3);
    to = matrix_view(a, 2, 3);
    REQUIRE(b[4] == 5);
    REQUIRE(to.data() == b);
    to = xt::transpose(matrix_view(a, 3, 2));
    REQUIRE(b[1] == 3);
    noalias(to) += matrix_view(a, 2, 3);
    REQUIRE(b[1] == 5);
    matrix_view(a, 1, 3) = matrix_view(a + 1, 1, 3);  // overlapping
    REQUIRE(a[0] == 2);
    REQUIRE(a[2] == 4);

    const std::string name = "W";
    MatrixView<T> named(b, 2, 3, &name);
    REQUIRE_THROWS_MATCHES(named = matrix_view(a, 3, 2), ShapeError,
                           says("'W': found an array [3, 2] assigned to a matrix [2, 3]"));
    const auto apart = says("'W': found arrays of shapes that do not broadcast to one", "[2, 3]");
    REQUIRE_THROWS_MATCHES(named += matrix_view(a, 3, 2), ShapeError, apart);
    REQUIRE_THROWS_MATCHES(named *= xt::ones<T>({4}), ShapeError, apart);
    REQUIRE_THROWS_MATCHES(named = matrix_view(a, 3, 2) - matrix_view(a, 2, 3), ShapeError, apart);
    REQUIRE_THROWS_MATCHES(noalias(named) = matrix_view(a, 3, 2) - matrix_view(a, 2, 3), ShapeError, apart);
    REQUIRE_THROWS_AS(noalias(named) += matrix_view(a, 3, 2), ShapeError);
    REQUIRE_THROWS_MATCHES(to = 2 * matrix_view(a, 1, 6), ShapeError,
                           says("isogloss: found an array [1, 6]"));
    REQUIRE_THROWS_MATCHES(noalias(to) = matrix_view(a, 1, 3), ShapeError, says("[1, 3]"));
    // Through routes by which xtensor itself would resize, without a chance to refuse.
    const xt::xarray<T> deep = xt::ones<T>({1, 2, 3}), flat = xt::ones<T>({6});
    const auto twice = 2 * deep;
    REQUIRE(twice.shape().size() == 3);
    REQUIRE_THROWS_MATCHES(noalias(to) = twice, ShapeError, says("array [1, 2, 3]"));
    REQUIRE_THROWS_MATCHES(noalias(to) = 2 * flat, ShapeError, says("array [6]"));
    REQUIRE_THROWS_MATCHES(noalias(to) = xt::arange<T>(6), ShapeError, says("array [6]"));
    REQUIRE_THROWS_MATCHES(to = xt::arange<T>(6), ShapeError, says("array [6]"));
    REQUIRE(b[1] == 5);
    REQUIRE(named.shape()[0] == 2);
    matrix_view(b, 0, 3) = Tensor<T, 2>({0, 3});
    REQUIRE_THROWS_AS(matrix_view(b, 0, 3) = matrix_view(a, 0, 2), ShapeError);
}
