#include <cmath>
#include <isogloss/kernel/int8_gemm.hpp>
#include <isogloss/random.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using kernel::Int8Gemm;

namespace {

std::vector<float> normals(Index n, std::uint32_t stream) {
    const Random random(1, stream);
    std::vector<float> x(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(random.normal(i));
    return x;
}

/// The largest |x| / 127 of numbers f(0) … f(count - 1).
template <class F> double scale_of(Index count, F&& f) {
    double most = 0;
    for (Index i = 0; i < count; ++i) most = std::max(most, std::abs(double(f(i))));
    return most / 127;
}

/// S + A B with factors rounded as the page of the kernel says, in double, by its definition.
std::vector<double> plain(MatrixRef<const float> a, MatrixRef<const float> b, const float* start) {
    const Index m = a.height(), k = a.width(), n = b.width();
    std::vector<double> c(static_cast<std::size_t>(m * n));
    for (Index i = 0; i < m; ++i) {
        const double alpha = scale_of(k, [&](Index l) { return a(i, l); });
        for (Index j = 0; j < n; ++j) {
            const double beta = scale_of(k, [&](Index l) { return b(l, j); });
            double sum = 0;
            for (Index l = 0; l < k && alpha > 0 && beta > 0; ++l)
                sum += std::nearbyint(a(i, l) * (127.f / float(127 * alpha))) *
                       std::nearbyint(b(l, j) / float(beta));
            c[static_cast<std::size_t>(i * n + j)] = (start ? double(start[j]) : 0) + alpha * beta * sum;
        }
    }
    return c;
}

struct Packed {
    std::vector<std::uint8_t> bytes;
    std::vector<float> scale;
    explicit Packed(MatrixRef<const float> b)
        : bytes(static_cast<std::size_t>(Int8Gemm::size(b.height(), b.width())) + 1, 77),
          scale(static_cast<std::size_t>(Int8Gemm::padded(b.width()))) {
        Int8Gemm::pack(b, bytes.data(), scale.data());
    }
};

std::vector<float> product(MatrixRef<const float> a, const Packed& b, Index n, const float* start,
                           Index start_stride, std::vector<float> c, Index stride) {
    std::vector<std::byte> memory(static_cast<std::size_t>(Int8Gemm::workspace(a.rows, a.cols)) + 1,
                                  std::byte{77});
    Int8Gemm::product(a, b.bytes.data(), b.scale.data(), start, start_stride, {c.data(), a.rows, n, stride},
                      memory.data());
    REQUIRE(memory.back() == std::byte{77});
    return c;
}

}  // namespace

TEST_CASE("A product in int8 is that of the rounded factors, whatever the shape", "[kernel][int8]") {
    for (const bool transposed : {false, true})
        for (const Index m : {1, 2, 13, 14, 15, 29})
            for (const auto& [k, n] : {std::pair<Index, Index>{1, 1},
                                       {3, 7},
                                       {4, 32},
                                       {17, 33},
                                       {16, 65},
                                       {130, 100},
                                       {513, 31}}) {
                const auto a = normals(m * (k + 2), 1), b = normals(k * n, 2), bias = normals(n, 3);
                const MatrixRef<const float> A(a.data(), m, k, k + 2),
                    B = transposed ? t(MatrixRef<const float>(b.data(), n, k))
                                   : MatrixRef<const float>(b.data(), k, n);
                const Packed packed(B);
                REQUIRE(packed.bytes.back() == 77);
                const Index stride = n + 3;
                const std::vector<float> before(static_cast<std::size_t>(m * stride), 5.f);
                for (const float* start : {static_cast<const float*>(nullptr), bias.data()}) {
                    const auto found = product(A, packed, n, start, 0, before, stride);
                    const auto expected = plain(A, B, start);
                    CAPTURE(transposed, m, k, n, start != nullptr);
                    for (Index i = 0; i < m; ++i)
                        for (Index j = 0; j < stride; ++j) {
                            const double c = found[static_cast<std::size_t>(i * stride + j)];
                            if (j >= n) REQUIRE(c == 5);
                            else
                                REQUIRE(c ==
                                        Approx(expected[static_cast<std::size_t>(i * n + j)]).margin(2e-4));
                        }
                }
            }
}

TEST_CASE("Whole numbers up to 127 are multiplied exactly in int8, and added to C", "[kernel][int8]") {
    const Index m = 20, k = 61, n = 40;
    const Random random(1, 4);
    std::vector<float> a(m * k), b(k * n), c(m * n);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(random.below(Index(i), 255) - 127);
    for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = static_cast<float>(random.below(Index(i) + 9999, 255) - 127);
    for (Index i = 0; i < m; ++i) a[static_cast<std::size_t>(i * k)] = 127;  // scales of 1
    for (Index j = 0; j < n; ++j) b[static_cast<std::size_t>(j)] = -127;
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i);
    const Packed packed({b.data(), k, n});
    std::vector<std::byte> memory(static_cast<std::size_t>(Int8Gemm::workspace(m, k)));
    const auto before = c;
    Int8Gemm::product({a.data(), m, k}, packed.bytes.data(), packed.scale.data(), c.data(), n,
                      {c.data(), m, n}, memory.data());
    for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j) {
            double sum = before[static_cast<std::size_t>(i * n + j)];
            for (Index l = 0; l < k; ++l)
                sum += double(a[static_cast<std::size_t>(i * k + l)]) *
                       double(b[static_cast<std::size_t>(l * n + j)]);
            REQUIRE(c[static_cast<std::size_t>(i * n + j)] == static_cast<float>(sum));
        }
}

TEST_CASE(
    "A product in int8 does not depend on threads or on other rows, long columns of the largest numbers hold",
    "[kernel][int8][threads]") {
    const Index m = 40, k = 300, n = 700;
    const auto a = normals(m * k, 5), b = normals(k * n, 6);
    const Packed packed({b.data(), k, n});
    const std::vector<float> empty(static_cast<std::size_t>(m * n));
    const auto one = product({a.data(), m, k}, packed, n, nullptr, 0, empty, n),
               few = product({a.data(), 3, k}, packed, n, nullptr, 0, empty, n);
    threads(3);
    CHECK(product({a.data(), m, k}, packed, n, nullptr, 0, empty, n) == one);
    threads(1);
    CHECK(std::equal(few.begin(), few.begin() + 3 * n, one.begin()));

    const std::vector<float> ones(static_cast<std::size_t>(Int8Gemm::most_terms), 1.f);
    const MatrixRef<const float> row(ones.data(), 1, Int8Gemm::most_terms);
    CHECK(product(row, Packed(t(row)), 1, nullptr, 0, {0}, 1)[0] == Approx(double(Int8Gemm::most_terms)));
}

TEST_CASE("Rows of zeros are zero in int8, and rows that are not finite are not", "[kernel][int8]") {
    const Index k = 19, n = 5;
    auto a = normals(4 * k, 7), b = normals(k * n, 8);
    std::fill_n(a.begin(), k, 0.f);
    a[k + 18] = std::numeric_limits<float>::quiet_NaN();
    a[2 * k] = -std::numeric_limits<float>::infinity();
    std::fill_n(a.begin() + 3 * k, k, std::numeric_limits<float>::denorm_min());
    for (Index l = 0; l < k; ++l) b[static_cast<std::size_t>(l * n + 2)] = 0;
    const auto c =
        product({a.data(), 4, k}, Packed({b.data(), k, n}), n, nullptr, 0, std::vector<float>(4 * n, 9.f), n);
    for (std::size_t j = 0; j < n; ++j) {
        CHECK(c[j] == 0);
        CHECK(std::isnan(c[n + j]));
        CHECK(std::isnan(c[2 * n + j]));
        CHECK(c[3 * n + j] == 0);
    }
}
