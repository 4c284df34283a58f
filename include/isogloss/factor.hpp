/// @file factor.hpp  Matrix factorisations through LAPACK: orthonormal bases, SVD, symmetric eigenvalues,
/// Schur form, linear systems. Included by lds/ and geometry/ only, as it costs a second of compile time and
/// needs LAPACK at link time.
#pragma once

#ifdef ISOGLOSS_NO_BLAS
#error \
    "isogloss/factor.hpp, of lds and of geometry's subspaces, needs LAPACK; found ISOGLOSS_NO_BLAS, expected a program without it (CMake: ISOGLOSS_BLAS=openblas)"
#endif

#include <algorithm>
#include <cmath>
#include <isogloss/array.hpp>
#include <isogloss/dense.hpp>
#include <isogloss/error.hpp>
#include <isogloss/kernel/rows.hpp>
#include <limits>
#include <utility>

// A macro of <sys/ioctl.h> has the name of a parameter in the LAPACK headers.
#pragma push_macro("NCC")
#undef NCC
#include <xtensor-blas/xblas.hpp>  // has the macro ASSERT of the next
#include <xtensor-blas/xlapack.hpp>
#pragma pop_macro("NCC")

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace dense {

namespace detail {

/// Throws UsageError unless the shape of a matrix fits, as `expected` says, and NumericError unless it is finite.
template <class T>
void require_sound(const Tensor<T, 2>& m, bool fits, const char* expected, const char* who) {
    if (!fits) throw UsageError(who, ": found a matrix [", rows(m), ", ", cols(m), "], expected ", expected);
    require_finite(who, "a matrix", std::ssize(m), m.data());
}

/// Runs call(work, length) of LAPACK with the workspace that it asks for. Throws NumericError if it fails.
template <class T, class Call> void with_workspace(const char* who, Call&& call) {
    T size = 0;
    call(&size, -1);
    Array<T> work(static_cast<Index>(size));
    if (call(work.data(), static_cast<int>(work.size())) != 0)
        throw NumericError(who, ": the iteration for eigenvalues or singular values did not converge");
}

/// x = Q R: Q [rows, cols] with orthonormal columns, R [cols, cols] upper triangular.
template <class T> struct Qr { Tensor<T, 2> Q, R; };

/// Thin QR of a matrix with at least as many rows as columns, which must be finite.
template <class T> Qr<T> thin_qr(const Tensor<T, 2>& x) {
    const auto m = static_cast<int>(rows(x)), n = static_cast<int>(cols(x));
    Tensor<T, 2> a = transposed(x), R = zeros<T>(n, n);  // row-major aᵀ is column-major a
    Array<T> tau(n);
    with_workspace<T>("QR", [&](T* work, int length) {
        return cxxlapack::geqrf<int>(m, n, a.data(), m, tau.data(), work, length);
    });
    for (Index i = 0; i < n; ++i)
        for (Index j = i; j < n; ++j) R(i, j) = a(j, i);
    with_workspace<T>("QR", [&](T* work, int length) {
        return cxxlapack::orgqr<int>(m, n, n, a.data(), m, tau.data(), work, length);
    });
    return {transposed(a), std::move(R)};
}

}  // namespace detail

/// m = U diag(s) Vᵀ with k = min(rows, cols): U [rows, k], s descending, V [cols, k].
template <class T> struct Svd {
    Tensor<T, 2> U;
    Tensor<T, 1> s;
    Tensor<T, 2> V;
};

namespace detail {

/// The thin SVD of a finite matrix that is not empty; `job`: 'S', or 'A' for a square one.
template <class T> Svd<T> svd(const Tensor<T, 2>& x, char job, const char* who) {
    const auto m = static_cast<int>(rows(x)), n = static_cast<int>(cols(x)), k = std::min(m, n);
    // Row-major aᵀ is column-major a: LAPACK leaves Uᵀ, and V.
    Tensor<T, 2> a = transposed(x), U = zeros<T>(k, m), V = zeros<T>(n, k);
    auto s = Tensor<T, 1>::from_shape({static_cast<std::size_t>(k)});
    Array<int> integers(8 * Index{k});
    with_workspace<T>(who, [&](T* work, int length) {
        return cxxlapack::gesdd<int>(job, m, n, a.data(), m, s.data(), U.data(), m, V.data(), k, work, length,
                                     integers.data());
    });
    return {transposed(U), std::move(s), std::move(V)};
}

}  // namespace detail

/// An orthonormal basis [rows, r] of the column space of x [rows, cols], r = the numerical rank: thin QR,
/// then the SVD of the small triangle to find the rank and drop null directions. A direction counts if its
/// singular value exceeds the largest one times min(rows, 16 √rows) times machine epsilon: rounding errors of a column
/// add up like its square root, and a bound by the rows alone would drop directions of tall tables in float.
///
/// Throws UsageError for an empty matrix or fewer rows than columns, NumericError for values that are not
/// finite or for a zero matrix.
template <class T> Tensor<T, 2> orthonormal_columns(MatrixRef<const T> x, const char* who) {
    const Index m = x.height(), n = x.width();  // x may be a transpose
    if (n < 1 || m < n || !x.is_valid())
        throw UsageError(who, ": found a matrix [", m, ", ", n,
                         "], expected at least one column, as many rows, and memory");
    auto a = zeros<T>(m, n);
    for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j) a.data()[i * n + j] = x(i, j);
    require_finite(who, "a matrix", std::ssize(a), a.data());
    T largest = 0;
    for (const T value : a) largest = std::max(largest, std::abs(value));
    if (!(largest > T(0))) throw NumericError(who, ": the matrix is zero and spans nothing");
    // Squares of very large or small numbers leave the range of T. By a power of two, which rounds nothing.
    const int exponent = std::ilogb(largest);
    for (T& value : a) value = std::scalbn(value, -exponent);
    const auto [Q, R] = detail::thin_qr(a);
    const auto [U, s, V] = detail::svd(R, 'A', who);
    const double rows = static_cast<double>(m);
    const T floor =
        s(0) * static_cast<T>(std::min(rows, 16 * std::sqrt(rows))) * std::numeric_limits<T>::epsilon();
    Index rank = 0;
    while (rank < std::ssize(s) && s(rank) > floor) ++rank;

    auto out = zeros<T>(m, rank);
    gemm<T>(T(1), ref(Q), ref(U).columns(0, rank), T(0), ref(out));
    return out;
}

/// Thin SVD of a matrix. Throws UsageError for an empty matrix, NumericError for values that are not finite.
template <class T> Svd<T> thin_svd(const Tensor<T, 2>& m, const char* who) {
    detail::require_sound(m, m.size() > 0, "one that is not empty", who);
    return detail::svd(m, 'S', who);
}

/// Singular values of a small matrix, in descending order. Throws as thin_svd.
template <class T> Tensor<T, 1> singular_values(const Tensor<T, 2>& m, const char* who = "singular_values") {
    return thin_svd(m, who).s;
}

/// m = V diag(values) Vᵀ; values ascend, column j of V belongs to values[j].
template <class T> struct SymmetricEigen {
    Array<T> values;
    Tensor<T, 2> vectors;
};

/// Eigenvalues and vectors of a symmetric matrix [n, n]; its lower triangle is read.
///
/// Throws UsageError for a matrix that is not square, NumericError for values that are not finite.
template <class T> SymmetricEigen<T> symmetric_eigen(const Tensor<T, 2>& m, const char* who) {
    detail::require_sound(m, rows(m) == cols(m), "a square one", who);
    const auto n = static_cast<int>(rows(m));
    SymmetricEigen<T> e{Array<T>(rows(m)), m};
    if (n == 0) return e;
    // Row-major lower is column-major upper; the eigenvectors are returned as rows.
    detail::with_workspace<T>(who, [&](T* work, int length) {
        return cxxlapack::syev<int>('V', 'U', n, e.vectors.data(), n, e.values.data(), work, length);
    });
    e.vectors = transposed(e.vectors);
    return e;
}

/// m = Z S Zᵀ, Z orthogonal, S upper triangular except for 2 × 2 blocks on the diagonal, one for each pair of
/// complex eigenvalues.
template <class T> struct Schur {
    Tensor<T, 2> S, Z;
    Array<T> real, imaginary;  ///< eigenvalues, in the order of the diagonal of S

    /// |λ|, in the same order.
    Array<T> moduli() const {
        Array<T> r;
        for (std::size_t i = 0; i < real.size(); ++i) r.push_back(std::hypot(real[i], imaginary[i]));
        return r;
    }
};

/// Real Schur form of a square matrix.
///
/// Throws UsageError for a matrix that is not square, NumericError for values that are not finite.
template <class T> Schur<T> schur(const Tensor<T, 2>& m, const char* who) {
    detail::require_sound(m, rows(m) == cols(m), "a square one", who);
    const auto n = static_cast<int>(rows(m));
    Schur<T> f{transposed(m), Tensor<T, 2>(m.shape()), Array<T>(rows(m)), Array<T>(rows(m))};
    if (n == 0) return f;
    int sorted = 0, unused = 0;
    detail::with_workspace<T>(who, [&](T* work, int length) {
        return cxxlapack::gees<int>('V', 'N', nullptr, n, f.S.data(), n, sorted, f.real.data(),
                                    f.imaginary.data(), f.Z.data(), n, work, length, &unused);
    });
    f.S = transposed(f.S);
    f.Z = transposed(f.Z);
    return f;
}

/// X with a X = b, by LU with pivoting: a [n, n], b [n, k].
///
/// Throws UsageError if the shapes do not match, NumericError if a is singular, or a or b not finite.
template <class T> Tensor<T, 2> solve(const Tensor<T, 2>& a, const Tensor<T, 2>& b, const char* who) {
    detail::require_sound(a, rows(a) == cols(a), "a square one", who);
    detail::require_sound(b, rows(b) == rows(a), "a row for each equation", who);
    const auto n = static_cast<int>(rows(a)), k = static_cast<int>(cols(b));
    Tensor<T, 2> lu = transposed(a), x = transposed(b);
    if (n == 0 || k == 0) return b;
    Array<int> pivots(n);
    if (cxxlapack::gesv<int>(n, k, lu.data(), n, pivots.data(), x.data(), n) != 0)
        throw NumericError(who, ": the matrix [", n, ", ", n, "] is singular");
    return transposed(x);
}

}}}  // namespace isogloss::dense
