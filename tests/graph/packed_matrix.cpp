#include <isogloss/graph/packed_matrix.hpp>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE(
    "Products with a packed matrix are those of its precision, from a row, from 0 and added to C",
    "[graph][packed]", float, double) {
    using T = TestType;
    using Packed = graph::PackedMatrix<T>;
    const auto [precision, rounding] = GENERATE(table<Precision, double>(
        {{Precision::full, 0}, {Precision::bf16, 1. / 256}, {Precision::int8, 1. / 127}}));
    const Index m = GENERATE(1, 7, 600), k = GENERATE(1, 70, 900), n = GENERATE(1, 70);
    const bool transposed = GENERATE(false, true);
    CAPTURE(static_cast<int>(precision), m, k, n, transposed);
    REQUIRE(Packed::serves(precision, k) == (sizeof(T) == 4 || precision == Precision::full));
    if (!Packed::serves(precision, k)) return;
    const auto some = [](Index size, std::uint64_t seed) {
        const Numbers v = numbers(size, seed);
        return std::vector<T>(v.begin(), v.end());
    };
    const auto a = some(m * k, 1), b = some(k * n, 2), start = some(n, 3), sum = some(m * n, 4);
    const MatrixRef<const T> A(a.data(), m, k),
        B = transposed ? t(MatrixRef<const T>(b.data(), n, k)) : MatrixRef<const T>(b.data(), k, n);
    graph::Arena arena;
    const Index bytes = Packed::bytes(precision, k, n);
    Packed packed;
    REQUIRE_FALSE(packed);
    packed.pack(B, precision, arena.take<std::byte>(bytes));
    REQUIRE((packed && arena.guards_intact()));

    Index wrong = 0;
    const Index without = m / 3;
    std::vector<T> found(sum.size(), std::numeric_limits<T>::quiet_NaN()), added = sum, plain = found;
    packed.product(A, start.data(), {found.data(), m, n}, without);
    packed.product(A, nullptr, {plain.data(), m, n});
    packed.add_product(A, {added.data(), m, n});
    for (Index i = 0, e = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j, ++e) {
            const auto at = static_cast<std::size_t>(e);
            double exact = 0, size = 1;
            for (Index l = 0; l < k; ++l) {
                const double term = double(A(i, l)) * double(B(l, j));
                exact += term, size += std::abs(term);
            }
            // Rounding to 8 bits is relative to the largest number of a row or column.
            const double error = (4 * rounding + 8 * double(std::numeric_limits<T>::epsilon())) * size;
            const auto right = [&](T got, double begin) {
                return std::abs(double(got) - begin - exact) <= error;
            };
            if (!right(plain[at], 0)) ++wrong;
            if (!right(found[at], i < m - without ? double(start[std::size_t(j)]) : 0)) ++wrong;
            if (!right(added[at], double(sum[at]))) ++wrong;
        }
    REQUIRE(wrong == 0);
}
