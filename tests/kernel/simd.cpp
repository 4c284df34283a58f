#include <cstring>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/random.hpp>
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

template <class T> T rounded_once(T a, T b, T c) {
#ifdef __MINGW32__  // whose std::fma rounds twice
    return kernel::fused(a, b, c);
#else
    return std::fma(a, b, c);
#endif
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
        REQUIRE(kernel::lane_max(kernel::Full<T, L>{0}.load(x.data())) == T(-2));
    }
}

TEMPLATE_LIST_TEST_CASE("A sum over a row is that of 64 bytes of lanes, each in order, folded in halves",
                        "[kernel][simd]", Sets) {
    using T = typename TestType::T;
    using A = typename TestType::A;
    constexpr std::size_t lanes = 64 / sizeof(T);
    for (Index n = 0; n <= 70; ++n)
        for (const Index first : {Index{0}, n / 2}) {
            CAPTURE(n, first);
            const auto x = Memory<T>::random(n, 0, 3);
            kernel::LaneSum<T, A> sum;
            kernel::sweep_sums<T, A>(first, n, [&](auto at, Index r) { sum.part[r] += at.load(x.in()); });
            T lane[lanes] = {};
            for (Index i = first; i < n; ++i) lane[std::size_t(i - first) % lanes] += x[i];
            for (std::size_t half = lanes / 2; half > 0; half /= 2)
                for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
            REQUIRE(sum.total() == lane[0]);
        }
}

TEMPLATE_LIST_TEST_CASE("Functions and fused products have the bits of those of single numbers",
                        "[kernel][simd]", Sets) {
    using T = typename TestType::T;
    using A = typename TestType::A;
    using L = typename TestType::L;
    std::vector<T> x;
    for (Index i = -2000; i <= 2000; ++i) x.push_back(static_cast<T>(double(i) * 0.0371));
    const auto e = map<T, A>(x, [](auto v) { return kernel::exp_lanes(v); }),
               h = map<T, A>(x, [](auto v) { return kernel::tanh_lanes(v); }),
               s = map<T, A>(x, [](auto v) { return kernel::sigmoid(v); }),
               f = map<T, A>(
                   x, [](auto v) { return kernel::fused_lanes(v, v * L(T(0.3)), -v * v * L(T(0.3))); });
    for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(x[i]);
        REQUIRE(e[i] == kernel::exp_lanes(x[i]));
        REQUIRE(h[i] == kernel::tanh_lanes(x[i]));
        REQUIRE(s[i] == kernel::sigmoid(x[i]));
        REQUIRE(f[i] == rounded_once(x[i], x[i] * T(0.3), -x[i] * x[i] * T(0.3)));
    }
}

TEMPLATE_LIST_TEST_CASE("A fused product is rounded once, with and without instructions for it",
                        "[kernel][simd]", Sets) {
    using T = typename TestType::T;
    using A = typename TestType::A;
    using Limits = std::numeric_limits<T>;
    std::vector<T> a, b, c;
    const std::vector<T> special = {T(0),
                                    T(1),
                                    Limits::min(),
                                    Limits::max(),
                                    Limits::denorm_min(),
                                    Limits::infinity(),
                                    T(1.5),
                                    Limits::epsilon(),
                                    T(1) - Limits::epsilon() / 2,
                                    T(1) / T(3),
                                    Limits::quiet_NaN(),
                                    T(3) * Limits::min() / 4};
    for (const T x : special)
        for (const T y : special)
            for (const T z : special)
                for (const int signs : {0, 1, 2, 3})
                    a.push_back(signs & 1 ? -x : x), b.push_back(y), c.push_back(signs & 2 ? -z : z);
    const Random random(1, stream_of("fused"));
    for (Index i = 0; i < 400000; ++i) {
        // Numbers of few bits and far apart in size: their sums often lie just beside the middle between two floats. In
        // every fourth group they are subnormal or nearly so.
        const auto number = [&](Index k) {
            const auto bits = random.bits(3 * i + k);
            const int smaller = i % 64 < 16 ? k < 2 ? 50 : 100 : 0;
            const auto size = std::ldexp(T(bits >> (8 + bits % 16)), int(bits % 61) - 40 - smaller);
            return bits & 128 ? -size : size;
        };
        a.push_back(number(0)), b.push_back(number(1)), c.push_back(number(2));
    }
    const auto same = [](T x, T y) {
        return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
    };
    std::vector<T> got(a.size());
    kernel::sweep<T, A>(0, std::ssize(a), [&](auto at) {
        at.store(got.data(), kernel::fused_lanes(at.load(a.data()), at.load(b.data()), at.load(c.data())));
    });
    for (std::size_t i = 0; i < a.size(); ++i) {
        CAPTURE(a[i], b[i], c[i]);
        const T exact = rounded_once(a[i], b[i], c[i]);
        REQUIRE(same(got[i], exact));
        if constexpr (std::is_same_v<T, float>)
            REQUIRE(same(kernel::fused_in_double(a[i], b[i], c[i]), exact));
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
    const double lowest = sizeof(T) == 4 ? -86 : -707, highest = sizeof(T) == 4 ? 89 : 710;
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

    const std::vector<T> ends = {Limits::infinity(),
                                 Limits::max(),
                                 -Limits::infinity(),
                                 Limits::lowest(),
                                 T(0),
                                 Limits::quiet_NaN(),
                                 static_cast<T>(lowest - 0.01)};
    const auto at_ends = map<T, A>(ends, [](auto v) { return kernel::exp_lanes(v); });
    CHECK((at_ends[0] == Limits::infinity() && at_ends[1] == Limits::infinity()));
    CHECK((at_ends[2] == 0 && at_ends[3] == 0 && at_ends[4] == 1));
    CHECK((std::isnan(at_ends[5]) && at_ends[6] == 0));
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
