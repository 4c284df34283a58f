/// @file kernel/packed.hpp  A product with a matrix that stays the same over many products of few rows.
#pragma once

#include <isogloss/kernel/micro_kernel.hpp>
#include <isogloss/threads.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// The recurrent matrix of a cell is multiplied from the left by a few rows, step after step. A separate product
/// would repack it every time, which at 20 rows takes a good part of the time; here it is packed once per
/// sequence and then streamed past a block of rows held in registers. Layout and order of sums as in
/// MicroKernel.
template <class T, class A = Architecture> struct Packed {
    using Micro = MicroKernel<T, A>;

    /// Elements that pack() writes for a matrix [k, n].
    static Index size(Index k, Index n) { return Micro::packed_size(k, n); }

    /// Packs b [k, n] (which may be transposed) into `to`.
    static void pack(MatrixRef<const T> b, T* to) {
        const Index panels = typename Micro::Panels(b.width()).count;
        parallel(panels, 1, panels,
                 [&](Index first, Index last, Index) { Micro::pack_panels(b, first, last, to); });
    }

    /// C += A B for A [rows, k], packed B [k, n] and C [rows, n].
    static void add_product(MatrixRef<const T> a, const T* packed, MatrixRef<T> c) {
        multiply(a, packed, c, [](Index, Index, Index) {});
    }

    /// C = S + A B: rows of S are `start` [n], or 0 if it is null, and 0 in the last `without_start` rows.
    static void product(MatrixRef<const T> a, const T* packed, const T* start, Index without_start,
                        MatrixRef<T> c) {
        multiply(a, packed, c, [&](Index row, Index first, Index columns) {
            if (start && row < c.rows - without_start)
                std::copy_n(start + first, columns, c.row(row) + first);
            else std::fill_n(c.row(row) + first, columns, T(0));
        });
    }

private:
    // C += A B, after begin_row(row, first, columns) for every part of a row of C.
    template <class Begin>
    static void multiply(MatrixRef<const T> a, const T* packed, MatrixRef<T> c, Begin&& begin_row) {
        const Index m = a.rows, k = a.cols, n = c.cols;
        const typename Micro::KBlocks k_blocks(k);
        const typename Micro::Panels panels(n);
        const bool shared = double(m) * double(k) * double(n) >= 1e6;
        const Index together =
            m < many_rows ? 1 : std::max<Index>(1, near_numbers / (k_blocks.terms(0) * Micro::NR));
        parallel(panels.count, 1, shared ? panels.count : 1, [&](Index first, Index last, Index) {
            for (Index begin = first, end; begin < last; begin = end) {
                end = std::min(begin + together, last);
                const Index column = panels.begin(begin), columns = std::min(panels.begin(end), n) - column;
                for (Index block = 0; block < k_blocks.count; ++block)
                    for (Index row = 0, rows, group = 0; row < m; row += rows, group += Micro::lanes) {
                        rows = Micro::rows_at(row, m);
                        for (Index r = row; block == 0 && r < row + rows; ++r) begin_row(r, column, columns);
                        for (Index p = begin; p < end; ++p) {
                            const Index at = panels.begin(p), padded = panels.columns(p),
                                        i = k_blocks.begin(block), count = k_blocks.terms(block);
                            const T* panel = packed + at * k + i * padded;
                            Micro::multiply(
                                {.rows = rows,
                                 .columns = std::min(padded, n - at),
                                 .k = count,
                                 .a = a.row(row) + i,
                                 .a_row = a.stride,
                                 .b = panel,
                                 .b_stride = padded,
                                 .padded = padded,
                                 // What is packed behind comes next; every row block prefetches another lane group.
                                 .prefetch = {panel + count * padded + group % padded, padded},
                                 .overwrite = false,
                                 .c = c.row(row) + at,
                                 .c_stride = c.stride});
                        }
                    }
            }
        });
    }

    // With many rows a group of panels, of one k-block, stays in the L2 cache, and a row block writes as many cache
    // lines of a row of C one after the other: panel by panel, it would write one line in each of all rows, which lie
    // far apart. With few rows B is streamed from memory, panel by panel.
    static constexpr Index many_rows = 4 * Micro::MR, near_numbers = Index{1} << 15;
};

}}}  // namespace isogloss::kernel
