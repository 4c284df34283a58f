#include <algorithm>
#include <cmath>
#include <isogloss/graph/graph.hpp>

#include "catch.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("Start values have the range, spread and layout they say", "[graph][init]", float,
                   double) {
    Graph<TestType> g({.seed = 4});
    const auto moments = [&](Weight<TestType> w) {
        double sum = 0, squares = 0, largest = 0;
        for (const TestType x : g.value(w)) {
            sum += double(x);
            squares += double(x) * double(x);
            largest = std::max(largest, std::abs(double(x)));
        }
        const double n = double(w.rows * w.cols);
        return std::array{sum / n, std::sqrt(squares / n), largest};
    };
    const auto u = moments(g.weight("u", 100, 200, uniform(0.1)));
    CHECK(std::abs(u[0]) < 0.002);
    CHECK(u[1] == Approx(0.1 / std::sqrt(3.0)).epsilon(0.02));
    CHECK(u[2] <= 0.1);
    const auto n = moments(g.weight("n", 100, 200, normal(0.5)));
    CHECK(std::abs(n[0]) < 0.015);
    CHECK(n[1] == Approx(0.5).epsilon(0.02));

    const auto i = g.value(g.weight("i", 2, 4, identity(3)));
    CHECK((i(0, 0) == 3 && i(0, 1) == 0 && i(0, 2) == 3 && i(1, 1) == 3 && i(1, 3) == 3));
    const auto b = g.value(g.weight("b", 1, 6, per_block({0, -2, 1})));
    CHECK((b(0, 0) == 0 && b(0, 1) == 0 && b(0, 2) == -2 && b(0, 3) == -2 && b(0, 4) == 1 && b(0, 5) == 1));
    REQUIRE_THROWS_AS(per_block({}), UsageError);
    for (const Index columns : {4, 2})
        REQUIRE_THROWS_MATCHES(g.weight("c", 1, columns, per_block({1, 2, 3})), UsageError,
                               says("3 values", "give one per gate"));
    REQUIRE_THROWS_AS(uniform(-1), UsageError);
    REQUIRE_THROWS_AS(normal(-1), UsageError);
    REQUIRE_THROWS_MATCHES(g.weight("none", 2, 2, Init{}), UsageError, says("'none'"));
}

TEST_CASE("A weight's start values depend on its name and the seed, not on the rest of the model",
          "[graph][init]") {
    Graph<double> alone({.seed = 4}), crowded({.seed = 4}), other({.seed = 5});
    crowded.weight("before", 3, 3, uniform(1));
    const auto a = alone.value(alone.weight("W", 4, 5, uniform(1)));
    const auto b = crowded.value(crowded.weight("W", 4, 5, uniform(1)));
    const auto c = other.value(other.weight("W", 4, 5, uniform(1)));
    CHECK(std::equal(a.begin(), a.end(), b.begin()));
    CHECK_FALSE(std::equal(a.begin(), a.end(), c.begin()));
    const auto d = alone.value(alone.weight("W2", 4, 5, uniform(1)));
    CHECK_FALSE(std::equal(a.begin(), a.end(), d.begin()));
}

TEST_CASE("Rows held at norm 1 start there", "[graph][init]") {
    Graph<double> g({});
    const auto E = g.value(g.weight("E", 7, 3, uniform(0.1), {.unit_rows = true}));
    for (std::size_t i = 0; i < 7; ++i)
        CHECK(E(i, 0) * E(i, 0) + E(i, 1) * E(i, 1) + E(i, 2) * E(i, 2) == Approx(1).epsilon(1e-14));
    REQUIRE_THROWS_MATCHES(g.weight("Z", 7, 3, constant(0), {.unit_rows = true}), NumericError,
                           says("'Z'", "row 0"));
}
