#include <isogloss/kernel/few_rows.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/random.hpp>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

template <class T> std::vector<T> numbers(Index n, std::uint32_t stream) {
    const Random random(1, stream);
    std::vector<T> v(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<T>(random.normal(static_cast<Index>(i)));
    return v;
}

}  // namespace

TEMPLATE_TEST_CASE("Products of a few rows are BLAS's, whatever the shape", "[kernel][few_rows]", float,
                   double) {
    using T = TestType;
    using Few = kernel::FewRows<T>;
    const T beta = GENERATE(T(0), T(1), T(-0.5));
    for (const Index m : {1, 2, 7, 8, 9, 16, 33, 64})
        for (const auto& [n, k] :
             {std::pair<Index, Index>{1, 1}, {7, 3}, {64, 17}, {65, 130}, {100, 300}, {33, 513}}) {
            CAPTURE(m, n, k, beta);
            const auto a = numbers<T>(m * (k + 2), 1), b = numbers<T>(n * (k + 5) * 2, 2);
            auto c = numbers<T>(m * (n + 3), 3);
            if (beta == T(0)) c.assign(c.size(), std::numeric_limits<T>::quiet_NaN());
            const auto compare = [&](MatrixRef<const T> right, auto&& product) {
                auto expected = c, got = c;
                kernel::gemm_serial<T>(T(1), {a.data(), m, k, k + 2}, right, beta,
                                       {expected.data(), m, n, n + 3});
                product(MatrixRef<T>(got.data(), m, n, n + 3));
                for (Index i = 0; i < m; ++i)
                    for (Index j = 0; j < n + 3; ++j) {
                        const T x = got[std::size_t(i * (n + 3) + j)],
                                y = expected[std::size_t(i * (n + 3) + j)];
                        if (j >= n)
                            REQUIRE((x == y || (std::isnan(x) && std::isnan(y))));  // beyond C: untouched
                        else REQUIRE(double(x) == Approx(double(y)).margin(sizeof(T) == 4 ? 1e-3 : 1e-11));
                    }
            };
            const MatrixRef<const T> right(b.data(), k, n, n + 1), transposed(b.data(), n, k, k + 5);
            compare(right, [&](MatrixRef<T> out) {
                Few::product({a.data(), m, k, k + 2}, right, beta, out);
            });
            compare(t(transposed), [&](MatrixRef<T> out) {
                std::vector<T> packed(static_cast<std::size_t>(Few::size(m, k)) + 1, T(77));
                Few::pack_left({a.data(), m, k, k + 2}, packed.data());
                REQUIRE(packed.back() == T(77));
                Few::product_transposed(packed.data(), transposed, beta, out);
            });
        }
}

TEMPLATE_TEST_CASE("A square turned twice is itself, and sums go where they belong", "[kernel][transpose]",
                   float, double) {
    using T = TestType;
    for (const auto& [n, m] : {std::pair<Index, Index>{1, 1}, {8, 8}, {9, 17}, {32, 5}, {30, 40}}) {
        const auto from = numbers<T>(n * (m + 2), 4), before = numbers<T>(m * (n + 1), 5);
        for (const T beta : {T(0), T(1), T(2)}) {
            auto to = before;
            kernel::turn(n, m, from.data(), m + 2, beta, to.data(), n + 1);
            CAPTURE(n, m, beta);
            for (Index j = 0; j < m; ++j)
                for (Index i = 0; i < n; ++i)
                    REQUIRE(to[std::size_t(j * (n + 1) + i)] ==
                            from[std::size_t(i * (m + 2) + j)] + beta * before[std::size_t(j * (n + 1) + i)]);
        }
    }
}

TEST_CASE("A row of a product does not depend on the rows beside it", "[kernel][few_rows]") {
    using Few = kernel::FewRows<float>;
    constexpr Index n = 100, k = 300;
    const auto a = numbers<float>(64 * k, 1), b = numbers<float>(n * k, 2);
    const auto product = [&](Index m) {
        std::vector<float> c(std::size_t(m * n));
        Few::product({a.data(), m, k}, {b.data(), k, n}, 0.f, {c.data(), m, n});
        return c;
    };
    const auto all = product(64), few = product(3);
    REQUIRE(std::equal(few.begin(), few.end(), all.begin()));
}
