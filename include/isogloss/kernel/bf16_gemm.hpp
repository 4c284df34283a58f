/// @file kernel/bf16_gemm.hpp  Matrix products of floats with factors rounded to bfloat16 and sums in float.
#pragma once

#include <algorithm>
#include <isogloss/kernel/bf16_micro.hpp>
#include <isogloss/threads.hpp>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// C = A B + beta C for floats: A and B are rounded to bfloat16, the products of two such numbers are exact, and
/// sums are in float. An element of C does not depend on the number of threads.
struct Bf16Gemm {
    using Tiles = Bf16Tiles;
    /// Most elements of a packed part of A and of B, which stay in L2 cache, and most terms of a sum at a time.
    static constexpr Index part_a = Index{1} << 19, part_b = Index{1} << 18, KC = 1024;
    /// Elements of the memory that product() packs into.
    static constexpr Index workspace = part_a + part_b;

    /// A [m, k] and B [k, n], both of which may be transposed; beta = 0 overwrites C whatever it holds. For one
    /// thread.
    static void product(MatrixRef<const float> a, MatrixRef<const float> b, float beta, MatrixRef<float> c,
                        Bf16* memory) {
        const Index m = c.rows, n = c.cols, k = a.width();
        if (beta != 0 && beta != 1)
            for (Index i = 0; i < m; ++i)
                for (Index j = 0; j < n; ++j) c.row(i)[j] *= beta;
        const Index rows = Tiles::panel_rows(m), blocks = (k + KC - 1) / KC,
                    kc = Tiles::tiles((k + blocks - 1) / blocks) * Tiles::depth,
                    mc = part_a / kc / rows * rows, nc = part_b / kc / Tiles::columns * Tiles::columns;
        Bf16 *packed_a = memory, *packed_b = memory + part_a;
        with_bf16_micro(rows, [&](const auto& micro) {
            for (Index p = 0; p < k; p += kc)
                for (Index i = 0; i < m; i += mc) {
                    const Index terms = std::min(kc, k - p), height = std::min(mc, m - i);
                    Tiles::pack_a(a.part(i, height, p, terms), rows, packed_a);
                    for (Index j = 0; j < n; j += nc) {
                        const Index width = std::min(nc, n - j);
                        if (i == 0 || nc < n) Tiles::pack_b(b.part(p, terms, j, width), packed_b);
                        const MatrixRef<float> part = c.rows_from(i, height).columns(j, width);
                        multiply(micro, packed_a, rows, packed_b, terms, p > 0 || beta != 0 ? part : Start{},
                                 part);
                    }
                }
        });
    }

    /// C = S + A B for A [m, k] and B [k, n] packed as a whole by Bf16Tiles::pack_b. `start` points to S, or is null
    /// for S = 0; it may be C. Its rows are `start_stride` apart, 0 for one row added to all. `memory` is as in the
    /// other product(). threads() share the panels of B.
    static void product(MatrixRef<const float> a, const Bf16* packed, const float* start, Index start_stride,
                        MatrixRef<float> c, Bf16* memory) {
        if (c.rows == 0) return;
        const Index k = a.width(), rows = Tiles::panel_rows(c.rows), numbers = Tiles::tiles(k) * Tiles::depth,
                    // As much of A as there is room for; of B what also stays in the cache, or two panels.
            mc = std::max(rows, part_a / numbers / rows * rows), pair = 2 * Tiles::columns,
                    nc = std::max(pair, part_b / numbers / pair * pair);
        const bool shared = double(c.rows) * double(k) * double(c.cols) >= 4e6;
        for (Index i = 0; i < c.rows; i += mc) {
            const Index height = std::min(mc, c.rows - i);
            Tiles::pack_a(a.part(i, height, 0, k), rows, memory);
            parallel(c.cols, pair, shared ? c.cols : 1, [&](Index first, Index last, Index) {
                with_bf16_micro(rows, [&](const auto& micro) {
                    for (Index j = first; j < last; j += nc) {
                        const MatrixRef<float> part =
                            c.rows_from(i, height).columns(j, std::min(nc, last - j));
                        const Start begin =
                            start ? Start(start + i * start_stride + j, part.rows, part.cols, start_stride)
                                  : Start{};
                        multiply(micro, memory, rows, packed + Tiles::size_b(k, j), k, begin, part);
                    }
                });
            });
        }
    }

private:
    using Start = MatrixRef<const float>;

    // C = S + A B for packed factors; S is 0 where it has no data.
    template <class Micro> static void multiply(const Micro& micro, const Bf16* a, Index rows, const Bf16* b,
                                                Index k, Start start, MatrixRef<float> c) {
        constexpr Index columns = Tiles::columns;
        const Index tiles = Tiles::tiles(k), a_panel = tiles * rows * Tiles::depth,
                    b_panel = tiles * columns * Tiles::depth;
        // Along the rows of C, so that few pages are written to at a time.
        for (Index i = 0; i < c.rows; i += 2 * rows)
            for (Index j = 0; j < c.cols; j += 2 * columns) {
                const Index height = std::min(2 * rows, c.rows - i),
                            width = std::min(2 * columns, c.cols - j);
                Bf16Block block{.height = height,
                                .width = width,
                                .terms = k,
                                .rows = rows,
                                .a = a + i / rows * a_panel,
                                .b = b + j / columns * b_panel,
                                .a_panel = a_panel,
                                .b_panel = b_panel,
                                .start = start.data ? start.row(i) + j : nullptr,
                                .start_stride = start.stride,
                                .c = c.row(i) + j,
                                .c_stride = c.stride};
                if constexpr (Micro::any_size) {
                    const bool end = j + 2 * columns >= c.cols;
                    prefetch(c, end ? i + 2 * rows : i, 2 * rows, end ? 0 : j + 2 * columns);
                    micro.multiply(block);
                    continue;
                }
                block.height = block.row_panels() * rows, block.width = block.column_panels() * columns;
                if (height == block.height && width == block.width) {
                    micro.multiply(block);
                    continue;
                }
                alignas(64) float edge[2 * Tiles::most_rows * 2 * columns];
                for (Index r = 0; block.start && r < block.height; ++r)
                    for (Index s = 0; s < 2 * columns; ++s)
                        edge[r * 2 * columns + s] =
                            r < height && s < width ? block.start[r * block.start_stride + s] : 0.f;
                float* target = std::exchange(block.c, edge);
                if (block.start) block.start = edge;
                block.start_stride = block.c_stride = 2 * columns;
                micro.multiply(block);
                for (Index r = 0; r < height; ++r)
                    std::copy_n(edge + r * 2 * columns, width, target + r * c.stride);
            }
    }

    // The next block of C, whose rows lie far apart. Measured with VDPBF16PS: a product of 117 rows with a table of
    // 33,278 rows takes 0.9 of the time.
    static void prefetch(MatrixRef<float> c, Index first, Index rows, Index column) {
        for (Index r = first; r < std::min(first + rows, c.rows); ++r)
            for (const Index line : {column, column + Tiles::columns}) __builtin_prefetch(c.row(r) + line, 1);
    }
};

}}}  // namespace isogloss::kernel
