/// @file dense.hpp  Small dense matrices that own their numbers: zeros, identity, products, transposes. Their
/// factorisations are in factor.hpp.
#pragma once

#include <isogloss/linalg.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/tensor.hpp>
#include <string_view>

/// Dense matrices as values: each operation returns its result.
namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace dense {

/// A matrix in double.
using Matrix = Tensor<double, 2>;

/// Rows of a matrix.
template <class M> Index rows(const M& m) { return static_cast<Index>(m.shape()[0]); }
/// Columns of a matrix.
template <class M> Index cols(const M& m) { return static_cast<Index>(m.shape()[1]); }

/// A tensor as a matrix for gemm.
template <class T> MatrixRef<const T> ref(const Tensor<T, 2>& m) { return {m.data(), rows(m), cols(m)}; }
/// The same, writable.
template <class T> MatrixRef<T> ref(Tensor<T, 2>& m) { return {m.data(), rows(m), cols(m)}; }

/// A matrix [rows, cols] of zeros. Throws UsageError if there is no memory for it.
template <class T> Tensor<T, 2> zeros(Index rows, Index cols) {
    const std::string_view who = "a matrix";
    return within_memory(who, bytes_of(who, {rows, cols}, sizeof(T)), [&]() -> Tensor<T, 2> {
        return xt::zeros<T>({static_cast<std::size_t>(rows), static_cast<std::size_t>(cols)});
    });
}

/// I, [n, n].
inline Matrix identity(Index n) {
    auto m = zeros<double>(n, n);
    for (Index i = 0; i < n; ++i) m(i, i) = 1;
    return m;
}

/// mᵀ
template <class T> Tensor<T, 2> transposed(const Tensor<T, 2>& m) { return xt::transpose(m); }

/// a b; pass t(a) or t(b) for aᵀ b or a bᵀ. Throws UsageError if the inner dimensions differ.
inline Matrix product(MatrixRef<const double> a, MatrixRef<const double> b) {
    auto c = zeros<double>(a.height(), b.width());
    gemm<double>(1, a, b, 0, ref(c));
    return c;
}
/// a b
inline Matrix product(const Matrix& a, const Matrix& b) { return product(ref(a), ref(b)); }
/// a b c
inline Matrix product(const Matrix& a, const Matrix& b, const Matrix& c) { return product(product(a, b), c); }
/// a bᵀ
inline Matrix product_t(const Matrix& a, const Matrix& b) { return product(ref(a), t(ref(b))); }

}}}  // namespace isogloss::dense
