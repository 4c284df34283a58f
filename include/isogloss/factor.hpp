/// @file factor.hpp  Matrix factorisations through LAPACK. Included by lds/ and metric/ only, as it costs
/// a second of compile time and needs LAPACK at link time.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/error.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/tensor.hpp>
#include <xtensor-blas/xlinalg.hpp>

namespace isogloss {

/// An orthonormal basis [rows, r] of the column space of x [rows, cols], r = the numerical rank: thin QR,
/// then the SVD of the small triangle to find the rank and drop what is not there. A direction counts when
/// its singular value exceeds the largest one times max(rows, cols) times machine epsilon.
///
/// Throws GraphError for an empty matrix or fewer rows than columns, NumericError for values that are not
/// finite or a zero matrix.
template <class T> Tensor<T, 2> orthonormal_columns(MatrixRef<const T> x, const char* who) {
    if (x.rows < 1 || x.cols < 1 || x.rows < x.cols)
        throw GraphError(text(who, ": found a matrix [", x.rows, ", ", x.cols,
                              "], expected at least as many rows as columns"));
    const auto rows = static_cast<std::size_t>(x.rows), cols = static_cast<std::size_t>(x.cols);
    Tensor<T, 2> a({rows, cols});
    for (Index i = 0; i < x.rows; ++i) {
        std::copy_n(x.row(i), x.cols, a.data() + i * x.cols);
        for (Index j = 0; j < x.cols; ++j)
            if (!std::isfinite(x.row(i)[j]))
                throw NumericError(text(who, ": found ", x.row(i)[j], " at row ", i, ", column ", j));
    }
    const auto [q, r] = xt::linalg::qr(a, xt::linalg::qrmode::reduced);
    const auto [u, s, v] = xt::linalg::svd(r);
    const T floor = s(0) * static_cast<T>(std::max(rows, cols)) * std::numeric_limits<T>::epsilon();
    if (!(s(0) > T(0))) throw NumericError(text(who, ": the matrix is zero and spans nothing"));
    std::size_t rank = 0;
    while (rank < s.size() && s(rank) > floor) ++rank;

    const Tensor<T, 2> basis = q, turn = u;  // row-major copies of what LAPACK left column-major
    Tensor<T, 2> out({rows, rank});
    gemm<T>(T(1), {basis.data(), x.rows, x.cols}, {turn.data(), x.cols, static_cast<Index>(rank), x.cols},
            T(0), {out.data(), x.rows, static_cast<Index>(rank)});
    return out;
}

/// Singular values of a small matrix, falling.
template <class T> Tensor<T, 1> singular_values(const Tensor<T, 2>& m) {
    const auto [u, s, v] = xt::linalg::svd(m, false);
    return s;
}

}  // namespace isogloss
