// The gradient of ConcatenatedSoftmax as derived by matrix calculus.
// Kronecker products, the commutation matrix, the vec-transpose: readable but slow, for small sizes.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/array.hpp>
#include <isogloss/dense.hpp>

// Small dense matrices in double, each operation as defined. vec(A) stacks the columns of A.
namespace kronecker {

using namespace isogloss;
using dense::cols, dense::identity, dense::Matrix, dense::product, dense::rows, dense::transposed,
    dense::zeros;

// A matrix [r, c] of the values f(i, j).
template <class F> Matrix matrix(Index r, Index c, F&& f) {
    auto out = zeros<double>(r, c);
    for (Index i = 0; i < r; ++i)
        for (Index j = 0; j < c; ++j) out(i, j) = f(i, j);
    return out;
}
// A ⊗ B: the matrix of blocks a_ij B.
inline Matrix kronecker(const Matrix& a, const Matrix& b) {
    const Index r = rows(b), c = cols(b);
    return matrix(rows(a) * r, cols(a) * c,
                  [&](Index i, Index j) { return a(i / r, j / c) * b(i % r, j % c); });
}
// K_{p,q} [p q, p q], the permutation with K_{p,q} vec(A) = vec(Aᵀ) for every A [p, q].
inline Matrix commutation(Index p, Index q) {
    return matrix(p * q, p * q,
                  [&](Index to, Index from) { return to % q == from / p && to / q == from % p ? 1.0 : 0.0; });
}
// A⁽ᵖ⁾, Minka's vec-transpose of A [m p, n]: each column becomes a matrix of p rows, column by column, and
// these n matrices [p, m] are stacked: [n p, m].
inline Matrix vec_transpose(const Matrix& a, Index p) {
    return matrix(cols(a) * p, rows(a) / p, [&](Index i, Index j) { return a(j * p + i % p, i / p); });
}

// Value and gradient of ConcatenatedSoftmax's loss.
struct Result {
    double value = 0;  // l
    Matrix d_E, d_W;   // ∂l/∂E [V, H], ∂l/∂W [M H, C]
};

// The loss of ConcatenatedSoftmax, l = -Σ_n ln softmax(φ_n W)[y_n], and its gradient, in matrix form:
//
//     φ_n       = (I_M ⊗ E)ᵀ x_n                           x_n [M V, 1]: one-hot blocks, stacked
//     ∂l/∂W_c   = Σ_n δ_nc (I_M ⊗ E)ᵀ x_n                  δ_n = p_n - 1_{y_n}
//     (∂l/∂E)ᵀ  = Σ_n Σ_c δ_nc (K_{H,M}⁽ᴹ⁾)ᵀ ((W_c x_nᵀ K_{M,V})ᵀ)⁽ᴹ⁾
//
// Shapes   E [V, H];  W [M H, C];  X [N, M];  y [N].  Costs O(N C M² H V (M V + H)): for tests.
// Source   "Embedding derivative derivation"; vec-transpose: Minka 2000. Departure: the transpose stands
//          inside the vec-transpose, as otherwise the product is undefined; see docs/closed_form/kronecker.md.
inline Result value_and_gradient(const Matrix& E, const Matrix& W, ArrayView<const Token> X,
                                 ArrayView<const Token> y) {
    const Index V = rows(E), H = cols(E), C = cols(W), M = rows(W) / H, N = std::ssize(y);
    const Matrix lift = transposed(kronecker(identity(M), E));            // [M H, M V]
    const Matrix left = transposed(vec_transpose(commutation(H, M), M));  // [H, M² H]
    const Matrix commute = commutation(M, V);                             // [M V, M V]
    Result r{0, {}, zeros<double>(rows(W), C)};
    Matrix d_E_transposed = zeros<double>(H, V);
    for (Index n = 0; n < N; ++n) {
        const auto word = [&](Index m) { return X[n * M + m]; };
        const Token target = y[n];
        const Matrix x = matrix(M * V, 1, [&](Index i, Index) { return word(i / V) == i % V ? 1.0 : 0.0; });
        const Matrix phi = product(lift, x), z = product(transposed(phi), W);
        double largest = z(0, 0), sum = 0;  // shifted by the maximum: no exponential overflows and one is 1
        for (Index c = 1; c < C; ++c) largest = std::max(largest, z(0, c));
        for (Index c = 0; c < C; ++c) sum += std::exp(z(0, c) - largest);
        r.value += std::log(sum) + largest - z(0, target);
        for (Index c = 0; c < C; ++c) {
            const double delta = std::exp(z(0, c) - largest) / sum - (c == target ? 1 : 0);
            const Matrix W_c = matrix(M * H, 1, [&](Index i, Index) { return W(i, c); });
            for (Index i = 0; i < M * H; ++i) r.d_W(i, c) += delta * phi(i, 0);
            const Matrix bracket = transposed(product(product(W_c, transposed(x)), commute));  // [M V, M H]
            d_E_transposed += delta * product(left, vec_transpose(bracket, M));
        }
    }
    r.d_E = transposed(d_E_transposed);
    return r;
}

}  // namespace kronecker
