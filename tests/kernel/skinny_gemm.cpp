#include <isogloss/kernel/skinny_gemm.hpp>
#include <isogloss/random.hpp>
#include <vector>

#include "catch.hpp"
#include "tolerance.hpp"

using namespace isogloss;

namespace {

template <class T> std::vector<T> numbers(Index n, std::uint32_t stream) {
    const Random random(1, stream);
    std::vector<T> v(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<T>(random.normal(static_cast<Index>(i)));
    return v;
}

}  // namespace

TEMPLATE_TEST_CASE("Products of a few rows are those of the plain loops, whatever the shape",
                   "[kernel][skinny_gemm]", float, double) {
    using T = TestType;
    using Skinny = kernel::SkinnyGemm<T>;
    const T beta = GENERATE(T(0), T(1), T(-0.5));
    for (const Index m : {1, 2, 7, 8, 9, 16, 33, 64})
        for (const auto& [columns, inner] :
             {std::pair<Index, Index>{1, 1}, {7, 3}, {64, 17}, {65, 130}, {100, 300}, {33, 513}}) {
            const Index n = columns, k = inner;
            CAPTURE(m, n, k, beta);
            const auto a = numbers<T>(m * (k + 2), 1), b = numbers<T>(n * (k + 5) * 2, 2);
            auto c = numbers<T>(m * (n + 3), 3);
            if (beta == T(0)) c.assign(c.size(), std::numeric_limits<T>::quiet_NaN());
            const auto compare = [&](MatrixRef<const T> right, auto&& product) {
                auto expected = c, got = c;
                kernel::plain::gemm<T>({a.data(), m, k, k + 2}, right, beta, {expected.data(), m, n, n + 3});
                product(MatrixRef<T>(got.data(), m, n, n + 3));
                for (Index i = 0; i < m; ++i)
                    for (Index j = 0; j < n + 3; ++j) {
                        const T x = got[std::size_t(i * (n + 3) + j)],
                                y = expected[std::size_t(i * (n + 3) + j)];
                        if (j >= n)
                            REQUIRE((x == y || (std::isnan(x) && std::isnan(y))));  // beyond C: untouched
                        else REQUIRE(double(x) == to_rounding<T>(double(y), 1e-3, 1e-11));
                    }
            };
            const MatrixRef<const T> right(b.data(), k, n, n + 1), transposed(b.data(), n, k, k + 5);
            compare(right, [&](MatrixRef<T> out) {
                Skinny::product({a.data(), m, k, k + 2}, right, beta, out);
            });
            compare(t(transposed), [&](MatrixRef<T> out) {
                std::vector<T> packed(static_cast<std::size_t>(Skinny::size(m, k)) + 1, T(77));
                Skinny::pack_left({a.data(), m, k, k + 2}, packed.data());
                REQUIRE(packed.back() == T(77));
                Skinny::product_transposed(packed.data(), transposed, beta, out);
            });
        }
}

TEST_CASE("A row of a product does not depend on the rows beside it", "[kernel][skinny_gemm]") {
    using Skinny = kernel::SkinnyGemm<float>;
    constexpr Index n = 100, k = 300;
    const auto a = numbers<float>(64 * k, 1), b = numbers<float>(n * k, 2);
    const auto product = [&](Index m) {
        std::vector<float> c(std::size_t(m * n));
        Skinny::product({a.data(), m, k}, {b.data(), k, n}, 0.f, {c.data(), m, n});
        return c;
    };
    const auto all = product(64), few = product(3);
    REQUIRE(std::equal(few.begin(), few.end(), all.begin()));
}
