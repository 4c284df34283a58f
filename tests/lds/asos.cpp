#include <array>
#include <cmath>
#include <isogloss/lds/asos.hpp>
#include <isogloss/lds/subspace.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"
#include "reference/lds_exact.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;
using texts::difference;

namespace {

struct Fixture {
    std::vector<Token> text = texts::markov(20000, 12);
    LagCounts counts{12, {.lags = 20}};
    Fixture() { counts.add(text); }
};

template <class T> Lds<T> start(const LagCounts& counts, Index states) {
    const LagMoments<T> psi(counts, {.pseudo_counts = 0});
    return subspace_identification(psi, {.states = states, .lags = 3}).system;
}

}  // namespace

TEMPLATE_TEST_CASE(
    "ASOS statistics equal the averages of the exact smoother, the better the further the horizon",
    "[lds][asos]", float, double) {
    using T = TestType;
    const Fixture f;
    const LagMoments<T> psi(f.counts, {.pseudo_counts = 0});
    auto s = start<T>(f.counts, 3);
    s.A(0, 1) += 0.1;  // not the right parameters, so that the horizon matters
    s.A(2, 2) -= 0.2;
    s.M = lyapunov(s.A, dense::identity(3));
    repair_noise(inner_products(s.C, s.C), s.M);
    const auto exact = reference::exact_smoother<T>(s, f.text).statistics;
    const auto k = steady_state(s);
    double before = 1;
    for (const Index horizon : {1, 3, 7}) {
        const auto a = asos_statistics(s, k, psi, horizon);
        const double error = worse(difference(a.xx, exact.xx),
                                   worse(difference(a.xx_1, exact.xx_1), difference(a.yx, exact.yx)));
        CHECK(error < before);
        before = error;
    }
    const auto a = asos_statistics(s, k, psi, 20);
    // the ends of the text, and rounding in float
    CHECK(difference(a.xx, exact.xx) < 1e-4);
    CHECK(difference(a.xx_1, exact.xx_1) < 2e-4);
    CHECK(difference(a.yx, exact.yx) < 1e-4);
    CHECK(difference(a.xx_filtered, exact.xx_filtered) < 1e-3);
    CHECK(a.log_likelihood == Approx(exact.log_likelihood).margin(1e-3));
}

TEMPLATE_TEST_CASE("EM by ASOS raises the likelihood, and reaches what exact EM reaches", "[lds][asos][em]",
                   float, double) {
    using T = TestType;
    const Fixture f;
    const LagMoments<T> psi(f.counts, {.pseudo_counts = 0});
    auto s = start<T>(f.counts, 2), other = s;
    double before = -1e300;
    for (int i = 0; i < 15; ++i) {
        auto statistics = asos_statistics(s, steady_state(s), psi, 10);
        CHECK(statistics.log_likelihood > before - (sizeof(T) == 4 ? 1e-5 : 1e-7));
        before = statistics.log_likelihood;
        CHECK(maximise(std::move(statistics), s) == 1.0);
    }
    CHECK(before > static_log_likelihood(12) + 0.01);
    if constexpr (sizeof(T) == 8) {
        const std::vector<Token> part(f.text.begin(), f.text.begin() + 4000);
        LagCounts counts(12, {.lags = 10});
        counts.add(part);
        const LagMoments<T> moments(counts, {.pseudo_counts = 0});
        for (const bool scaled : {false, true}) {
            s = start<T>(counts, 2);
            other = s;
            for (int i = 0; i < 8; ++i) {
                maximise(asos_statistics(s, steady_state(s), moments, 10), s, {.scaled = scaled});
                reference::exact_em_step<T>(other, part, scaled);
            }
            CHECK(difference(s.A, other.A) < 0.01);
            CHECK(difference(s.C, other.C) < 0.01);
            CHECK(difference(s.M, other.M) < 0.01);
        }
    }
}

TEMPLATE_TEST_CASE("An M-step estimates the noise of the states, and is in a basis where it is I",
                   "[lds][asos][em]", float, double) {
    using T = TestType;
    auto s = texts::recorded<T>(), as_it_is = s;
    const auto averages = reference::exact_smoother<T>(s, texts::recorded_text()).statistics;
    CHECK(maximise(averages, s) == 1);
    maximise(averages, as_it_is, {.scaled = false});
    const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-8;
    // the system has the covariance of the words: M is that of the states
    CHECK(difference(s.M, lyapunov(s.A, dense::identity(2))) < tolerance);
    CHECK(difference(as_it_is.M, lyapunov(as_it_is.A, dense::identity(2))) > 0.1);
    // NumPy, with xx, xx_1, yx, mu of lds_values.hpp: A = xx_1 @ inv(xx); Q = xx - A @ xx_1.T; m = sqrt(mu);
    // C = yx @ inv(xx); C -= outer(m, m @ C); (C @ Q @ C.T)[0, 1]; (C @ A @ Q @ C.T)[1, 4]; eigvals(inv(Q) @ xx)
    const SmallMatrix C = s.C, now = product_t(C, C), next = product_t(product(C, s.A), C);
    CHECK(now(0, 1) == Approx(-0.03420781).epsilon(1e-5));
    CHECK(next(1, 4) == Approx(-0.05821007).epsilon(1e-5));
    CHECK(symmetric_eigen<double>(s.M, "test").values[0] == Approx(1.1330946).epsilon(1e-5));
    CHECK(symmetric_eigen<double>(s.M, "test").values[1] == Approx(1.36775025).epsilon(1e-5));
    const SmallMatrix D = as_it_is.C;
    CHECK(difference(product_t(product(C, s.M), C), product_t(product(D, as_it_is.M), D)) < tolerance);  // R
}

TEST_CASE("EM that estimates the noise of the states never falls, and is ahead", "[lds][asos][em]") {
    const Fixture f;
    const LagMoments<double> psi(f.counts, {.pseudo_counts = 0});
    std::array<double, 2> reached = {};
    for (const bool scaled : {false, true}) {
        auto s = start<double>(f.counts, 3);
        double before = -1e300;
        for (int i = 0; i < 6; ++i) {
            auto statistics = asos_statistics(s, steady_state(s), psi, 20);
            CHECK(statistics.log_likelihood > before - 1e-7);
            before = statistics.log_likelihood;
            maximise(std::move(statistics), s, {.scaled = scaled});
        }
        reached[scaled] = before;
    }
    CAPTURE(reached[0], reached[1]);
    CHECK(reached[1] > reached[0] + 1e-4);
}

TEST_CASE("Without dynamics in the model the likelihood is that of independent words", "[lds][asos]") {
    const Fixture f;
    const LagMoments<double> psi(f.counts, {.pseudo_counts = 5});
    auto s = start<double>(f.counts, 2);
    s.whitening = psi.whitening();
    s.C *= 1e-6;
    const auto a = asos_statistics(s, steady_state(s), psi, 3);
    CHECK(a.log_likelihood == Approx(static_log_likelihood(12)).epsilon(1e-9));
}

TEST_CASE("ASOS refuses what it was not counted for", "[lds][asos]") {
    const Fixture f;
    const LagMoments<double> psi(f.counts, {.pseudo_counts = 0});
    const auto s = start<double>(f.counts, 2);
    const auto k = steady_state(s);
    REQUIRE_THROWS_MATCHES(asos_statistics(s, k, psi, 21), UsageError, says("horizon = 21", "1 to 20"));
    REQUIRE_THROWS_MATCHES(asos_statistics(s, k, psi, 0), UsageError, says("horizon = 0"));
    LagCounts other(13, {.lags = 3});
    other.add(f.text);
    const LagMoments<double> wrong(other);
    REQUIRE_THROWS_MATCHES(asos_statistics(s, k, wrong, 3), UsageError, says("other word frequencies"));
    const LagMoments<double> smoothed(f.counts, {.pseudo_counts = 1});
    REQUIRE_THROWS_MATCHES(asos_statistics(s, k, smoothed, 3), UsageError, says("other word frequencies"));
    const auto one = start<double>(f.counts, 1);
    REQUIRE_THROWS_MATCHES(asos_statistics(one, k, psi, 3), UsageError,
                           says("ASOS", "a steady state [2, 2]", "expected [1, 1]"));
}

TEMPLATE_TEST_CASE("An M-step that is refused leaves the system as it was", "[lds][asos]", float, double) {
    using T = TestType;
    auto s = texts::recorded<T>();
    const auto before = s;
    const auto averages = reference::exact_smoother<T>(s, texts::recorded_text()).statistics;
    const double nan = std::nan("");
    for (const double bad : {-1.0, 0.0, 1.0, 2.0, nan}) {
        REQUIRE_THROWS_MATCHES(maximise(averages, s, {.radius = bad}), UsageError,
                               says("M-step: found radius = ", "above 0 and below 1"));
        REQUIRE_THROWS_MATCHES(maximise(averages, s, {.noise_limit = bad}), UsageError,
                               says("M-step: found noise_limit = ", "above 0 and below 1"));
    }
    auto wrong = averages;
    wrong.yx = zeros<T>(7, 2);  // more rows than the system has words
    REQUIRE_THROWS_MATCHES(maximise(wrong, s), UsageError, says("M-step", "yx [7, 2]", "[6, 2]"));
    wrong = averages;
    wrong.xx_1 = zeros<double>(2, 3);
    REQUIRE_THROWS_MATCHES(maximise(wrong, s), UsageError, says("M-step", "[2, 3]", "[2, 2]"));
    wrong = averages;
    wrong.yx(3, 1) = T(nan);  // found when A and C are computed
    REQUIRE_THROWS_MATCHES(maximise(wrong, s), NumericError, says("noise covariance: found"));
    wrong = averages;
    wrong.xx_1(0, 1) = nan;
    REQUIRE_THROWS_MATCHES(maximise(wrong, s), NumericError, says("M-step: found"));
    wrong = averages;
    wrong.xx = zeros<double>(2, 2);
    REQUIRE_THROWS_MATCHES(maximise(wrong, s), NumericError, says("M-step", "no positive eigenvalue"));
    CHECK((s.A == before.A));
    CHECK((s.C == before.C));
    CHECK((s.M == before.M));
    CHECK(maximise(averages, s, {.radius = 0.1}) == 1);
    CHECK(spectral_radius(s.A, "test") == Approx(0.1));
}

TEST_CASE("More states than words, and one word: statistics are still those of the exact smoother",
          "[lds][asos]") {
    for (const Index V : {3, 1}) {
        const auto text = V == 1 ? std::vector<Token>(20000, 0) : texts::markov(20000, V);
        LagCounts counts(V, {.lags = 10});
        counts.add(text);
        const LagMoments<double> psi(counts, {.pseudo_counts = 0});
        Lds<double> s;
        s.whitening = psi.whitening();
        const Random random(2, 1);
        s.A = zeros<double>(5, 5);
        for (std::size_t i = 0; i < 25; ++i) s.A.data()[i] = random.normal(Index(i));
        s.A *= 0.5 / spectral_radius(s.A, "test");
        s.C = zeros<double>(V, 5);
        for (std::size_t i = 0; i < s.C.size(); ++i) s.C.data()[i] = 0.2 * random.normal(Index(i) + 100);
        project_out<double>(s.whitening.m, ref(s.C));
        s.M = lyapunov(s.A, dense::identity(5));
        repair_noise(inner_products(s.C, s.C), s.M);
        double before = -1e300;
        for (int i = 0; i < 4; ++i) {
            const auto exact = reference::exact_smoother<double>(s, text).statistics;
            auto a = asos_statistics(s, steady_state(s), psi, 10);
            CHECK(difference(a.xx, exact.xx) < 1e-3);
            CHECK(difference(a.xx_1, exact.xx_1) < 1e-3);
            if (V > 1) CHECK(difference(a.yx, exact.yx) < 1e-3);
            CHECK(a.log_likelihood == Approx(exact.log_likelihood).margin(1e-3));
            CHECK(a.log_likelihood >= before - 1e-6);
            before = a.log_likelihood;
            maximise(std::move(a), s);
        }
    }
}
