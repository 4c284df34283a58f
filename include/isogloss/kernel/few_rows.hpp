/// @file kernel/few_rows.hpp  Matrix products of our own, where BLAS spends more time on packing than on the
/// product.
#pragma once

#include <isogloss/kernel/block.hpp>

namespace isogloss::kernel {

/// Products of a few rows with a large matrix, which is read once, where it lies. For one thread. Numbers as
/// Block says.
template <class T, class A = Architecture> struct FewRows {
    using B = Block<T, A>;

    /// Most rows for which product() beats BLAS, for C of n columns, and product_transposed().
    static Index most(Index n) { return n <= 320 ? 192 : 96; }
    static constexpr Index most_transposed = 256;

    /// C = A B + beta C for A [m, k], B [k, n] and C [m, n], none transposed; beta = 0 overwrites C whatever
    /// is in it.
    static void product(MatrixRef<const T> a, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
        const Index m = c.rows, n = c.cols, k = a.cols;
        const Index depth = std::clamp<Index>(near_numbers / n, most_depth / 2, most_depth),
                    stretches = (k + depth - 1) / depth;
        const typename B::Panels panels(n);
        alignas(64) T packed[most_depth * B::width];
        if (beta != T(0) && beta != T(1))
            for (Index r = 0; r < m; ++r)
                for (Index j = 0; j < n; ++j) c.row(r)[j] *= beta;
        for (Index stretch = 0; stretch < stretches; ++stretch) {
            const Index i = k * stretch / stretches, some = k * (stretch + 1) / stretches - i;
            for (Index p = 0; p < panels.count; ++p) {
                const Index at = panels.begin(p), padded = panels.columns(p),
                            columns = std::min(padded, n - at);
                const T* panel = b.row(i) + at;
                Index step = b.stride;
                // A panel that ends within a lane group would be read beyond its end.
                if (m >= worth_packing || columns < padded) {
                    panel = packed, step = padded;
                    B::pack(b, i, some, at, columns, padded, packed);
                }
                Index group = 0;
                for (Index row = 0, rows; row < m; row += rows, group += B::lanes) {
                    rows = B::rows_at(row, m);
                    // The panel below is wanted next; every row block fetches another lane group of it.
                    const typename B::Soon soon{b.row(i + some) + at + group % padded, b.stride};
                    B::multiply(rows, some, {a.row(row) + i, a.stride, 1}, panel, step, padded, soon,
                                stretch == 0 && beta == T(0), c.row(row) + at, c.stride, columns);
                }
            }
        }
    }

    /// Numbers that pack_left() writes for a matrix [m, k].
    static Index size(Index m, Index k) { return typename B::Panels(m).groups * B::lanes * k; }

    /// Packs A [m, k] for product_transposed().
    static void pack_left(MatrixRef<const T> a, T* to) {
        const typename B::Panels panels(a.rows);
        for (Index p = 0; p < panels.count; ++p) {
            const Index at = panels.begin(p), padded = panels.columns(p);
            B::pack(t(a), 0, a.cols, at, std::min(padded, a.rows - at), padded, to + at * a.cols);
        }
    }

    /// C = A Bᵀ + beta C for packed A [m, k], B [n, k] and C [m, n], m ≤ most_transposed: computed as (B
    /// Aᵀ)ᵀ, so that B passes by where it lies, and transposed by parts that stay in the cache.
    static void product_transposed(const T* packed, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
        constexpr Index part = 32;
        alignas(64) T product[part * most_transposed];
        const Index m = c.rows, n = c.cols, k = b.cols, stretches = (k + B::depth - 1) / B::depth;
        const typename B::Panels panels(m);
        const Index width = panels.groups * B::lanes;
        for (Index v = 0; v < n; v += part) {
            const Index height = std::min(part, n - v);
            for (Index stretch = 0; stretch < stretches; ++stretch) {
                const Index i = k * stretch / stretches, some = k * (stretch + 1) / stretches - i;
                for (Index row = 0, rows; row < height; row += rows) {
                    rows = B::rows_at(row, height);
                    const T* left = b.row(v + row) + i;
                    for (Index p = 0; p < panels.count; ++p) {
                        const Index at = panels.begin(p), padded = panels.columns(p);
                        B::multiply(rows, some, {left, b.stride, 1}, packed + at * k + i * padded, padded,
                                    padded, {left + 2 * rows * b.stride, rows}, stretch == 0,
                                    product + row * width + at, width, padded);
                    }
                }
            }
            turn(height, m, product, width, beta, c.data + v, c.stride);
        }
    }

private:
    // Of B at a time: a stretch of a panel stays in the nearest cache, one of all panels in the next.
    static constexpr Index most_depth = 128, near_numbers = 32768;
    // Rows from which on a panel is read often enough that it is better copied to where its rows are aligned.
    static constexpr Index worth_packing = 48;
};

}  // namespace isogloss::kernel
