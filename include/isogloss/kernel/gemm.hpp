/// @file kernel/gemm.hpp  Matrix products by the library's own micro-kernel, in place of those of BLAS.
#pragma once

#include <isogloss/kernel/micro_kernel.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// Products of any shape, on the calling thread. B is packed in blocks of KC × NC that stay in the L2 cache, A in blocks
/// of MC rows, in the order in which the micro-kernel reads them. Order of sums as in MicroKernel; of a single row or
/// column as in kernel::dot, where both factors lie in memory term by term. A single row or column packs nothing.
template <class T, class A = Architecture> struct Gemm {
    using Micro = MicroKernel<T, A>;

    /// C = alpha A B + beta C; beta = 0 overwrites C whatever it holds. alpha scales B.
    static void product(T alpha, MatrixRef<const T> a, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
        const Index m = c.rows, n = c.cols;
        if (m == 1 ? row(alpha, a, b, beta, c.data, 1)
                   : n == 1 && row(alpha, t(b), t(a), beta, c.data, c.stride))
            return;
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
    static constexpr Index MC = 16 * Micro::MR, NC = 1024 / Micro::NR * Micro::NR;

    // c = alpha x B + beta c for a row x, the elements of c being `c_step` apart. False, and nothing done, where the general
    // product is as good.
    static bool row(T alpha, MatrixRef<const T> x, MatrixRef<const T> b, T beta, T* c, Index c_step) {
        const Index k = x.width(), n = b.width(), step = x.transposed ? x.stride : 1;
        if (b.transposed && step == 1) {
            const auto dots_at = [&]<int rows>(Index j) {
                double sums[rows];
                dots<rows, T, A>(k, x.data, b.row(j), b.stride, sums);
                for (int q = 0; q < rows; ++q, c += c_step)
                    *c = alpha * static_cast<T>(sums[q]) + (beta == T(0) ? T(0) : beta * *c);
            };
            Index j = 0;
            for (; j + 4 <= n; j += 4) dots_at.template operator()<4>(j);
            for (; j < n; ++j) dots_at.template operator()<1>(j);
            return true;
        }
        if (b.transposed || alpha != T(1) || c_step != 1) return false;
        const typename Micro::KBlocks k_blocks(k);
        T* const sum = memory();
        for (Index left = 0; left < n; left += NC) {
            const Index columns = std::min(NC, n - left);
            T* const to = c + left;
            if (beta == T(0)) std::fill_n(to, columns, T(0));
            else if (beta != T(1)) scale(columns, beta, to);
            for (Index block = 0; block < k_blocks.count; ++block) {
                std::fill_n(sum, columns, T(0));
                Index i = k_blocks.begin(block);
                const Index end = k_blocks.begin(block + 1);
                for (; i + 8 <= end; i += 8)
                    add_rows<8>(columns, x.data + i * step, step, b.row(i) + left, b.stride, sum);
                for (; i < end; ++i)
                    add_rows<1>(columns, x.data + i * step, step, b.row(i) + left, b.stride, sum);
                for (Index j = 0; j < columns; ++j) to[j] += sum[j];
            }
        }
        return true;
    }

    // sum += x B for a few rows of B.
    template <int rows>
    static void add_rows(Index columns, const T* x, Index step, const T* b, Index stride, T* sum) {
        using L = typename Micro::L;
        L factors[rows];
        for (int r = 0; r < rows; ++r) factors[r] = L(x[r * step]);
        sweep<T, A>(0, columns, [&](auto group) {
            L s = group.load(sum);
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r) s = fused_lanes(factors[r], group.load(b + r * stride), s);
            group.store(sum, s);
        });
    }

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
        auto& lines = isogloss::detail::of_this_thread<std::vector<Line>>();
        if (lines.empty())
            within_memory("product of matrices", (NC + MC) * Micro::KC * Index{sizeof(T)},
                          [&] { lines.resize(std::size_t((NC + MC) * Micro::KC) * sizeof(T) / 64); });
        return lines.front().numbers;
    }
};

}}}  // namespace isogloss::kernel
