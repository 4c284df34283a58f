#include <isogloss/kernel/activation.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("Activations and their slopes agree with the plain functions", "[kernel]", float, double) {
    const Activation s =
        GENERATE(Activation::tanh, Activation::logistic, Activation::relu, Activation::identity);
    const Index n = GENERATE(1, 7, 33);
    const double tolerance = sizeof(TestType) == 4 ? 2e-6 : 1e-13;
    std::vector<TestType> V, a(static_cast<std::size_t>(n)), flow, once(a), twice(a);
    for (const double v : numbers(n, 3))
        V.push_back(static_cast<TestType>(5 * v)), flow.push_back(static_cast<TestType>(v + 2));
    kernel::activate(s, n, V.data(), a.data());
    kernel::activation_backward<false>(s, n, a.data(), flow.data(), once.data());
    kernel::activation_backward<true>(s, n, a.data(), flow.data(), twice.data());
    for (std::size_t i = 0; i < V.size(); ++i) {
        const double value = kernel::plain::activation(s, V[i]),
                     slope = kernel::plain::activation_slope(s, V[i]);
        REQUIRE(std::abs(a[i] - value) < tolerance);
        REQUIRE(std::abs(kernel::activation_slope(s, a[i]) - slope) < tolerance);
        REQUIRE(std::abs(once[i] - slope * flow[i]) < 4 * tolerance);
        REQUIRE(std::abs(twice[i] - slope * slope * flow[i]) < 4 * tolerance);
    }
}
