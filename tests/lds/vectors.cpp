// Vectors of a known linear dynamical system, by the concept Moments: subspace identification and EM from their covariances.
#include <cmath>
#include <isogloss/lds/asos.hpp>
#include <isogloss/lds/subspace.hpp>
#include <isogloss/random.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"
#include "reference/vector_moments.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using namespace isogloss::lds;
using reference::VectorMoments;
using texts::difference;

namespace {

constexpr Index h = 3, n = 7;

// x_t = A x_{t-1} + η, o_t = C x_t + ε, with a full covariance of ε and eigenvalues 0.8 e^{±0.9i}, 0.55.
struct Known {
    SmallMatrix A = zeros<double>(h, h), C = zeros<double>(n, h), R, sigma;
    Known() {
        A(0, 0) = A(1, 1) = 0.8 * std::cos(0.9);
        A(0, 1) = -0.8 * std::sin(0.9), A(1, 0) = -A(0, 1);
        A(2, 2) = 0.55;
        const Random random(3, 1);
        SmallMatrix root = zeros<double>(n, n);
        for (Index i = 0; i < n * h; ++i) C.data()[i] = random.normal(i);
        for (Index i = 0; i < n * n; ++i) root.data()[i] = random.normal(100 + i);
        R = 0.3 * product_t(root, root) + identity(n);
        sigma = lyapunov(A, identity(h));
    }
    // Γ_0 … Γ_r
    Array<SmallMatrix> covariances(Index r) const {
        Array<SmallMatrix> out{SmallMatrix(product(C, product_t(sigma, C)) + R)};
        SmallMatrix power = sigma;
        for (Index k = 1; k <= r; ++k) {
            power = product(A, power);
            out.push_back(product(C, product_t(power, C)));
        }
        return out;
    }
    // The system of the whitened observations.
    Lds<double> system(const VectorMoments<double>& moments) const {
        Lds<double> s;
        s.A = A;
        s.C = product(moments.whitener(), C);
        s.M = sigma;  // I - C M Cᵀ is the covariance of the whitened ε
        s.whitening = moments.whitening();
        return s;
    }
};

// Eigenvalues, sorted, real and imaginary parts one after the other.
std::vector<double> spectrum(const SmallMatrix& a) {
    const auto f = schur<double>(a, "test");
    std::vector<std::pair<double, double>> e;
    for (std::size_t i = 0; i < std::size_t(h); ++i) e.emplace_back(f.real[i], f.imaginary[i]);
    std::sort(e.begin(), e.end());
    std::vector<double> out;
    for (const auto& [real, imaginary] : e) out.push_back(real), out.push_back(imaginary);
    return out;
}
double apart(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = worse(most, std::abs(a[i] - b[i]));
    return most;
}

}  // namespace

TEST_CASE("Words and vectors have moments", "[lds][vectors]") {
    STATIC_REQUIRE(Moments<LagMoments<float>>);
    STATIC_REQUIRE(Moments<VectorMoments<double>>);
    STATIC_REQUIRE_FALSE(Moments<Whitening>);
}

TEST_CASE("A system is recovered from its exact covariances, noise and all", "[lds][vectors]") {
    const Known known;
    const VectorMoments<double> moments(known.covariances(7));
    const auto plain = subspace_identification(moments, {.states = h, .lags = 4});
    CHECK(apart(spectrum(plain.system.A), spectrum(known.A)) < 1e-10);
    const auto scaled = subspace_identification(moments, {.states = h, .lags = 4, .scaled = true});
    CHECK(apart(spectrum(scaled.system.A), spectrum(known.A)) < 1e-10);
    CHECK(scaled.noise_factor == 1);
    // R = W⁻¹ (I - C M Cᵀ) W⁻¹ does not depend on the basis of the states
    const auto& s = scaled.system;
    const SmallMatrix white = identity(n) - product(s.C, product_t(s.M, s.C));
    const SmallMatrix unwhitener = inverse(moments.whitener(), "test"),
                      R = product(unwhitener, white, unwhitener);
    CHECK(difference(R, known.R) < 1e-9);
}

TEST_CASE("At the truth EM stays, and its likelihood is the expected one", "[lds][vectors]") {
    const Known known;
    const VectorMoments<double> moments(known.covariances(40));
    const auto truth = known.system(moments);
    const auto f = steady_state(truth);
    for (const Index horizon : {1, 2, 40}) {  // beyond it the states follow the model, as they do here
        const auto statistics = asos_statistics(truth, f, moments, horizon);
        CHECK(statistics.log_likelihood == Approx(gaussian_log_likelihood(n, f.log_det_S, n)).epsilon(1e-10));
        CHECK(difference(statistics.xx_filtered, truth.M) < 1e-8);
        auto s = truth;
        maximise(statistics, s);
        CHECK(difference(s.A, truth.A) < 1e-8);
        CHECK(difference(s.C, truth.C) < 1e-8);
        CHECK(difference(s.M, truth.M) < 1e-8);
    }
}
