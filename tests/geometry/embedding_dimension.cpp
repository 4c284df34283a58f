#include <cmath>
#include <isogloss/geometry/embedding_dimension.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

struct Value {
    Index n;
    double h;
};

/// h_n by Simpson's rule over θ in [0, π], the exponent shifted by its largest value.
double by_quadrature(Index n) {
    constexpr int intervals = 20000;
    const double pi = std::acos(-1.0), step = pi / intervals, m = double(n);
    const auto exponent = [m](double theta) {
        return (m - 2) * std::log(std::sin(theta)) + m * std::cos(theta);
    };
    const double shift = exponent(std::acos((std::sqrt(5.0) - 1) / 2));
    double sum = 0, moment = 0;
    for (int i = 1; i < intervals; ++i) {
        const double theta = i * step;
        const double term = (i % 2 == 1 ? 4 : 2) * step / 3 * std::exp(exponent(theta) - shift);
        sum += term;
        moment += term * m * std::cos(theta);
    }
    return std::lgamma(m / 2) - std::lgamma((m - 1) / 2) - 0.5 * std::log(pi) + std::log(sum) + shift -
           moment / sum;
}

}  // namespace

TEST_CASE("sphere_entropy gives the table of the source to its printed digits",
          "[metric][embedding_dimension]") {
    const std::vector<Value> table = {{32, -7.77471},  {64, -15.4734},  {96, -23.1726},
                                      {128, -30.8718}, {256, -61.6692}, {512, -123.264}};
    for (const auto& [n, h] : table) {  // six significant digits
        CAPTURE(n);
        const double digit = std::pow(10.0, std::floor(std::log10(-h)) - 5);
        REQUIRE(std::abs(sphere_entropy(n) - h) <= 0.5 * digit);
    }
    REQUIRE(std::abs(skip_gram_entropy(100000, 64) - 7.55245) <= 0.5e-5);
}

TEST_CASE("sphere_entropy agrees with Bessel functions to 1e-12",
          "[metric][embedding_dimension][reference]") {
    // tests/reference/embedding_dimension.py
    const std::vector<Value> bessel = {{1, -0.3278133254727377},     {2, -0.57155577444505968},
                                       {3, -0.80915076853808204},    {7, -1.7645625315003824},
                                       {50, -12.105111150878033},    {100, -24.134964634219231},
                                       {200, -48.195335855437035},   {1000, -240.67989038496352},
                                       {10000, -2406.1330637339412}, {100000, -24060.665187475545}};
    for (const auto& [n, h] : bessel) {
        CAPTURE(n);
        REQUIRE(sphere_entropy(n) == Approx(h).epsilon(1e-12));
    }
    REQUIRE(entropy_per_dimension == Approx(0.5 * std::log((std::sqrt(5.0) + 1) / 2)).epsilon(1e-15));
}

TEST_CASE("sphere_entropy agrees with quadrature, and with closed forms in one and three dimensions",
          "[metric][embedding_dimension]") {
    for (const Index n : {8, 33, 64, 129, 500, 3000, 20000}) {
        CAPTURE(n);
        REQUIRE(sphere_entropy(n) == Approx(by_quadrature(n)).epsilon(1e-10));
    }
    // n = 1: cos θ is ±1. n = 3: cos θ is uniform in [-1, 1].
    REQUIRE(sphere_entropy(1) == Approx(std::log(std::cosh(1.0)) - std::tanh(1.0)).epsilon(1e-14));
    REQUIRE(sphere_entropy(3) ==
            Approx(std::log(std::sinh(3.0) / 3) - (3 / std::tanh(3.0) - 1)).epsilon(1e-14));
}

TEST_CASE("sphere_entropy falls by the golden ratio's coefficient per dimension",
          "[metric][embedding_dimension]") {
    double before = 0;
    for (Index n = 1; n <= 300; ++n) {
        const double h = sphere_entropy(n);
        REQUIRE(h < before);
        before = h;
    }
    // h_n + 0.2406 n tends to a constant from below, with a rest of order 1/n.
    const auto rest = [](Index n) { return sphere_entropy(n) + entropy_per_dimension * double(n); };
    REQUIRE(rest(100000) == Approx(-0.07393).margin(1e-5));
    for (const Index n : {50, 100, 1000})
        REQUIRE((rest(n) - rest(100000)) / (rest(2 * n) - rest(100000)) == Approx(2).epsilon(0.05));
}

TEST_CASE("embedding_dimension gives the rule, the asymptote and the exact crossing",
          "[metric][embedding_dimension]") {
    struct Row {
        double words, rule, asymptotic;
        Index exact;
    };
    const std::vector<Row> rows = {{1000, 57.5, 57.4, 58},
                                   {10000, 76.7, 76.6, 77},
                                   {33278, 86.7, 86.6, 87},
                                   {100000, 95.9, 95.7, 96},
                                   {5000000, 128.5, 128.2, 128}};
    for (const Row& row : rows) {
        CAPTURE(row.words);
        const auto d = embedding_dimension(row.words);
        REQUIRE(std::abs(d.rule - row.rule) <= 0.05);
        REQUIRE(std::abs(d.asymptotic - row.asymptotic) <= 0.05);
        REQUIRE(d.exact == row.exact);
    }
    for (double words = 1; words < 1e12; words *= 1.7) {  // a crossing it is, whatever N
        CAPTURE(words);
        const Index n = embedding_dimension(words).exact;
        REQUIRE(skip_gram_entropy(words, n) < 0);
        if (n > 1) REQUIRE(skip_gram_entropy(words, n - 1) >= 0);
    }
    REQUIRE(embedding_dimension(1).exact == 1);
}

TEST_CASE("The entropy refuses what is no dimension and no number of words",
          "[metric][embedding_dimension][errors]") {
    REQUIRE_THROWS_MATCHES(sphere_entropy(0), UsageError, says("found dimension = 0", "expected 1 to"));
    REQUIRE_THROWS_MATCHES(sphere_entropy(most_dimensions + 1), UsageError, says("100000001"));
    REQUIRE_THROWS_MATCHES(skip_gram_entropy(0.5, 8), UsageError, says("found words = 0.5"));
    REQUIRE_THROWS_MATCHES(skip_gram_entropy(10, -3), UsageError, says("found dimension = -3"));
    REQUIRE_THROWS_MATCHES(embedding_dimension(std::numeric_limits<double>::quiet_NaN()), UsageError,
                           says("embedding_dimension: found words = nan"));
    REQUIRE_THROWS_MATCHES(embedding_dimension(std::numeric_limits<double>::infinity()), UsageError,
                           says("words = inf"));
}

TEST_CASE("With the entropy of a corpus fewer dimensions are asked for", "[metric][embedding_dimension]") {
    for (const double H : {0.0, 3.0, 12.9}) {
        const auto d = embedding_dimension(10000, H);
        CAPTURE(H, d.exact);
        REQUIRE(skip_gram_entropy(10000, d.exact) < H);
        REQUIRE(skip_gram_entropy(10000, d.exact - 1) >= H);
        REQUIRE(d.asymptotic == Approx((2 * std::log(10000.) - H) / 0.2406059125).epsilon(1e-9));
        REQUIRE(std::abs(d.rule - d.asymptotic) < 0.3);
        REQUIRE(std::abs(double(d.exact) - d.asymptotic) < 2);
    }
    REQUIRE(embedding_dimension(10000, 2 * std::log(10000.)).exact == 1);
    REQUIRE_THROWS_AS(embedding_dimension(10000, -1), UsageError);
    REQUIRE_THROWS_AS(embedding_dimension(10000, 18.5), UsageError);
    REQUIRE_THROWS_AS(embedding_dimension(10000, std::numeric_limits<double>::quiet_NaN()), UsageError);
}
