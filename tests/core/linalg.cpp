#include <cmath>
#include <isogloss/linalg.hpp>
#include <isogloss/random.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "tolerance.hpp"

using namespace isogloss;

namespace {

/// A matrix with room to the right of its rows, filled at random.
template <class T> struct Block {
    std::vector<T> data;
    MatrixRef<T> m;
    Block(Index rows, Index cols, Index spare, std::uint32_t stream)
        : data(static_cast<std::size_t>(rows * (cols + spare))) {
        const Random random(1, stream);
        for (std::size_t i = 0; i < data.size(); ++i)
            data[i] = static_cast<T>(random.normal(static_cast<Index>(i)));
        m = {data.data(), rows, cols, cols + spare};
    }
};

template <class T> double element(MatrixRef<T> m, Index i, Index j) {
    return double(m.transposed ? m.row(j)[i] : m.row(i)[j]);
}

template <class T>
void check_product(Index rows, Index inner, Index cols, bool ta, bool tb, T alpha, T beta) {
    CAPTURE(rows, inner, cols, ta, tb, alpha, beta);
    Block<T> a(ta ? inner : rows, ta ? rows : inner, 2, 1), b(tb ? cols : inner, tb ? inner : cols, 3, 2),
        c(rows, cols, 1, 3);
    if (ta) a.m = t(a.m);
    if (tb) b.m = t(b.m);
    const auto before = c.data;
    gemm<T>(alpha, a.m, b.m, beta, c.m);
    for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < cols; ++j) {
            double expected = double(beta) * double(before[static_cast<std::size_t>(i * c.m.stride + j)]);
            for (Index k = 0; k < inner; ++k)
                expected += double(alpha) * element(a.m, i, k) * element(b.m, k, j);
            REQUIRE(double(c.m.row(i)[j]) == to_rounding<T>(expected, 1e-4, 1e-12));
        }
        REQUIRE(c.m.row(i)[cols] ==
                before[static_cast<std::size_t>(i * c.m.stride + cols)]);  // beyond the row
    }
}

}  // namespace

TEMPLATE_TEST_CASE("gemm multiplies blocks of matrices in any orientation", "[core][linalg]", float, double) {
    for (const bool ta : {false, true})
        for (const bool tb : {false, true})
            for (const auto& [rows, inner, cols] :
                 {std::array<Index, 3>{1, 5, 7}, {6, 5, 1}, {1, 5, 1}, {4, 1, 3}, {17, 9, 33}}) {
                check_product<TestType>(rows, inner, cols, ta, tb, 1, 0);
                check_product<TestType>(rows, inner, cols, ta, tb, TestType(-0.5), 1);
                check_product<TestType>(rows, inner, cols, ta, tb, 2, TestType(0.25));
            }
}

TEMPLATE_TEST_CASE("gemm gives the same on several threads", "[core][linalg][threads]", float, double) {
    threads(3);
    for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
            check_product<TestType>(40, 300, 400, ta, tb, 1, 1);
            check_product<TestType>(400, 300, 40, ta, tb, 1, 0);
        }
    threads(1);
}

TEMPLATE_TEST_CASE("In the portable mode a product has the same bits on any number of threads",
                   "[core][linalg][threads]", float, double) {
    using T = TestType;
    portable(true);
    // The last of six pieces would be one row or column.
    for (const auto& [m, n] : {std::pair<Index, Index>{81, 40}, {40, 321}}) {
        const Index k = 1300;
        const Block<T> a(m, k, 0, 1), b(n, k, 0, 2);
        std::vector<T> alone(std::size_t(m * n)), shared(alone);
        gemm<T>(1, a.m, t(b.m), 0, {alone.data(), m, n});
        threads(6);
        gemm<T>(1, a.m, t(b.m), 0, {shared.data(), m, n});
        threads(1);
        CHECK(shared == alone);
    }
    portable(false);
}

TEST_CASE("gemm with beta 0 overwrites NaN, and an empty sum is zero", "[core][linalg]") {
    std::vector<double> a(6, 1), c(4, std::numeric_limits<double>::quiet_NaN());
    gemm<double>(1., {a.data(), 2, 3}, {a.data(), 3, 2}, 0., {c.data(), 2, 2});
    REQUIRE(c == std::vector<double>(4, 3));
    for (const auto& [rows, cols] :
         {std::pair<Index, Index>(1, 2), {2, 1}, {1, 1}}) {  // products with vectors
        c.assign(4, std::numeric_limits<double>::quiet_NaN());
        gemm<double>(1., {a.data(), rows, 3}, {a.data(), 3, cols}, 0., {c.data(), rows, cols});
        for (Index i = 0; i < rows * cols; ++i) REQUIRE(c[std::size_t(i)] == 3);
    }
    c.assign(4, 3);
    gemm<double>(1., {a.data(), 2, 0}, {a.data(), 0, 2}, 2., {c.data(), 2, 2});
    REQUIRE(c == std::vector<double>(4, 6));
    gemm<double>(1., {a.data(), 2, 0}, {a.data(), 0, 2}, 0., {c.data(), 2, 2});
    REQUIRE(c == std::vector<double>(4, 0));
}

TEST_CASE("gemm refuses shapes that do not agree", "[core][linalg]") {
    std::vector<float> a(64), b(64), c(64);
    REQUIRE_THROWS_MATCHES(gemm<float>(1.f, {a.data(), 2, 3}, {b.data(), 4, 5}, 0.f, {c.data(), 2, 5}),
                           UsageError, says("[2, 3] times [4, 5] into [2, 5]"));
    REQUIRE_THROWS_AS(gemm<float>(1.f, {a.data(), 2, 3}, {b.data(), 3, 5}, 0.f, {c.data(), 2, 4}),
                      UsageError);
    REQUIRE_THROWS_MATCHES(
        gemm<float>(1.f, {a.data(), 2, 3}, {b.data(), 3, 2}, 0.f, t(MatrixRef<float>(c.data(), 2, 2))),
        UsageError, says("C not transposed"));
    REQUIRE_THROWS_MATCHES(
        gemm<float>(1.f, {a.data(), 1, 1, Index{1} << 31}, {b.data(), 1, 1}, 0.f, {c.data(), 1, 1}),
        UsageError, says("below 2^31"));
}

TEST_CASE("gemm refuses matrices that cannot be", "[core][linalg][errors]") {
    std::vector<float> a(64, 1), b(64, 1), c(64);
    const auto gemm_of = [](MatrixRef<float> x, MatrixRef<float> y, MatrixRef<float> z) {
        gemm<float>(1.f, x, y, 0.f, z);
    };
    float *const A = a.data(), *const B = b.data(), *const C = c.data();
    using Ref = MatrixRef<float>;
    const Ref wrong[][3] = {{{A, -1, 5}, {B, 5, 5}, {C, -1, 5}},     {{A, 2, 5, 2}, {B, 5, 3}, {C, 2, 3}},
                            {{A, 2, 5}, {B, 5, 3, 2}, {C, 2, 3}},    {{A, 2, 5}, {B, 5, 3}, {C, 2, 3, -3}},
                            {{nullptr, 2, 5}, {B, 5, 3}, {C, 2, 3}}, {{A, 2, 5}, {B, 5, 3}, {nullptr, 2, 3}}};
    for (const auto& [x, y, z] : wrong)
        REQUIRE_THROWS_MATCHES(gemm_of(x, y, z), UsageError, says("gemm: found [", "and memory"));
    gemm_of({nullptr, 0, 5}, {b.data(), 5, 3}, {nullptr, 0, 3});  // no elements, no memory
    gemm_of({nullptr, 2, 0}, {nullptr, 0, 3}, {c.data(), 2, 3});
    CHECK(c[0] == 0);
}
