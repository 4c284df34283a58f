#include <array>
#include <bit>
#include <cmath>
#include <isogloss/kernel/bf16_gemm.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/random.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using kernel::Bf16;
using Tiles = kernel::Bf16Tiles;

namespace {

std::vector<float> normal(Index n, std::uint32_t stream) {
    std::vector<float> v(static_cast<std::size_t>(n));
    const Random random(1, stream);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(random.normal(Index(i)));
    return v;
}
// A matrix [rows, cols] as read, rows a little apart in memory.
MatrixRef<const float> matrix(const std::vector<float>& v, Index rows, Index cols, bool transposed) {
    if (transposed) return {v.data(), cols, rows, rows + 2, true};
    return {v.data(), rows, cols, cols + 2};
}
double rounded(float x) { return double(kernel::to_float(kernel::to_bf16(x))); }

// Whether C = A B + beta before, with factors rounded to bfloat16, within the rounding of sums in float.
bool is_product(MatrixRef<const float> a, MatrixRef<const float> b, float beta, MatrixRef<const float> before,
                MatrixRef<const float> c) {
    for (Index i = 0; i < c.rows; ++i)
        for (Index j = 0; j < c.cols; ++j) {
            double sum = beta == 0 ? 0 : double(beta) * double(before(i, j)), size = std::abs(sum);
            for (Index k = 0; k < a.width(); ++k) {
                const double term = rounded(a(i, k)) * rounded(b(k, j));
                sum += term, size += std::abs(term);
            }
            if (!(std::abs(sum - double(c(i, j))) <= 1e-6 * size)) return false;
        }
    return true;
}

// What a micro-kernel begins its sums with.
enum class Begin { nothing, sums, row };

// The sums of a micro-kernel over random tiles, into rows of 40 numbers.
template <class Micro> std::vector<float> run(const Micro& micro, Index panels, Index column_panels,
                                              Index rows, Index tiles, Begin begin) {
    const auto random = normal(2 * 16 * 32 * tiles * 2, 5);
    std::vector<Bf16> packed;
    for (const float x : random) packed.push_back(kernel::to_bf16(x));
    auto c = normal(32 * 40, 6);
    const auto row = normal(32, 7);
    micro.multiply({.height = panels * rows,
                    .width = column_panels * 16,
                    .terms = 32 * tiles,
                    .rows = rows,
                    .a = packed.data(),
                    .b = packed.data() + 2 * 16 * 32 * tiles,
                    .a_panel = rows * 32 * tiles,
                    .b_panel = 16 * 32 * tiles,
                    .start = begin == Begin::nothing ? nullptr
                             : begin == Begin::sums  ? c.data()
                                                     : row.data(),
                    .start_stride = begin == Begin::sums ? 40 : 0,
                    .c = c.data(),
                    .c_stride = 40});
    return c;
}

}  // namespace

TEST_CASE("A float becomes the nearest bfloat16, of two the even one", "[kernel][bf16]") {
    const auto there_and_back = [](float x) { return kernel::to_float(kernel::to_bf16(x)); };
    const float step = std::ldexp(1.f, -7);  // from 1 to the next
    for (const float exact : {0.f, 1.f, -2.5f, 1 + step, std::ldexp(1.f, -126), -std::ldexp(1.f, 100)})
        CHECK(there_and_back(exact) == exact);
    CHECK(there_and_back(1 + 0.49f * step) == 1);
    CHECK(there_and_back(1 + 0.51f * step) == 1 + step);
    CHECK(there_and_back(1 + 0.5f * step) == 1);
    CHECK(there_and_back(1 + 1.5f * step) == 1 + 2 * step);
    CHECK(there_and_back(-(1 + 1.5f * step)) == -(1 + 2 * step));
    constexpr float infinity = std::numeric_limits<float>::infinity();
    CHECK(there_and_back(std::numeric_limits<float>::max()) == infinity);
    CHECK(there_and_back(-infinity) == -infinity);
    CHECK(std::isnan(there_and_back(std::numeric_limits<float>::quiet_NaN())));
    CHECK(
        std::isnan(there_and_back(std::bit_cast<float>(0x7f800001u))));  // its payload lies in the lost bits
    CHECK(there_and_back(std::numeric_limits<float>::denorm_min()) == 0);
    CHECK(std::signbit(there_and_back(-std::ldexp(1.f, -130))));
}

TEST_CASE("Packed tiles hold every element at its place and zeros elsewhere", "[kernel][bf16]") {
    for (const bool transposed : {false, true})
        for (const auto& [m, k] : {std::pair<Index, Index>{1, 1}, {16, 32}, {20, 33}, {17, 70}, {5, 31}}) {
            CAPTURE(transposed, m, k);
            const auto numbers = normal((m + 2) * (k + 2), 1);
            const auto a = matrix(numbers, m, k, transposed);
            const Index rows = Tiles::panel_rows(m), tiles = Tiles::tiles(k);
            std::vector<Bf16> packed(static_cast<std::size_t>(Tiles::size_a(m, k)) + 1, Bf16{77});
            Tiles::pack_a(a, rows, packed.data());
            REQUIRE(packed.back().bits == 77);
            for (Index i = 0; i < Tiles::row_panels(m) * rows; ++i)
                for (Index p = 0; p < tiles * 32; ++p) {
                    const Index at = i / rows * rows * tiles * 32 + (p / 32 * rows + i % rows) * 32 + p % 32;
                    REQUIRE(packed[std::size_t(at)].bits ==
                            (i < m && p < k ? kernel::to_bf16(a(i, p)).bits : 0));
                }
            const auto b = t(a);  // [k, m]
            std::vector<Bf16> right(static_cast<std::size_t>(Tiles::size_b(k, m)) + 1, Bf16{77});
            Tiles::pack_b(b, right.data());
            REQUIRE(right.back().bits == 77);
            for (Index p = 0; p < tiles * 32; ++p)
                for (Index j = 0; j < Tiles::column_panels(m) * 16; ++j) {
                    const Index at =
                        j / 16 * 16 * tiles * 32 + p / 32 * 512 + p % 32 / 2 * 32 + j % 16 * 2 + p % 2;
                    REQUIRE(right[std::size_t(at)].bits ==
                            (p < k && j < m ? kernel::to_bf16(b(p, j)).bits : 0));
                }
        }
}

TEST_CASE("The micro-kernels of this processor sum as the plain one", "[kernel][bf16]") {
    const auto compare = [](Index rows, const auto& micro) {
        for (const Index panels : {1, 2})
            for (const Index column_panels : {1, 2})
                for (const Index tiles : {1, 3})
                    for (const Begin begin : {Begin::nothing, Begin::sums, Begin::row}) {
                        CAPTURE(rows, panels, column_panels, tiles, static_cast<int>(begin));
                        const auto expected =
                            run(kernel::plain::Bf16Micro(), panels, column_panels, rows, tiles, begin);
                        const auto found = run(micro, panels, column_panels, rows, tiles, begin);
                        for (std::size_t i = 0; i < found.size(); ++i)
                            REQUIRE(found[i] == Approx(expected[i]).margin(1e-4));
                    }
    };
    for (Index rows = 1; rows <= 16; ++rows) {
        kernel::with_bf16_micro(rows, [&](const auto& micro) { compare(rows, micro); });
#ifdef __AVX512BF16__
        compare(rows, kernel::Avx512Bf16Micro());
#endif
    }
}

TEST_CASE("Products in bfloat16 are those of the rounded factors, whatever the shape", "[kernel][bf16]") {
    std::vector<Bf16> memory(static_cast<std::size_t>(kernel::Bf16Gemm::workspace));
    for (const bool ta : {false, true})
        for (const bool tb : {false, true})
            for (const float beta : {0.f, 1.f, -0.5f})
                for (const auto& [m, k, n] : {std::array<Index, 3>{1, 1, 1},
                                              {2, 3, 5},
                                              {16, 32, 16},
                                              {33, 65, 35},
                                              {20, 1100, 17},
                                              {530, 1030, 3},
                                              {3, 40, 300}}) {
                    CAPTURE(ta, tb, beta, m, k, n);
                    const auto left = normal((m + 2) * (k + 2), 1), right = normal((k + 2) * (n + 2), 2);
                    const auto a = matrix(left, m, k, ta), b = matrix(right, k, n, tb);
                    auto c = normal(m * (n + 3), 3);
                    if (beta == 0) c[0] = std::numeric_limits<float>::quiet_NaN();
                    const auto before = c;
                    kernel::Bf16Gemm::product(a, b, beta, {c.data(), m, n, n + 3}, memory.data());
                    CHECK(is_product(a, b, beta, {before.data(), m, n, n + 3}, {c.data(), m, n, n + 3}));
                    for (Index i = 0; i + 1 < m; ++i)
                        for (Index j = n; j < n + 3; ++j)
                            REQUIRE(c[std::size_t(i * (n + 3) + j)] == before[std::size_t(i * (n + 3) + j)]);
                    if ((m > 40 && ta) || tb) continue;
                    std::vector<Bf16> packed(static_cast<std::size_t>(Tiles::size_b(k, n)));
                    Tiles::pack_b(b, packed.data());
                    const auto row = normal(n, 7), start = normal(m * n, 4);
                    std::vector<float> rows, none(start.size(), 0), found(start.size(), std::nanf(""));
                    for (Index i = 0; i < m; ++i) rows.insert(rows.end(), row.begin(), row.end());
                    const MatrixRef<float> out{found.data(), m, n};
                    const auto product = [&](const float* begin, Index stride) {
                        kernel::Bf16Gemm::product(a, packed.data(), begin, stride, out, memory.data());
                        return MatrixRef<const float>(out);
                    };
                    CHECK(is_product(a, b, 1, {none.data(), m, n}, product(nullptr, 0)));
                    CHECK(is_product(a, b, 1, {rows.data(), m, n}, product(row.data(), 0)));
                    found = start;
                    CHECK(is_product(a, b, 1, {start.data(), m, n}, product(found.data(), n)));
                }
}

TEST_CASE("A product in bfloat16 does not depend on the number of threads", "[kernel][bf16][threads]") {
    const auto a = normal(200 * 300, 1), b = normal(300 * 400, 2);
    std::vector<Bf16> packed(static_cast<std::size_t>(Tiles::size_b(300, 400))),
        memory(static_cast<std::size_t>(kernel::Bf16Gemm::workspace));
    Tiles::pack_b({b.data(), 300, 400}, packed.data());
    const auto products = [&] {
        std::vector<float> c(200 * 400), d(c);
        product<float>(Precision::bf16, {a.data(), 200, 300}, {b.data(), 300, 400}, 0.f,
                       {c.data(), 200, 400});
        kernel::Bf16Gemm::product({a.data(), 200, 300}, packed.data(), nullptr, 0, {d.data(), 200, 400},
                                  memory.data());
        return std::pair(c, d);
    };
    const auto one = products();
    threads(3);
    CHECK(products() == one);
    threads(1);
}
