/// @file lds/dense.hpp  The two kinds of dense matrix of a linear dynamical system, and operations on them.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/factor.hpp>

/// Linear dynamical systems for text.
namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

using dense::cols, dense::identity, dense::product, dense::product_t, dense::ref, dense::rows;
using dense::schur, dense::solve, dense::symmetric_eigen, dense::thin_svd, dense::transposed, dense::zeros;

/// h × h: small, in double.
using SmallMatrix = dense::Matrix;
/// V × h: tall, in the scalar type of the model.
template <class T> using TallMatrix = Tensor<T, 2>;

/// (m + mᵀ) / 2.
inline SmallMatrix symmetrised(const SmallMatrix& m) {
    const SmallMatrix other = transposed(m);
    return 0.5 * (m + other);
}

/// Σ a_ij b_ij = tr(a bᵀ).
inline double inner(const SmallMatrix& a, const SmallMatrix& b) {
    return kernel::plain::dot(std::ssize(a), a.data(), b.data());
}

namespace detail {

/// Frobenius norm.
inline double frobenius(const SmallMatrix& m) { return std::sqrt(inner(m, m)); }

}  // namespace detail

/// a^{-1}.
inline SmallMatrix inverse(const SmallMatrix& a, const char* who) { return solve(a, identity(rows(a)), who); }

/// m^power of a symmetric positive definite m from its eigenvalues and vectors, with eigenvalues below `floor`
/// times the largest set to that value. Throws NumericError if no eigenvalue is positive.
inline SmallMatrix symmetric_power(const dense::SymmetricEigen<double>& e, double power, const char* who,
                                   double floor = 1e-12) {
    const double least = e.values.empty() ? 0 : floor * e.values.back();
    if (!e.values.empty() && !(e.values.back() > 0))
        throw NumericError(who, ": the matrix has no positive eigenvalue; its largest is ", e.values.back());
    SmallMatrix scaled = e.vectors;
    const std::size_t n = e.values.size();
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) scaled(i, j) *= std::pow(std::max(e.values[j], least), power);
    return product_t(scaled, e.vectors);
}
/// The same from m.
inline SmallMatrix symmetric_power(const SmallMatrix& m, double power, const char* who,
                                   double floor = 1e-12) {
    return symmetric_power(symmetric_eigen<double>(m, who), power, who, floor);
}

/// Largest modulus of an eigenvalue.
inline double spectral_radius(const SmallMatrix& a, const char* who) {
    double r = 0;
    for (const double modulus : schur<double>(a, who).moduli()) r = std::max(r, modulus);
    return r;
}

/// a with every eigenvalue of modulus above `radius` scaled down to it: diagonal blocks of its Schur form are
/// multiplied by radius / |λ|, which is robust to nearly parallel eigenvectors.
inline SmallMatrix with_radius(const SmallMatrix& a, double radius, const char* who) {
    auto f = schur<double>(a, who);
    const auto moduli = f.moduli();
    const std::size_t n = moduli.size();
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
        if (moduli[i] <= radius) continue;
        any = true;
        for (std::size_t j = 0; j < n; ++j)  // the diagonal entry, and the other entries of a 2 × 2 block
            if (j == i ||
                (f.imaginary[i] != 0 && f.imaginary[j] == -f.imaginary[i] && f.real[j] == f.real[i] &&
                 (j + 1 == i || i + 1 == j) && f.S(std::max(i, j), std::min(i, j)) != 0))
                f.S(i, j) *= radius / moduli[i];
    }
    return any ? product(f.Z, product_t(f.S, f.Z)) : a;
}

/// xᵀ y of tall matrices [V, a], [V, b], summed in double over blocks of rows.
template <class T> SmallMatrix inner_products(MatrixRef<const T> x, MatrixRef<const T> y) {
    constexpr Index block = 1024;  // rows summed in T before the sum is added in double
    auto sum = zeros<double>(x.cols, y.cols);
    if constexpr (std::is_same_v<T, double>) {
        gemm<double>(1, t(x), y, 0, ref(sum));
    } else {
        auto part = zeros<T>(x.cols, y.cols);
        for (Index i = 0; i < x.rows; i += block) {
            const Index n = std::min(block, x.rows - i);
            gemm<T>(T(1), t(x.rows_from(i, n)), y.rows_from(i, n), T(0), ref(part));
            for (std::size_t k = 0; k < sum.size(); ++k) sum.data()[k] += double(part.data()[k]);
        }
    }
    return sum;
}
/// The same for tensors.
template <class T> SmallMatrix inner_products(const TallMatrix<T>& x, const TallMatrix<T>& y) {
    return inner_products<T>(ref(x), ref(y));
}

/// out += alpha x m, out and x tall, m small.
template <class T>
void add_product(double alpha, MatrixRef<const T> x, const SmallMatrix& m, MatrixRef<T> out) {
    const Tensor<T, 2> narrow = m;
    gemm<T>(static_cast<T>(alpha), x, ref(narrow), T(1), out);
}

/// x m.
template <class T> TallMatrix<T> times(const TallMatrix<T>& x, const SmallMatrix& m) {
    TallMatrix<T> out({x.shape()[0], m.shape()[1]});
    const Tensor<T, 2> narrow = m;
    gemm<T>(T(1), ref(x), ref(narrow), T(0), ref(out));
    return out;
}

namespace detail {

/// Makes the columns of x [V, l] orthonormal and returns R [kept, l] with x = Q R; x becomes Q [V, kept].
/// Directions whose singular value is below `floor` times the largest are dropped. Uses the eigenvalues of
/// xᵀx, twice, so that the work is matrix products; valid for condition numbers up to about 1e6 in double.
///
/// Throws NumericError for a matrix that is zero or not finite.
template <class T> SmallMatrix orthonormalise(TallMatrix<T>& x, const char* who, double floor = 1e-7) {
    SmallMatrix R = identity(cols(x));
    if constexpr (std::is_same_v<T, float>) floor = std::max(floor, 1e-5);
    for (int pass = 0; pass < 2; ++pass) {
        const auto e = symmetric_eigen<double>(inner_products(x, x), who);
        const Index n = std::ssize(e.values);
        if (n == 0 || !(e.values.back() > 0)) throw NumericError(who, ": the matrix is zero");
        Index first = 0;
        while (e.values[first] <= floor * floor * e.values.back()) ++first;
        auto down = zeros<double>(n, n - first), up = zeros<double>(n - first, n);
        for (Index j = first; j < n; ++j) {
            const Index to = n - 1 - j;  // descending
            const double s = std::sqrt(e.values[j]);
            for (Index i = 0; i < n; ++i) {
                down(i, to) = e.vectors(i, j) / s;
                up(to, i) = e.vectors(i, j) * s;
            }
        }
        x = times(x, down);
        R = product(up, R);
    }
    return R;
}

}  // namespace detail

}}}  // namespace isogloss::lds
