/// @file kernel/gemm.hpp  Matrix products by the library's own micro-kernel, in place of those of BLAS.
#pragma once

#include <isogloss/kernel/micro_kernel.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/sizes.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// Products of any shape, on the calling thread. B is packed in blocks of KC × NC that stay in the L2 cache, A in blocks
/// of MC rows, in the order in which the micro-kernel reads them. Order of sums as in MicroKernel; of a single row or
/// column as in kernel::dot, where the other factor lies in memory term by term.
template <class T, class A = Architecture> struct Gemm {
    using Micro = MicroKernel<T, A>;

    /// C = alpha A B + beta C; beta = 0 overwrites C whatever it holds. alpha scales B.
    static void product(T alpha, MatrixRef<const T> a, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
        const Index m = c.rows, n = c.cols;
        if (m == 1 && b.transposed && !a.transposed)
            return dots(alpha, n, b.cols, a.data, b.data, b.stride, beta, c.data, 1);
        if (n == 1 && !a.transposed && b.transposed)
            return dots(alpha, m, a.cols, b.data, a.data, a.stride, beta, c.data, c.stride);
        const typename Micro::KBlocks k_blocks(a.width());
        const typename Micro::Panels panels(n);
        T* const packed_b = memory();
        T* const packed_a = packed_b + Micro::KC * NC;
        if (beta != T(0) && beta != T(1))
            for (Index r = 0; r < m; ++r)
                for (Index j = 0; j < n; ++j) c.row(r)[j] *= beta;
        for (Index begin = 0, end; begin < panels.count; begin = end) {
            end = std::min(begin + NC / Micro::NR, panels.count);
            const Index left = panels.begin(begin);
            for (Index block = 0; block < k_blocks.count; ++block) {
                const Index i = k_blocks.begin(block), count = k_blocks.terms(block);
                for (Index p = begin; p < end; ++p) {
                    const Index at = panels.begin(p), padded = panels.columns(p);
                    Micro::pack(b, i, count, at, std::min(padded, n - at), padded,
                                packed_b + (at - left) * count);
                }
                if (alpha != T(1))
                    for (Index j = 0; j < (panels.begin(end) - left) * count; ++j) packed_b[j] *= alpha;
                for (Index top = 0; top < m; top += MC) {
                    const Index height = std::min(MC, m - top);
                    pack_rows(a, top, height, i, count, packed_a);
                    for (Index p = begin; p < end; ++p) {
                        const Index at = panels.begin(p), padded = panels.columns(p),
                                    columns = std::min(padded, n - at);
                        const T* panel = packed_b + (at - left) * count;
                        for (Index row = 0, rows; row < height; row += rows) {
                            rows = Micro::rows_at(row, height);
                            T* const to = c.row(top + row) + at;
                            for (Index r = 0; r < rows; ++r)
                                for (Index j = 0; j < columns; j += 64 / Index{sizeof(T)})
                                    __builtin_prefetch(to + r * c.stride + j, 1);
                            const T* const from = packed_a + row * count;
                            Micro::multiply({.rows = rows,
                                             .columns = columns,
                                             .k = count,
                                             .a = from,
                                             .a_row = 1,
                                             .a_step = rows,
                                             .b = panel,
                                             .b_stride = padded,
                                             .padded = padded,
                                             .prefetch = {from + rows * count, rows},
                                             .overwrite = block == 0 && beta == T(0),
                                             .c = to,
                                             .c_stride = c.stride});
                        }
                    }
                }
            }
        }
    }

private:
    // c_r = alpha x · row r of a matrix + beta c_r.
    static void dots(T alpha, Index rows, Index k, const T* x, const T* matrix, Index stride, T beta, T* c,
                     Index c_step) {
        for (Index r = 0; r < rows; ++r, matrix += stride, c += c_step)
            *c = alpha * static_cast<T>(dot<T, A>(k, x, matrix)) + (beta == T(0) ? T(0) : beta * *c);
    }

    static constexpr Index MC = 16 * Micro::MR, NC = 1024 / Micro::NR * Micro::NR;

    // Rows [top, top + height) of columns [i, i + count) of a, row block by row block; in each the numbers of a column
    // lie side by side.
    static void pack_rows(MatrixRef<const T> a, Index top, Index height, Index i, Index count, T* to) {
        for (Index row = 0, rows; row < height; row += rows, to += rows * count) {
            rows = Micro::rows_at(row, height);
            if (a.transposed) {
                const T* from = a.data + i * a.stride + top + row;
                for (Index k = 0; k < count; ++k, from += a.stride)
                    for (Index r = 0; r < rows; ++r) to[k * rows + r] = from[r];
            } else {
                pack_transposed(count, rows, rows, a.row(top + row) + i, a.stride, to);
            }
        }
    }

    // Blocks of A and B. It belongs to the calling thread, which allocates it once and keeps it.
    static T* memory() {
        struct alignas(64) Line {
            T numbers[64 / sizeof(T)];
        };
        thread_local std::vector<Line> lines;
        if (lines.empty())
            within_memory("product of matrices", (NC + MC) * Micro::KC * Index{sizeof(T)},
                          [&] { lines.resize(std::size_t((NC + MC) * Micro::KC) * sizeof(T) / 64); });
        return lines.front().numbers;
    }
};

}}}  // namespace isogloss::kernel
