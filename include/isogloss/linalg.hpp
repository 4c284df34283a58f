/// @file linalg.hpp  Matrix products: shape-checked, in place, without copies, through xtensor-blas.
#pragma once

#include <isogloss/error.hpp>
#include <isogloss/tensor.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <type_traits>
#include <xtensor-blas/xblas.hpp>

namespace isogloss {

/// What BLAS wants to know of a matrix, and nothing else: a row-major block [rows, cols] whose rows are
/// `stride` apart. Owns nothing. `transposed` reads it the other way round.
template <class T> struct MatrixRef {
    T* data = nullptr;
    Index rows = 0, cols = 0;
    Index stride = 0;  ///< elements from one row to the next, ≥ cols
    bool transposed = false;

    MatrixRef() = default;
    MatrixRef(T* d, Index r, Index c) : MatrixRef(d, r, c, c) {}
    MatrixRef(T* d, Index r, Index c, Index s, bool t = false)
        : data(d), rows(r), cols(c), stride(s), transposed(t) {}
    /// A matrix that may be written serves as one that is read.
    operator MatrixRef<const T>() const requires(!std::is_const_v<T>) {
        return {data, rows, cols, stride, transposed};
    }

    T* row(Index i) const { return data + i * stride; }
    /// Columns [first, first + count) of a matrix that is not transposed.
    MatrixRef columns(Index first, Index count) const { return {data + first, rows, count, stride}; }
    /// Rows [first, first + count) of a matrix that is not transposed.
    MatrixRef rows_from(Index first, Index count) const { return {row(first), count, cols, stride}; }
    /// Rows and columns as read, after transposition.
    Index height() const { return transposed ? cols : rows; }
    Index width() const { return transposed ? rows : cols; }  ///< see height()
};

/// The transpose, without moving anything.
template <class T> MatrixRef<T> t(MatrixRef<T> m) {
    m.transposed = !m.transposed;
    return m;
}

namespace kernel {

inline cxxblas::Transpose blas_transpose(bool t) {
    return t ? cxxblas::Transpose::Trans : cxxblas::Transpose::NoTrans;
}

/// C = alpha A B + beta C on one thread; one row or one column goes to the matrix-vector routine, which
/// reads the matrix once and packs nothing.
template <class T>
void gemm_serial(T alpha, MatrixRef<const T> a, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
    using cxxblas::StorageOrder;
    const Index m = c.rows, n = c.cols, k = a.width();
    if (m == 1) {  // c' = B' a'
        const Index step = a.transposed ? a.stride : 1;
        cxxblas::gemv<int>(StorageOrder::RowMajor, blas_transpose(!b.transposed), int(b.rows), int(b.cols),
                           alpha, b.data, int(b.stride), a.data, int(step), beta, c.data, 1);
        return;
    }
    if (n == 1) {
        const Index step = b.transposed ? 1 : b.stride;
        cxxblas::gemv<int>(StorageOrder::RowMajor, blas_transpose(a.transposed), int(a.rows), int(a.cols),
                           alpha, a.data, int(a.stride), b.data, int(step), beta, c.data, int(c.stride));
        return;
    }
    cxxblas::gemm<int>(StorageOrder::RowMajor, blas_transpose(a.transposed), blas_transpose(b.transposed),
                       int(m), int(n), int(k), alpha, a.data, int(a.stride), b.data, int(b.stride), beta,
                       c.data, int(c.stride));
}

/// Multiply-adds from which a product is worth cutting over threads.
inline constexpr double parallel_product = 4e6;

}  // namespace kernel

/// C = alpha A B + beta C for float or double, A [m, k], B [k, n], C [m, n]; C is overwritten when beta
/// is 0, NaN included. Large products are cut over threads() along the longer side of C.
///
/// Throws GraphError when the shapes do not agree or a side exceeds what BLAS counts with (2³¹ - 1).
template <class T> void gemm(T alpha, std::type_identity_t<MatrixRef<const T>> a,
                             std::type_identity_t<MatrixRef<const T>> b, T beta,
                             std::type_identity_t<MatrixRef<T>> c) {
    const Index m = a.height(), k = a.width(), n = b.width();
    if (k != b.height() || c.rows != m || c.cols != n || c.transposed)
        throw GraphError(text("gemm: shapes do not agree: [", m, ", ", k, "] times [", b.height(), ", ", n,
                              "] into [", c.height(), ", ", c.width(), "]"));
    constexpr Index limit = std::numeric_limits<int>::max();
    if (m > limit || n > limit || k > limit || a.stride > limit || b.stride > limit || c.stride > limit)
        throw GraphError(text("gemm: a side of [", m, ", ", k, "] times [", k, ", ", n, "] exceeds ", limit));
    if (m == 0 || n == 0) return;
    if (k == 0) {  // BLAS's gemv leaves C as it is
        for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < n; ++j) c.row(i)[j] = beta == T(0) ? T(0) : beta * c.row(i)[j];
        return;
    }
    const double work = double(m) * double(n) * double(k);
    if (threads() == 1 || work < kernel::parallel_product)
        return kernel::gemm_serial<T>(alpha, a, b, beta, c);
    if (n >= m) {
        kernel::parallel(n, 64, n, [&](Index first, Index last, Index) {
            const auto part = b.transposed
                                  ? MatrixRef<const T>(b.row(first), last - first, b.cols, b.stride, true)
                                  : MatrixRef<const T>(b.data + first, b.rows, last - first, b.stride);
            kernel::gemm_serial<T>(alpha, a, part, beta, c.columns(first, last - first));
        });
    } else {
        kernel::parallel(m, 16, m, [&](Index first, Index last, Index) {
            const auto part = a.transposed
                                  ? MatrixRef<const T>(a.data + first, a.rows, last - first, a.stride, true)
                                  : MatrixRef<const T>(a.row(first), last - first, a.cols, a.stride);
            kernel::gemm_serial<T>(alpha, part, b, beta, c.rows_from(first, last - first));
        });
    }
}

}  // namespace isogloss
