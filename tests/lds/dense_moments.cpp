// Vectors of a known linear dynamical system: subspace identification and EM from their moments.
#include <cmath>
#include <isogloss/lds/asos.hpp>
#include <isogloss/lds/dense_moments.hpp>
#include <isogloss/lds/subspace.hpp>
#include <isogloss/random.hpp>
#include <limits>

#include "catch.hpp"
#include "lds/texts.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using namespace isogloss::lds;
using texts::difference;

namespace {

constexpr Index h = 3, n = 7;

// x_t = A x_{t-1} + η, o_t = mean + C x_t + ε, with a full covariance of ε and eigenvalues 0.8 e^{±0.9i}, 0.55.
struct Known {
    SmallMatrix A = zeros<double>(h, h), C = zeros<double>(n, h), R, sigma, mean = zeros<double>(1, n);
    Known() {
        A(0, 0) = A(1, 1) = 0.8 * std::cos(0.9);
        A(0, 1) = -0.8 * std::sin(0.9), A(1, 0) = -A(0, 1);
        A(2, 2) = 0.55;
        const Random random(3, 1);
        SmallMatrix root = zeros<double>(n, n);
        for (Index i = 0; i < n * h; ++i) C.data()[i] = random.normal(i);
        for (Index i = 0; i < n * n; ++i) root.data()[i] = random.normal(100 + i);
        for (Index i = 0; i < n; ++i) mean.data()[i] = 5 + double(i);
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
    Lds<double> system(const DenseMoments<double>& moments) const {
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
            for (Index i = 0; i < n && t >= 100; ++i)
                out.data()[(t - 100) * n + i] = y.data()[i] + mean.data()[i];
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

TEST_CASE("Words and vectors have moments", "[lds][dense_moments]") {
    STATIC_REQUIRE(Moments<LagMoments<float>>);
    STATIC_REQUIRE(Moments<DenseMoments<double>>);
    STATIC_REQUIRE_FALSE(Moments<Whitening>);
}

TEST_CASE("A system is recovered from its exact covariances, noise and all", "[lds][dense_moments]") {
    const Known known;
    const DenseMoments<double> moments(known.mean, known.covariances(7));
    const auto plain = subspace_identification(moments, {.states = h, .lags = 4});
    CHECK(apart(spectrum(plain.system.A), spectrum(known.A)) < 1e-10);
    const auto scaled = subspace_identification(moments, {.states = h, .lags = 4, .scaled = true});
    CHECK(apart(spectrum(scaled.system.A), spectrum(known.A)) < 1e-10);
    CHECK(scaled.noise_factor == 1);
    // R = W⁻¹ (I - C M Cᵀ) W⁻¹ does not depend on the basis of the states
    const auto& s = scaled.system;
    const SmallMatrix white = identity(n) - product(s.C, product_t(s.M, s.C));
    const SmallMatrix R = product(moments.unwhitener(), white, moments.unwhitener());
    CHECK(difference(R, known.R) < 1e-9);
}

TEST_CASE("At the truth EM stays, and its likelihood is the expected one", "[lds][dense_moments]") {
    const Known known;
    const DenseMoments<double> moments(known.mean, known.covariances(40));
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

TEST_CASE("EM from observations comes near the truth, and its likelihood is the filter's",
          "[lds][dense_moments]") {
    const Known known;
    const SmallMatrix x = known.sample(20000, 1);
    const DenseMoments<double> moments(x, 20);
    const SmallMatrix y = moments.whitened(x);
    CHECK(difference(SmallMatrix(inner_products(y, y) / 20000.0), identity(n)) < 1e-10);
    auto s = subspace_identification(moments, {.states = h, .lags = 3, .scaled = true}).system;
    double last = -1e300;
    for (int i = 0; i < 25; ++i) {
        auto statistics = asos_statistics(s, steady_state(s), moments, 20);
        CHECK(statistics.log_likelihood > last - 1e-9);
        last = statistics.log_likelihood;
        CHECK(VectorFilter(s, steady_state(s)).log_likelihood(y) == Approx(last).margin(2e-3));
        maximise(std::move(statistics), s);
    }
    const auto truth = known.system(moments);
    const double of_truth = VectorFilter(truth, steady_state(truth)).log_likelihood(y);
    CHECK(last > of_truth - 1e-3);  // the best of the family on this sample is at least as good
    CHECK(last < of_truth + 5e-3);
    CHECK(apart(spectrum(s.A), spectrum(known.A)) < 0.05);
    // The covariance of an estimate is that of the state less what remains unknown of it.
    const auto k = steady_state(s);
    const VectorFilter filter(s, k);
    const SmallMatrix a = filter.filter(y), b = filter.smooth(y);
    CHECK(difference(SmallMatrix(inner_products(a, a) / 20000.0), SmallMatrix(s.M - k.filtered)) < 0.02);
    CHECK(difference(SmallMatrix(inner_products(b, b) / 20000.0), SmallMatrix(s.M - k.smoothed)) < 0.02);
}

TEST_CASE("Sums of lagged products are divided by the number of observations, whatever the lag",
          "[lds][dense_moments]") {
    const DenseMoments<double> moments(SmallMatrix{{4}, {2}, {4}, {2}}, 3);  // ±1 about 3
    const double expected[] = {1, -0.75, 0.5, -0.25}, one = 1;
    for (Index k = 0; k <= 3; ++k) {
        double found = 0;
        moments.apply(k, {&one, 1, 1}, {&found, 1, 1});
        CHECK(found == Approx(expected[k]).epsilon(1e-13));
    }
}

TEST_CASE("States and likelihood of vectors are those of the recursions, from the first row to the last",
          "[lds][dense_moments]") {
    const Known known;
    const DenseMoments<double> moments(known.mean, known.covariances(7));
    const auto s = known.system(moments);
    const auto f = steady_state(s);
    const VectorFilter filter(s, f);
    const SmallMatrix y = moments.whitened(known.sample(6, 2)), filtered = filter.filter(y),
                      smoothed = filter.smooth(y), C = s.C,
                      S = identity(n) + product(C, product_t(SmallMatrix(f.predicted - s.M), C));
    const auto row = [](const SmallMatrix& m, Index t) {
        SmallMatrix column = zeros<double>(cols(m), 1);
        std::copy_n(m.data() + t * cols(m), cols(m), column.data());
        return column;
    };
    SmallMatrix x = zeros<double>(h, 1);
    double squares = 0;
    for (Index t = 0; t < 6; ++t) {
        const SmallMatrix e = row(y, t) - product(C, s.A, x);
        squares += inner(e, solve(S, e, "test"));
        x = product(f.H, x) + product(f.L, product(transposed(C), row(y, t)));
        CHECK(difference(row(filtered, t), x) < 1e-12);
    }
    CHECK(filter.log_likelihood(y) ==
          Approx(gaussian_log_likelihood(n, f.log_det_S, squares / 6)).epsilon(1e-11));
    for (Index t = 5; t >= 0; --t) {
        if (t < 5) x = product(f.J, x) + product(f.P, row(filtered, t));
        CHECK(difference(row(smoothed, t), x) < 1e-12);
    }
}

TEST_CASE("In float the moments give the same system, to its precision", "[lds][dense_moments]") {
    const Known known;
    const DenseMoments<float> moments(known.mean, known.covariances(7));
    auto s = subspace_identification(moments, {.states = h, .lags = 4}).system;
    CHECK(apart(spectrum(s.A), spectrum(known.A)) < 1e-4);
    // A step of EM, which changes the system, since the moments beyond lag 7 are left out.
    const DenseMoments<double> exact(known.mean, known.covariances(7));
    auto t = subspace_identification(exact, {.states = h, .lags = 4}).system;
    const auto found = asos_statistics(s, steady_state(s), moments, 7);
    const auto expected = asos_statistics(t, steady_state(t), exact, 7);
    CHECK(found.log_likelihood == Approx(expected.log_likelihood).epsilon(1e-5));
    maximise(found, s), maximise(expected, t);
    CHECK(apart(spectrum(t.A), spectrum(known.A)) > 1e-6);
    CHECK(apart(spectrum(s.A), spectrum(t.A)) < 1e-4);
}

TEMPLATE_TEST_CASE("A filter over vectors refuses what is none of its own, and what is no number",
                   "[lds][dense_moments]", float, double) {
    const Known known;
    const DenseMoments<double> moments(known.mean, known.covariances(7));
    const auto of = known.system(moments);
    Lds<TestType> s{of.A, of.C, of.M, of.whitening};
    const auto k = steady_state(s);
    const VectorFilter filter(s, k);
    SmallMatrix y = moments.whitened(known.sample(20, 3));
    const double value = filter.log_likelihood(y);
    CHECK(std::isfinite(value));

    Lds<TestType> one = s;
    one.A = one.M = dense::identity(1) * 0.5;
    one.C = zeros<TestType>(n, 1);
    REQUIRE_THROWS_MATCHES(VectorFilter(one, k), UsageError,
                           says("VectorFilter", "a steady state with a matrix [3, 3]", "expected [1, 1]"));
    REQUIRE_THROWS_MATCHES(VectorFilter(s, steady_state(one)), UsageError, says("[1, 1]", "expected [3, 3]"));
    const auto words = texts::recorded<TestType>();
    REQUIRE_THROWS_MATCHES(VectorFilter(words, steady_state(words)), UsageError,
                           says("VectorFilter", "one of words", "expected one of vectors"));
    const SmallMatrix narrow = zeros<double>(4, n - 1);
    REQUIRE_THROWS_MATCHES(filter.filter(narrow), UsageError, says("6 numbers", "expected 7"));
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
        auto damaged = y;
        damaged(4, 2) = bad;
        for (const auto* call : {"filter", "smooth", "log_likelihood"}) {
            INFO(call);
            REQUIRE_THROWS_MATCHES(call[0] == 'f'   ? (void)filter.filter(damaged)
                                   : call[0] == 's' ? (void)filter.smooth(damaged)
                                                    : (void)filter.log_likelihood(damaged),
                                   NumericError, says("VectorFilter: found", "in row 4, column 2"));
        }
    }
    y(4, 2) = 1e200;  // finite, its square is not
    REQUIRE_THROWS_MATCHES(filter.log_likelihood(y), NumericError, says("VectorFilter", "log-likelihood of"));
}

TEST_CASE("Moments of vectors refuse what they cannot whiten", "[lds][dense_moments]") {
    const Known known;
    SmallMatrix x = known.sample(50, 2);
    REQUIRE_THROWS_MATCHES(DenseMoments<double>(x, 50), UsageError, says("observations = 50"));
    REQUIRE_THROWS_MATCHES(DenseMoments<double>(x, 0), UsageError, says("lags = 0"));
    REQUIRE_THROWS_MATCHES(
        DenseMoments<double>(zeros<double>(1, 0), {zeros<double>(0, 0), zeros<double>(0, 0)}), UsageError,
        says("a mean [1, 0]"));
    const DenseMoments<double> moments(x, 3);
    SmallMatrix narrow = zeros<double>(4, n - 1), block = zeros<double>(n, 2), out = block;
    REQUIRE_THROWS_MATCHES(moments.whitened(narrow), UsageError, says("6 numbers", "expected 7"));
    REQUIRE_THROWS_MATCHES(moments.apply(4, ref(std::as_const(block)), ref(out)), UsageError, says("lag 4"));
    SmallMatrix unlike = zeros<double>(1, 2),
                scales = zeros<double>(2, 2);  // independent, but of unlike scale
    scales(0, 0) = 4e6, scales(1, 1) = 1e-6;
    REQUIRE_THROWS_MATCHES(DenseMoments<double>(unlike, {scales, zeros<double>(2, 2)}), NumericError,
                           says("eigenvalues 1e-06 … 4e+06", "the least above 1e-12 of the largest",
                                "divide each number by its standard deviation"));
    for (Index t = 0; t < 50; ++t) x(std::size_t(t), 2) = 1;
    REQUIRE_THROWS_MATCHES(DenseMoments<double>(x, 3), NumericError, says("never change"));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    SmallMatrix mean = zeros<double>(1, 2), lag = zeros<double>(2, 2);
    lag(1, 0) = nan;
    REQUIRE_THROWS_MATCHES(DenseMoments<double>(mean, {dense::identity(2), lag}), NumericError,
                           says("nan in the covariance of lag 1, row 1, column 0"));
    mean(0, 1) = nan;
    REQUIRE_THROWS_MATCHES(DenseMoments<double>(mean, {dense::identity(2), dense::identity(2)}), NumericError,
                           says("nan in the mean, row 0, column 1"));
    x(30, 4) = nan;
    REQUIRE_THROWS_MATCHES(DenseMoments<double>(x, 3), NumericError, says("nan in row 30, column 4"));
}
