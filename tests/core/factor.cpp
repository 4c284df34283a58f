#include <isogloss/factor.hpp>
#include <isogloss/random.hpp>
#include <limits>

#include "catch.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using namespace isogloss::dense;

namespace {

template <class T> Tensor<T, 2> random_matrix(std::size_t rows, std::size_t cols, std::uint32_t stream) {
    Tensor<T, 2> m({rows, cols});
    const Random random(2, stream);
    for (std::size_t i = 0; i < m.size(); ++i)
        m.data()[i] = static_cast<T>(random.normal(static_cast<Index>(i)));
    return m;
}

template <class T> Tensor<T, 2> times(const Tensor<T, 2>& a, const Tensor<T, 2>& b) {
    Tensor<T, 2> c({a.shape()[0], b.shape()[1]});
    gemm<T>(T(1), {a.data(), Index(a.shape()[0]), Index(a.shape()[1])},
            {b.data(), Index(b.shape()[0]), Index(b.shape()[1])}, T(0),
            {c.data(), Index(c.shape()[0]), Index(c.shape()[1])});
    return c;
}

template <class T> double distance(const Tensor<T, 2>& a, const Tensor<T, 2>& b) {
    if (a.shape() != b.shape()) return 1e300;
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        most = worse(most, std::abs(double(a.data()[i]) - double(b.data()[i])));
    return most;
}

template <class T> Tensor<T, 2> diagonal(const auto& values) {
    Tensor<T, 2> d = xt::zeros<T>({values.size(), values.size()});
    for (std::size_t i = 0; i < values.size(); ++i) d(i, i) = values[i];
    return d;
}

template <class T> constexpr double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;

}  // namespace

TEMPLATE_TEST_CASE("Factors multiply to the matrix they are of", "[factor]", float, double) {
    using T = TestType;
    const auto m = random_matrix<T>(7, 7, 1), tall = random_matrix<T>(9, 4, 2);
    const Tensor<T, 2> symmetric = m + Tensor<T, 2>(xt::transpose(m));
    const auto e = symmetric_eigen<T>(symmetric, "test");
    CHECK(std::is_sorted(e.values.begin(), e.values.end()));
    const Tensor<T, 2> et = xt::transpose(e.vectors);
    CHECK(distance(times(times(e.vectors, diagonal<T>(e.values)), et), symmetric) < tolerance<T>);
    CHECK(distance(times(e.vectors, et), diagonal<T>(std::vector<T>(7, T(1)))) < tolerance<T>);

    const auto f = schur<T>(m, "test");
    const Tensor<T, 2> zt = xt::transpose(f.Z);
    CHECK(distance(times(times(f.Z, f.S), zt), m) < tolerance<T>);
    T trace = 0, sum = 0;
    for (std::size_t i = 0; i < 7; ++i) {
        trace += m(i, i);
        sum += f.real[i];
        for (std::size_t j = 0; j + 1 < i; ++j) CHECK(f.S(i, j) == T(0));
    }
    CHECK(double(sum) == Approx(double(trace)).epsilon(1e-4));

    for (const auto& x : {tall, Tensor<T, 2>(xt::transpose(tall))}) {
        const auto s = thin_svd<T>(x, "test");
        const Tensor<T, 2> vt = xt::transpose(s.V);
        const std::vector<T> values(s.s.begin(), s.s.end());
        CHECK(std::is_sorted(values.rbegin(), values.rend()));
        CHECK(distance(times(times(s.U, diagonal<T>(values)), vt), x) < tolerance<T>);
    }

    const auto b = random_matrix<T>(7, 3, 3);
    CHECK(distance(times(m, solve<T>(m, b, "test")), b) < 10 * tolerance<T>);
}

TEST_CASE("Known eigenvalues are found", "[factor]") {
    const auto turn = schur<double>(Tensor<double, 2>{{0, -2}, {2, 0}}, "test");  // ±2i
    CHECK(turn.real[0] == Approx(0).margin(1e-14));
    CHECK(std::abs(turn.imaginary[0]) == Approx(2));
    const auto e = symmetric_eigen<double>(Tensor<double, 2>{{2, 1}, {1, 2}}, "test");
    CHECK(e.values[0] == Approx(1));
    CHECK(e.values[1] == Approx(3));
}

TEMPLATE_TEST_CASE("A basis is that of the matrix in any unit", "[factor]", float, double) {
    using T = TestType;
    const Tensor<T, 2> x = {{3, 1}, {4, 1}, {0, 2}, {1, -1}};
    const auto expected = orthonormal_columns<T>(ref(x), "test");
    REQUIRE(cols(expected) == 2);
    constexpr int most = std::numeric_limits<T>::max_exponent;
    for (const int exponent : {most - 4, most / 2, -most / 2, 8 - most}) {
        CAPTURE(exponent);
        const Tensor<T, 2> scaled = x * std::ldexp(T(1), exponent);
        CHECK((orthonormal_columns<T>(ref(scaled), "test") == expected));
    }
}

TEST_CASE("What has no such factors is refused", "[factor]") {
    const Tensor<double, 2> wide = {{1, 2, 3}, {4, 5, 6}}, singular = {{1, 2}, {2, 4}}, right = {{1}, {1}},
                            three = {{1}, {1}, {1}};
    Tensor<double, 2> nan = {{1, 2}, {3, std::numeric_limits<double>::quiet_NaN()}};
    REQUIRE_THROWS_MATCHES(symmetric_eigen<double>(wide, "me"), UsageError, says("me", "[2, 3]", "square"));
    REQUIRE_THROWS_MATCHES(schur<double>(wide, "me"), UsageError, says("me", "square"));
    REQUIRE_THROWS_MATCHES(schur<double>(nan, "me"), NumericError, says("nan in a matrix, number 3"));
    REQUIRE_THROWS_MATCHES(thin_svd<double>(nan, "me"), NumericError, says("me", "number 3"));
    for (const auto& shape : {std::array<std::size_t, 2>{0, 3}, {3, 0}, {0, 0}}) {
        const Tensor<double, 2> empty(shape);
        REQUIRE_THROWS_MATCHES(thin_svd<double>(empty, "me"), UsageError, says("me", "not empty"));
    }
    const Tensor<double, 2> zero = {{0, 0}, {0, 0}};
    REQUIRE_THROWS_MATCHES(orthonormal_columns<double>(ref(zero), "me"), NumericError, says("me", "zero"));
    REQUIRE_THROWS_MATCHES(solve<double>(singular, right, "me"), NumericError, says("me", "singular"));
    REQUIRE_THROWS_MATCHES(solve<double>(singular, three, "me"), UsageError,
                           says("[3, 1]", "a row for each equation"));
}
