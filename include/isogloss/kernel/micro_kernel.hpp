/// @file kernel/micro_kernel.hpp  The micro-kernel of the library's matrix products: a block of C in registers.
///
/// The terms are those of BLIS (Van Zee, van de Geijn 2015): C is computed in blocks of MR × NR from a row
/// block of A and a packed panel of B, KC terms of the sum at a time.
#pragma once

#include <algorithm>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/kernel/transpose.hpp>
#include <isogloss/matrix_ref.hpp>
#include <isogloss/subnormals.hpp>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

namespace plain {

/// C = A B + beta C, every sum in double; beta = 0 overwrites C. The reference in tests of the products of this
/// folder.
template <class T> void gemm(MatrixRef<const T> a, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
    for (Index i = 0; i < c.height(); ++i)
        for (Index j = 0; j < c.width(); ++j) {
            double sum = beta == T(0) ? 0 : double(beta) * double(c(i, j));
            for (Index k = 0; k < a.width(); ++k) sum += double(a(i, k)) * double(b(k, j));
            c(i, j) = static_cast<T>(sum);
        }
}

}  // namespace plain

/// C [rows, columns] (+)= A B for a few rows and columns, with all sums in registers: B comes as a packed
/// panel, A as it lies in memory or packed.
///
/// Panels   a matrix [k, n] is packed as panels of up to NR columns, one panel after the other, each
///          [k, columns] row-major, padded with zeros to full lane groups. All panels of a matrix are as even
///          as possible, so that none is thin.
/// Order    a sum over k runs in order, in T, by fused multiply-adds, in k-blocks that are added one after the
///          other: an element of C does not depend on its position, the number of rows or the number of
///          threads. Unless portable(), an instruction set without fused products multiplies and adds.
template <class T, class A = Architecture> struct MicroKernel {
    using L = Lanes<T, A>;
    static constexpr Index lanes = lane_count<L>;
    /// Whether these products beat those of a tuned BLAS: with wide vectors only.
    static constexpr bool wide = lanes > 1 && sizeof(L) >= 32;
    /// Lane groups in a row of the register block, for 32 registers of AVX-512 or of ARM, or 16; without xsimd a few
    /// numbers that the compiler may keep in registers.
    static constexpr int vectors = lanes == 1 ? 8 : sizeof(L) == 64 ? 3 : registers<L> == 32 ? 4 : 2;
    /// Rows of the register block. On ARM g++ 12 loads the numbers of all rows ahead: with 6 by 4 it has no registers left.
    static constexpr int MR = sizeof(L) == 64 ? 8 : registers<L> == 32 ? 5 : 6;
    static constexpr Index NR = vectors * lanes;  ///< columns of the register block, and of a panel
    static constexpr Index KC = 384;              ///< most terms of a sum at a time

    /// Rows of the block at `row` of `height`: MR, except that the last two blocks share what is left, so that
    /// none is thin.
    static Index rows_at(Index row, Index height) {
        const Index left = height - row;
        return left >= 2 * MR || left == MR ? MR : left > MR ? (left + 1) / 2 : left;
    }

    /// How n columns are split into panels.
    struct Panels {
        Index groups, count;
        explicit Panels(Index n) : groups((n + lanes - 1) / lanes), count((groups + vectors - 1) / vectors) {}
        Index begin(Index p) const { return groups * p / count * lanes; }  ///< first column of panel p
        Index columns(Index p) const { return begin(p + 1) - begin(p); }   ///< including padding
    };

    /// How the k terms of a sum are split into k-blocks of at most kc, as even as possible.
    struct KBlocks {
        Index k, count;
        explicit KBlocks(Index terms, Index kc = KC) : k(terms), count((terms + kc - 1) / kc) {}
        Index begin(Index block) const { return k * block / count; }  ///< first term of a k-block
        Index terms(Index block) const { return begin(block + 1) - begin(block); }
    };

    /// Elements of a packed matrix [k, n].
    static Index packed_size(Index k, Index n) { return Panels(n).groups * lanes * k; }

    /// Packs columns [at, at + columns) of rows [first, first + k) of b into a panel of `padded` columns.
    static void pack(MatrixRef<const T> b, Index first, Index k, Index at, Index columns, Index padded,
                     T* panel) {
        if (b.transposed) {
            pack_transposed(k, columns, padded, b.data + at * b.stride + first, b.stride, panel);
            return;
        }
        const T* from = b.data + first * b.stride + at;
        for (Index i = 0; i < k; ++i, from += b.stride, panel += padded) {
            Index j = 0;
            for (; j + lanes <= columns; j += lanes) Full<T, L>{j}.store(panel, Full<T, L>{j}.load(from));
            for (; j < columns; ++j) panel[j] = from[j];
            for (; j < padded; ++j) panel[j] = T(0);
        }
    }

    /// Packs the panels [first, last) of b [k, n] to their places in a packed matrix.
    static void pack_panels(MatrixRef<const T> b, Index first, Index last, T* packed) {
        const Index k = b.height(), n = b.width();
        const Panels panels(n);
        for (Index p = first; p < last; ++p) {
            const Index at = panels.begin(p), padded = panels.columns(p);
            pack(b, 0, k, at, std::min(padded, n - at), padded, packed + at * k);
        }
    }

    /// What is prefetched meanwhile: one cache line for each term of the sum, `step` elements apart.
    struct Prefetch {
        const T* data = nullptr;
        Index step = 0;
    };

    /// One call of the micro-kernel. Element (r, i) of A is a[r · a_row + i · a_step]; rows of B are b_stride apart.
    struct Block {
        Index rows, columns;  ///< of C; at most MR and NR
        Index k;              ///< terms of the sums
        const T* a;
        Index a_row, a_step = 1;
        const T* b;
        Index b_stride;
        Index padded;  ///< columns of B including padding, full lane groups
        Prefetch prefetch;
        bool overwrite;  ///< C = A B, whatever C holds; otherwise C += A B
        T* c;
        Index c_stride;
    };
    static void multiply(const Block& block) {
        const int groups = static_cast<int>(block.padded / lanes);
        if constexpr (!fuses<L>)
            if (!portable()) return dispatch_rows<false, 1>(block, groups);
        dispatch_rows<true, 1>(block, groups);
    }

private:
    template <bool fuse, int mr> static void dispatch_rows(const Block& block, int groups) {
        if constexpr (mr < MR)
            if (block.rows != mr) return dispatch_rows<fuse, mr + 1>(block, groups);
        dispatch_vectors<fuse, mr, 1>(block, groups);
    }
    template <bool fuse, int mr, int nv> static void dispatch_vectors(const Block& block, int groups) {
        if constexpr (nv < vectors)
            if (groups != nv) return dispatch_vectors<fuse, mr, nv + 1>(block, groups);
        run<fuse, mr, nv>(block, std::make_index_sequence<std::size_t{mr * nv}>());
    }

    // Not inlined: beside a caller's variables g++ 12 runs out of the 16 registers of AVX2, and the loop reloads
    // addresses and columns of B from memory, which made it 1.6 times as slow. Constant indices keep the sums in registers:
    // to an array, g++ 12 on ARM would write each of them at every term.
    template <bool fuse, int mr, int nv, std::size_t... s>
    [[gnu::noinline]] static void run(const Block& block, std::index_sequence<s...>) {
        L sum[] = {((void)s, L(T(0)))...};
        const T *a = block.a, *b = block.b, *prefetch = block.prefetch.data;
        const Index a_row = block.a_row, a_step = block.a_step;
        for (Index i = 0; i < block.k;
             ++i, a += a_step, b += block.b_stride, prefetch += block.prefetch.step) {
            __builtin_prefetch(prefetch, 0, 2);
            L column[nv];
            for (int v = 0; v < nv; ++v) column[v] = Full<T, L>{v * lanes}.load(b);
            L x(T(0));
            ((s % nv == 0 ? void(x = L(a[static_cast<Index>(s / nv) * a_row])) : void(),
              sum[s] = fuse ? fused_lanes(x, column[s % nv], sum[s]) : sum[s] + x * column[s % nv]),
             ...);
        }
        const L whole[] = {sum[s]...};
        T* c = block.c;
        for (int r = 0; r < mr; ++r, c += block.c_stride)
            for (int v = 0; v < nv; ++v) {
                const Index at = v * lanes;
                const L& here = whole[r * nv + v];
                const auto put = [&](auto group) {
                    group.store(c, block.overwrite ? here : group.load(c) + here);
                };
                if (at + lanes <= block.columns) put(Full<T, L>{at});
                else if constexpr (lanes > 1)
                    if (at < block.columns) put(Masked<T, L>{at, block.columns - at});
            }
    }
};

}}}  // namespace isogloss::kernel
