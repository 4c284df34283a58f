#include <cmath>
#include <isogloss/isogloss.hpp>
#include <limits>

#include "catch.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("Adam's first step has length η in every coordinate, later ones follow the recursion",
                   "[update][adam]", float, double) {
    using T = TestType;
    Graph<T> g({});
    const auto w = g.weight("w", 1, 2, constant(1));
    Adam<T> adam(g.parameters(),
                 {.rate = 0.1, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-12, .divisor = Divisor::none});
    g.gradient(w)(0, 0) = T(3);
    g.gradient(w)(0, 1) = T(-0.02);
    adam.step();
    CHECK(g.value(w)(0, 0) == Approx(0.9).epsilon(1e-5));
    CHECK(g.value(w)(0, 1) == Approx(1.1).epsilon(1e-5));
    g.gradient(w)(0, 0) = T(1);
    g.gradient(w)(0, 1) = T(1);
    adam.step();
    const double m = 0.8 * 0.2 * 3 + 0.2 * 1, s = 0.9 * 0.1 * 9 + 0.1 * 1;
    CHECK(g.value(w)(0, 0) == Approx(0.9 - 0.1 * (m / 0.36) / std::sqrt(s / 0.19)).epsilon(1e-5));
}

TEST_CASE("Adam divides and clips the gradient before its step", "[update][adam]") {
    // With a large epsilon the length of a step depends on that of the gradient.
    const AdamOptions options{.rate = 0.1, .epsilon = 0.5, .divisor = Divisor::batch};
    Graph<double> g({.batch = 4});
    const auto w = g.weight("w", 1, 2, constant(1));
    Adam<double> adam(g.parameters(), options);
    g.gradient(w)(0, 0) = 3 * 4, g.parameters().summed_over(4, 4);
    CHECK(adam.step() == Approx(3).epsilon(1e-12));
    CHECK(g.value(w)(0, 0) == Approx(1 - 0.1 * 3 / (3 + 0.5)).epsilon(1e-12));
    CHECK(g.value(w)(0, 1) == 1);

    AdamOptions clipped = options;
    clipped.clip = 1;
    Graph<double> two({.batch = 4});
    const auto a = two.weight("a", 1, 1, constant(1)), b = two.weight("b", 1, 1, constant(1));
    Adam<double> by_group(two.parameters(), clipped);
    two.gradient(a)(0, 0) = 3 * 4, two.gradient(b)(0, 0) = 4 * 4, two.parameters().summed_over(4, 4);
    CHECK(by_group.step() == Approx(5).epsilon(1e-12));
    CHECK(two.value(a)(0, 0) == Approx(1 - 0.1 * 0.6 / (0.6 + 0.5)).epsilon(1e-12));
    CHECK(two.value(b)(0, 0) == Approx(1 - 0.1 * 0.8 / (0.8 + 0.5)).epsilon(1e-12));
}

TEMPLATE_TEST_CASE("A constant gradient gives steps of length η: bias and averages have the same betas",
                   "[update][adam]", float, double) {
    using T = TestType;
    Graph<T> g({});
    const auto w = g.weight("w", 1, 1, constant(0));
    Adam<T> adam(g.parameters(), {.rate = 0.125, .epsilon = 1e-30, .divisor = Divisor::none});
    for (int k = 1; k <= 4; ++k) {
        g.gradient(w)(0, 0) = T(3);
        adam.step();
        CHECK(g.value(w)(0, 0) == Approx(-0.125 * k).epsilon(sizeof(T) == 4 ? 1e-6 : 1e-12));
    }
}

TEST_CASE("Adam moves on after a gradient whose square is infinite", "[update][adam]") {
    Graph<float> g({});
    const auto w = g.weight("w", 1, 1, constant(1));
    Adam<float> adam(g.parameters(), {.rate = 0.1, .beta1 = 0, .beta2 = 0.5, .divisor = Divisor::none});
    g.gradient(w)(0, 0) = 4e19f;
    adam.step();
    for (int k = 0; k < 200; ++k) g.gradient(w)(0, 0) = 1, adam.step();
    const float before = g.value(w)(0, 0);
    g.gradient(w)(0, 0) = 1;
    adam.step();
    CHECK(g.value(w)(0, 0) == Approx(before - 0.1));
}

TEST_CASE("Adam's decay is decoupled, its clipping by the whole group", "[update][adam]") {
    Graph<double> g({});
    const auto w = g.weight("w", 1, 1, constant(2));
    Adam<double> adam(g.parameters(),
                      {.rate = 0.1, .clip = 1, .weight_decay = 0.5, .divisor = Divisor::none});
    g.gradient(w)(0, 0) = 0;
    CHECK(adam.step() == 0);
    CHECK(g.value(w)(0, 0) == Approx(2 - 0.1 * 0.5 * 2));
    g.gradient(w)(0, 0) = 40;
    CHECK(adam.step() == Approx(40));
    REQUIRE_THROWS_MATCHES(Adam<double>(g.parameters(), {.beta2 = 1}), UsageError, says("beta2 = 1"));
    REQUIRE_THROWS_MATCHES(Adam<double>(g.parameters(), {.epsilon = 0}), UsageError, says("epsilon = 0"));
    // What is in range in double may not be in float: 1 - β₂ and ε would be 0 and the step 0/0.
    Graph<float> f({});
    f.weight("w", 1, 1, constant(2));
    REQUIRE_THROWS_MATCHES(Adam<float>(f.parameters(), {.beta2 = 0.99999999}), UsageError, says("beta2 = 1"));
    REQUIRE_THROWS_MATCHES(Adam<float>(f.parameters(), {.epsilon = 1e-40}), UsageError,
                           says("epsilon = 1e-40"));
    REQUIRE_THROWS_MATCHES(Adam<float>(f.parameters(), {.rate = 1e39}), UsageError, says("rate = 1e+39"));
    REQUIRE_NOTHROW(Adam<double>(g.parameters(), {.rate = 1e39, .beta2 = 0.99999999, .epsilon = 1e-40}));
    g.gradient(w)(0, 0) = std::numeric_limits<double>::infinity();
    const double before = g.value(w)(0, 0);
    REQUIRE_THROWS_AS(adam.step(), NumericError);
    CHECK(g.value(w)(0, 0) == before);
}

TEST_CASE("Adam counts the steps of each weight: one frozen before the first begins as a new one",
          "[update][adam]") {
    Graph<double> g({});
    const auto a = g.weight("a", 1, 1, constant(0)), b = g.weight("b", 1, 1, constant(0));
    Adam<double> adam(g.parameters(), {.rate = 0.125, .weight_decay = 0.5, .divisor = Divisor::none});
    const auto step = [&](double of_a, double of_b) {
        g.gradient(a)(0, 0) = of_a;
        if (g.parameter("b").trained) g.gradient(b)(0, 0) = of_b;
        return adam.step();
    };
    g.parameters("b").trained(false);
    for (int k = 0; k < 20; ++k) CHECK(step(3, 0) == 3);
    CHECK(g.value(b)(0, 0) == 0);
    g.parameters("b").trained(true);
    step(3, 4);
    CHECK(g.value(b)(0, 0) == Approx(-0.125));
    // And one frozen later goes on with the averages that it had: from a step before to the next one as if at once.
    g.parameters("b").trained(false);
    for (int k = 0; k < 20; ++k) step(-3, 0);
    g.parameters("b").trained(true);
    const double before = g.value(b)(0, 0);
    step(3, 4);
    CHECK(g.value(b)(0, 0) == Approx(before - 0.125 - 0.125 * 0.5 * before));
}
