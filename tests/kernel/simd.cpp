#include <isogloss/kernel/simd.hpp>
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
    using L = kernel::Lanes<T, A>;
};

// The instruction set that the kernels use, and narrower ones, which the machine has as well.
using Sets = std::tuple<On<float, kernel::Architecture>, On<double, kernel::Architecture>
#if defined(XTENSOR_USE_XSIMD) && defined(__AVX512F__)
                        ,
                        On<float, xsimd::avx2>, On<double, xsimd::avx2>
#endif
#if defined(XTENSOR_USE_XSIMD) && defined(__AVX__)
                        ,
                        On<float, xsimd::sse2>, On<double, xsimd::sse2>
#endif
                        >;

// |got - exact| in units in the last place of T at the exact value, of the least subnormal number below.
template <class T> double ulps(T got, long double exact) {
    if (std::isinf(got) && exact > static_cast<long double>(std::numeric_limits<T>::max())) return 0;
    int exponent = 0;
    std::frexp(exact, &exponent);
    const int least = std::numeric_limits<T>::min_exponent;  // of a normal number, as frexp counts
    const long double unit = std::ldexp(1.0L, std::max(exponent, least) - std::numeric_limits<T>::digits);
    return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / unit);
}

// f of many numbers, lane group by lane group.
template <class T, class A, class F> std::vector<T> map(const std::vector<T>& x, F f) {
    std::vector<T> y(x.size());
    kernel::sweep<T, A>(0, std::ssize(x), [&](auto at) { at.store(y.data(), f(at.load(x.data()))); });
    return y;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("A sweep visits every place once, full groups first, and writes no other",
                        "[kernel][simd]", Sets) {
    using T = typename TestType::T;
    using A = typename TestType::A;
    using L = typename TestType::L;
    constexpr Index width = kernel::lane_count<L>;
    for (Index n = 0; n <= 4 * width + 1; ++n)
        for (const Index first : {Index{0}, n / 3}) {
            CAPTURE(width, n, first);
            const auto x = Memory<T>::random(n, n % 4, 1);
            Memory<T> y(n, 1, T(9)), tail(width, 0);
            const auto start = y;
            Index groups = 0;
            T* out = y.out();
            kernel::sweep<T, A>(first, n, [&](auto at) {
                REQUIRE(at.i == first + groups++ * width);
                at.store(out, at.load(x.in()) + L(T(1)));
                // Beyond the row a masked group loads zeros, and mask() puts what is asked for.
                alignas(64) T loaded[width], filled[width];
                kernel::Full<T, L>{0}.store(loaded, at.load(x.in()));
                kernel::Full<T, L>{0}.store(filled, at.mask(L(T(3)), T(-5)));
                for (Index k = 0; k < width; ++k) {
                    REQUIRE(loaded[k] == (at.i + k < n ? x[at.i + k] : T(0)));
                    REQUIRE(filled[k] == (at.i + k < n ? T(3) : T(-5)));
                }
            });
            REQUIRE(groups == (n - first + width - 1) / width);
            REQUIRE(y.written());
            for (Index i = 0; i < n; ++i) REQUIRE(y[i] == (i < first ? start[i] : x[i] + T(1)));
        }
}

TEMPLATE_LIST_TEST_CASE("The sum and the largest of the lanes, wherever it is", "[kernel][simd]", Sets) {
    using T = typename TestType::T;
    using L = typename TestType::L;
    constexpr Index width = kernel::lane_count<L>;
    for (Index at = 0; at < width; ++at) {
        std::vector<T> x(width, T(-3));
        x[std::size_t(at)] = T(-2);
        const L v = kernel::Full<T, L>{0}.load(x.data());
        REQUIRE(kernel::lane_max(v) == T(-2));
        REQUIRE(kernel::lane_sum(v) == T(1 - 3 * width));
    }
}

TEMPLATE_LIST_TEST_CASE("A value has the same bits in every place of a row, the tail included",
                        "[kernel][simd]", Sets) {
    using T = typename TestType::T;
    using A = typename TestType::A;
    using L = typename TestType::L;
    constexpr std::size_t most = 2 * kernel::lane_count<L> + 1;
    const auto function = GENERATE(0, 1, 2);
    const auto f = [&](L v) {
        return function == 0   ? kernel::exp_lanes(v)
               : function == 1 ? kernel::tanh_lanes(v)
                               : kernel::sigmoid(v);
    };
    for (const double v : {-1.7, 0.3, 5.1}) {
        const T alone = map<T, A>(std::vector<T>{T(v)}, f)[0];
        for (std::size_t n = 1; n <= most; ++n)
            for (const T got : map<T, A>(std::vector<T>(n, T(v)), f)) REQUIRE(got == alone);
    }
}

TEMPLATE_LIST_TEST_CASE("exp is within two units in the last place over its whole range", "[kernel][simd]",
                        Sets) {
    using T = typename TestType::T;
    using A = typename TestType::A;
    using Limits = std::numeric_limits<T>;
    // Ours rounds to subnormal numbers and reaches up to the largest; xsimd's ends where 2^r is no normal number.
    constexpr bool ours = sizeof(typename TestType::L) == 64 || kernel::lane_count<typename TestType::L> == 1;
    const double lowest = sizeof(T) == 4 ? (ours ? -104 : -87) : (ours ? -746 : -707),
                 highest = sizeof(T) == 4 ? (ours ? 89 : 88) : (ours ? 710 : 709);
    constexpr Index count = 400000;
    std::vector<T> x;
    for (Index i = 0; i <= count; ++i)
        x.push_back(static_cast<T>(lowest + (highest - lowest) * double(i) / double(count)));
    for (double small = 1; small > 1e-30; small /= 3)
        x.push_back(static_cast<T>(small)), x.push_back(static_cast<T>(-small));
    const auto y = map<T, A>(x, [](auto v) { return kernel::exp_lanes(v); });
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
        worst = worse(worst, ulps(y[i], std::exp(static_cast<long double>(x[i]))));
    CHECK(worst <= 2);

    const std::vector<T> ends = {Limits::infinity(), Limits::max(), -Limits::infinity(),
                                 Limits::lowest(),   T(0),          Limits::quiet_NaN()};
    const auto at_ends = map<T, A>(ends, [](auto v) { return kernel::exp_lanes(v); });
    CHECK((at_ends[0] == Limits::infinity() && at_ends[1] == Limits::infinity()));
    CHECK((at_ends[2] == 0 && at_ends[3] == 0 && at_ends[4] == 1));
    CHECK(std::isnan(at_ends[5]));
}

TEMPLATE_LIST_TEST_CASE("tanh and the logistic function agree with the formulas, their limits included",
                        "[kernel][simd]", Sets) {
    using T = typename TestType::T;
    using A = typename TestType::A;
    using Limits = std::numeric_limits<T>;
    std::vector<T> x = {Limits::max(), Limits::lowest(), T(0), Limits::min()};
    for (Index i = -3000; i <= 3000; ++i) x.push_back(static_cast<T>(double(i) / 100));
    const auto h = map<T, A>(x, [](auto v) { return kernel::tanh_lanes(v); }),
               s = map<T, A>(x, [](auto v) { return kernel::sigmoid(v); });
    for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(x[i]);
        const double v = x[i];
        REQUIRE(std::abs(h[i] - std::tanh(v)) <= 4 * double(Limits::epsilon()) * std::abs(std::tanh(v)));
        REQUIRE(std::abs(s[i] - 1 / (1 + std::exp(-v))) <= 4 * double(Limits::epsilon()));
    }
    const auto odd =
        map<T, A>(std::vector<T>{Limits::quiet_NaN()}, [](auto v) { return kernel::tanh_lanes(v); });
    REQUIRE(std::isnan(odd[0]));
}
