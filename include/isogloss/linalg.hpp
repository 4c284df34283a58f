/// @file linalg.hpp  Matrix products: shape-checked, in place, without copies, through BLAS or the library's own.
///
/// With ISOGLOSS_NO_BLAS defined in every file of a program it needs no BLAS, and cannot include what calls LAPACK (factor.hpp).
#pragma once

#ifndef ISOGLOSS_NO_BLAS
#include <xflens/cxxblas/drivers/cblas.h>
#endif

#include <algorithm>
#include <chrono>
#include <isogloss/error.hpp>
#include <isogloss/kernel/bf16_gemm.hpp>
#include <isogloss/kernel/gemm.hpp>
#include <isogloss/kernel/skinny_gemm.hpp>
#include <isogloss/matrix_ref.hpp>
#include <isogloss/precision.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/tensor.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <type_traits>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace detail {

#ifdef ISOGLOSS_NO_BLAS
template <class T>
void gemm_serial(T alpha, MatrixRef<const T> a, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
    kernel::Gemm<T>::product(alpha, a, b, beta, c);
}
#else
inline CBLAS_TRANSPOSE blas_transpose(bool t) { return t ? CblasTrans : CblasNoTrans; }

/// C = alpha A B + beta C on one thread, by the library's own products if portable(), else by BLAS, where a single row
/// or column uses the matrix-vector routine, which reads the matrix once and packs nothing.
template <class T>
void gemm_serial(T alpha, MatrixRef<const T> a, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
    if (portable()) return kernel::Gemm<T>::product(alpha, a, b, beta, c);
    constexpr auto choose = [](auto in_float, auto in_double) {
        if constexpr (std::is_same_v<T, float>) return in_float;
        else return in_double;
    };
    constexpr auto gemv = choose(&cblas_sgemv, &cblas_dgemv);
    constexpr auto gemm = choose(&cblas_sgemm, &cblas_dgemm);
    const Index m = c.rows, n = c.cols, k = a.width();
    if (m == 1) {  // c' = B' a'
        const Index step = a.transposed ? a.stride : 1;
        gemv(CblasRowMajor, blas_transpose(!b.transposed), int(b.rows), int(b.cols), alpha, b.data,
             int(b.stride), a.data, int(step), beta, c.data, 1);
    } else if (n == 1) {
        const Index step = b.transposed ? 1 : b.stride;
        gemv(CblasRowMajor, blas_transpose(a.transposed), int(a.rows), int(a.cols), alpha, a.data,
             int(a.stride), b.data, int(step), beta, c.data, int(c.stride));
    } else {
        gemm(CblasRowMajor, blas_transpose(a.transposed), blas_transpose(b.transposed), int(m), int(n),
             int(k), alpha, a.data, int(a.stride), b.data, int(b.stride), beta, c.data, int(c.stride));
    }
}

#endif

/// The same, but products of few rows by kernels for these.
template <class T>
void multiply(T alpha, MatrixRef<const T> a, MatrixRef<const T> b, T beta, MatrixRef<T> c) {
    using Skinny = kernel::SkinnyGemm<T>;
    if (Skinny::Micro::wide && !portable() && alpha == T(1) && c.rows > 1 && c.rows <= Skinny::most(c.cols) &&
        c.cols >= Skinny::Micro::NR && !a.transposed && !b.transposed)
        Skinny::product(a, b, beta, c);
    else gemm_serial<T>(alpha, a, b, beta, c);
}

/// Splits a product along the longer side of C into at most `most` parts, shared by threads(), and calls
/// f(A, B, C, piece) for each.
template <class T, class F>
void cut(MatrixRef<const T> a, MatrixRef<const T> b, MatrixRef<T> c, F&& f, Index most = most_threads) {
    constexpr double worth_cutting = 4e6;  // multiply-adds
    const Index m = c.rows, n = c.cols;
    if (threads() == 1 || std::max(m, n) == 1 || double(m) * double(n) * double(a.width()) < worth_cutting)
        return f(a, b, c, Index{0});
    // A last piece of one row or column joins the one before: its sums would have another order, see kernel::Gemm.
    if (n >= m) {
        parallel(n - 1, 64, most, [&](Index first, Index last, Index piece) {
            last += last == n - 1;
            f(a, b.part(0, b.height(), first, last - first), c.columns(first, last - first), piece);
        });
    } else {
        parallel(m - 1, 16, most, [&](Index first, Index last, Index piece) {
            last += last == m - 1;
            f(a.part(first, last - first, 0, a.width()), b, c.rows_from(first, last - first), piece);
        });
    }
}

/// Memory for packing in bfloat16 products by `pieces` threads. It belongs to the calling thread, which allocates
/// it once and keeps it.
inline kernel::Bf16* bf16_memory(Index pieces) {
    struct alignas(64) Piece {
        kernel::Bf16 numbers[kernel::Bf16Gemm::workspace];
    };
    auto& memory = of_this_thread<std::vector<Piece>>();
    if (std::ssize(memory) < pieces) {
        memory = {};
        within_memory("product in bfloat16", pieces * Index{sizeof(Piece)},
                      [&] { memory.resize(static_cast<std::size_t>(pieces)); });
    }
    return memory.front().numbers;
}

/// Checks the arguments of a product and throws as gemm does.
template <class T> void require_product(MatrixRef<const T> a, MatrixRef<const T> b, MatrixRef<T> c) {
    const auto valid = [](const auto& matrix) {
        constexpr Index limit = std::numeric_limits<int>::max();
        return matrix.is_valid() && matrix.rows <= limit && matrix.stride <= limit;
    };
    if (c.transposed || a.width() != b.height() || c.rows != a.height() || c.cols != b.width() || !valid(a) ||
        !valid(b) || !valid(c))
        throw UsageError("gemm: found [", a.height(), ", ", a.width(), "] times [", b.height(), ", ",
                         b.width(), "] into [", c.height(), ", ", c.width(),
                         "], expected shapes that agree, C not transposed, ",
                         "and memory of rows that do not overlap, with sides and strides below 2^31");
}

}  // namespace detail

/// C = alpha A B + beta C for float or double, A [m, k], B [k, n], C [m, n]; C is overwritten when beta
/// is 0, NaN included. Large products are split over threads() along the longer side of C.
///
/// Throws UsageError if the shapes do not agree, C is transposed, a matrix has a negative size, a stride below its
/// row length or elements but no memory, or a side or stride exceeds the BLAS integer range (2³¹ - 1).
template <class T> void gemm(T alpha, std::type_identity_t<MatrixRef<const T>> a,
                             std::type_identity_t<MatrixRef<const T>> b, T beta,
                             std::type_identity_t<MatrixRef<T>> c) {
    const Index m = a.height(), k = a.width(), n = b.width();
    detail::require_product<T>(a, b, c);
    if (m == 0 || n == 0) return;
    if (k == 0) {  // BLAS's gemv leaves C unchanged
        for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < n; ++j) c.row(i)[j] = beta == T(0) ? T(0) : beta * c.row(i)[j];
        return;
    }
    detail::cut<T>(a, b, c, [&](auto left, auto right, auto part, Index) {
        detail::multiply<T>(alpha, left, right, beta, part);
    });
}

/// C = A B + beta C in the given precision, Precision::full or bf16; shapes and errors as for gemm. A product of a
/// single row, column or term is always in full precision: memory traffic bounds it. In bfloat16 the calling
/// thread allocates memory on first use, see GraphOptions::precision; do not call it inside a parallel region.
template <class T> void product(Precision precision, std::type_identity_t<MatrixRef<const T>> a,
                                std::type_identity_t<MatrixRef<const T>> b, T beta,
                                std::type_identity_t<MatrixRef<T>> c) {
    if constexpr (std::is_same_v<T, float>)
        if (precision == Precision::bf16 && c.rows > 1 && c.cols > 1 && a.width() > 1) {
            detail::require_product<T>(a, b, c);
            const Index pieces = threads();  // another thread may change the number meanwhile
            kernel::Bf16* const memory = detail::bf16_memory(pieces);
            detail::cut<T>(
                a, b, c,
                [&](auto left, auto right, auto part, Index piece) {
                    kernel::Bf16Gemm::product(left, right, beta, part,
                                              memory + piece * kernel::Bf16Gemm::workspace);
                },
                pieces);
            return;
        }
    gemm<T>(T(1), a, b, beta, c);
}

/// What Precision::automatic means in this process: bf16 if its products on one thread take less than 0.9 of the time
/// of those of BLAS in T; else full. Measured at the first call, in 10 ms where the processor multiplies in bfloat16:
/// the shortest of 15 runs each, in turns, which other processes on the same core seldom disturb all. After two runs
/// where bf16 takes more than three times as long, as emulated, the answer is full.
template <class T> Precision fastest_precision() {
    if constexpr (std::is_same_v<T, float>) {
        static const Precision fastest = [] {
            constexpr Index m = 256, k = 256, n = 512;
            const std::vector<float> a(m * k, 0.5f), b(k * n, 0.25f);
            std::vector<float> c(m * n);
            const MatrixRef<const float> A(a.data(), m, k), B(b.data(), k, n);
            const MatrixRef<float> C(c.data(), m, n);
            kernel::Bf16* const memory = detail::bf16_memory(1);
            const auto seconds = [](auto&& run) {
                const auto start = std::chrono::steady_clock::now();
                run();
                return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            };
            const BlasOnOneThread blas;
            double bf16 = 1, full = 1;
            for (int round = 0; round < 15; ++round) {
                bf16 = std::min(bf16, seconds([&] { kernel::Bf16Gemm::product(A, B, 0.f, C, memory); }));
                full = std::min(full, seconds([&] { detail::multiply<float>(1.f, A, B, 0.f, C); }));
                if (round == 1 && bf16 > 3 * full) break;
            }
            return bf16 < 0.9 * full ? Precision::bf16 : Precision::full;
        }();
        return fastest;
    }
    return Precision::full;
}

}}  // namespace isogloss
