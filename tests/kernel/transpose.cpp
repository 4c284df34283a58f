#include <isogloss/kernel/transpose.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "memory.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("A square is transposed in registers, or its transpose added", "[kernel][transpose]",
                   float, double) {
    using T = TestType;
    using Square = kernel::Square<T>;
    constexpr Index side = Square::side, apart = side + 3, n = (side - 1) * apart + side;
    STATIC_REQUIRE(side * sizeof(T) == 32);
    const auto from = Memory<T>::random(n, 1, 1), start = Memory<T>::random(n, 2, 2);
    for (const bool add : {false, true}) {
        auto to = start;
        Square::transpose(from.in(), apart, add, to.out(), apart);
        REQUIRE(to.written());
        for (Index i = 0; i < n; ++i) {
            const Index row = i / apart, column = i % apart;
            const T moved = column < side ? from[column * apart + row] : T(0);
            CAPTURE(add, row, column);
            REQUIRE(to[i] == (column >= side ? start[i] : add ? moved + start[i] : moved));
        }
    }
}

TEMPLATE_TEST_CASE("A matrix is packed transposed as by the plain loops, zeros included",
                   "[kernel][transpose]", float, double) {
    using T = TestType;
    for (const Index k : {1, 3, 4, 7, 8, 9, 16, 33})
        for (const Index columns : {1, 4, 5, 8, 15, 17, 32})
            for (const Index zeros : {0, 1, 9}) {
                const Index padded = columns + zeros, stride = k + 2;
                CAPTURE(k, columns, zeros);
                const auto from = Memory<T>::random((columns - 1) * stride + k, 3, 1);
                Memory<T> to(k * padded, 1, T(7)), expected = to;
                kernel::pack_transposed(k, columns, padded, from.in(), stride, to.out());
                kernel::plain::pack_transposed(k, columns, padded, from.in(), stride, expected.out());
                REQUIRE((to.written() && expected.written()));
                REQUIRE(to == expected);
            }
}

TEMPLATE_TEST_CASE("A transpose is added to a multiple of what is there, or overwrites it",
                   "[kernel][transpose]", float, double) {
    using T = TestType;
    for (const auto& [n, m] : {std::pair<Index, Index>{1, 1}, {8, 8}, {9, 17}, {32, 5}, {30, 40}})
        for (const T beta : {T(0), T(1), T(2), T(-0.5)}) {
            CAPTURE(n, m, beta);
            const auto from = Memory<T>::random((n - 1) * (m + 2) + m, 1, 4);
            auto to = Memory<T>::random((m - 1) * (n + 1) + n, 3, 5);
            if (beta == T(0))  // overwritten whatever is there
                for (Index j = 0; j < m; ++j)
                    for (Index i = 0; i < n; ++i) to[j * (n + 1) + i] = std::numeric_limits<T>::quiet_NaN();
            auto expected = to;
            kernel::transpose_add(n, m, from.in(), m + 2, beta, to.out(), n + 1);
            kernel::plain::transpose_add(n, m, from.in(), m + 2, beta, expected.out(), n + 1);
            REQUIRE((to.written() && expected.written()));
            REQUIRE(to == expected);  // between the rows too
        }
}
