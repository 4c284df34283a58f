#include <cmath>
#include <isogloss/kernel/softmax.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "memory.hpp"
#include "tolerance.hpp"

using namespace isogloss;

namespace {

// Relative error of a sum of exponentials, beyond what the argument's own rounding costs.
template <class T> constexpr double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-13;

template <class T> double log_sum_exp(Index n, const T* z, double scale = 1) {
    const T m = kernel::row_max(n, z);
    return scale * double(m) +
           std::log(kernel::exp_sum(n, z, m, static_cast<T>(scale), static_cast<T*>(nullptr)));
}

}  // namespace

TEMPLATE_TEST_CASE("The maximum of a row is found wherever it is", "[kernel][softmax]", float, double) {
    using T = TestType;
    for (const Index n : lengths()) {
        auto z = Memory<T>::random(n, n % 4, 1);
        for (Index i = 0; i < n; ++i) z[i] = T(-5) - std::abs(z[i]);  // a tail filled with zeros would show
        for (const Index at : {Index{0}, n / 2, n - 1}) {
            auto y = z;
            y[at] = T(-4.5);
            REQUIRE(kernel::row_max(n, y.in()) == T(-4.5));
        }
    }
}

TEMPLATE_TEST_CASE("The exponential of lanes is that of numbers, to its limits and beyond",
                   "[kernel][softmax]", float, double) {
    using T = TestType;
    using L = kernel::Lanes<T>;
    const auto lane = [](T x) {
        std::vector<T> in(64, x), out(64);
        const kernel::Full<T, L> group{0};
        group.store(out.data(), kernel::exp_lanes(group.load(in.data())));
        return out[0];
    };
    double worst = 0;
    for (int i = -8600; i <= 8800; ++i) {
        const T x = static_cast<T>(i * 0.01 + 0.003);
        const double exact = std::exp(static_cast<double>(x));
        worst = worse(worst, std::abs(double(lane(x)) - exact) / exact);
    }
    REQUIRE(worst < 4 * double(std::numeric_limits<T>::epsilon()));
    REQUIRE(lane(T(0)) == T(1));
    REQUIRE(lane(T(-1e30)) == T(0));
    REQUIRE(lane(-std::numeric_limits<T>::infinity()) == T(0));
    REQUIRE(lane(std::numeric_limits<T>::infinity()) == std::numeric_limits<T>::infinity());
    REQUIRE(std::isnan(lane(std::numeric_limits<T>::quiet_NaN())));
}

TEMPLATE_TEST_CASE("Exponentials and their sum agree with the plain form", "[kernel][softmax]", float,
                   double) {
    using T = TestType;
    const double scale = GENERATE(1., 0.05);
    for (const Index n : lengths()) {
        CAPTURE(n, scale);
        const auto z = Memory<T>::random(n, n % 4, 1, 3);
        const T m = kernel::row_max(n, z.in());
        Memory<T> e(n, (n + 1) % 4), in_place = z;
        const double sum = kernel::exp_sum(n, z.in(), m, static_cast<T>(scale), e.out());
        REQUIRE(e.written());
        T* place = in_place.out();
        REQUIRE(kernel::exp_sum<T>(n, place, m, static_cast<T>(scale), place) == sum);
        REQUIRE(in_place.written());
        REQUIRE(kernel::exp_sum(n, z.in(), m, static_cast<T>(scale), static_cast<T*>(nullptr)) == sum);
        REQUIRE(log_sum_exp(n, z.in(), scale) ==
                Approx(kernel::plain::log_sum_exp(n, z.in(), scale)).epsilon(tolerance<T>));
        bool right = true;
        for (Index i = 0; i < n; ++i) {
            const double expected = std::exp(scale * (double(z[i]) - double(m)));
            right = right && std::abs(e[i] - expected) <= tolerance<T> * expected && e[i] == in_place[i];
        }
        REQUIRE(right);
    }
}

TEMPLATE_TEST_CASE("Softmax of a row agrees with the plain form at any length", "[kernel][softmax]", float,
                   double) {
    using T = TestType;
    const double scale = GENERATE(1., 0.05, 3.);
    for (const Index n : lengths()) {
        CAPTURE(n, scale);
        auto z = Memory<T>::random(n, n % 4, 1, 3);
        const auto expected = kernel::plain::softmax(n, z.in(), scale);
        const double log_sum = kernel::plain::log_sum_exp(n, z.in(), scale);
        REQUIRE(kernel::softmax(n, z.out(), static_cast<T>(scale)) ==
                Approx(log_sum).epsilon(2 * tolerance<T>).margin(2 * tolerance<T>));
        REQUIRE(z.written());
        double sum = 0, worst = 0;
        for (Index i = 0; i < n; ++i) {
            const double p = expected[static_cast<std::size_t>(i)];
            sum += double(z[i]);
            worst = worse(worst, std::abs(double(z[i]) - p) / p);
        }
        REQUIRE(sum == Approx(1).epsilon(4 * tolerance<T>));
        REQUIRE(worst < 8 * tolerance<T>);
    }
}

TEMPLATE_TEST_CASE("Cross-entropy of a row and its gradient agree with the plain form at any length",
                   "[kernel][softmax]", float, double) {
    using T = TestType;
    const double upstream = GENERATE(1., -0.5, 0.);
    for (const Index n : lengths()) {
        const Index target = n * 2 / 3;
        CAPTURE(n, upstream);
        auto z = Memory<T>::random(n, n % 4, 1, 3);
        const auto p = kernel::plain::softmax(n, z.in());
        const double expected = kernel::plain::cross_entropy(n, z.in(), target);
        auto same = z;
        const double value = kernel::cross_entropy(n, same.out(), target, upstream, false);
        REQUIRE(value == Approx(expected).epsilon(2 * tolerance<T>).margin(2 * tolerance<T>));
        REQUIRE(same.written());
        bool left_alone = true;
        for (Index i = 0; i < n; ++i) left_alone = left_alone && same[i] == z[i];
        REQUIRE(left_alone);
        REQUIRE(kernel::cross_entropy(n, z.out(), target, upstream) == value);
        REQUIRE(z.written());
        double worst = 0;
        for (Index i = 0; i < n; ++i)
            worst = worse(
                worst, std::abs(double(z[i]) - upstream * (p[static_cast<std::size_t>(i)] - (i == target))));
        REQUIRE(worst < 8 * tolerance<T>);
    }
}

TEMPLATE_TEST_CASE(
    "Softmax and cross-entropy are right where exponentials overflow, and say what is no number",
    "[kernel][softmax]", float, double) {
    using T = TestType;
    const T large = std::numeric_limits<T>::max(), infinity = std::numeric_limits<T>::infinity();
    T z[] = {large, -large, 0};
    REQUIRE(kernel::softmax(3, z) == double(large));
    REQUIRE((z[0] == 1 && z[1] == 0 && z[2] == 0));
    T equal[] = {large, large};
    REQUIRE(kernel::softmax(2, equal, T(0.5)) == double(large) / 2);
    REQUIRE((equal[0] == T(0.5) && equal[1] == T(0.5)));
    T certain[] = {1000, -1000};
    REQUIRE(kernel::cross_entropy(2, certain, 0) == 0);
    REQUIRE((certain[0] == 0 && certain[1] == 0));
    T wrong[] = {1000, -1000};
    REQUIRE(kernel::cross_entropy(2, wrong, 1, 2) == 2000);
    REQUIRE((wrong[0] == 2 && wrong[1] == -2));
    T one[] = {-3};
    REQUIRE(kernel::cross_entropy(1, one, 0) == 0);
    REQUIRE(one[0] == 0);
    for (const T bad : {infinity, -infinity, std::numeric_limits<T>::quiet_NaN()}) {
        T row[] = {bad, bad, bad}, same[] = {bad, bad, bad};
        REQUIRE(std::isnan(kernel::softmax(3, row)));
        T logs[] = {bad, bad, bad};
        REQUIRE(std::isnan(kernel::log_softmax(3, logs)));
        REQUIRE(std::isnan(kernel::cross_entropy(3, same, 1)));
    }
}

TEMPLATE_TEST_CASE("Logarithms of a softmax do not underflow", "[kernel][softmax]", float, double) {
    using T = TestType;
    const double scale = GENERATE(1., 0.05, 30.);
    for (const Index n : lengths()) {
        CAPTURE(n, scale);
        const auto z = Memory<T>::random(n, n % 4, 5, 3);
        Memory<T> logs = z;
        const double log_sum = kernel::log_softmax<T>(n, logs.out(), static_cast<T>(scale));
        REQUIRE(logs.written());
        REQUIRE(log_sum == Approx(kernel::plain::log_sum_exp(n, z.in(), scale)).epsilon(tolerance<T>));
        double worst = 0;
        for (Index i = 0; i < n; ++i)
            worst = worse(worst, std::abs(double(logs[i]) - (scale * double(z[i]) - log_sum)) /
                                     (1 + std::abs(log_sum)));
        REQUIRE(worst < 20 * tolerance<T>);
    }
    T far[] = {0, -5000};
    kernel::log_softmax(2, far);
    REQUIRE((far[0] == 0 && far[1] == -5000));  // whose probability is 0 in any T
}

TEMPLATE_TEST_CASE("A number is treated alike in the middle of a row and at its end", "[kernel][softmax]",
                   float, double) {
    using T = TestType;
    const auto z = Memory<T>::random(70, 0, 1);
    Memory<T> whole(70, 0);
    kernel::exp_sum(70, z.in(), T(0), T(1), whole.out());
    REQUIRE(whole.written());
    for (Index n = 1; n < 70; ++n) {
        Memory<T> part(n, 0);
        kernel::exp_sum(n, z.in(), T(0), T(1), part.out());
        REQUIRE(part.written());
        for (Index i = 0; i < n; ++i) REQUIRE(part[i] == whole[i]);
    }
}

TEMPLATE_TEST_CASE("Cross terms are sums of logits weighted by their exponentials", "[kernel][softmax]",
                   float, double) {
    using T = TestType;
    constexpr double scale = 0.3;
    for (const Index n : lengths()) {
        CAPTURE(n);
        const auto z = Memory<T>::random(n, n % 4, 1, 3);
        const T m = kernel::row_max(n, z.in());
        double sum = 0, of_exponentials = 0;
        for (Index i = 0; i < n; ++i) {
            const double d = scale * (double(z[i]) - double(m));
            sum += std::exp(d);
            of_exponentials += std::exp(d) * d;
        }
        auto e = z;
        double cross = 0;
        REQUIRE(kernel::exp_sum_and_cross(n, e.out(), m, T(scale), cross) ==
                Approx(sum).epsilon(tolerance<T>));
        REQUIRE(e.written());
        REQUIRE(cross == Approx(of_exponentials).epsilon(tolerance<T>).margin(tolerance<T>));
        REQUIRE(double(e[n - 1]) ==
                Approx(std::exp(scale * (double(z[n - 1]) - double(m)))).epsilon(tolerance<T>));
    }
}

TEMPLATE_TEST_CASE("Both temperatures in one pass, and the derivative put together", "[kernel][softmax]",
                   float, double) {
    using T = TestType;
    constexpr double it = 0.25;
    for (const Index n : lengths()) {
        CAPTURE(n);
        const auto z = Memory<T>::random(n, n % 4, 1, 3), weight = Memory<T>::random(n, n % 3, 2);
        const T m = kernel::row_max(n, z.in());
        auto hard = z;
        Memory<T> soft(n, 1);
        const auto s = kernel::exp_two_temperatures(n, hard.out(), m, T(it), weight.in(), soft.out());
        REQUIRE((hard.written() && soft.written()));
        double sum = 0, soft_sum = 0, cross = 0, size = 0;
        bool right = true;
        for (Index i = 0; i < n; ++i) {
            const double d = double(z[i]) - double(m);
            sum += std::exp(d);
            soft_sum += std::exp(it * d);
            cross += double(weight[i]) * it * d;
            size += std::abs(double(weight[i]) * it * d);
            right = right && std::abs(hard[i] - std::exp(d)) <= tolerance<T> * std::exp(d);
            right = right && std::abs(soft[i] - std::exp(it * d)) <= tolerance<T> * std::exp(it * d);
        }
        REQUIRE(right);
        REQUIRE(s.sum == Approx(sum).epsilon(tolerance<T>));
        REQUIRE(s.soft_sum == Approx(soft_sum).epsilon(tolerance<T>));
        REQUIRE(std::abs(s.cross - cross) <= tolerance<T> * (1 + size));

        auto d = hard;
        kernel::combine(n, T(0.5), d.out(), T(2), soft.in(), T(-3), weight.in());
        REQUIRE(d.written());
        for (Index i = 0; i < n; ++i)
            right = right &&
                    std::abs(d[i] - (0.5 * double(hard[i]) + 2 * double(soft[i]) - 3 * double(weight[i]))) <=
                        tolerance<T> * (1 + 3 * std::abs(double(weight[i])));
        REQUIRE(right);
    }
}

TEMPLATE_TEST_CASE("A divergence is right however near the two distributions are", "[kernel][softmax]", float,
                   double) {
    using T = TestType;
    for (const Index n : lengths())
        for (const double apart : {2.0, 0.3, 1e-2, 1e-4}) {
            CAPTURE(n, apart);
            const auto noise = Memory<T>::random(n, 0, 1);
            std::vector<T> e, f;
            double e_sum = 0, f_sum = 0, expected = 0;
            for (Index i = 0; i < n; ++i) {
                e.push_back(T(0.2 + 0.1 * double(i % 7)));
                f.push_back(T(double(e.back()) * std::exp(apart * double(noise[i]))));
                e_sum += double(e.back()), f_sum += double(f.back());
            }
            for (Index i = 0; i < n; ++i) {  // in long double, by the definition
                const long double p = (long double)(e[std::size_t(i)]) / e_sum,
                                  q = (long double)(f[std::size_t(i)]) / f_sum;
                expected += double(p * std::log(p / q));
            }
            const double found = kernel::divergence(n, e.data(), e_sum, f.data(), f_sum);
            CHECK(found >= 0);
            CHECK(found == Approx(expected).epsilon(1e-6).margin(1e-15));
        }
    const T none[] = {T(0), T(1)}, other[] = {T(0), T(2)};  // a word whose weight underflows
    CHECK(kernel::divergence(2, none, 1, other, 2) == 0);
    const T alone[] = {T(0), T(1)}, both[] = {T(0.05), T(0.95)};  // the other side has a weight there
    CHECK(kernel::divergence(2, alone, 1, both, 1) == Approx(-std::log(0.95)));
}

TEMPLATE_TEST_CASE("The derivative through a soft target, from sums of raw logits", "[kernel][softmax]",
                   float, double) {
    using T = TestType;
    constexpr double it = 0.25, scale = 1.5, shift = -0.7;
    for (const Index n : lengths())
        for (const Index rows : {1, 3, 40}) {
            CAPTURE(n, rows);
            const auto s = Memory<T>::random(n, n % 4, 1, 3), z = Memory<T>::random(rows * n, n % 3, 2, 3),
                       weight = Memory<T>::random(n, n % 2, 3);
            Memory<T> difference(n, 1, T(-5));
            const Index first = n / 3;  // what lies before is left as it was
            kernel::sum_of_differences(first, n, rows, s.in(), z.in(), n, difference.out());
            REQUIRE(difference.written());
            auto e = weight;
            kernel::through_softmax(n, T(scale), e.out(), T(it), difference.in(), T(shift));
            REQUIRE(e.written());
            bool right = true;
            for (Index i = 0; i < n; ++i) {
                double expected = double(rows) * double(s[i]), size = std::abs(expected);
                for (Index r = 0; r < rows; ++r)
                    expected -= double(z[r * n + i]), size += std::abs(double(z[r * n + i]));
                if (i < first) expected = -5;
                right = right && std::abs(double(difference[i]) - expected) <= tolerance<T> * (1 + size);
                const double d = scale * double(weight[i]) * (it * expected + shift);
                right = right && std::abs(double(e[i]) - d) <= 2 * tolerance<T> * (1 + size);
            }
            REQUIRE(right);
        }
}

TEMPLATE_TEST_CASE("Extreme logits stay right", "[kernel][softmax]", float, double) {
    using T = TestType;
    constexpr T infinity = std::numeric_limits<T>::infinity();
    for (const Index n : {Index{1}, Index{5}, Index{16}, Index{33}, Index{70}, Index{1500}}) {
        CAPTURE(n);
        // all equal, whatever their size
        for (const T v : {T(0), T(1e30), T(-1e30)}) {
            const Memory<T> z(n, 1, v);
            const double expected = double(v) + std::log(double(n));
            REQUIRE(log_sum_exp(n, z.in()) == Approx(expected).epsilon(tolerance<T>));
        }
        // one so large that the others vanish
        auto z = Memory<T>::random(n, 1, 1);
        z[n / 2] = T(1e30);
        REQUIRE(log_sum_exp(n, z.in()) == double(T(1e30)));
        if (n < 2) continue;
        z[n / 2] = T(-1e30);
        REQUIRE(log_sum_exp(n, z.in()) ==
                Approx(kernel::plain::log_sum_exp(n, z.in())).epsilon(tolerance<T>).margin(tolerance<T>));
        // a word that is ruled out
        z[n / 2] = -infinity;
        REQUIRE(log_sum_exp(n, z.in()) ==
                Approx(kernel::plain::log_sum_exp(n, z.in())).epsilon(tolerance<T>).margin(tolerance<T>));
        Memory<T> e(n, 0);
        kernel::exp_sum(n, z.in(), kernel::row_max(n, z.in()), T(1), e.out());
        REQUIRE(e.written());
        REQUIRE(e[n / 2] == 0);
        // what has no answer shows in the sum
        z[n / 2] = std::numeric_limits<T>::quiet_NaN();
        REQUIRE(!std::isfinite(log_sum_exp(n, z.in())));
        z[n / 2] = infinity;
        REQUIRE(!std::isfinite(log_sum_exp(n, z.in())));
    }
}

TEST_CASE("The plain forms agree with closed forms", "[kernel][softmax]") {
    const double z[] = {0, std::log(3.)}, s[] = {std::log(3.), 0};
    REQUIRE(kernel::plain::log_sum_exp(2, z) == Approx(std::log(4.)));
    REQUIRE(kernel::plain::log_sum_exp(2, z, 2) == Approx(std::log(10.)));
    REQUIRE(kernel::plain::softmax(2, z)[0] == Approx(0.25));
    REQUIRE(kernel::plain::softmax(2, z, 2)[1] == Approx(0.9));
    REQUIRE(kernel::plain::cross_entropy(2, z, 0) == Approx(std::log(4.)));
    REQUIRE(kernel::plain::cross_entropy(2, z, 1) == Approx(std::log(4. / 3)));
    REQUIRE(kernel::plain::soft_divergence(2, z, z, 7) == 0);
    REQUIRE(kernel::plain::soft_divergence(2, s, z, 1) == Approx(0.75 * std::log(3.) - 0.25 * std::log(3.)));
}
