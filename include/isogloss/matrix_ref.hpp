/// @file matrix_ref.hpp  A matrix in memory owned elsewhere.
#pragma once

#include <isogloss/types.hpp>
#include <type_traits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// A matrix as a product sees it: a row-major block [rows, cols] whose rows are `stride` apart. Owns nothing. With
/// `transposed` it stands for its transpose.
template <class T> struct MatrixRef {
    T* data = nullptr;
    Index rows = 0, cols = 0;
    Index stride = 0;  ///< elements from one row to the next, ≥ cols
    bool transposed = false;

    MatrixRef() = default;
    MatrixRef(T* d, Index r, Index c) : MatrixRef(d, r, c, c) {}
    MatrixRef(T* d, Index r, Index c, Index s, bool t = false)
        : data(d), rows(r), cols(c), stride(s), transposed(t) {}
    /// A writable matrix converts to a read-only one.
    operator MatrixRef<const T>() const requires(!std::is_const_v<T>) {
        return {data, rows, cols, stride, transposed};
    }

    /// Whether sizes and stride are valid, and there is memory if there are elements.
    bool is_valid() const { return rows >= 0 && cols >= 0 && stride >= cols && (data || !rows || !cols); }
    T* row(Index i) const { return data + i * stride; }
    /// Element (i, j) as read, after transposition.
    T& operator()(Index i, Index j) const { return transposed ? row(j)[i] : row(i)[j]; }
    /// Columns [first, first + count) of a matrix that is not transposed.
    MatrixRef columns(Index first, Index count) const { return {data + first, rows, count, stride}; }
    /// Rows [first, first + count) of a matrix that is not transposed.
    MatrixRef rows_from(Index first, Index count) const { return {row(first), count, cols, stride}; }
    /// Rows [i, i + m) and columns [j, j + n) of the matrix as read, after transposition.
    MatrixRef part(Index i, Index m, Index j, Index n) const {
        if (transposed) return {row(j) + i, n, m, stride, true};
        return {row(i) + j, m, n, stride};
    }
    /// Rows and columns as read, after transposition.
    Index height() const { return transposed ? cols : rows; }
    Index width() const { return transposed ? rows : cols; }  ///< see height()

    /// The transpose, without copying. Found by argument-dependent lookup only.
    friend MatrixRef t(MatrixRef m) {
        m.transposed = !m.transposed;
        return m;
    }
};

}}  // namespace isogloss
