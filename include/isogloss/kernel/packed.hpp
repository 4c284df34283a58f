/// @file kernel/packed.hpp  A product with a matrix that stays the same over many products of few rows.
#pragma once

#include <algorithm>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/linalg.hpp>

namespace isogloss::kernel {

/// The recurrent matrix of a cell is multiplied from the left by a few rows, step after step. BLAS packs it
/// anew for every product, which at 20 rows takes a good part of the time; here it is packed once per
/// sequence and then streamed past a block of rows held in registers.
///
/// Layout   panels of `width` columns one after the other, each [k, width] row-major and filled up with zeros
///          in the last one. A register block is up to 6 rows by one panel.
/// Numbers  the sum over k runs in order, in T, by fused multiply-adds; a column's value does not depend on
/// the
///          number of rows or threads.
template <class T, class A = Architecture> struct Packed {
    using L = Lanes<T, A>;
    static constexpr Index lanes = lane_count<L>;
    /// Vectors of a panel: four where there are 32 registers, two where there are 16; without xsimd a few
    /// numbers that the compiler may put into a register.
    static constexpr int vectors = lanes == 1 ? 8 : sizeof(L) == 64 ? 4 : 2;
    static constexpr Index width = vectors * lanes;
    static constexpr Index most_rows = 6;
    static constexpr Index depth =
        256;  ///< of a block of k: its part of a panel stays in the first-level cache

    /// Numbers that pack() writes for a matrix [k, n].
    static Index size(Index k, Index n) { return (n + width - 1) / width * width * k; }

    /// Packs b [k, n] (which may be transposed) into `to`.
    static void pack(MatrixRef<const T> b, T* to) {
        const Index k = b.height(), n = b.width(), panels = (n + width - 1) / width;
        parallel(panels, 1, panels, [&](Index first, Index last, Index) {
            for (Index p = first; p < last; ++p) {
                const Index at = p * width, columns = std::min(width, n - at);
                T* panel = to + at * k;
                if (columns < width) std::fill_n(panel, k * width, T(0));
                if (!b.transposed) {
                    for (Index i = 0; i < k; ++i) std::copy_n(b.row(i) + at, columns, panel + i * width);
                } else {
                    for (Index i = 0; i < k; i += 16)  // a few rows of the panel at a time stay in cache
                        for (Index j = 0; j < columns; ++j)
                            for (Index ii = i; ii < std::min(k, i + 16); ++ii)
                                panel[ii * width + j] = b.row(at + j)[ii];
                }
            }
        });
    }

    /// C += A B for A [rows, k], packed B [k, n] and C [rows, n].
    static void add_product(MatrixRef<const T> a, const T* packed, MatrixRef<T> c) {
        const Index rows = a.rows, k = a.cols, n = c.cols, panels = (n + width - 1) / width;
        const Index blocks = (rows + most_rows - 1) / most_rows;
        const bool shared = double(rows) * double(k) * double(n) >= 1e6;
        parallel(panels, 1, shared ? panels : 1, [&](Index first, Index last, Index) {
            for (Index p = first; p < last; ++p) {
                const Index at = p * width, columns = std::min(width, n - at);
                for (Index i = 0; i < k; i += depth) {
                    const Index some = std::min(depth, k - i);
                    const T* panel = packed + at * k + i * width;
                    for (Index block = 0; block < blocks;
                         ++block) {  // as even as can be, so that none is thin
                        const Index row = rows * block / blocks, end = rows * (block + 1) / blocks;
                        dispatch(end - row, some, a.row(row) + i, a.stride, panel, c.row(row) + at, c.stride,
                                 columns);
                    }
                }
            }
        });
    }

private:
    static void dispatch(Index rows, Index k, const T* a, Index a_stride, const T* b, T* c, Index c_stride,
                         Index columns) {
        switch (rows) {
            case 1:
                return block<1>(k, a, a_stride, b, c, c_stride, columns);
            case 2:
                return block<2>(k, a, a_stride, b, c, c_stride, columns);
            case 3:
                return block<3>(k, a, a_stride, b, c, c_stride, columns);
            case 4:
                return block<4>(k, a, a_stride, b, c, c_stride, columns);
            case 5:
                return block<5>(k, a, a_stride, b, c, c_stride, columns);
            default:
                return block<6>(k, a, a_stride, b, c, c_stride, columns);
        }
    }

    template <int rows>
    static void block(Index k, const T* a, Index a_stride, const T* b, T* c, Index c_stride, Index columns) {
        L sum[rows][vectors];
        for (auto& row : sum)
            for (L& s : row) s = L(T(0));
        for (Index i = 0; i < k; ++i, b += width) {
            L column[vectors];
            for (int v = 0; v < vectors; ++v) column[v] = Whole<T, L>{v * lanes}.load(b);
#pragma GCC unroll 6
            for (int r = 0; r < rows; ++r) {
                const L x(a[r * a_stride + i]);
#pragma GCC unroll 4
                for (int v = 0; v < vectors; ++v) sum[r][v] = fma_lanes(x, column[v], sum[r][v]);
            }
        }
        for (int r = 0; r < rows; ++r, c += c_stride)
            for (int v = 0; v < vectors; ++v) {
                const Index at = v * lanes;
                if (at + lanes <= columns) {
                    const Whole<T, L> group{at};
                    group.store(c, group.load(c) + sum[r][v]);
                } else if constexpr (lanes > 1) {
                    if (at >= columns) break;
                    const Partial<T, L> group{at, columns - at};
                    group.store(c, group.load(c) + sum[r][v]);
                }
            }
    }
};

}  // namespace isogloss::kernel
