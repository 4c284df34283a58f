#include <isogloss/kernel/gemm.hpp>
#include <isogloss/kernel/packed.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "memory.hpp"
#include "tolerance.hpp"

using namespace isogloss;

namespace {

template <class Number, class Set> struct On {
    using T = Number;
    using A = Set;
};
using Sets = std::tuple<On<float, kernel::Architecture>, On<double, kernel::Architecture>
#if defined(XTENSOR_USE_XSIMD) && defined(__AVX__)
                        ,
                        On<float, xsimd::sse2>, On<double, xsimd::sse2>
#endif
                        >;

struct Shape {
    Index m, k, n;
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("A product agrees with the plain loops, for every shape, orientation, alpha and beta",
                        "[kernel][gemm]", Sets) {
    using T = typename TestType::T;
    using Gemm = kernel::Gemm<T, typename TestType::A>;
    for (const auto& [m, k, n] : {Shape{1, 1, 1},
                                  {1, 30, 70},
                                  {70, 30, 1},
                                  {2, 500, 3},
                                  {7, 5, 1100},
                                  {130, 17, 33},
                                  {20, 800, 50},
                                  {200, 3, 9}})
        for (const bool a_transposed : {false, true})
            for (const bool b_transposed : {false, true})
                for (const T alpha : {T(1), T(-0.5)})
                    for (const T beta : {T(0), T(1), T(2)}) {
                        CAPTURE(m, k, n, a_transposed, b_transposed, alpha, beta);
                        const auto matrix = [](const Memory<T>& x, Index rows, Index cols, bool transposed) {
                            return transposed ? t(MatrixRef<const T>(x.in(), cols, rows, rows + 1))
                                              : MatrixRef<const T>(x.in(), rows, cols, cols + 1);
                        };
                        const auto x = Memory<T>::random((m + 1) * (k + 1), 0, 1),
                                   y = Memory<T>::random((k + 1) * (n + 1), 0, 2);
                        const auto A = matrix(x, m, k, a_transposed), B = matrix(y, k, n, b_transposed);
                        auto c = Memory<T>::random(m * (n + 2), 0, 3), expected = c;
                        auto scaled = y;
                        for (Index i = 0; i < (k + 1) * (n + 1); ++i) scaled.out()[i] *= alpha;
                        kernel::plain::gemm<T>(A, matrix(scaled, k, n, b_transposed), beta,
                                               {expected.out(), m, n, n + 2});
                        if (beta == T(0))
                            for (Index r = 0; r < m; ++r)
                                std::fill_n(c.out() + r * (n + 2), n, std::numeric_limits<T>::quiet_NaN());
                        Gemm::product(alpha, A, B, beta, {c.out(), m, n, n + 2});
                        for (Index i = 0; i < m * (n + 2); ++i)
                            REQUIRE(std::abs(c[i] - expected[i]) <=
                                    double(k + 4) * 4 * double(std::numeric_limits<T>::epsilon()));
                    }
}

TEMPLATE_LIST_TEST_CASE("A product has the same bits for every instruction set, part of C and orientation",
                        "[kernel][gemm]", Sets) {
    using T = typename TestType::T;
    using Gemm = kernel::Gemm<T, typename TestType::A>;
    using Plain = kernel::Gemm<T>;
    portable(true);  // else products are rounded twice without instructions for fused ones
    const Index m = 70, k = 1000, n = 90;
    const auto x = Memory<T>::random(m * k, 0, 1), y = Memory<T>::random(k * n, 0, 2);
    const MatrixRef<const T> A(x.in(), m, k), B(y.in(), k, n);
    std::vector<T> turned(std::size_t(k * n)), expected(std::size_t(m * n)), got(expected);
    for (Index i = 0; i < k; ++i)
        for (Index j = 0; j < n; ++j) turned[std::size_t(j * k + i)] = B(i, j);
    Plain::product(T(1), A, B, T(0), {expected.data(), m, n});
    Gemm::product(T(1), A, B, T(0), {got.data(), m, n});
    CHECK((got == expected));
    Gemm::product(T(1), A, t(MatrixRef<const T>(turned.data(), n, k)), T(0), {got.data(), m, n});
    CHECK((got == expected));
    std::fill(got.begin(), got.end(), T(0));
    for (Index j = 0; j < n; j += 37)
        Gemm::product(T(1), A, B.columns(j, std::min<Index>(37, n - j)), T(0),
                      MatrixRef<T>(got.data(), m, n).columns(j, std::min<Index>(37, n - j)));
    CHECK((got == expected));
    using Packed = kernel::Packed<T, typename TestType::A>;
    std::vector<T> packed(std::size_t(Packed::size(k, n)));
    Packed::pack(B, packed.data());
    Packed::product(A, packed.data(), nullptr, 0, {got.data(), m, n});
    CHECK((got == expected));
    portable(false);
}
