/// @file kernel/packed.hpp  A product with a matrix that stays the same over many products of few rows.
#pragma once

#include <isogloss/kernel/micro_kernel.hpp>
#include <isogloss/threads.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::kernel {

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
        const Index m = a.rows, k = a.cols, n = c.cols;
        const typename Micro::KBlocks k_blocks(k);
        const typename Micro::Panels panels(n);
        const bool shared = double(m) * double(k) * double(n) >= 1e6;
        parallel(panels.count, 1, shared ? panels.count : 1, [&](Index first, Index last, Index) {
            for (Index p = first; p < last; ++p) {
                const Index at = panels.begin(p), padded = panels.columns(p);
                for (Index block = 0; block < k_blocks.count; ++block) {
                    const Index i = k_blocks.begin(block), count = k_blocks.terms(block);
                    const T* panel = packed + at * k + i * padded;
                    Index group = 0;
                    for (Index row = 0, rows; row < m; row += rows, group += Micro::lanes) {
                        rows = Micro::rows_at(row, m);
                        Micro::multiply(
                            {.rows = rows,
                             .columns = std::min(padded, n - at),
                             .k = count,
                             .a = a.row(row) + i,
                             .a_row = a.stride,
                             .b = panel,
                             .b_stride = padded,
                             .padded = padded,
                             // The k-block below comes next; every row block prefetches another lane group.
                             .prefetch = {panel + count * padded + group % padded, padded},
                             .overwrite = false,
                             .c = c.row(row) + at,
                             .c_stride = c.stride});
                    }
                }
            }
        });
    }
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::kernel
