#include <cmath>
#include <isogloss/geometry/principal_components.hpp>
#include <isogloss/geometry/subspace_distance.hpp>
#include <isogloss/random.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("Points on a line have one component, along the line", "[metric][principal_components]",
                   float, double) {
    // (1, 2) + t (3, -4)/5 for t = -2, 0, 1, 5: mean t = 1.
    using T = TestType;
    std::vector<T> x;
    for (const double t : {-2.0, 0.0, 1.0, 5.0}) {
        x.push_back(T(1 + 0.6 * t));
        x.push_back(T(2 - 0.8 * t));
    }
    const auto p = principal_components<T>({x.data(), 4, 2}, 2);
    const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
    REQUIRE(p.variance[0] == Approx(1).margin(tolerance));
    REQUIRE(std::abs(p.variance[1]) < tolerance);
    REQUIRE(p.directions[0] == Approx(-0.6).margin(tolerance));  // the largest number is positive
    REQUIRE(p.directions[1] == Approx(0.8).margin(tolerance));
    const double along[] = {3, 1, 0, -4};
    for (std::size_t i = 0; i < 4; ++i) {
        REQUIRE(p.coordinates[2 * i] == Approx(along[i]).margin(10 * tolerance));
        REQUIRE(std::abs(p.coordinates[2 * i + 1]) < 10 * tolerance);
    }
}

TEST_CASE("Components are orthonormal, uncorrelated, and keep all distances",
          "[metric][principal_components]") {
    const Index n = 40, m = 5;
    const Random random(1, 1);
    std::vector<double> x;
    for (Index i = 0; i < n * m; ++i) x.push_back(random.normal(i) * double(1 + i % m) + 7);
    const auto p = principal_components<double>({x.data(), n, m}, m);
    double shares = 0;
    for (std::size_t k = 0; k < 5; ++k) {
        shares += p.variance[k];
        if (k > 0) REQUIRE(p.variance[k] <= p.variance[k - 1]);
        for (std::size_t l = 0; l < 5; ++l) {
            double inner = 0, covariance = 0;
            for (std::size_t j = 0; j < 5; ++j) inner += p.directions[5 * k + j] * p.directions[5 * l + j];
            for (std::size_t i = 0; i < 40; ++i)
                covariance += p.coordinates[5 * i + k] * p.coordinates[5 * i + l];
            REQUIRE(inner == Approx(k == l ? 1 : 0).margin(1e-13));
            if (k != l) REQUIRE(std::abs(covariance) < 1e-10);
        }
    }
    REQUIRE(shares == Approx(1));
    for (std::size_t i = 1; i < 40; ++i) {
        double before = 0, after = 0;
        for (std::size_t j = 0; j < 5; ++j) {
            before += std::pow(x[5 * i + j] - x[j], 2);
            after += std::pow(p.coordinates[5 * i + j] - p.coordinates[j], 2);
        }
        REQUIRE(after == Approx(before));
    }
}

TEST_CASE("Tables of large and small numbers have the components of the same table divided by a power of 2",
          "[metric][principal_components]") {
    const std::vector<double> x = {1, 1, -1, 2, 3, -3, 0.5, 1};
    const auto expected = principal_components<double>({x.data(), 4, 2}, 2);
    for (const int exponent : {-340, 0, 340}) {
        std::vector<double> scaled;
        for (const double v : x) scaled.push_back(std::ldexp(v, exponent));
        const auto p = principal_components<double>({scaled.data(), 4, 2}, 2);
        for (std::size_t k = 0; k < 2; ++k) CHECK(p.variance[k] == Approx(expected.variance[k]));
        for (std::size_t k = 0; k < 8; ++k)
            CHECK(std::ldexp(p.coordinates[k], -exponent) == Approx(expected.coordinates[k]));
    }
    const std::vector<double> large = {1, 2, 3, 1e150, 5, 6};
    REQUIRE_THROWS_MATCHES(principal_components<double>({large.data(), 3, 2}, 1), NumericError,
                           says("found 1e+150 at row 1, column 1"));
}

TEST_CASE("Equal rows have no variance", "[metric][principal_components]") {
    for (const auto& [rows, value] : {std::pair<Index, double>(6, 3), {7, 0.1}, {4, 5e-324}}) {
        const std::vector<double> x(static_cast<std::size_t>(2 * rows), value);
        const auto p = principal_components<double>({x.data(), rows, 2}, 1);
        REQUIRE(p.variance == std::vector<double>{0});
        for (const double c : p.coordinates) REQUIRE(c == 0);
    }
}

TEST_CASE("A transposed table is read as the transpose", "[metric][principal_components]") {
    std::vector<double> x, turned(12);
    for (int i = 0; i < 12; ++i) x.push_back(i * i % 7 + 0.5 * i);
    for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 3; ++j) turned[j * 4 + i] = x[i * 3 + j];
    const auto expected = principal_components<double>({x.data(), 4, 3}, 2);
    const auto found = principal_components<double>(t(MatrixRef<const double>(turned.data(), 3, 4)), 2);
    CHECK(found.coordinates == expected.coordinates);
    const MatrixRef<const double> a(x.data(), 4, 3), b(turned.data(), 3, 4);
    std::vector<double> y;
    for (int i = 0; i < 8; ++i) y.push_back((i * 5 + 3) % 7);
    const MatrixRef<const double> other(y.data(), 4, 2);
    CHECK(subspace_distance<double>(t(b), other) == subspace_distance<double>(a, other));
}

TEST_CASE("principal_components refuses what has none", "[metric][principal_components][errors]") {
    std::vector<double> x(12, 1);
    const MatrixRef<const double> table(x.data(), 6, 2);
    REQUIRE_THROWS_MATCHES(principal_components<double>(table, 3), UsageError, says("3 of a table [6, 2]"));
    REQUIRE_THROWS_MATCHES(principal_components<double>(table, 0), UsageError, says("0 of a table"));
    REQUIRE_THROWS_MATCHES(principal_components<double>({x.data(), 2, 6}, 1), UsageError, says("[2, 6]"));
    x[5] = std::numeric_limits<double>::quiet_NaN();
    REQUIRE_THROWS_MATCHES(principal_components<double>(table, 1), NumericError, says("row 2, column 1"));
}
