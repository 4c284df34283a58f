#include <isogloss/lds/embedding.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"
#include "reference/lds_exact.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;
using texts::difference;

TEMPLATE_TEST_CASE(
    "Embeddings of tokens are whitened states of norm 1, the same in every basis but for a rotation",
    "[lds][embedding]", float, double) {
    using T = TestType;
    const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-9;
    const auto s = texts::recorded<T>();
    auto text = texts::recorded_text();
    auto averages = reference::exact_smoother<T>(s, text).statistics;
    averages.xx_filtered(0, 0) *= 2;  // far from xx
    for (const auto states : {TokenStates::filter, TokenStates::smoother}) {
        const auto z = TokenEmbedding<T>(s, steady_state(s), averages, states)(text);
        const SmallMatrix& xx = states == TokenStates::filter ? averages.xx_filtered : averages.xx;
        const TextFilter<T> f(s, steady_state(s));
        const auto x = states == TokenStates::filter ? f.filter(text) : f.smooth(text);
        const SmallMatrix root = symmetric_power(xx, 0.5, "test");
        for (std::size_t t = 0; t < text.size(); ++t) {  // E[xxᵀ]^½ z points to x
            const double a = root(0, 0) * double(z(t, 0)) + root(0, 1) * double(z(t, 1));
            const double b = root(1, 0) * double(z(t, 0)) + root(1, 1) * double(z(t, 1));
            CHECK(double(z(t, 0)) * double(z(t, 0)) + double(z(t, 1)) * double(z(t, 1)) == Approx(1));
            CHECK(a * double(x(t, 1)) == Approx(b * double(x(t, 0))).margin(tolerance));
            CHECK(a * double(x(t, 0)) + b * double(x(t, 1)) > 0);
        }
        // x' = B x: the angles between tokens stay. Noise of covariance B Bᵀ would be needed; B is
        // orthogonal.
        const double c = std::cos(0.7), d = std::sin(0.7);
        const SmallMatrix B = {{c, -d}, {d, c}};
        Lds<T> turned = s;
        turned.A = product(B, product_t(s.A, B));
        turned.M = product(B, product_t(s.M, B));
        turned.C = times(s.C, transposed(B));
        auto turned_averages = averages;
        turned_averages.xx = product(B, product_t(averages.xx, B));
        turned_averages.xx_filtered = product(B, product_t(averages.xx_filtered, B));
        const auto other = TokenEmbedding<T>(turned, steady_state(turned), turned_averages, states)(text);
        const SmallMatrix u = z, v = other;
        CHECK(difference(product_t(v, v), product_t(u, u)) < tolerance);
    }
}

TEST_CASE("A word's vector points to the mean state of its tokens", "[lds][embedding]") {
    auto s = texts::recorded<double>();
    std::vector<Token> text = texts::markov(6000, 6);
    LagCounts counts(6, {.lags = 1});
    counts.add(text);
    s.whitening = Whitening(counts.occurrences(), {.pseudo_counts = 0});
    project_out<double>(s.whitening.m, ref(s.C));
    for (int i = 0; i < 30; ++i) reference::exact_em_step(s, std::span<const Token>(text));
    const auto e = reference::exact_smoother<double>(s, text);
    const auto v = type_embedding(s, e.statistics.xx);
    const SmallMatrix whiten = symmetric_power(e.statistics.xx, -0.5, "test");
    for (Token w = 0; w < 6; ++w) {
        SmallMatrix mean = zeros<double>(2, 1);
        for (std::size_t t = 0; t < text.size(); ++t)
            if (text[t] == w)
                for (std::size_t j = 0; j < 2; ++j) mean(j, 0) += e.smoothed(t, j);
        mean = product(whiten, mean);
        const double length = std::sqrt(inner(mean, mean));
        const auto at = static_cast<std::size_t>(w);
        CHECK((mean(0, 0) * v(at, 0) + mean(1, 0) * v(at, 1)) / length > 0.97);
    }
}

TEST_CASE("Words never seen have a row of zeros, covariances of another size are refused",
          "[lds][embedding]") {
    auto s = texts::recorded<double>();
    s.whitening = Whitening::of_frequencies({0.4, 0.3, 0.3, 0, 0, 0}, 1);
    const auto v = type_embedding(s, dense::identity(2));
    for (std::size_t i : {3, 4, 5}) CHECK((s.C(i, 0) != 0 && v(i, 0) == 0 && v(i, 1) == 0));
    CHECK(v(0, 0) * v(0, 0) + v(0, 1) * v(0, 1) == Approx(1));
    s = texts::recorded<double>();
    Statistics<double> averages;
    averages.xx = dense::identity(2), averages.xx_filtered = dense::identity(3);
    REQUIRE_THROWS_MATCHES(TokenEmbedding<double>(s, steady_state(s), averages, TokenStates::filter),
                           UsageError, says("TokenEmbedding: found averages [3, 3]", "expected [2, 2]"));
    REQUIRE_THROWS_MATCHES(type_embedding(s, averages.xx_filtered), UsageError,
                           says("type_embedding: found averages [3, 3]", "expected [2, 2]"));
    CHECK(TokenEmbedding<double>(s, steady_state(s), averages, TokenStates::smoother).width() == 2);
    STATIC_REQUIRE(StateAverages<Statistics<float>>);
    STATIC_REQUIRE_FALSE(StateAverages<SmallMatrix>);
}
