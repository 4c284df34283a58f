/// @file closed_form/kronecker.hpp  The gradient of ConcatenatedSoftmax as matrix calculus derives it.
///
/// Kronecker products, the commutation matrix, the vec-transpose: readable and slow, for small sizes.
#pragma once

#include <cmath>
#include <isogloss/linalg.hpp>
#include <isogloss/tensor.hpp>
#include <span>

/// Small dense matrices in double, every operation as it is defined. vec(A) stacks the columns of A.
namespace isogloss::kronecker {

using Matrix = Tensor<double, 2>;

/// Rows of a matrix.
inline Index rows(const Matrix& a) { return static_cast<Index>(a.shape()[0]); }
/// Columns of a matrix.
inline Index cols(const Matrix& a) { return static_cast<Index>(a.shape()[1]); }

/// A matrix [r, c] of the values f(i, j).
template <class F> Matrix matrix(Index r, Index c, F&& f) {
    Matrix out({static_cast<std::size_t>(r), static_cast<std::size_t>(c)});
    for (Index i = 0; i < r; ++i)
        for (Index j = 0; j < c; ++j) out(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) = f(i, j);
    return out;
}
/// Element (i, j).
inline double at(const Matrix& a, Index i, Index j) {
    return a(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
}

/// I, [n, n].
inline Matrix identity(Index n) {
    return matrix(n, n, [](Index i, Index j) { return i == j ? 1.0 : 0.0; });
}
/// Aᵀ
inline Matrix transpose(const Matrix& a) {
    return matrix(cols(a), rows(a), [&](Index i, Index j) { return at(a, j, i); });
}
/// A B. Throws UsageError when the inner dimensions differ.
inline Matrix product(const Matrix& a, const Matrix& b) {
    Matrix out({a.shape()[0], b.shape()[1]});
    gemm<double>(1, {a.data(), rows(a), cols(a)}, {b.data(), rows(b), cols(b)}, 0,
                 {out.data(), rows(a), cols(b)});
    return out;
}
/// A ⊗ B: the matrix of blocks a_ij B.
inline Matrix kronecker(const Matrix& a, const Matrix& b) {
    const Index r = rows(b), c = cols(b);
    return matrix(rows(a) * r, cols(a) * c,
                  [&](Index i, Index j) { return at(a, i / r, j / c) * at(b, i % r, j % c); });
}
/// K_{p,q} [p q, p q], the permutation with K_{p,q} vec(A) = vec(Aᵀ) for every A [p, q].
inline Matrix commutation(Index p, Index q) {
    return matrix(p * q, p * q,
                  [&](Index to, Index from) { return to % q == from / p && to / q == from % p ? 1.0 : 0.0; });
}
/// A⁽ᵖ⁾, Minka's vec-transpose of A [m p, n]: each column becomes a matrix of p rows, column by column, and
/// these n matrices [p, m] are stacked: [n p, m]. Throws UsageError where p does not divide the rows of A.
inline Matrix vec_transpose(const Matrix& a, Index p) {
    if (p < 1 || rows(a) % p != 0)
        throw UsageError(message("vec_transpose: found ", rows(a), " rows, expected a multiple of ", p));
    return matrix(cols(a) * p, rows(a) / p, [&](Index i, Index j) { return at(a, j * p + i % p, i / p); });
}

/// Value and gradient of ConcatenatedSoftmax's loss.
struct Result {
    double value = 0;  ///< l
    Matrix d_E, d_W;   ///< ∂l/∂E [V, H], ∂l/∂W [M H, C]
};

/// The loss of ConcatenatedSoftmax, l = -Σ_n ln softmax(φ_n W)[y_n], and its gradient, in matrix form:
///
///     φ_n       = (I_M ⊗ E)ᵀ x_n                           x_n [M V, 1]: one-hot blocks, stacked
///     ∂l/∂W_c   = Σ_n δ_nc (I_M ⊗ E)ᵀ x_n                  δ_n = p_n - 1_{y_n}
///     (∂l/∂E)ᵀ  = Σ_n Σ_c δ_nc (K_{H,M}⁽ᴹ⁾)ᵀ ((W_c x_nᵀ K_{M,V})ᵀ)⁽ᴹ⁾
///
/// Shapes   E [V, H];  W [M H, C];  X [N, M];  y [N].  Costs O(N C M³ H² V): for tests.
/// Errors   UsageError for shapes that do not agree, DataError for a token or class out of range.
/// Source   "Embedding derivative derivation"; vec-transpose: Minka 2000. Departure: the transpose stands
///          inside the vec-transpose, or the product is not defined; see docs/closed_form/kronecker.md.
inline Result value_and_gradient(const Matrix& E, const Matrix& W, std::span<const Token> X,
                                 std::span<const Token> y) {
    const Index V = rows(E), H = cols(E), C = cols(W), M = rows(W) / H, N = std::ssize(y);
    if (rows(W) != M * H || std::ssize(X) != N * M)
        throw UsageError(message("kronecker: found a table [", V, ", ", H, "], weights [", rows(W), ", ", C,
                                 "], ", X.size(), " words and ", N, " classes"));
    const Matrix lift = transpose(kronecker(identity(M), E));            // [M H, M V]
    const Matrix left = transpose(vec_transpose(commutation(H, M), M));  // [H, M² H]
    const Matrix turn = commutation(M, V);                               // [M V, M V]
    Result r{0, matrix(V, H, [](Index, Index) { return 0.0; }), W * 0.0};
    Matrix d_E_transposed = matrix(H, V, [](Index, Index) { return 0.0; });
    for (Index n = 0; n < N; ++n) {
        const auto word = [&](Index m) { return X[static_cast<std::size_t>(n * M + m)]; };
        const Token target = y[static_cast<std::size_t>(n)];
        for (Index m = 0; m < M; ++m)
            if (word(m) < 0 || word(m) >= V)
                throw DataError(message("kronecker: example ", n, ": found token ", word(m)));
        if (target < 0 || target >= C)
            throw DataError(message("kronecker: example ", n, ": found class ", target));
        const Matrix x = matrix(M * V, 1, [&](Index i, Index) { return word(i / V) == i % V ? 1.0 : 0.0; });
        const Matrix phi = product(lift, x), z = product(transpose(phi), W);
        double sum = 0;
        for (Index c = 0; c < C; ++c) sum += std::exp(at(z, 0, c));
        r.value += std::log(sum) - at(z, 0, target);
        for (Index c = 0; c < C; ++c) {
            const double delta = std::exp(at(z, 0, c)) / sum - (c == target ? 1 : 0);
            const Matrix W_c = matrix(M * H, 1, [&](Index i, Index) { return at(W, i, c); });
            for (Index i = 0; i < M * H; ++i)
                r.d_W(static_cast<std::size_t>(i), static_cast<std::size_t>(c)) += delta * at(phi, i, 0);
            const Matrix bracket = transpose(product(product(W_c, transpose(x)), turn));  // [M V, M H]
            d_E_transposed += delta * product(left, vec_transpose(bracket, M));
        }
    }
    r.d_E = transpose(d_E_transposed);
    return r;
}

}  // namespace isogloss::kronecker
