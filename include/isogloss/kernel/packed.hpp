/// @file kernel/packed.hpp  A product with a matrix that stays the same over many products of few rows.
#pragma once

#include <isogloss/kernel/block.hpp>
#include <isogloss/threads.hpp>

namespace isogloss::kernel {

/// The recurrent matrix of a cell is multiplied from the left by a few rows, step after step. A product of
/// its own would pack it anew every time, which at 20 rows takes a good part of the time; here it is packed
/// once per sequence and then streamed past a block of rows held in registers. Layout and numbers as Block
/// says.
template <class T, class A = Architecture> struct Packed {
    using B = Block<T, A>;

    /// Numbers that pack() writes for a matrix [k, n].
    static Index size(Index k, Index n) { return typename B::Panels(n).groups * B::lanes * k; }

    /// Packs b [k, n] (which may be transposed) into `to`.
    static void pack(MatrixRef<const T> b, T* to) {
        const Index k = b.height(), n = b.width();
        const typename B::Panels panels(n);
        parallel(panels.count, 1, panels.count, [&](Index first, Index last, Index) {
            for (Index p = first; p < last; ++p) {
                const Index at = panels.begin(p), padded = panels.columns(p);
                B::pack(b, 0, k, at, std::min(padded, n - at), padded, to + at * k);
            }
        });
    }

    /// C += A B for A [rows, k], packed B [k, n] and C [rows, n].
    static void add_product(MatrixRef<const T> a, const T* packed, MatrixRef<T> c) {
        const Index rows = a.rows, k = a.cols, n = c.cols, stretches = (k + B::depth - 1) / B::depth;
        const typename B::Panels panels(n);
        const bool shared = double(rows) * double(k) * double(n) >= 1e6;
        parallel(panels.count, 1, shared ? panels.count : 1, [&](Index first, Index last, Index) {
            for (Index p = first; p < last; ++p) {
                const Index at = panels.begin(p), padded = panels.columns(p);
                for (Index stretch = 0; stretch < stretches; ++stretch) {
                    const Index i = k * stretch / stretches, some = k * (stretch + 1) / stretches - i;
                    const T* panel = packed + at * k + i * padded;
                    Index group = 0;
                    for (Index row = 0, few; row < rows; row += few, group += B::lanes) {
                        few = B::rows_at(row, rows);
                        // What comes next is wanted soon; every row block fetches another lane group of it.
                        const typename B::Soon soon{panel + some * padded + group % padded, padded};
                        B::multiply(few, some, {a.row(row) + i, a.stride, 1}, panel, padded, padded, soon,
                                    false, c.row(row) + at, c.stride, std::min(padded, n - at));
                    }
                }
            }
        });
    }
};

}  // namespace isogloss::kernel
