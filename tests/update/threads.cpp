// Updates of parameters large enough to be shared by threads.
#include "threads.hpp"

#include <cmath>
#include <isogloss/isogloss.hpp>
#include <isogloss/update/dynamic.hpp>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

// A table of rows·cols numbers after two steps, and the lengths of both directions.
template <class T, class Update> Numbers after_two_steps(int count, typename Update::Options options) {
    constexpr Index rows = 301, cols = 300;
    threads(count);
    Graph<T> g(GraphOptions{.time = 1, .batch = 4});
    const auto w = g.weight("w", rows, cols, uniform(0.5));
    Update update(g.parameters(), options);
    const Random random(3, 3);
    if constexpr (requires { update.collect(); }) {
        Index i = 2 * rows * cols;
        for (T& v : g.gradient(w)) v = static_cast<T>(random.normal(i++));
        update.collect();
    }
    Numbers all;
    for (Index step = 0; step < 2; ++step) {
        auto gradient = g.gradient(w);
        Index i = 0;
        for (T& v : gradient) v = static_cast<T>(random.normal(step * rows * cols + i++));
        g.parameters().summed_over(4, 4);
        all.push_back(update.step());
    }
    for (const double v : flat(g.value(w))) all.push_back(v);
    return all;
}

template <class T, class Update> void same(typename Update::Options options) {
    const Threads restored(1);
    const Numbers alone = after_two_steps<T, Update>(1, options);
    for (const int count : {2, 3, 100}) {
        CAPTURE(count);
        REQUIRE(apart(after_two_steps<T, Update>(count, options), alone) < (sizeof(T) == 4 ? 1e-5 : 1e-12));
    }
}

}  // namespace

TEMPLATE_TEST_CASE("Threads that share an update make the same step", "[update][threads]", float, double) {
    using T = TestType;
    same<T, Sgd<T>>({.rate = 0.3, .clip = 1, .weight_decay = 0.1});
    same<T, Sgd<T>>({.rate = 0.3, .clip = 1, .momentum = 0.9});
    same<T, Adam<T>>({.rate = 0.1, .clip = 1, .weight_decay = 0.1});
    same<T, DynamicUpdate<T>>({.rule = DynamicRule::sgd, .rate = 0.3, .decay = 0.5});
    same<T, DynamicUpdate<T>>({.rate = 0.3, .decay = 0.5});
}

TEST_CASE("Threads that share an average take in each number", "[update][threads]") {
    const Threads restored(1);
    threads(3);
    Graph<float> g(GraphOptions{.time = 1, .batch = 1});
    const auto w = g.weight("w", 301, 300, uniform(0.5));
    const Numbers before = flat(g.value(w));
    WeightAverage<float> average(g.parameters());
    average.add();
    for (float& v : g.value(w)) v += 1;
    average.add();
    average.swap();
    const Numbers mean = flat(g.value(w));
    for (std::size_t i = 0; i < mean.size(); ++i) REQUIRE(std::abs(mean[i] - (before[i] + 0.5)) < 1e-6);
}

TEST_CASE("Threads that share an update find the number that is not finite", "[update][threads]") {
    const Threads restored(1);
    threads(3);
    Graph<float> g(GraphOptions{.time = 1, .batch = 1});
    const auto w = g.weight("w", 300, 300, constant(1));
    Sgd<float> sgd(g.parameters(), {.rate = 1});
    g.gradient(w).data()[89999] = std::numeric_limits<float>::quiet_NaN();
    REQUIRE_THROWS_MATCHES(sgd.step(), NumericError, says("'w'", "not finite"));
    for (const float v : g.value(w)) REQUIRE(v == 1);
}
