#include <cmath>
#include <isogloss/kernel/sparse_rows.hpp>
#include <limits>
#include <numeric>
#include <vector>

#include "catch.hpp"
#include "memory.hpp"

using namespace isogloss;

namespace {

template <class T> struct Kept {
    Memory<Token> column;
    Memory<T> value;
    kernel::Sampled s;

    explicit Kept(Index room) : column(room, 1, Token{-1}), value(room, 3) {}
    std::vector<T> dense(Index n) const {
        std::vector<T> row(std::size_t(n), T(0));
        for (Index k = 0; k < s.kept; ++k) row[std::size_t(column[k])] += value[k];
        return row;
    }
};

template <class T> Kept<T> sample(const Memory<T>& g, T threshold, double u, Index room) {
    Kept<T> k(room);
    k.s = kernel::sample(g.size(), g.in(), threshold, u, room, k.column.out(), k.value.out());
    REQUIRE((k.column.written() && k.value.written()));
    return k;
}

}  // namespace

TEMPLATE_TEST_CASE("A sampled row is that of the obvious way, to the bit", "[kernel][sparse_rows]", float,
                   double) {
    using T = TestType;
    for (const Index n : lengths())
        for (const double u : {0.0, 0.3, 1 - 0x1p-33}) {
            const auto g = Memory<T>::random(n, n % 4, 1);
            const Index room = n + kernel::sample_lanes;
            const auto fast = sample<T>(g, T(0.7), u, room);
            Kept<T> plain(room);
            plain.s =
                kernel::plain::sample(n, g.in(), T(0.7), u, room, plain.column.out(), plain.value.out());
            REQUIRE((plain.column.written() && plain.value.written()));
            REQUIRE(fast.s.kept == plain.s.kept);
            REQUIRE(fast.s.expected == Approx(plain.s.expected).epsilon(1e-5));  // sums in another order
            for (Index k = 0; k < fast.s.kept; ++k) {
                REQUIRE(fast.column[k] == plain.column[k]);
                REQUIRE(fast.value[k] == plain.value[k]);
            }
        }
}

TEMPLATE_TEST_CASE("Large entries stay, small ones become plus or minus the threshold, zeros stay zero",
                   "[kernel][sparse_rows]", float, double) {
    using T = TestType;
    const Index n = 1001;
    auto g = Memory<T>::random(n, 1, 5);
    for (Index i = 0; i < n; i += 3) g[i] = T(0);
    for (const double u : {0.01, 0.5, 0.99}) {
        const auto k = sample<T>(g, T(0.5), u, n + kernel::sample_lanes);
        const auto row = k.dense(n);
        Index large = 0;
        double small = 0;
        for (Index i = 0; i < n; ++i) {
            const T was = g[i], is = row[std::size_t(i)];
            if (std::abs(was) >= T(0.5)) {
                REQUIRE(is == was);
                ++large;
            } else {
                REQUIRE((is == T(0) || (was != T(0) && is == std::copysign(T(0.5), was))));
                small += std::abs(double(was));
            }
        }
        REQUIRE(std::abs(k.s.expected - (double(large) + small / 0.5)) < 1e-3);
        REQUIRE(std::abs(double(k.s.kept) - k.s.expected) < 16);
    }
}

TEMPLATE_TEST_CASE("The mean over all draws is the row", "[kernel][sparse_rows]", float, double) {
    using T = TestType;
    // An even grid of u integrates each entry's step function to within a step.
    const Index n = 77, draws = 4000;
    const auto g = Memory<T>::random(n, 0, 9, 0.1);
    std::vector<double> mean(std::size_t(n), 0.0);
    double variance = 0, mass = 0;
    for (Index d = 0; d < draws; ++d) {
        const auto row =
            sample<T>(g, T(0.25), (double(d) + 0.5) / double(draws), n + kernel::sample_lanes).dense(n);
        for (std::size_t i = 0; i < row.size(); ++i) {
            mean[i] += double(row[i]) / double(draws);
            variance += std::pow(double(row[i]) - double(g[Index(i)]), 2) / double(draws);
        }
    }
    double exact = 0;
    for (Index i = 0; i < n; ++i) {
        const double size = std::abs(double(g[i]));
        REQUIRE(std::abs(mean[std::size_t(i)] - double(g[i])) < 0.25 * 2 / double(draws));
        mass += size;
        exact += size < 0.25 ? size * (0.25 - size) : 0;
    }
    REQUIRE(std::abs(variance - exact) < 1e-3 * exact);
    REQUIRE(exact < 0.25 * mass);
}

TEMPLATE_TEST_CASE("A row that does not fit its room is given up, and NaN is not lost",
                   "[kernel][sparse_rows]", float, double) {
    using T = TestType;
    Memory<T> g(100, 0, T(1));
    REQUIRE(std::isinf(sample<T>(g, T(0.5), 0.5, 99).s.expected));
    REQUIRE(std::isinf(sample<T>(g, T(0.5), 0.5, 1).s.expected));
    REQUIRE(sample<T>(g, T(0.5), 0.5, 112).s.kept == 100);
    for (Index i = 0; i < 100; ++i) g[i] = i == 37 ? std::numeric_limits<T>::quiet_NaN() : T(0);
    const auto k = sample<T>(g, T(0.5), 0.5, 116);
    REQUIRE(k.s.kept == 1);
    REQUIRE(k.column[0] == 37);
    REQUIRE(std::isnan(k.value[0]));
}

TEMPLATE_TEST_CASE("Weighted rows are added up", "[kernel][sparse_rows]", float, double) {
    using T = TestType;
    for (const Index n : lengths())
        for (const Index count : {0, 1, 7}) {
            const Index stride = n + 3;
            const auto x = Memory<T>::random(20 * stride, n % 4, 1), w = Memory<T>::random(count, 1, 2);
            Memory<Token> index(count, 0);
            for (Index k = 0; k < count; ++k) index[k] = static_cast<Token>((k * 7 + 3) % 20);
            auto fast = Memory<T>::random(n, n % 3, 3), plain = fast;
            kernel::add_weighted_rows(n, count, index.in(), w.in(), x.in(), stride, fast.out());
            kernel::plain::add_weighted_rows(n, count, index.in(), w.in(), x.in(), stride, plain.out());
            REQUIRE((fast.written() && plain.written()));
            for (Index j = 0; j < n; ++j)
                REQUIRE(std::abs(double(fast[j]) - double(plain[j])) <=
                        32 * double(std::numeric_limits<T>::epsilon()));
        }
}
