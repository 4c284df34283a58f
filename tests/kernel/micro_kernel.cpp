#include <cmath>
#include <isogloss/kernel/micro_kernel.hpp>
#include <limits>

#include "catch.hpp"
#include "memory.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("Rows, columns and terms are cut into even parts that cover them",
                   "[kernel][micro_kernel]", float, double) {
    using Micro = kernel::MicroKernel<TestType>;
    STATIC_REQUIRE(Micro::NR == Micro::vectors * Micro::lanes);
    for (Index n = 1; n <= 300; ++n) {
        CAPTURE(n);
        Index row = 0;
        while (row < n) {
            const Index rows = Micro::rows_at(row, n);
            REQUIRE((rows <= Micro::MR && rows >= std::min<Index>(n, Micro::MR / 2)));
            row += rows;
        }
        REQUIRE(row == n);

        const typename Micro::Panels panels(n);
        REQUIRE(panels.begin(0) == 0);
        REQUIRE((panels.begin(panels.count) >= n && panels.begin(panels.count) < n + Micro::lanes));
        REQUIRE(panels.count == (n + Micro::NR - 1) / Micro::NR);
        for (Index p = 0; p < panels.count; ++p) {
            REQUIRE(panels.columns(p) % Micro::lanes == 0);
            REQUIRE(panels.columns(p) <= Micro::NR);
            REQUIRE(std::abs(panels.columns(p) - panels.columns(0)) <= Micro::lanes);
        }

        const typename Micro::KBlocks k_blocks(n, 40);
        REQUIRE(k_blocks.begin(0) == 0);
        REQUIRE(k_blocks.begin(k_blocks.count) == n);
        for (Index b = 0; b < k_blocks.count; ++b) {
            REQUIRE(k_blocks.terms(b) <= 40);
            REQUIRE(std::abs(k_blocks.terms(b) - k_blocks.terms(0)) <= 1);
        }
    }
}

TEMPLATE_TEST_CASE("A packed panel holds its columns, then zeros, in both orientations",
                   "[kernel][micro_kernel]", float, double) {
    using T = TestType;
    using Micro = kernel::MicroKernel<T>;
    for (const bool transposed : {false, true})
        for (const Index k : {1, 5, 20})
            for (Index n = 1; n <= 2 * Micro::NR + 1; n += 1 + n / 9) {
                CAPTURE(transposed, k, n);
                const Index rows = transposed ? n : k, cols = transposed ? k : n;
                const auto values = Memory<T>::random(rows * (cols + 2), 1, 1);
                const MatrixRef<const T> b(values.in(), rows, cols, cols + 2, transposed);
                Memory<T> packed(Micro::packed_size(k, n), 1, T(77));
                const typename Micro::Panels panels(n);
                Micro::pack_panels(b, 0, panels.count, packed.out());
                REQUIRE(packed.written());
                Index at = 0;
                for (Index p = 0; p < panels.count; ++p)
                    for (Index i = 0; i < k; ++i)
                        for (Index j = 0; j < panels.columns(p); ++j, ++at) {
                            const Index column = panels.begin(p) + j;
                            REQUIRE(packed[at] == (column < n ? b(i, column) : T(0)));
                        }
                REQUIRE(at == packed.size());
            }
}

TEMPLATE_TEST_CASE("Every size of a block is a product in order, bit by bit", "[kernel][micro_kernel]", float,
                   double) {
    using T = TestType;
    using Micro = kernel::MicroKernel<T>;
    const Index k = GENERATE(0, 1, 2, 37);
    const bool overwrite = GENERATE(true, false);
    for (Index rows = 1; rows <= Micro::MR; ++rows)
        for (Index columns = 1; columns <= Micro::NR; ++columns) {
            CAPTURE(k, overwrite, rows, columns);
            const Index padded = (columns + Micro::lanes - 1) / Micro::lanes * Micro::lanes;
            const auto a = Memory<T>::random(rows * (k + 3), 1, 1),
                       b = Memory<T>::random(k * (padded + 1), 2, 2);
            auto c = Memory<T>::random(rows * (columns + 5), 3, 3);
            if (overwrite)
                for (Index r = 0; r < rows; ++r)
                    for (Index j = 0; j < columns; ++j)
                        c[r * (columns + 5) + j] = std::numeric_limits<T>::quiet_NaN();
            const auto start = c;
            Micro::multiply({.rows = rows,
                             .columns = columns,
                             .k = k,
                             .a = a.in(),
                             .a_row = k + 3,
                             .b = b.in(),
                             .b_stride = padded + 1,
                             .padded = padded,
                             .prefetch = {a.in(), 0},
                             .overwrite = overwrite,
                             .c = c.out(),
                             .c_stride = columns + 5});
            REQUIRE(c.written());
            // Each term is added in one rounding or in two, as compiler and xsimd have it, but all of them alike.
            bool fused = true, apart = true;
            for (Index i = 0; i < c.size(); ++i) {
                const Index r = i / (columns + 5), j = i % (columns + 5);
                T once = start[i], twice = start[i];  // between the rows: untouched
                if (j < columns) {
                    T one_rounding = 0, two_roundings = 0;
                    for (Index m = 0; m < k; ++m) {
                        const T x = a[r * (k + 3) + m], y = b[m * (padded + 1) + j];
                        const volatile T product = x * y;  // volatile, so that no compiler fuses it
                        one_rounding = std::fma(x, y, one_rounding);
                        two_roundings = product + two_roundings;
                    }
                    once = overwrite ? one_rounding : start[i] + one_rounding;
                    twice = overwrite ? two_roundings : start[i] + two_roundings;
                }
                fused = fused && c[i] == once;
                apart = apart && c[i] == twice;
            }
            REQUIRE((fused || apart));
        }
}

TEST_CASE("The plain product is the sum of its terms, in any orientation", "[kernel][micro_kernel]") {
    const std::vector<double> a = {1, 2, 3, 4, 5, 6};  // [2, 3]
    const MatrixRef<const double> A(a.data(), 2, 3);
    std::vector<double> c = {1, 1, 1, std::numeric_limits<double>::quiet_NaN()};
    kernel::plain::gemm<double>(A, t(A), 0, {c.data(), 2, 2});
    REQUIRE(c == std::vector<double>({14, 32, 32, 77}));
    kernel::plain::gemm<double>(A, t(A), 2, {c.data(), 2, 2});
    REQUIRE(c == std::vector<double>({42, 96, 96, 231}));
}
