#include <isogloss/update/riemannian/unit_metric.hpp>

#include "networks.hpp"

TEMPLATE_TEST_CASE("A symmetric system is solved by its factor", "[riemannian]", float, double) {
    // M = L Lᵀ with L = [[2, 0, 0], [1, 3, 0], [-1, 0.5, 1]], r = (1, -2, 3)
    std::vector<TestType> M = {4, 0, 0, 2, 10, 0, -2, 0.5, 2.25},
                          G = {4 - 4 - 6, 2 - 20 + 1.5, -2 - 1 + 6.75};
    detail::solve_symmetric<TestType>(3, M.data(), G.data());
    REQUIRE(apart(G, Numbers{1, -2, 3}) < (sizeof(TestType) == 4 ? 1e-6 : 1e-14));
}

TEST_CASE("A system without full rank is solved within what it spans", "[riemannian]") {
    const Numbers u = {1, 2, 0.5, 3}, v = {0, 1, -1, 2};  // M = u uᵀ + v vᵀ, of rank 2
    Numbers M(16), entries, G(4), r;
    for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t j = 0; j < 4; ++j) M[4 * i + j] = u[i] * u[j] + v[i] * v[j];
        G[i] = 2 * u[i] - v[i];
    }
    entries = M, r = G;
    detail::solve_symmetric<double>(4, M.data(), r.data());
    REQUIRE(r[2] == 0);
    REQUIRE(r[3] == 0);
    for (std::size_t i = 0; i < 4; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < 4; ++j) sum += entries[4 * i + j] * r[j];
        REQUIRE(std::abs(sum - G[i]) < 1e-13);
    }
    Numbers zero(4, 0), right = {1, 1};
    detail::solve_symmetric<double>(2, zero.data(), right.data());
    REQUIRE(right == Numbers{0, 0});
}

TEST_CASE("An input that never departs from a constant has no quasi-diagonal step", "[riemannian]") {
    const auto quasi_diagonal = [](double G, double G0, double M, double M0, double M00) {
        const double slope = detail::ratio(M0, M00);
        return detail::quasi_diagonal(G - slope * G0, M - slope * M0, M);
    };
    REQUIRE(quasi_diagonal(5.0, 1.0, 4 * 0.9, 2 * 0.9, 0.9) == 0);  // a = 2 always
    REQUIRE(quasi_diagonal(5.0, 1.0, 0.0, 0.0, 0.0) == 0);
    // and otherwise it is the step of the 2 by 2 system with the bias
    const double M = 3, M0 = 1, M00 = 2, G = 0.7, G0 = -0.4;
    REQUIRE(quasi_diagonal(G, G0, M, M0, M00) == Approx((M00 * G - M0 * G0) / (M * M00 - M0 * M0)));
}

TEMPLATE_TEST_CASE("Units without data have a step of 0 without damping", "[riemannian]", float, double) {
    const MetricForm form = GENERATE(MetricForm::quasi_diagonal, MetricForm::diagonal);
    Map<TestType> m;
    for (std::size_t r = 0; r < m.in.size(); ++r)
        if (r % 3 == 0) m.in[r] = 0;  // an input that is always 0
    for (std::size_t r = 0; r < m.weights.size(); ++r)
        if (r % 2 == 0) m.weights[r] = 0;  // a unit without a gradient
    const auto group = m.g.parameters("map.*");
    UnitMetric<TestType> metric(graph::Inspect::store(m.g), group, graph::Inspect::store(m.g).units[0],
                                UnitModulus::ruop, form);
    m.backward();
    metric.add(1);
    std::vector<std::vector<TestType>> steps;
    std::vector<typename Metric<TestType>::Slot> slots;
    for (auto* p : group) steps.emplace_back(p->size());
    for (std::size_t k = 0; k < group.size(); ++k)
        slots.push_back({group[k].dense_gradient().data, steps[k].data()});
    metric.direction(slots, 1, {});
    for (std::size_t k = 0; k < group.size(); ++k)
        for (std::size_t i = 0; i < steps[k].size(); ++i) {
            const bool known = i % 2 == 1 && !(group[k].rows == 3 && i < 2);
            if (known) REQUIRE((std::isfinite(steps[k][i]) && steps[k][i] != 0));
            else REQUIRE(steps[k][i] == 0);
        }
}
