/// @file kernel/skinny_gemm.hpp  Matrix products with few rows, where BLAS spends more time on packing than on
/// the product.
#pragma once

#include <isogloss/kernel/micro_kernel.hpp>
#include <isogloss/subnormals.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// Products of a few rows with a large matrix, which is read once, in place. For one thread. Order of sums as in
/// MicroKernel, but the blocks of k in product() depend on the columns of C: a part of C may differ from the same part of
/// the whole in its last bits.
template <class T, class A = Architecture> struct SkinnyGemm {
    using Micro = MicroKernel<T, A>;

    /// Most rows for which product(), for C of n columns, and product_transposed(), for sums of k terms, beat BLAS
    /// within the output head. The latter transposes C, which costs the more beside short sums the narrower the vectors are.
    static Index most(Index n) {
        if (n > 320) return 96;
        return sizeof(typename Micro::L) == 64 && !portable() ? 400 : 192;
    }
    static Index most_transposed(Index k) {
        return sizeof(typename Micro::L) == 64 ? largest_transposed : k <= 320 ? 80 : 192;
    }
    static constexpr Index largest_transposed = 256;  ///< for any k

    /// C = A B + beta C for A [m, k], B [k, n] and C [m, n], none transposed; beta = 0 overwrites C whatever
    /// it holds.
    static void product(MatrixRef<const T> a, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
        const Index m = c.rows, n = c.cols;
        const typename Micro::KBlocks k_blocks(a.cols, std::clamp<Index>(near_numbers / n, KC / 2, KC));
        const typename Micro::Panels panels(n);
        alignas(64) T packed[KC * Micro::NR];
        if (beta != T(0) && beta != T(1))
            for (Index r = 0; r < m; ++r)
                for (Index j = 0; j < n; ++j) c.row(r)[j] *= beta;
        for (Index block = 0; block < k_blocks.count; ++block) {
            const Index i = k_blocks.begin(block), count = k_blocks.terms(block);
            for (Index p = 0; p < panels.count; ++p) {
                const Index at = panels.begin(p), padded = panels.columns(p),
                            columns = std::min(padded, n - at);
                const T* panel = b.row(i) + at;
                Index stride = b.stride;
                // A panel that ends within a lane group would be read beyond its end.
                if (m >= worth_packing || columns < padded) {
                    panel = packed, stride = padded;
                    Micro::pack(b, i, count, at, columns, padded, packed);
                }
                Index group = 0;
                for (Index row = 0, rows; row < m; row += rows, group += Micro::lanes) {
                    rows = Micro::rows_at(row, m);
                    Micro::multiply(
                        {.rows = rows,
                         .columns = columns,
                         .k = count,
                         .a = a.row(row) + i,
                         .a_row = a.stride,
                         .b = panel,
                         .b_stride = stride,
                         .padded = padded,
                         // The panel below comes next; every row block prefetches another lane group.
                         .prefetch = {b.row(i + count) + at + group % padded, b.stride},
                         .overwrite = block == 0 && beta == T(0),
                         .c = c.row(row) + at,
                         .c_stride = c.stride});
                }
            }
        }
    }

    /// Elements that pack_left() writes for a matrix [m, k].
    static Index size(Index m, Index k) { return Micro::packed_size(k, m); }

    /// Packs A [m, k] for product_transposed().
    static void pack_left(MatrixRef<const T> a, T* to) {
        Micro::pack_panels(t(a), 0, typename Micro::Panels(a.rows).count, to);
    }

    /// C = A Bᵀ + beta C for packed A [m, k], B [n, k] and C [m, n], m ≤ largest_transposed: computed as (B
    /// Aᵀ)ᵀ, so that B is read in place, and transposed in parts that stay in the cache.
    static void product_transposed(const T* packed, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
        // Full row blocks, and whole cache lines of C.
        constexpr Index part = sizeof(typename Micro::L) == 64 ? 32 : 48;
        alignas(64) T product[part * largest_transposed];
        const Index m = c.rows, n = c.cols, k = b.cols;
        const typename Micro::KBlocks k_blocks(k);
        const typename Micro::Panels panels(m);
        const Index width = panels.groups * Micro::lanes;
        for (Index v = 0; v < n; v += part) {
            const Index height = std::min(part, n - v), line = 64 / Index{sizeof(T)};
            for (Index r = 0; r < m; ++r)
                for (Index i = 0; i < height; i += line) __builtin_prefetch(c.row(r) + v + i, 1);
            for (Index block = 0; block < k_blocks.count; ++block) {
                const Index i = k_blocks.begin(block), count = k_blocks.terms(block);
                for (Index row = 0, rows; row < height; row += rows) {
                    rows = Micro::rows_at(row, height);
                    const T* left = b.row(v + row) + i;
                    for (Index p = 0; p < panels.count; ++p) {
                        const Index at = panels.begin(p), padded = panels.columns(p);
                        Micro::multiply({.rows = rows,
                                         .columns = padded,
                                         .k = count,
                                         .a = left,
                                         .a_row = b.stride,
                                         .b = packed + at * k + i * padded,
                                         .b_stride = padded,
                                         .padded = padded,
                                         .prefetch = {left + 2 * rows * b.stride, rows},
                                         .overwrite = block == 0,
                                         .c = product + row * width + at,
                                         .c_stride = width});
                    }
                }
            }
            transpose_add(height, m, product, width, beta, c.data + v, c.stride);
        }
    }

private:
    // Block sizes of B: a k-block of one panel stays in the L1 cache, one of all panels in L2.
    static constexpr Index KC = 128, near_numbers = 32768;
    // Rows from which a panel is read often enough to be worth copying to memory where its rows are aligned.
    static constexpr Index worth_packing = 48;
};

}}}  // namespace isogloss::kernel
