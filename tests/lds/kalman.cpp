#include <cmath>
#include <isogloss/lds/kalman.hpp>
#include <isogloss/lds/text_filter.hpp>
#include <utility>

#include "catch.hpp"
#include "lds/texts.hpp"
#include "reference/lds_exact.hpp"

using namespace isogloss;
using namespace isogloss::lds;
using texts::difference;
using texts::tensor;
namespace r = reference::lds;

TEMPLATE_TEST_CASE("The steady state equals the fixed point of dense recursions", "[lds][kalman]", float,
                   double) {
    const double tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-12;
    const auto s = texts::recorded<TestType>();
    const SteadyState k = steady_state(s);
    CHECK(difference(k.predicted, tensor<double>(r::predicted_steady, 2, 2)) < tolerance);
    CHECK(difference(k.filtered, tensor<double>(r::filtered_steady, 2, 2)) < tolerance);
    CHECK(difference(k.smoothed, tensor<double>(r::smoothed_steady, 2, 2)) < tolerance);
    CHECK(difference(k.J, tensor<double>(r::J_steady, 2, 2)) < tolerance);
    CHECK(difference(k.H, tensor<double>(r::H_steady, 2, 2)) < tolerance);
    CHECK(difference(k.P, SmallMatrix(dense::identity(2) - product(k.J, s.A))) < tolerance);
    CHECK(k.log_det_S == Approx(r::log_det_S[0]).epsilon(tolerance));
    const SmallMatrix C = s.C, gain = product_t(k.L, C);
    CHECK(difference(gain, tensor<double>(r::gain_steady, 2, 6)) < tolerance);
}

TEST_CASE("The inversion lemma agrees with dense algebra where the noise covariance is of low rank too",
          "[lds][kalman]") {
    // V = 50, h = 4; Σ₁ - M has rank 2, so that its inverse does not exist
    constexpr Index V = 50, h = 4;
    const Random random(3, 1);
    std::vector<double> mu(V);
    double sum = 0;
    for (Index i = 0; i < V; ++i) sum += mu[std::size_t(i)] = random.uniform(i);
    for (double& x : mu) x /= sum;
    Lds<double> s;
    s.whitening = Whitening::of_frequencies(mu, 1);
    s.C = zeros<double>(V, h);
    for (std::size_t i = 0; i < s.C.size(); ++i) s.C.data()[i] = 0.07 * random.normal(Index(i) + 1000);
    project_out<double>(s.whitening.m, ref(s.C));
    SmallMatrix sigma = zeros<double>(h, h), less = zeros<double>(h, h);
    for (std::size_t i = 0; i < sigma.size(); ++i) sigma.data()[i] = random.normal(Index(i) + 5000);
    sigma = product_t(sigma, sigma) + dense::identity(h);
    const SmallMatrix e = symmetric_eigen<double>(sigma, "test").vectors;
    less(0, 0) = 0.5;
    less(1, 1) = 0.25;
    const SmallMatrix M = sigma - product(e, product_t(less, e));
    const SmallMatrix G = inner_products(s.C, s.C), N = sigma - M;

    SmallMatrix projector = dense::identity(V);  // plus m mᵀ, so that dense inverses exist
    const SmallMatrix S = projector + product(s.C, product_t(N, s.C));
    const SmallMatrix dense = product(transposed(s.C), inverse(S, "test"));
    const SmallMatrix lemma =
        product_t(inverse(SmallMatrix(dense::identity(h) + product(G, N)), "test"), s.C);
    CHECK(difference(lemma, dense) < 1e-12);
    const SmallMatrix R = projector - product(s.C, product_t(M, s.C));
    const SmallMatrix information = product(transposed(s.C), inverse(R, "test"), s.C);
    CHECK(difference(product(G, inverse(SmallMatrix(dense::identity(h) - product(M, G)), "test")),
                     information) < 1e-12);
    const double share =
        symmetric_eigen<double>(symmetrised(product(s.C, product_t(M, s.C))), "test").values.back();
    CHECK(largest_share(G, M) == Approx(share).epsilon(1e-10));
}

TEST_CASE("Repaired noise is positive definite, and what is so already stays", "[lds][kalman]") {
    const auto s = texts::recorded<double>();
    const SmallMatrix G = inner_products(s.C, s.C);
    SmallMatrix M = s.M;
    CHECK(repair_noise(G, M) == 1.0);
    CHECK(difference(M, s.M) == 0);
    M = 50 * s.M;
    const double factor = repair_noise(G, M, 0.9);
    CHECK(factor < 1);
    CHECK(largest_share(G, M) == Approx(0.9));
    CHECK(difference(M, SmallMatrix(50 * factor * s.M)) < 1e-14);
    M = 0.95 / largest_share(G, s.M) * s.M;  // below 1 already, but not below the limit
    CHECK(repair_noise(G, M, 0.9) == Approx(0.9 / 0.95));
}

TEST_CASE("Far from the ends of a text the exact covariances are those of the steady state",
          "[lds][kalman]") {
    const auto s = texts::recorded<double>();
    std::vector<Token> text;
    for (int i = 0; i < 20; ++i)
        for (const Token t : texts::recorded_text()) text.push_back(t);
    const auto exact = reference::exact_smoother<double>(s, text);
    const auto k = steady_state(s);
    CHECK(difference(exact.filtered_covariance[80], k.filtered) < 1e-12);
    CHECK(difference(exact.smoothed_covariance[80], k.smoothed) < 1e-12);
}

TEST_CASE("Doubling sums series, and says where they do not settle", "[lds][kalman]") {
    const SmallMatrix E = {{0.5, 0.2}, {0, 0.9}}, F = {{0.3, 0}, {0.4, -0.8}}, M = {{1, 2}, {3, 4}};
    const SmallMatrix X = sylvester(E, F, M);
    CHECK(difference(X, SmallMatrix(product(E, X, F) + M)) < 1e-14);
    const SmallMatrix L = lyapunov(E, symmetrised(M));
    CHECK(difference(L, SmallMatrix(product(E, product_t(L, E)) + symmetrised(M))) < 1e-13);
    const SmallMatrix wide = 1.5 * dense::identity(2);
    REQUIRE_THROWS_MATCHES(sylvester(wide, dense::identity(2), M), NumericError, says("does not converge"));
}

TEMPLATE_TEST_CASE("Where C M Cᵀ takes nothing from the noise the steady state is that of dense recursions",
                   "[lds][kalman]", float, double) {
    const double tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-12;
    auto s = texts::recorded<TestType>();
    const SmallMatrix C = s.C, G = inner_products(s.C, s.C), I = dense::identity(2), V = dense::identity(6);
    for (const double much : {0.0, -0.4}) {  // white noise, and more than that
        s.M = SmallMatrix{{much, 0}, {0, 0.5 * much}};
        CHECK(largest_share(G, s.M) == 0);
        CHECK(repair_noise(G, s.M) == 1);
        const SmallMatrix R = V - product(C, product_t(s.M, C));  // plus m mᵀ, so that dense inverses exist
        SmallMatrix ahead = I, gain, S;
        for (int i = 0; i < 200; ++i) {
            S = R + product(C, product_t(ahead, C));
            gain = product(product_t(ahead, C), inverse(S, "test"));
            const SmallMatrix filtered = ahead - product(gain, C, ahead);
            if (i < 199) ahead = product(s.A, product_t(filtered, s.A)) + I;
        }
        double log_det = 0;
        for (const double modulus : schur<double>(S, "test").moduli()) log_det += std::log(modulus);
        const SteadyState k = steady_state(s);
        CHECK(difference(k.predicted, ahead) < tolerance);
        CHECK(difference(product_t(k.L, C), gain) < tolerance);
        CHECK(k.log_det_S == Approx(log_det).epsilon(tolerance));
    }
    s.M = SmallMatrix{{0.3, 0}, {0, -5}};  // of which the noise takes something only along one direction
    const double share = symmetric_eigen<double>(product(C, product_t(s.M, C)), "test").values.back();
    CHECK(share > 0);
    CHECK(largest_share(G, s.M) >= share * (1 - tolerance));
}

TEST_CASE("A limit of the noise that leaves none, or a singular one, is refused", "[lds][kalman]") {
    const auto s = texts::recorded<double>();
    const SmallMatrix G = inner_products(s.C, s.C);
    SmallMatrix M = 50 * s.M;
    const SmallMatrix before = M;
    for (const double limit : {-1.0, 0.0, 1.0, 1.5, std::nan("")})
        REQUIRE_THROWS_MATCHES(repair_noise(G, M, limit), UsageError,
                               says("repair_noise: found limit = ", "above 0 and below 1"));
    CHECK((M == before));
}

TEST_CASE("A steady state that does not exist is refused", "[lds][kalman]") {
    auto s = texts::recorded<double>();
    s.A(0, 0) = 1.5;
    REQUIRE_THROWS_MATCHES(steady_state(s), NumericError, says("spectral radius", "below 1"));
    s = texts::recorded<double>();
    s.M *= 50;
    REQUIRE_THROWS_MATCHES(steady_state(s), NumericError, says("not positive definite", "repair_noise"));
    s = texts::recorded<double>();
    s.M = dense::identity(3);
    REQUIRE_THROWS_MATCHES(steady_state(s), UsageError, says("M [3, 3]"));
}
