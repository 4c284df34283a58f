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
    SmallMatrix sample(Index T, std::uint64_t seed) const {
        const SmallMatrix root = symmetric_power(R, 0.5, "test");
        const Random random(seed, 2);
        SmallMatrix out = zeros<double>(T, n), x = zeros<double>(h, 1);
        for (Index t = 0, at = 0; t < T + 100; ++t) {
            SmallMatrix eta = zeros<double>(h, 1), e = zeros<double>(n, 1);
            for (Index i = 0; i < h; ++i) eta.data()[i] = random.normal(at++);
            for (Index i = 0; i < n; ++i) e.data()[i] = random.normal(at++);
            x = product(A, x) + eta;
            const SmallMatrix y = product(C, x) + product(root, e);
            for (Index i = 0; i < n && t >= 100; ++i) out.data()[(t - 100) * n + i] = y.data()[i] + 5;
        }
        return out;
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

TEST_CASE("EM from observations comes near the truth", "[lds][vectors]") {
    const Known known;
    const VectorMoments<double> moments(reference::covariances_of(known.sample(20000, 1), 20));
    auto s = subspace_identification(moments, {.states = h, .lags = 3, .scaled = true}).system;
    double last = -1e300;
    for (int i = 0; i < 25; ++i) {
        auto statistics = asos_statistics(s, steady_state(s), moments, 20);
        CHECK(statistics.log_likelihood > last - 1e-9);
        last = statistics.log_likelihood;
        maximise(std::move(statistics), s);
    }
    CHECK(apart(spectrum(s.A), spectrum(known.A)) < 0.05);
}

TEST_CASE("In float the moments give the same system, to its precision", "[lds][vectors]") {
    const Known known;
    const VectorMoments<float> moments(known.covariances(7));
    auto s = subspace_identification(moments, {.states = h, .lags = 4}).system;
    CHECK(apart(spectrum(s.A), spectrum(known.A)) < 1e-4);
    // A step of EM, which changes the system, since the moments beyond lag 7 are left out.
    const VectorMoments<double> exact(known.covariances(7));
    auto t = subspace_identification(exact, {.states = h, .lags = 4}).system;
    const auto found = asos_statistics(s, steady_state(s), moments, 7);
    const auto expected = asos_statistics(t, steady_state(t), exact, 7);
    CHECK(found.log_likelihood == Approx(expected.log_likelihood).epsilon(1e-5));
    maximise(found, s), maximise(expected, t);
    CHECK(apart(spectrum(t.A), spectrum(known.A)) > 1e-6);
    CHECK(apart(spectrum(s.A), spectrum(t.A)) < 1e-4);
}
