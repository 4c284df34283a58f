#include <isogloss/update/riemannian/metric.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

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
