#include <isogloss/kernel/packed.hpp>
#include <isogloss/random.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "tolerance.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("A packed matrix multiplies as the plain loops, whatever the shape", "[kernel][packed]",
                   float, double) {
    using T = TestType;
    using Packed = kernel::Packed<T>;
    const Random random(1, 1);
    for (const bool transposed : {false, true})
        for (const Index rows : {1, 2, 5, 6, 7, 13, 20, 33, 70})
            for (const auto& [k, n] : {std::pair<Index, Index>{1, 1},
                                       {3, 7},
                                       {17, 64},
                                       {16, 65},
                                       {300, 100},
                                       {513, 33},
                                       {200, 500}}) {
                std::vector<T> a(static_cast<std::size_t>(rows * (k + 2))),
                    b(static_cast<std::size_t>(k * n)), c(static_cast<std::size_t>(rows * (n + 3)));
                for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(random.normal(Index(i)));
                for (std::size_t i = 0; i < b.size(); ++i)
                    b[i] = static_cast<T>(random.normal(Index(i) + 100000));
                for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<T>(i);
                auto expected = c;
                const MatrixRef<const T> A(a.data(), rows, k, k + 2);
                const MatrixRef<const T> B =
                    transposed ? t(MatrixRef<const T>(b.data(), n, k)) : MatrixRef<const T>(b.data(), k, n);
                kernel::plain::gemm<T>(A, B, T(1), {expected.data(), rows, n, n + 3});
                std::vector<T> packed(static_cast<std::size_t>(Packed::size(k, n)) + 1, T(77));
                Packed::pack(B, packed.data());
                REQUIRE(packed.back() == T(77));
                Packed::add_product(A, packed.data(), {c.data(), rows, n, n + 3});
                CAPTURE(transposed, rows, k, n);
                for (std::size_t i = 0; i < c.size(); ++i)
                    REQUIRE(double(c[i]) == to_rounding<T>(double(expected[i]), 1e-3, 1e-9));
            }
}

TEMPLATE_TEST_CASE("A packed product does not depend on the number of threads or of rows",
                   "[kernel][packed][threads]", float, double) {
    using T = TestType;
    using Packed = kernel::Packed<T>;
    const Random random(1, 2);
    std::vector<T> a(40 * 200), b(200 * 800), packed(static_cast<std::size_t>(Packed::size(200, 800)));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(random.normal(Index(i)));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(random.normal(Index(i)));
    const auto product = [&](Index rows) {
        std::vector<T> c(40 * 800);
        Packed::pack(MatrixRef<const T>(b.data(), 200, 800), packed.data());
        Packed::add_product({a.data(), rows, 200}, packed.data(), {c.data(), rows, 800});
        return c;
    };
    const auto one = product(40), few = product(3);
    for (const int count : {2, 3, 5}) {
        threads(count);
        CHECK(product(40) == one);
    }
    threads(1);
    CHECK(std::equal(few.begin(), few.begin() + 3 * 800, one.begin()));
}

TEMPLATE_TEST_CASE("A product that starts at one row is that of copies of it, many rows or few",
                   "[kernel][packed]", float, double) {
    using T = TestType;
    using Packed = kernel::Packed<T>;
    const Random random(1, 3);
    const auto some = [&](Index size, Index at) {
        std::vector<T> v;
        for (Index i = 0; i < size; ++i) v.push_back(static_cast<T>(random.normal(at + i)));
        return v;
    };
    for (const Index rows : {1, 23, 24, 61})
        for (const auto& [k, n] : {std::pair<Index, Index>{5, 1}, {200, 700}, {401, 33}}) {
            const auto a = some(rows * k, 0), b = some(k * n, 100000), start = some(n, 500000);
            std::vector<T> packed(static_cast<std::size_t>(Packed::size(k, n))), expected;
            Packed::pack(MatrixRef<const T>(b.data(), k, n), packed.data());
            for (const Index without : {Index{0}, rows / 2})
                for (const T* from : {start.data(), static_cast<const T*>(nullptr)}) {
                    expected.assign(static_cast<std::size_t>(rows * n), T(0));
                    for (Index r = 0; from && r < rows - without; ++r)
                        std::copy_n(from, n, expected.data() + r * n);
                    Packed::add_product({a.data(), rows, k}, packed.data(), {expected.data(), rows, n});
                    std::vector<T> c(expected.size(), std::numeric_limits<T>::quiet_NaN());
                    Packed::product({a.data(), rows, k}, packed.data(), from, without, {c.data(), rows, n});
                    CAPTURE(rows, k, n, without, from != nullptr);
                    REQUIRE(c == expected);
                }
        }
}
