#include <isogloss/lds/subspace.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"
#include "reference/vector_moments.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;

namespace {

// Eigenvalues of the hidden chain beside 1, rising.
std::vector<double> known() {
    auto e = schur<double>(texts::transition(), "test").real;
    std::sort(e.begin(), e.end());
    e.pop_back();
    return e;
}

// Largest error of the eigenvalues of A found in a text of T tokens.
template <class T> double error(Index tokens, Index lags, bool scaled = false) {
    LagCounts counts(30, {.lags = 2 * lags - 1});
    counts.add(texts::markov(tokens, 30));
    const LagMoments<T> psi(counts, {.pseudo_counts = 0});
    const auto s = subspace_identification(psi, {.states = 2, .lags = lags, .scaled = scaled});
    const auto f = schur<double>(s.system.A, "test");
    auto real = f.real;
    std::sort(real.begin(), real.end());
    double most = 0;
    for (std::size_t i = 0; i < 2; ++i)
        most = worse(worse(most, std::abs(real[i] - known()[i])), std::abs(f.imaginary[i]));
    return most;
}

}  // namespace

TEMPLATE_TEST_CASE("The spectrum of a hidden Markov chain is recovered the better the longer the text",
                   "[lds][subspace]", float, double) {
    CHECK(error<TestType>(3000, 4) < 0.15);
    CHECK(error<TestType>(300000, 4) < 0.04);
    CHECK(error<TestType>(300000, 4) < error<TestType>(3000, 4));
    CHECK(error<TestType>(300000, 4, true) < 0.04);
    CHECK(error<TestType>(300000, 2) < 0.05);
}

TEST_CASE("What is found is a system with a steady state, orthogonal to m", "[lds][subspace]") {
    LagCounts counts(30, {.lags = 7});
    counts.add(texts::markov(5000, 30));
    const LagMoments<double> psi(counts, {.pseudo_counts = 2});
    for (const bool scaled : {false, true}) {
        const auto found = subspace_identification(psi, {.states = 6, .lags = 4, .scaled = scaled});
        const auto& s = found.system;
        lds::detail::require_consistent(s, "test");
        CHECK(spectral_radius(s.A, "test") <= 0.98 + 1e-9);
        CHECK(largest_share(inner_products(s.C, s.C), s.M) <= 0.98 + 1e-9);
        CHECK(std::isfinite(steady_state(s).log_det_S));
        for (std::size_t j = 0; j < 6; ++j) {
            double along = 0;
            for (std::size_t i = 0; i < 30; ++i) along += s.C(i, j) * s.whitening.m[i];
            CHECK(std::abs(along) < 1e-12);
        }
        CHECK(found.radius == Approx(spectral_radius(s.A, "test")).epsilon(1e-12));  // nothing to be scaled
        const auto tight = subspace_identification(
            psi, {.states = 6, .lags = 4, .radius = 0.1, .noise_limit = 0.05, .scaled = scaled});
        CHECK(tight.radius == Approx(found.radius).epsilon(1e-12));
        CHECK(spectral_radius(tight.system.A, "test") == Approx(0.1).epsilon(1e-4));
        CHECK(largest_share(inner_products(tight.system.C, tight.system.C), tight.system.M) <= 0.05 + 1e-9);
        CHECK(found.singular_values.size() == 6);
        CHECK(std::is_sorted(found.singular_values.rbegin(), found.singular_values.rend()));
    }
}

TEST_CASE("Eigenvalues beyond the radius are scaled to it, the others stay", "[lds][subspace]") {
    const SmallMatrix A = {
        {1.2, 3.0, 0.1}, {0, 0.5, 1.0}, {0, -2.0, 0.9}};  // 1.2, and a pair of modulus 1.56
    const auto f = schur<double>(with_radius(A, 0.9, "test"), "test");
    for (std::size_t i = 0; i < 3; ++i) CHECK(std::hypot(f.real[i], f.imaginary[i]) == Approx(0.9));
    const auto before = schur<double>(A, "test");
    double angle = 0, angle_before = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        angle = std::max(angle, std::atan2(f.imaginary[i], f.real[i]));
        angle_before = std::max(angle_before, std::atan2(before.imaginary[i], before.real[i]));
    }
    CHECK(angle == Approx(angle_before));
    const auto stable = with_radius({{0.5, 3.0}, {0, 0.95}}, 0.9, "test");
    const auto e = schur<double>(stable, "test");
    CHECK(std::min(e.real[0], e.real[1]) == Approx(0.5));
    CHECK(std::max(e.real[0], e.real[1]) == Approx(0.9));
}

TEST_CASE("Texts without dynamics of that size are refused", "[lds][subspace]") {
    LagCounts one(1, {.lags = 3}), few(4, {.lags = 3}), brief(4, {.lags = 7});
    one.add(std::vector<Token>(50, 0));
    few.add(texts::markov(3000, 3));
    brief.add(std::vector<Token>{0, 1, 2, 3, 1});
    const auto find = [](const LagCounts& counts, Index states, Index lags) {
        return subspace_identification(LagMoments<double>(counts, {.pseudo_counts = 1}),
                                       {.states = states, .lags = lags});
    };
    REQUIRE_THROWS_MATCHES(find(one, 1, 2), UsageError, says("1 states", "at most 0"));
    REQUIRE_THROWS_MATCHES(find(few, 4, 2), UsageError, says("4 states", "at most 3, which 2 lags"));
    CHECK(find(few, 3, 2).system.states() == 3);
    REQUIRE_THROWS_MATCHES(find(brief, 2, 4), DataError, says("are 5 apart"));
    REQUIRE_THROWS_MATCHES(find(few, 0, 2), UsageError, says("states = 0"));
    REQUIRE_THROWS_MATCHES(find(few, 1, 1), UsageError, says("found 1 lags", "at least 2"));
}

TEMPLATE_TEST_CASE("A scalar series that oscillates needs a lag more than states", "[lds][subspace]", float,
                   double) {
    // y_t = 0.97 y_{t-1} - 0.81 y_{t-2} + e: covariances from the Yule-Walker equations, eigenvalues 0.9 exp(± i 1.00157)
    Array<SmallMatrix> covariances(8, zeros<double>(1, 1));
    double last = 1, next = 0.97 / 1.81;
    for (auto& c : covariances) {
        c(0, 0) = last;
        last = std::exchange(next, 0.97 * next - 0.81 * last);
    }
    const reference::VectorMoments<TestType> moments(covariances);
    REQUIRE_THROWS_MATCHES(subspace_identification(moments, {.states = 2, .lags = 2}), UsageError,
                           says("2 states", "at most 1, which 2 lags"));
    REQUIRE_THROWS_MATCHES(subspace_identification(moments, {.states = 2, .lags = 4, .scaled = true}),
                           UsageError, says("at most 1", "`scaled`"));
    const auto found = subspace_identification(moments, {.states = 2, .lags = 3}).system;
    const auto e = dense::schur<double>(found.A, "test");
    for (const int i : {0, 1}) {
        CHECK(e.real[i] == Approx(0.485).epsilon(1e-3));
        CHECK(std::abs(e.imaginary[i]) == Approx(std::sqrt(0.81 - 0.485 * 0.485)).epsilon(1e-3));
    }
}

TEMPLATE_TEST_CASE(
    "From any state that was kept the system is the same to the bit, and a watch may end the work",
    "[lds][subspace]", float, double) {
    LagCounts counts(30, {.lags = 7});
    counts.add(texts::markov(20000, 30));
    const LagMoments<TestType> psi(counts, {.pseudo_counts = 1});
    const SubspaceOptions options{.states = 4, .lags = 4};
    const auto whole = subspace_identification(psi, options);
    std::vector<SvdState<TestType>> states;
    std::vector<double> shares;
    const auto watched = subspace_identification(psi, options,
                                                 {.progress = [&](double share) { shares.push_back(share); },
                                                  .checkpoint =
                                                      [&](Index made, const TallMatrix<TestType>& block) {
                                                          states.push_back({made, block});
                                                      },
                                                  .from = {}});
    REQUIRE(watched.system.A == whole.system.A);
    REQUIRE(states.size() == 7);             // of 8 products, all but the last
    REQUIRE(shares.size() == (8 + 7) * 16);  // 8 of all columns and 7 of the error's, 4² sparse products each
    REQUIRE(std::is_sorted(shares.begin(), shares.end()));
    REQUIRE(shares.back() == Approx(1));
    for (const auto& state : states) {
        double first = -1;
        const auto again = subspace_identification(psi, options,
                                                   {.progress =
                                                        [&](double share) {
                                                            if (first < 0) first = share;
                                                        },
                                                    .checkpoint = {},
                                                    .from = state});
        CHECK(again.system.A == whole.system.A);
        CHECK(again.system.C == whole.system.C);
        CHECK(again.system.M == whole.system.M);
        CHECK(again.error_bound == whole.error_bound);
        CHECK(first == Approx(shares[std::size_t(state.products) * 16]));
    }
    struct Stop {};
    REQUIRE_THROWS_AS(subspace_identification(psi, options,
                                              {.progress =
                                                   [](double share) {
                                                       if (share > 0.3) throw Stop();
                                                   },
                                               .checkpoint = {},
                                               .from = {}}),
                      Stop);
    auto other = states.front();
    other.block = zeros<TestType>(120, 15);
    REQUIRE_THROWS_MATCHES(
        subspace_identification(psi, options, {.progress = {}, .checkpoint = {}, .from = other}), UsageError,
        says("a state [120, 15]", "expected [120, 14]"));
}
