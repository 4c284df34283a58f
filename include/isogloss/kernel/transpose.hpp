/// @file kernel/transpose.hpp  The transpose of a matrix: packed, or added to another.
#pragma once

#include <algorithm>
#include <cstring>
#include <isogloss/types.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

namespace plain {

/// kernel::pack_transposed, element by element.
template <class T>
void pack_transposed(Index k, Index columns, Index padded, const T* from, Index stride, T* to) {
    for (Index i = 0; i < k; ++i)
        for (Index j = 0; j < padded; ++j) to[i * padded + j] = j < columns ? from[j * stride + i] : T(0);
}

/// kernel::transpose_add, element by element.
template <class T>
void transpose_add(Index n, Index m, const T* from, Index stride, T beta, T* to, Index to_stride) {
    for (Index j = 0; j < m; ++j)
        for (Index i = 0; i < n; ++i) {
            T& value = to[j * to_stride + i];
            value = from[i * stride + j] + (beta == T(0) ? T(0) : beta * value);
        }
}

}  // namespace plain

/// A square block, 32 bytes wide, transposed in registers with the compiler's vector extensions.
template <class T> struct Square {
    static constexpr Index side = 32 / sizeof(T);
    typedef T Row __attribute__((vector_size(32)));

    /// to[i, j] = from[j, i], or += with `add`; rows are `from_stride` and `to_stride` apart.
    static void transpose(const T* from, Index from_stride, bool add, T* to, Index to_stride) {
        Row r[side], s[side];
        for (Index j = 0; j < side; ++j) std::memcpy(&r[j], from + j * from_stride, sizeof(Row));
        if constexpr (side == 8) {
            for (int j = 0; j < 8; j += 2) {
                s[j] = __builtin_shufflevector(r[j], r[j + 1], 0, 8, 1, 9, 4, 12, 5, 13);
                s[j + 1] = __builtin_shufflevector(r[j], r[j + 1], 2, 10, 3, 11, 6, 14, 7, 15);
            }
            for (int j = 0; j < 8; j += 4)
                for (int k = 0; k < 2; ++k) {
                    r[j + 2 * k] = __builtin_shufflevector(s[j + k], s[j + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
                    r[j + 2 * k + 1] =
                        __builtin_shufflevector(s[j + k], s[j + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
                }
            for (int j = 0; j < 4; ++j) {
                s[j] = __builtin_shufflevector(r[j], r[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
                s[j + 4] = __builtin_shufflevector(r[j], r[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
            }
        } else {
            static_assert(side == 4);
            for (int j = 0; j < 4; j += 2) {
                s[j] = __builtin_shufflevector(r[j], r[j + 1], 0, 4, 2, 6);
                s[j + 1] = __builtin_shufflevector(r[j], r[j + 1], 1, 5, 3, 7);
            }
            for (int j = 0; j < 2; ++j) {
                r[j] = __builtin_shufflevector(s[j], s[j + 2], 0, 1, 4, 5);
                r[j + 2] = __builtin_shufflevector(s[j], s[j + 2], 2, 3, 6, 7);
            }
            for (int j = 0; j < 4; ++j) s[j] = r[j];
        }
        for (Index i = 0; i < side; ++i) {
            if (add) {
                std::memcpy(&r[i], to + i * to_stride, sizeof(Row));
                s[i] += r[i];
            }
            std::memcpy(to + i * to_stride, &s[i], sizeof(Row));
        }
    }
};

/// to[i, j] = from[j, i] for i < k, j < columns, and 0 for columns ≤ j < padded; `from` has rows `stride`
/// apart, `to` has rows of `padded` elements.
template <class T>
void pack_transposed(Index k, Index columns, Index padded, const T* from, Index stride, T* to) {
    constexpr Index side = Square<T>::side;
    const Index whole_k = k / side * side, whole_columns = columns / side * side;
    const auto one_by_one = [&](Index i, Index i_end, Index j, Index j_end) {
        for (; j < j_end; ++j)
            for (Index ii = i; ii < i_end; ++ii) to[ii * padded + j] = from[j * stride + ii];
    };
    for (Index i = 0; i < whole_k; i += side)
        for (Index j = 0; j < whole_columns; j += side)
            Square<T>::transpose(from + j * stride + i, stride, false, to + i * padded + j, padded);
    one_by_one(0, whole_k, whole_columns, columns);
    one_by_one(whole_k, k, 0, columns);
    if (columns < padded)
        for (Index i = 0; i < k; ++i) std::fill(to + i * padded + columns, to + (i + 1) * padded, T(0));
}

/// to[j, i] = from[i, j] + beta to[j, i] for from [n, m], rows `stride` and `to_stride` apart; beta = 0
/// overwrites.
template <class T>
void transpose_add(Index n, Index m, const T* from, Index stride, T beta, T* to, Index to_stride) {
    constexpr Index side = Square<T>::side;
    if (beta != T(0) && beta != T(1))
        for (Index j = 0; j < m; ++j)
            for (Index i = 0; i < n; ++i) to[j * to_stride + i] *= beta;
    const bool add = beta != T(0);
    const Index whole_n = n / side * side, whole_m = m / side * side;
    const auto one_by_one = [&](Index i, Index i_end, Index j, Index j_end) {
        for (; j < j_end; ++j)
            for (Index ii = i; ii < i_end; ++ii) {
                T& value = to[j * to_stride + ii];
                value = from[ii * stride + j] + (add ? value : T(0));
            }
    };
    for (Index j = 0; j < whole_m; j += side)
        for (Index i = 0; i < whole_n; i += side)
            Square<T>::transpose(from + i * stride + j, stride, add, to + j * to_stride + i, to_stride);
    one_by_one(0, whole_n, whole_m, m);
    one_by_one(whole_n, n, 0, m);
}

}}}  // namespace isogloss::kernel
