#include <isogloss/lds/moments.hpp>
#include <span>
#include <vector>

#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;
using texts::difference;

namespace {

SmallMatrix random_block(Index rows, Index cols, std::uint32_t stream) {
    auto m = zeros<double>(rows, cols);
    const Random random(4, stream);
    for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] = random.normal(Index(i));
    return m;
}

// Ψ_k as an array, from its definition.
SmallMatrix as_matrix(const LagCounts& counts, double kappa, Index k) {
    const Index V = counts.vocabulary();
    const double mass = double(counts.tokens()) + kappa * double(V);
    std::vector<double> mu;
    for (const auto n : counts.occurrences()) mu.push_back((double(n) + kappa) / mass);
    SmallMatrix S = zeros<double>(V, V), P = dense::identity(V);
    for (Index i = 0; i < V; ++i)
        for (Index j = 0; j < V; ++j) {
            const double m = std::sqrt(mu[std::size_t(i)] * mu[std::size_t(j)]);
            P.data()[i * V + j] -= m;
            if (m > 0 && k > 0) S.data()[i * V + j] = double(counts.lag(k)(i, j)) / mass / m;
        }
    return k == 0 ? P : product(P, S, P);
}

}  // namespace

TEMPLATE_TEST_CASE("Moments are the operators that their definition says", "[lds][moments]", float, double) {
    using T = TestType;
    const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
    LagCounts counts(12, {.lags = 3});
    counts.add(texts::markov(500, 12));
    for (const double kappa : {0.0, 3.5})
        for (Index k = 0; k <= 3; ++k) {
            const LagMoments<T> psi(counts, {.pseudo_counts = kappa});
            const SmallMatrix x = random_block(12, 40, 1), D = as_matrix(counts, kappa, k);
            const TallMatrix<T> narrow = x;
            TallMatrix<T> y = zeros<T>(12, 40);
            psi.apply(k, ref(narrow), ref(y));
            CHECK(difference(y, product(D, x)) < tolerance);
            psi.apply_transposed(k, ref(narrow), ref(y));
            CHECK(difference(y, product(transposed(D), x)) < tolerance);
            threads(3);
            TallMatrix<T> z = zeros<T>(12, 40);
            psi.apply_transposed(k, ref(narrow), ref(z));
            threads(1);
            CHECK(std::equal(y.data(), y.data() + y.size(), z.data()));
        }
}

TEST_CASE("Without pseudo-counts and far from the ends the margins are the frequencies", "[lds][moments]") {
    // A text that returns to its beginning has exactly the same margins at lag 1 but for one word.
    auto text = texts::markov(999, 9);
    LagCounts counts(9, {.lags = 1});
    text.push_back(text.front());
    counts.add(text);
    const Whitening u(counts.occurrences(), {.pseudo_counts = 0});
    double sum = 0;
    for (std::size_t i = 0; i < 9; ++i) {
        CHECK(u.mu[i] == Approx(double(counts.occurrences()[i]) / 1000));
        CHECK(u.m[i] * u.w[i] == Approx(1));
        sum += u.m[i] * u.m[i];
    }
    CHECK(sum == Approx(1));

    const SparseCounts& N = counts.lag(1);
    SmallMatrix D = zeros<double>(9, 9);  // W N₁ W / T - m mᵀ
    for (Index i = 0; i < 9; ++i) {
        std::int64_t as_later = i == text.front(), as_earlier = as_later;
        for (Index j = 0; j < 9; ++j) {
            as_later += N(i, j), as_earlier += N(j, i);
            D.data()[i * 9 + j] = double(N(i, j)) / 1000 * u.w[i] * u.w[j] - u.m[i] * u.m[j];
        }
        CHECK(as_later == counts.occurrences()[i]);
        CHECK(as_earlier == counts.occurrences()[i]);
    }
    const LagMoments<double> psi(counts, {.pseudo_counts = 0});
    const SmallMatrix x = random_block(9, 40, 1);
    TallMatrix<double> y = zeros<double>(9, 40);
    psi.apply(1, ref(x), ref(y));
    CHECK(difference(y, product(D, x)) < 0.03);  // the word at the ends, 1 of 1000, whose m is about 1/3
}

TEST_CASE("No lagged correlation exceeds 1, however many pseudo-counts there are", "[lds][moments]") {
    LagCounts counts(30, {.lags = 1});
    std::vector<Token> text;  // a cycle: every word is known from the one before
    for (int i = 0; i < 3000; ++i) text.push_back(i % 30);
    counts.add(text);
    for (const double kappa : {0.0, 10.0, 1000.0}) {
        const auto s = dense::singular_values(as_matrix(counts, kappa, 1));
        CHECK(s(0) <= 1 + 1e-12);
        CHECK(s(0) > 0.99 * 3000 / (3000 + 30 * kappa));
    }
}

TEST_CASE("Where no pseudo-counts are given they are half of the tokens, shared by the words",
          "[lds][moments]") {
    const std::vector<std::int64_t> occurrences = {7, 0, 2, 3};  // 12 of 4 words: 1.5 each
    const Whitening u(occurrences), same(occurrences, {.pseudo_counts = 1.5});
    CHECK(u.mu == same.mu);
    CHECK(u.mass == 18);
    CHECK(u.mu[1] == Approx(1.5 / 18));
}

TEST_CASE("Moments that make no sense are refused", "[lds][moments]") {
    LagCounts counts(4, {.lags = 2});
    REQUIRE_THROWS_MATCHES(LagMoments<double>(counts), DataError, says("no tokens"));
    counts.add(std::vector<Token>{0, 1});
    REQUIRE_THROWS_MATCHES(LagMoments<double>(counts, {.pseudo_counts = -1}), DataError,
                           says("pseudo_counts = -1"));
    const LagMoments<double> psi(counts);
    REQUIRE_THROWS_MATCHES(psi.require_pairs(2, "test"), DataError,
                           says("no two words are 2 apart", "a longer text"));
    LagCounts sentences(4, {.lags = 2, .boundary = 3});
    sentences.add(std::vector<Token>{0, 3, 1, 3, 2, 3});
    REQUIRE_THROWS_MATCHES(LagMoments<double>(sentences).require_pairs(2, "test"), DataError,
                           says("no two words of a sentence are 2 apart"));
    SmallMatrix x = zeros<double>(4, 2), y = zeros<double>(3, 2);
    REQUIRE_THROWS_MATCHES(psi.apply(1, ref(x), ref(y)), UsageError, says("[4, 2]", "[3, 2]", "4 rows"));
    REQUIRE_THROWS_MATCHES(Whitening::of_frequencies({0.5, 0.4}, 1), DataError, says("sum to 0.9"));
    REQUIRE_THROWS_MATCHES(Whitening::of_frequencies({1.5, -0.5}, 1), DataError, says("-0.5"));
}
