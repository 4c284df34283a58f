#include <cmath>
#include <isogloss/geometry/principal_angles.hpp>
#include <isogloss/random.hpp>
#include <numbers>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

std::vector<double> random_matrix(Index rows, Index cols, std::uint32_t stream) {
    std::vector<double> m;
    const Random random(2, stream);
    for (Index i = 0; i < rows * cols; ++i) m.push_back(random.normal(i));
    return m;
}
using std::numbers::pi;

}  // namespace

TEMPLATE_TEST_CASE("Planes turned by two angles have these angles, however small or large",
                   "[metric][principal_angles]", float, double) {
    // The planes (e1, e2) and (cos a e1 + sin a e3, cos b e2 + sin b e4), in other bases.
    using T = TestType;
    const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
    for (const double a : {1e-12, 1e-5, 0.3, 1.2}) {
        const double b = pi / 2 - a / 10;
        CAPTURE(a);
        const std::vector<T> x = {2, 1, 1, -1, 0, 0, 0, 0, 0, 0};
        const auto ca = T(std::cos(a)), sa = T(std::sin(a)), cb = T(std::cos(b)), sb = T(std::sin(b));
        const std::vector<T> y = {3 * ca, ca, cb, -2 * cb, 3 * sa, sa, sb, -2 * sb, 0, 0};
        const auto angles = principal_angles<T>({x.data(), 5, 2}, {y.data(), 5, 2});
        REQUIRE(angles.size() == 2);
        REQUIRE(std::abs(angles[0] - a) < tolerance);  // the arccosine of 1 - a²/2 would be off by 1e-8
        REQUIRE(std::abs(angles[1] - b) < tolerance);
        REQUIRE(averaged_distance(angles) ==
                Approx(subspace_distance<T>({x.data(), 5, 2}, {y.data(), 5, 2})));
    }
}

TEST_CASE("Angles agree with the distance, in either order", "[metric][principal_angles]") {
    const auto x = random_matrix(60, 8, 3), y = random_matrix(60, 5, 4);
    const MatrixRef<const double> X(x.data(), 60, 8), Y(y.data(), 60, 5);
    const auto angles = principal_angles<double>(X, Y), other = principal_angles<double>(Y, X);
    REQUIRE(angles.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
        REQUIRE(angles[i] == Approx(other[i]));
    }
    REQUIRE(averaged_distance(angles) == Approx(subspace_distance<double>(X, Y)));
    REQUIRE(principal_angles<double>(X, X).back() < 1e-14);
}

TEST_CASE("Angles refuse what spans nothing or does not fit", "[metric][principal_angles][errors]") {
    std::vector<double> x(20, 1), zero(20, 0);
    REQUIRE_THROWS_MATCHES(principal_angles<double>({x.data(), 10, 2}, {x.data(), 5, 2}), UsageError,
                           says("principal angles", "10 and 5 rows"));
    REQUIRE_THROWS_MATCHES(principal_angles<double>({x.data(), 2, 10}, {x.data(), 2, 1}), UsageError,
                           says("[2, 10]"));
    REQUIRE_THROWS_MATCHES(principal_angles<double>({zero.data(), 10, 2}, {x.data(), 10, 2}), NumericError,
                           says("zero"));
    REQUIRE_THROWS_MATCHES(averaged_distance({}), UsageError, says("no angles"));
}
