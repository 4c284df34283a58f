/// @file linalg.hpp  Matrix products: shape-checked, in place, without copies, through xtensor-blas.
#pragma once

#include <isogloss/error.hpp>
#include <isogloss/kernel/skinny_gemm.hpp>
#include <isogloss/matrix_ref.hpp>
#include <isogloss/tensor.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <type_traits>
#include <xtensor-blas/xblas.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

namespace detail {

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

/// The same, through BLAS but for a few rows.
template <class T>
void multiply(T alpha, MatrixRef<const T> a, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
    using Skinny = kernel::SkinnyGemm<T>;
    if (Skinny::Micro::wide && alpha == T(1) && c.rows > 1 && c.rows <= Skinny::most(c.cols) &&
        c.cols >= Skinny::Micro::NR && !a.transposed && !b.transposed)
        Skinny::product(a, b, beta, c);
    else gemm_serial<T>(alpha, a, b, beta, c);
}

/// Calls f(A, B, C) for the parts of a product that threads() share, C being cut along its longer side.
template <class T, class F> void cut(MatrixRef<const T> a, MatrixRef<const T> b, MatrixRef<T> c, F&& f) {
    constexpr double worth_cutting = 4e6;  // multiply-adds
    const Index m = c.rows, n = c.cols;
    if (threads() == 1 || double(m) * double(n) * double(a.width()) < worth_cutting) return f(a, b, c);
    if (n >= m) {
        parallel(n, 64, n, [&](Index first, Index last, Index) {
            f(a,
              b.transposed ? MatrixRef<const T>(b.row(first), last - first, b.cols, b.stride, true)
                           : MatrixRef<const T>(b.data + first, b.rows, last - first, b.stride),
              c.columns(first, last - first));
        });
    } else {
        parallel(m, 16, m, [&](Index first, Index last, Index) {
            f(a.transposed ? MatrixRef<const T>(a.data + first, a.rows, last - first, a.stride, true)
                           : MatrixRef<const T>(a.row(first), last - first, a.cols, a.stride),
              b, c.rows_from(first, last - first));
        });
    }
}

}  // namespace detail

/// C = alpha A B + beta C for float or double, A [m, k], B [k, n], C [m, n]; C is overwritten when beta
/// is 0, NaN included. Large products are cut over threads() along the longer side of C.
///
/// Throws UsageError when the shapes do not agree, a matrix has a size below 0, rows closer than they are
/// long or elements without memory, or a side exceeds what BLAS counts with (2³¹ - 1).
template <class T> void gemm(T alpha, std::type_identity_t<MatrixRef<const T>> a,
                             std::type_identity_t<MatrixRef<const T>> b, T beta,
                             std::type_identity_t<MatrixRef<T>> c) {
    const Index m = a.height(), k = a.width(), n = b.width();
    if (k != b.height() || c.rows != m || c.cols != n || c.transposed)
        throw UsageError(message("gemm: shapes do not agree: [", m, ", ", k, "] times [", b.height(), ", ", n,
                                 "] into [", c.height(), ", ", c.width(), "]"));
    const auto require_valid = [](const char* name, auto matrix) {
        if (!matrix.is_valid())
            throw UsageError(message("gemm: ", name, " is [", matrix.rows, ", ", matrix.cols, "] with rows ",
                                     matrix.stride, " apart", matrix.data ? "" : " and null data",
                                     ", expected sizes of at least 0, rows at least as far apart as they are "
                                     "long, and memory"));
    };
    require_valid("A", a), require_valid("B", b), require_valid("C", c);
    constexpr Index limit = std::numeric_limits<int>::max();
    if (m > limit || n > limit || k > limit || a.stride > limit || b.stride > limit || c.stride > limit)
        throw UsageError(
            message("gemm: a side of [", m, ", ", k, "] times [", k, ", ", n, "] exceeds ", limit));
    if (m == 0 || n == 0) return;
    if (k == 0) {  // BLAS's gemv leaves C as it is
        for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < n; ++j) c.row(i)[j] = beta == T(0) ? T(0) : beta * c.row(i)[j];
        return;
    }
    detail::cut<T>(a, b, c, [&](auto left, auto right, auto part) {
        detail::multiply<T>(alpha, left, right, beta, part);
    });
}

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
