/// @file matrix_ref.hpp  A matrix that lives in somebody else's memory.
#pragma once

#include <isogloss/types.hpp>
#include <type_traits>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// What a product wants to know of a matrix, and nothing else: a row-major block [rows, cols] whose rows are
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

    /// Whether sizes and stride are possible, and there is memory where there are elements.
    bool is_valid() const { return rows >= 0 && cols >= 0 && stride >= cols && (data || !rows || !cols); }
    T* row(Index i) const { return data + i * stride; }
    /// Element (i, j) as read, after transposition.
    T& operator()(Index i, Index j) const { return transposed ? row(j)[i] : row(i)[j]; }
    /// Columns [first, first + count) of a matrix that is not transposed.
    MatrixRef columns(Index first, Index count) const { return {data + first, rows, count, stride}; }
    /// Rows [first, first + count) of a matrix that is not transposed.
    MatrixRef rows_from(Index first, Index count) const { return {row(first), count, cols, stride}; }
    /// Rows and columns as read, after transposition.
    Index height() const { return transposed ? cols : rows; }
    Index width() const { return transposed ? rows : cols; }  ///< see height()

    /// The transpose, without moving anything. Found by its argument alone.
    friend MatrixRef t(MatrixRef m) {
        m.transposed = !m.transposed;
        return m;
    }
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
