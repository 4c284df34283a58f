#include <cmath>
#include <isogloss/geometry/principal_angles.hpp>
#include <isogloss/geometry/subspace_distance.hpp>
#include <isogloss/random.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

template <class T> std::vector<T> random_matrix(Index rows, Index cols, std::uint32_t stream) {
    std::vector<T> m(static_cast<std::size_t>(rows * cols));
    const Random random(2, stream);
    for (std::size_t i = 0; i < m.size(); ++i) m[i] = static_cast<T>(random.normal(static_cast<Index>(i)));
    return m;
}

}  // namespace

TEMPLATE_TEST_CASE(
    "The distance is 0 for one space in two bases, 1 for orthogonal ones, sin θ for a plane turned by θ",
    "[metric][subspace]", float, double) {
    using T = TestType;
    const T tolerance = sizeof(T) == 4 ? T(2e-3) : T(1e-7);
    const auto x = random_matrix<T>(40, 5, 1), turn = random_matrix<T>(5, 5, 2);
    std::vector<T> y(x.size());
    gemm<T>(T(1), {x.data(), 40, 5}, {turn.data(), 5, 5}, T(0), {y.data(), 40, 5});
    CHECK(subspace_distance<T>({x.data(), 40, 5}, {y.data(), 40, 5}) < tolerance);

    std::vector<T> a = {1, 0, 0, 2, 0, 0, 0, 0},
                   b = {0, 0, 0, 0, 3, 0, 0, 4};  // planes (1, 2) and (3, 4) of R⁴
    CHECK(subspace_distance<T>({a.data(), 4, 2}, {b.data(), 4, 2}) == Approx(1));
    for (const double angle : {0.1, 0.7, 1.5}) {
        std::vector<T> c = {1, 0, 0, T(std::cos(angle)), 0, T(std::sin(angle)), 0, 0};
        CHECK(subspace_distance<T>({a.data(), 4, 2}, {c.data(), 4, 2}) ==
              Approx(std::sin(angle) / std::sqrt(2.0)).epsilon(1e-3));
    }
}

TEST_CASE(
    "The distance equals its singular-value form, is symmetric, and counts y's columns where they differ",
    "[metric][subspace]") {
    const auto x = random_matrix<double>(60, 8, 3), y = random_matrix<double>(60, 8, 4),
               z = random_matrix<double>(60, 3, 5);
    const MatrixRef<const double> X(x.data(), 60, 8), Y(y.data(), 60, 8), Z(z.data(), 60, 3);
    const double d = subspace_distance<double>(X, Y);
    CHECK(d == Approx(subspace_distance<double>(Y, X)));
    CHECK(d == Approx(averaged_distance(principal_angles<double>(X, Y))));
    double squares = 0;
    for (const double theta : principal_angles<double>(X, Z)) squares += std::cos(theta) * std::cos(theta);
    CHECK(subspace_distance<double>(X, Z) == Approx(std::sqrt(1 - squares / 3)));
    CHECK(subspace_distance<double>(Z, X) == Approx(std::sqrt(1 - squares / 8)));
    std::vector<double> part;  // the first three columns of x lie within x's space, not the other way round
    for (std::size_t i = 0; i < 60; ++i)
        part.insert(part.end(), x.begin() + long(8 * i), x.begin() + long(8 * i + 3));
    CHECK(subspace_distance<double>(X, {part.data(), 60, 3}) < 1e-12);
    CHECK(subspace_distance<double>({part.data(), 60, 3}, X) == Approx(std::sqrt(5.0 / 8)));
}

TEST_CASE("Two random spaces of 30 in 1000 dimensions are almost orthogonal, as derived",
          "[metric][subspace]") {
    const auto x = random_matrix<double>(1000, 30, 6), y = random_matrix<double>(1000, 30, 7);
    CHECK(subspace_distance<double>({x.data(), 1000, 30}, {y.data(), 1000, 30}) ==
          Approx(std::sqrt(1 - 0.03)).epsilon(0.005));
}

TEST_CASE("Columns that depend on others do not count", "[metric][subspace]") {
    auto x = random_matrix<double>(20, 4, 8);
    for (std::size_t i = 0; i < 20; ++i) x[4 * i + 3] = x[4 * i] - 2 * x[4 * i + 1];
    CHECK(dense::orthonormal_columns<double>({x.data(), 20, 4}, "test").shape()[1] == 3);
    std::vector<double> three;
    for (std::size_t i = 0; i < 20; ++i)
        three.insert(three.end(), x.begin() + long(4 * i), x.begin() + long(4 * i + 3));
    CHECK(subspace_distance<double>({x.data(), 20, 4}, {three.data(), 20, 3}) < 1e-10);
    CHECK(subspace_distance<double>({three.data(), 20, 3}, {x.data(), 20, 4}) < 1e-10);
    // Nor in the mean over the columns, where the spaces differ.
    const auto z = random_matrix<double>(20, 2, 9);
    CHECK(subspace_distance<double>({z.data(), 20, 2}, {x.data(), 20, 4}) ==
          Approx(subspace_distance<double>({z.data(), 20, 2}, {three.data(), 20, 3})).epsilon(1e-12));
}

TEST_CASE("A small direction of a tall table counts in float", "[metric][subspace]") {
    constexpr Index rows = 300000;
    std::vector<float> x(2 * rows), y(rows);
    const Random random(1, 5);
    for (std::size_t i = 0; i < rows; ++i) {
        x[2 * i] = static_cast<float>(random.normal(2 * i));
        y[i] = x[2 * i + 1] = static_cast<float>(0.02 * random.normal(2 * i + 1));
    }
    CHECK(dense::orthonormal_columns<float>({x.data(), rows, 2}, "test").shape()[1] == 2);
    CHECK(subspace_distance<float>({x.data(), rows, 2}, {y.data(), rows, 1}) < 1e-3);
    for (std::size_t i = 0; i < rows; ++i) x[2 * i + 1] = -3 * x[2 * i];
    CHECK(dense::orthonormal_columns<float>({x.data(), rows, 2}, "test").shape()[1] == 1);
}

TEST_CASE("The subspace distance refuses what spans nothing or does not fit", "[metric][subspace][errors]") {
    std::vector<double> x(20, 1), zero(20, 0);
    REQUIRE_THROWS_MATCHES(subspace_distance<double>({x.data(), 10, 2}, {x.data(), 5, 2}), UsageError,
                           says("10 and 5 rows"));
    REQUIRE_THROWS_MATCHES(subspace_distance<double>({x.data(), 2, 10}, {x.data(), 2, 1}), UsageError,
                           says("[2, 10]"));
    REQUIRE_THROWS_MATCHES(subspace_distance<double>({zero.data(), 10, 2}, {x.data(), 10, 2}), NumericError,
                           says("zero"));
    x[7] = std::numeric_limits<double>::infinity();
    REQUIRE_THROWS_MATCHES(subspace_distance<double>({x.data(), 10, 2}, {x.data(), 10, 2}), NumericError,
                           says("number 7"));
}
