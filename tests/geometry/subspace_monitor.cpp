#include <isogloss/geometry/subspace_monitor.hpp>
#include <isogloss/graph/graph.hpp>
#include <limits>

#include "catch.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("SubspaceMonitor reads every so many steps and keeps what it read",
                   "[metric][subspace_monitor]", float, double) {
    Graph<TestType> g({});
    g.weight("E", 30, 4, normal(1));
    g.weight("W", 30, 4, normal(1));
    auto &E = g.parameter("E"), &W = g.parameter("W");
    SubspaceMonitor<TestType> monitor(E, W, {.every = 3});
    REQUIRE(monitor.readings().size() == 1);
    REQUIRE(monitor.readings()[0].step == 0);
    double before = monitor.readings()[0].distance;
    for (std::uint64_t step = 1; step <= 9; ++step) {  // W moves towards E
        for (Index i = 0; i < W.size(); ++i) W.value[i] += TestType(0.2) * (E.value[i] - W.value[i]);
        const auto* now = monitor.step();
        REQUIRE((now != nullptr) == (step % 3 == 0));
        if (!now) continue;
        REQUIRE(now->step == step);
        REQUIRE(now->distance == Approx(subspace_distance<TestType>(E.values(), W.values())));
        REQUIRE(now->angles.size() == 4);
        REQUIRE(now->distance < before);
        before = now->distance;
    }
    REQUIRE(monitor.readings().size() == 4);
    REQUIRE(monitor.read().step == 9);
    REQUIRE(monitor.readings().size() == 5);
}

TEST_CASE("SubspaceMonitor refuses what it cannot read", "[metric][subspace_monitor][errors]") {
    Graph<double> g({});
    g.weight("E", 8, 2, normal(1));
    const auto& E = g.parameter("E");
    REQUIRE_THROWS_MATCHES(SubspaceMonitor<double>(E, E, {.every = 0}), UsageError, says("every = 0"));
    g.parameter("E").value[3] = std::numeric_limits<double>::quiet_NaN();
    REQUIRE_THROWS_MATCHES(SubspaceMonitor<double>(E, E), NumericError, says("found nan", "expected finite"));
}
