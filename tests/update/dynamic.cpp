#include <cmath>
#include <isogloss/isogloss.hpp>
#include <isogloss/update/dynamic.hpp>
#include <limits>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

/// Two weights whose gradients the test writes itself.
template <class T> struct Two {
    Graph<T> g{GraphOptions{.time = 1, .batch = 4}};
    Weight<T> w = g.weight("w", 1, 2, constant(1)), v = g.weight("v", 1, 2, constant(-2));
    Index columns = 0, predicted = 0;  // over which they are sums
    void gradients(const std::vector<double>& of_w, const std::vector<double>& of_v) {
        g.parameters().summed_over(columns, predicted);
        for (std::size_t i = 0; i < 2; ++i)
            g.gradient(w)(0, i) = static_cast<T>(of_w[i]), g.gradient(v)(0, i) = static_cast<T>(of_v[i]);
    }
    Numbers values() {
        Numbers all = flat(g.value(w));
        for (const double x : flat(g.value(v))) all.push_back(x);
        return all;
    }
};

}  // namespace

TEMPLATE_TEST_CASE("The plain rule follows the gradient and returns to the trained weights",
                   "[update][dynamic]", float, double) {
    Two<TestType> b;
    DynamicUpdate<TestType> update(b.g.parameters(), {.rule = DynamicRule::sgd, .rate = 0.5, .decay = 0.25});
    b.predicted = 4;
    b.gradients({8, 0}, {-16, 4});                   // / 4 = (2, 0), (-4, 1)
    CHECK(update.step() == Approx(std::sqrt(21.)));  // θ = θ₀ yet: no decay
    CHECK(apart(b.values(), Numbers{0, 1, 0, -2.5}) < 1e-6);
    for (const auto* p : b.g.parameters()) CHECK(p->condition == Parameter<TestType>::Condition::empty);
    b.gradients({0, 8}, {0, 0});
    update.step();  // a quarter of the way back
    CHECK(apart(b.values(), Numbers{0.25, 0, -0.5, -2.375}) < 1e-6);
}

TEMPLATE_TEST_CASE("The rule rms divides by the root mean square and decays by its share",
                   "[update][dynamic]", float, double) {
    Two<TestType> b;
    b.predicted = 2;
    DynamicUpdate<TestType> update(b.g.parameters(),
                                   {.rule = DynamicRule::rms, .rate = 0.5, .decay = 0.75, .epsilon = 1});
    b.gradients({6, 0}, {2, 0});
    update.collect();
    CHECK(apart(b.values(), Numbers{1, 1, -2, -2}) == 0);
    b.gradients({-6, 0}, {0, 2 * std::sqrt(2.)});
    update.collect();
    // √MS = 3, 0 | √½, 1; within each 1.5 and 0.8536, their mean 1.1768.
    const double average = (1.5 + (std::sqrt(.5) + 1) / 2) / 2, half = std::sqrt(.5);
    b.gradients({4, 4}, {4, 4});  // / 2
    update.step();
    const double a = 1 - 0.5 * 2 / 4, c = 1 - 0.5 * 2 / 1, d = -2 - 0.5 * 2 / (half + 1),
                 e = -2 - 0.5 * 2 / 2;
    CHECK(apart(b.values(), Numbers{a, c, d, e}) < 1e-6);
    b.gradients({0, 0}, {0, 0});
    update.step();  // of the first 0.75 · 3 / 1.18 is more than 1: all the way back
    CHECK(apart(b.values(),
                Numbers{1, c, d + 0.75 * half / average * (-2 - d), e + 0.75 / average * (-2 - e)}) < 1e-6);
}

TEST_CASE("The average of rms is one of means within parameters, of all that was collected so far",
          "[update][dynamic]") {
    Graph<double> g({});
    const auto w = g.weight("w", 1, 1, constant(0)), v = g.weight("v", 1, 3, constant(0));
    const auto gradients = [&](double of_w, double v0, double others) {
        g.gradient(w)(0, 0) = of_w;
        g.gradient(v)(0, 0) = v0, g.gradient(v)(0, 1) = g.gradient(v)(0, 2) = others;
    };
    DynamicUpdate<double> update(g.parameters(), {.rate = 1, .decay = 0.5, .epsilon = 1});
    gradients(2, 1, 0);
    update.collect();
    gradients(3, 2, 0);
    update.step();  // by 3 / (2 + 1) and 2 / (1 + 1)
    gradients(0, 0, 0);
    update.step();  // √MS = 2 | 1, 0, 0: their average is (2 + 1/3) / 2
    const double average = 7. / 6, a = -1 + 0.5 * 2 / average, b = -1 + 0.5 * 1 / average;
    CHECK(g.value(w)(0, 0) == Approx(a).epsilon(1e-12));
    CHECK(g.value(v)(0, 0) == Approx(b).epsilon(1e-12));
    gradients(0, 1, 1);
    update.collect();  // √MS = √2 | 1, √½, √½
    gradients(0, 0, 0);
    update.step();
    const double later = (std::sqrt(2.) + (1 + std::sqrt(2.)) / 3) / 2;
    CHECK(g.value(w)(0, 0) == Approx(a * (1 - 0.5 * std::sqrt(2.) / later)).epsilon(1e-12));
    CHECK(g.value(v)(0, 0) == Approx(b * (1 - 0.5 / later)).epsilon(1e-12));
}

TEMPLATE_TEST_CASE("The trained weights come back bit for bit", "[update][dynamic]", float, double) {
    using T = TestType;
    const auto rule = GENERATE(DynamicRule::sgd, DynamicRule::rms);
    Graph<T> g({});
    g.weight("w", 30, 40, uniform(1));
    g.weight("unit", 20, 8, uniform(1), {.unit_rows = true});
    const auto bits = [&] {
        return std::pair(flat(g.value(g.weight("w"))), flat(g.value(g.weight("unit"))));
    };
    const auto step = [&](DynamicUpdate<T>& update) {
        for (auto* p : g.parameters()) {
            T* at = p->dense_gradient().data;
            for (const double v : numbers(p->size(), 1)) *at++ = static_cast<T>(v);
        }
        if (rule == DynamicRule::rms) update.collect();
        for (auto* p : g.parameters()) {
            T* at = p->dense_gradient().data;
            for (const double v : numbers(p->size(), 2)) *at++ = static_cast<T>(v);
        }
        update.step();
    };
    const auto trained = bits();
    {
        DynamicUpdate<T> update(g.parameters(), {.rule = rule, .rate = 0.3, .decay = 0.1});
        step(update);
        REQUIRE(bits().first != trained.first);
        REQUIRE(bits().second != trained.second);
        for (Index i = 0; i < 20; ++i)
            REQUIRE(kernel::sum_of_squares(Index{8}, g.parameter("unit").value + 8 * i) ==
                    Approx(1).epsilon(1e-5));
        update.restore();
        REQUIRE(bits() == trained);
        step(update);
        REQUIRE(bits().first != trained.first);
    }
    REQUIRE(bits() == trained);
    // Training before the first step, and between restore() and the next step, is not undone.
    DynamicUpdate<T> update(g.parameters(), {.rule = rule, .rate = 0.3, .decay = 0.1});
    for (int k = 0; k < 2; ++k) {
        for (auto* p : g.parameters())
            if (!p->unit_rows) p->value[0] += T(1);
        const auto more = bits();
        REQUIRE(more != trained);
        step(update);
        REQUIRE(bits().first != more.first);
        update.restore();
        REQUIRE(bits() == more);
    }
}

TEST_CASE("Without decay rows that were not looked up are left alone, with it they return",
          "[update][dynamic]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto x = g.tokens("x", 3);
    const auto E = g.weight("E", 3, 1, constant(1));
    const auto w = g.input("w", 1);
    const auto l = g.add<Dot>("l", {}, w, g.add<Embedding>("e", {}, x, E));
    const auto step = [&](DynamicUpdate<double>& update, Token token) {
        const double one = 1;
        g.forward(l, {x, {&token, 1, 1}}, {w, &one, 1, 1});
        g.backward(l);
        REQUIRE(g.parameter("E").condition == Parameter<double>::Condition::rows);
        update.step();
    };
    for (const double decay : {0., 0.5}) {
        DynamicUpdate<double> update(g.parameters(), {.rule = DynamicRule::sgd, .rate = 1, .decay = decay});
        step(update, 0);
        step(update, 2);
        CHECK(flat(g.value(E)) == Numbers{decay * 1, 1, 0});
    }
}

TEST_CASE("A dynamic update refuses what it cannot do and changes nothing", "[update][dynamic]") {
    Two<double> b;
    const auto make = [&](DynamicOptions o) { DynamicUpdate<double> update(b.g.parameters(), o); };
    CHECK_THROWS_MATCHES(make({.rate = -1}), UsageError, says("dynamic update", "rate = -1"));
    CHECK_THROWS_MATCHES(make({.decay = 1.5}), UsageError, says("decay = 1.5", "0 to 1"));
    CHECK_THROWS_MATCHES(make({.epsilon = 0}), UsageError, says("epsilon = 0", "at least 2.2"));
    b.gradients({1, 2}, {3, 4});
    CHECK_THROWS_MATCHES(make({}), UsageError, says("gradient of 'w' already counts"));
    CHECK(gradient(b.g, "v") == Numbers{3, 4});
    b.g.parameters().clear_gradients();

    const Numbers before = b.values();
    DynamicUpdate<double> update(b.g.parameters(), {.rule = DynamicRule::rms, .rate = 1, .decay = 0.1});
    b.gradients({1, 1}, {1, 1});
    CHECK_THROWS_MATCHES(update.step(), UsageError, says("rms", "collect()"));
    b.gradients({1, 1}, {1, 1});
    update.collect();
    b.gradients({1, std::numeric_limits<double>::infinity()}, {1, 1});
    CHECK_THROWS_MATCHES(update.step(), NumericError, says("'w'", "not finite"));
    CHECK_THROWS_AS(update.collect(), NumericError);
    CHECK(b.values() == before);
}
