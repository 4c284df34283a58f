/// @file kernel/block.hpp  The innermost part of our own matrix products: a block of C held in registers.
#pragma once

#include <algorithm>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/kernel/transpose.hpp>
#include <isogloss/matrix_ref.hpp>

namespace isogloss::kernel {

/// C [rows, columns] += A B for a few rows and columns, with all sums in registers: B comes as a
/// packed panel, A as it lies in memory or packed.
///
/// Panels   a matrix [k, n] is packed as panels of up to `vectors` lane groups of columns, one panel after
///          the other, each [k, columns] row-major, filled up with zeros to whole lane groups. All panels of
///          a matrix are as even as they can be, so that none is thin.
/// Numbers  a sum over k runs in order, in T, by fused multiply-adds, in stretches of `depth` that are
///          added one after the other: an element of C does not depend on where it lies, on the number of
///          rows or on that of threads.
template <class T, class A = Architecture> struct Block {
    using L = Lanes<T, A>;
    static constexpr Index lanes = lane_count<L>;
    /// Whether products of our own beat those of a tuned BLAS: with wide vectors only.
    static constexpr bool wide = lanes > 1 && sizeof(L) >= 32;
    /// Lane groups and rows of a block, for 32 registers or for 16; without xsimd a few numbers that the
    /// compiler may put into registers.
    static constexpr int vectors = lanes == 1 ? 8 : sizeof(L) == 64 ? 3 : 2;
    static constexpr int rows = sizeof(L) == 64 ? 8 : 6;
    static constexpr Index width = vectors * lanes;
    static constexpr Index depth = 384;  ///< most of a sum's terms at a time

    /// How many rows the block at `row` of `height` takes: all of them, but that the last two blocks share
    /// what is left, so that none is thin.
    static Index rows_at(Index row, Index height) {
        const Index left = height - row;
        return left >= 2 * rows || left == rows ? rows : left > rows ? (left + 1) / 2 : left;
    }

    /// How n columns are cut into panels.
    struct Panels {
        Index groups, count;
        explicit Panels(Index n) : groups((n + lanes - 1) / lanes), count((groups + vectors - 1) / vectors) {}
        Index begin(Index p) const { return groups * p / count * lanes; }  ///< first column of panel p
        Index columns(Index p) const { return begin(p + 1) - begin(p); }   ///< with the zeros
    };

    /// A matrix as the left factor: element (r, i) is data[r · row + i · step].
    struct Left {
        const T* data;
        Index row, step;
    };

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
            for (; j + lanes <= columns; j += lanes) Whole<T, L>{j}.store(panel, Whole<T, L>{j}.load(from));
            for (; j < columns; ++j) panel[j] = from[j];
            for (; j < padded; ++j) panel[j] = T(0);
        }
    }

    /// What is to be fetched into the cache meanwhile: one line a step.
    struct Soon {
        const T* data = nullptr;
        Index step = 0;
    };

    /// C (+)= A B for a panel whose rows are `stride` apart (`padded` where it is packed); `fresh` overwrites
    /// C whatever is in it.
    static void multiply(Index row_count, Index k, Left a, const T* panel, Index stride, Index padded,
                         Soon soon, bool fresh, T* c, Index c_stride, Index columns) {
        const Job job{k, a, panel, stride, soon, fresh, c, c_stride, columns};
        const int groups = static_cast<int>(padded / lanes);
        of_rows<1>(static_cast<int>(row_count), groups, job);
    }

private:
    struct Job {
        Index k;
        Left a;
        const T* b;
        Index b_stride;
        Soon soon;
        bool fresh;
        T* c;
        Index c_stride, columns;
    };

    template <int r> static void of_rows(int row_count, int groups, const Job& job) {
        if constexpr (r < rows)
            if (row_count != r) return of_rows<r + 1>(row_count, groups, job);
        of_groups<r, 1>(groups, job);
    }
    template <int r, int v> static void of_groups(int groups, const Job& job) {
        if constexpr (v < vectors)
            if (groups != v) return of_groups<r, v + 1>(groups, job);
        run<r, v>(job);
    }

    template <int r_count, int v_count> static void run(const Job& job) {
        L sum[r_count][v_count];
        for (auto& row : sum)
            for (L& s : row) s = L(T(0));
        const T *a = job.a.data, *b = job.b, *soon = job.soon.data;
        const Index row = job.a.row, step = job.a.step;
        for (Index i = 0; i < job.k; ++i, a += step, b += job.b_stride, soon += job.soon.step) {
            __builtin_prefetch(soon, 0, 2);
            L column[v_count];
            for (int v = 0; v < v_count; ++v) column[v] = Whole<T, L>{v * lanes}.load(b);
#pragma GCC unroll 8
            for (int r = 0; r < r_count; ++r) {
                const L x(a[r * row]);
#pragma GCC unroll 8
                for (int v = 0; v < v_count; ++v) sum[r][v] = fma_lanes(x, column[v], sum[r][v]);
            }
        }
        T* c = job.c;
        for (int r = 0; r < r_count; ++r, c += job.c_stride)
            for (int v = 0; v < v_count; ++v) {
                const Index at = v * lanes;
                const auto put = [&](auto group) {
                    group.store(c, job.fresh ? sum[r][v] : group.load(c) + sum[r][v]);
                };
                if (at + lanes <= job.columns) put(Whole<T, L>{at});
                else if constexpr (lanes > 1)
                    if (at < job.columns) put(Partial<T, L>{at, job.columns - at});
            }
    }
};

}  // namespace isogloss::kernel
