#include <cmath>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/subnormals.hpp>
#include <limits>
#include <type_traits>

#include "catch.hpp"
#include "memory.hpp"

using namespace isogloss;

namespace {

// float or double rounding, a few times over
template <class T> constexpr double rounding = 8 * static_cast<double>(std::numeric_limits<T>::epsilon());

}  // namespace

TEMPLATE_TEST_CASE("A mask is applied to every step alike", "[kernel][rows]", float, double) {
    using T = TestType;
    for (const Index time : {1, 4})
        for (const Index batch : {1, 3})
            for (const Index width : {1, 5, 16, 33}) {
                CAPTURE(time, batch, width);
                const Index rows = time * batch, n = rows * width, block = batch * width;
                const auto x = Memory<T>::random(n, 1, 1), mask = Memory<T>::random(block, 2, 2);
                Memory<T> product(n, 3), sum = Memory<T>::random(n, 1, 3), squared = sum;
                const Memory<T> start = sum;
                kernel::multiply_rows(rows, batch, width, x.in(), mask.in(), product.out());
                kernel::add_multiplied_rows<false>(rows, batch, width, x.in(), mask.in(), sum.out());
                kernel::add_multiplied_rows<true>(rows, batch, width, x.in(), mask.in(), squared.out());
                REQUIRE((product.written() && sum.written() && squared.written()));
                bool right = true;
                for (Index i = 0; i < n; ++i) {
                    const double m = mask[i % block];
                    right = right && product[i] == x[i] * mask[i % block];
                    right = right && std::abs(sum[i] - (start[i] + x[i] * m)) <= rounding<T> * 4;
                    right = right && std::abs(squared[i] - (start[i] + x[i] * m * m)) <= rounding<T> * 16;
                }
                REQUIRE(right);
            }
}

TEMPLATE_TEST_CASE("Rows are added and scaled", "[kernel][rows]", float, double) {
    using T = TestType;
    for (const Index n : lengths()) {
        const auto x = Memory<T>::random(n, n % 4, 1);
        auto y = Memory<T>::random(n, n % 3, 2), z = y;
        const auto start = y;
        kernel::add(n, x.in(), y.out());
        kernel::scale(n, T(-0.5), z.out());
        REQUIRE((y.written() && z.written()));
        bool right = true;
        for (Index i = 0; i < n; ++i) right = right && y[i] == start[i] + x[i] && z[i] == T(-0.5) * start[i];
        REQUIRE(right);
    }
}

TEMPLATE_TEST_CASE("Column sums are sums of columns, added to what is there", "[kernel][rows]", float,
                   double) {
    using T = TestType;
    for (const Index rows : {1, 31, 32, 33, 200})
        for (Index width = 1; width <= 70; width += rows > 33 ? 13 : 1) {
            CAPTURE(rows, width);
            const auto x = Memory<T>::random(rows * width, 1, 1);
            auto sums = Memory<T>::random(width, 3, 2);
            auto expected = sums;
            kernel::add_column_sums(rows, width, x.in(), sums.out());
            REQUIRE(sums.written());
            kernel::plain::add_column_sums(rows, width, x.in(), expected.in_record());
            for (Index j = 0; j < width; ++j)
                REQUIRE(std::abs(sums[j] - expected[j]) <= rounding<T> * double(rows));
        }
}

TEST_CASE("Long column sums in float stay accurate", "[kernel][rows]") {
    constexpr Index rows = 1000000;
    const std::vector<float> ones(rows, 0.1f);
    float sum = 0;
    kernel::add_column_sums(rows, 1, ones.data(), &sum);
    REQUIRE(sum == Approx(0.1f * double(rows)).epsilon(5e-4));  // one by one the error is 1e-2
}

TEMPLATE_TEST_CASE("The sum of squares is accurate and does not overflow", "[kernel][rows]", float, double) {
    using T = TestType;
    for (const Index n : lengths()) {
        const auto x = Memory<T>::random(n, n % 4, 1);
        REQUIRE(kernel::sum_of_squares(n, x.in()) ==
                Approx(kernel::plain::dot(n, x.in(), x.in())).epsilon(rounding<T> * 4));
        const auto y = Memory<T>::random(n, n % 3, 2);
        double size = 0;
        for (Index i = 0; i < n; ++i) size += std::abs(double(x[i]) * double(y[i]));
        REQUIRE(kernel::dot(n, x.in(), y.in()) ==
                Approx(kernel::plain::dot(n, x.in(), y.in())).margin(rounding<T> * 4 * size));
    }
    const std::vector<T> none;
    REQUIRE(kernel::sum_of_squares(0, none.data()) == 0);
    const std::vector<T> large(600, T(1e30));  // its square is no float
    REQUIRE(kernel::sum_of_squares(600, large.data()) == Approx(6e62));
    const std::vector<T> small(600, T(1e-25));  // its square is no float, or nearly 0
    REQUIRE(kernel::sum_of_squares(600, small.data()) == Approx(6e-48));
    if constexpr (std::is_same_v<T, float>) {
        const SubnormalsAreZero flush;  // so that the squares of most are 0
        std::vector<T> mixed(600, std::sqrt(std::numeric_limits<T>::min()) * T(0.9));
        mixed[3] *= 28;
        const double one = double(mixed[0]) * double(mixed[0]);
        REQUIRE(kernel::sum_of_squares(600, mixed.data()) / one == Approx(599 + 28 * 28.).epsilon(1e-5));
    }
    REQUIRE(kernel::dot(0, none.data(), none.data()) == 0);
    REQUIRE(kernel::dot(600, large.data(), large.data()) == Approx(6e62));
    for (const T odd : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()}) {
        std::vector<T> x(600, T(1));
        x[517] = odd;
        REQUIRE(!std::isfinite(kernel::sum_of_squares(600, x.data())));
    }
}

TEMPLATE_TEST_CASE("The first number that is not finite is found where it is", "[kernel][rows]", float,
                   double) {
    using T = TestType;
    const T odd = GENERATE(std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                           std::numeric_limits<T>::quiet_NaN());
    for (const Index n : lengths()) {
        auto x = Memory<T>::random(n, n % 4, 1, 1e30);
        REQUIRE(kernel::first_non_finite(n, x.in()) == n);
        for (const Index at : {Index{0}, n / 3, n - 1}) {
            CAPTURE(n, at);
            auto y = x;
            y[at] = odd;
            REQUIRE(kernel::first_non_finite(n, y.in()) == at);
            REQUIRE(kernel::plain::first_non_finite(n, y.in()) == at);
            y[n - 1] = odd;  // a second one changes nothing
            REQUIRE(kernel::first_non_finite(n, y.in()) == at);
        }
    }
    REQUIRE(kernel::first_non_finite<T>(0, nullptr) == 0);
    const std::vector<T> greatest(40, std::numeric_limits<T>::max());
    REQUIRE(kernel::first_non_finite(40, greatest.data()) == 40);
}

TEMPLATE_TEST_CASE("A row is brought to norm 1 where it has a direction, however short or long",
                   "[kernel][rows]", float, double) {
    using T = TestType;
    const T least = std::numeric_limits<T>::denorm_min(), most = std::numeric_limits<T>::max();
    for (const Index n : {1, 2, 15, 16, 17, 700})
        for (const T size : {T(3), T(1e-3), T(1e-15), T(1e-30), T(1e30), std::sqrt(most), 1 / std::sqrt(most),
                             least, most}) {
            CAPTURE(n, size);
            auto x = Memory<T>(n, n % 3);
            for (Index i = 0; i < n; ++i) x[i] = i % 2 ? size : -size;
            const double norm = kernel::normalise(n, x.out());
            REQUIRE(x.written());
            if (std::isinf(norm)) {  // of numbers that are nearly the largest
                CHECK((size == most && std::is_same_v<T, double>));
                continue;
            }
            CHECK(norm == Approx(double(size) * std::sqrt(double(n))).epsilon(rounding<T>));
            bool right = true;
            for (Index i = 0; i < n; ++i)
                right = right && std::abs(std::abs(x[i]) * std::sqrt(double(n)) - 1) <= rounding<T>;
            CHECK(right);
        }
    T zero[] = {0, 0, 0}, infinite[] = {1, std::numeric_limits<T>::infinity(), 2};
    CHECK(kernel::normalise(3, zero) == 0);
    CHECK(zero[1] == 0);
    CHECK(std::isinf(kernel::normalise(3, infinite)));
    CHECK(infinite[0] == 1);
    T none[] = {std::numeric_limits<T>::quiet_NaN()};
    CHECK(std::isnan(kernel::normalise(1, none)));
}

TEMPLATE_TEST_CASE("A mask drawn by blocks is that of its numbers one by one", "[kernel][rows]", float,
                   double) {
    const Random random(3, 8, 5);
    const double keep = GENERATE(0.3, 0.7, 1.);
    for (const Index first : {0, 1, 2, 3, 4, 1003})
        for (Index n = 0; n <= 11; ++n) {
            std::vector<TestType> mask(static_cast<std::size_t>(n) + 1, TestType(9)), expected(mask);
            kernel::draw_mask(random, first, n, keep, mask.data());
            kernel::plain::draw_mask(random, first, n, keep, expected.data());
            REQUIRE(mask == expected);  // and nothing behind it
        }
}
