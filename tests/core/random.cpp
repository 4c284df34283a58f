#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <isogloss/random.hpp>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

using Block = std::array<std::uint32_t, 4>;

constexpr Index many = 200000;

struct Moments {
    double mean = 0, variance = 0, third = 0, fourth = 0;
};

template <class Draw> Moments moments(Draw draw) {
    Moments m;
    for (Index i = 0; i < many; ++i) m.mean += draw(i) / static_cast<double>(many);
    for (Index i = 0; i < many; ++i) {
        const double d = draw(i) - m.mean;
        m.variance += d * d / static_cast<double>(many);
        m.third += d * d * d / static_cast<double>(many);
        m.fourth += d * d * d * d / static_cast<double>(many);
    }
    return m;
}

}  // namespace

TEST_CASE("Philox gives the published answers", "[core][random]") {
    REQUIRE(philox(Block{0, 0, 0, 0}, 0) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    REQUIRE(philox(Block{~0u, ~0u, ~0u, ~0u}, ~std::uint64_t{0}) ==
            Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    // counter and key from the digits of pi
    REQUIRE(philox(Block{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0'a4093822) ==
            Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("A name's stream is its FNV-1a hash", "[core][random]") {
    STATIC_REQUIRE(sizeof(stream_of("")) == 4);
    REQUIRE(stream_of("") == 0x811c9dc5);
    REQUIRE(stream_of("a") == 0xe40c292c);
    REQUIRE(stream_of("foobar") == 0xbf9cf968);
}

TEST_CASE("A random number depends on its four coordinates and on nothing else", "[core][random]") {
    const Random r(7, 3, 5);
    REQUIRE(r.bits(1000) == Random(7, 3, 5).bits(1000));
    std::vector<std::uint32_t> forwards, backwards;
    for (Index i = 0; i < 50; ++i) forwards.push_back(r.bits(i));
    for (Index i = 50; i-- > 0;) backwards.push_back(r.bits(i));
    REQUIRE(forwards == std::vector<std::uint32_t>(backwards.rbegin(), backwards.rend()));
}

TEST_CASE("Seeds, streams, steps and positions do not repeat one another", "[core][random]") {
    const std::vector<Random> sources = {Random(1, 0),
                                         Random(2, 0),
                                         Random(std::uint64_t{1} << 32, 0),
                                         Random(1, 1),
                                         Random(1, 1u << 31),
                                         Random(1, 0, 1),
                                         Random(1, 0, std::uint64_t{1} << 32),
                                         Random(1, 0, std::uint64_t{1} << 39)};
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    std::size_t drawn = 0;
    for (const auto& source : sources)
        for (const Index start : {Index{0}, Index{1} << 20, Index{1} << 34, Index{1} << 40})
            for (Index i = 0; i < 2000; i += 2, ++drawn)
                seen.insert({source.bits(start + i), source.bits(start + i + 1)});
    REQUIRE(seen.size() == drawn);
}

TEST_CASE("Uniform numbers lie inside (0, 1) and are spread evenly", "[core][random]") {
    const Random r(11, stream_of("uniform"));
    double least = 1, greatest = 0;
    for (Index i = 0; i < many; ++i) {
        least = std::min(least, r.uniform(i));
        greatest = std::max(greatest, r.uniform(i));
    }
    REQUIRE(least > 0);
    REQUIRE(greatest < 1);
    const auto m = moments([&](Index i) { return r.uniform(i); });
    REQUIRE(m.mean == Approx(0.5).margin(5 * std::sqrt(1.0 / 12 / many)));
    REQUIRE(m.variance == Approx(1.0 / 12).epsilon(0.01));
    // neighbours are not correlated
    double product = 0;
    for (Index i = 0; i < many; ++i) product += (r.uniform(i) - 0.5) * (r.uniform(i + 1) - 0.5) / many;
    REQUIRE(product == Approx(0).margin(5.0 / 12 / std::sqrt(double(many))));
}

TEST_CASE("Normal numbers have the moments of the normal law", "[core][random]") {
    const Random r(13, stream_of("normal"));
    const auto m = moments([&](Index i) { return r.normal(i); });
    REQUIRE(m.mean == Approx(0).margin(5 / std::sqrt(double(many))));
    REQUIRE(m.variance == Approx(1).margin(5 * std::sqrt(2.0 / many)));
    REQUIRE(m.third == Approx(0).margin(5 * std::sqrt(15.0 / many)));
    REQUIRE(m.fourth == Approx(3).margin(5 * std::sqrt(96.0 / many)));
    double product = 0;
    for (Index i = 0; i < many; ++i) product += r.normal(i) * r.normal(i + 1) / many;
    REQUIRE(product == Approx(0).margin(5 / std::sqrt(double(many))));
}

TEST_CASE("below() reaches every number under its bound equally often", "[core][random]") {
    const Random r(17, 0);
    std::vector<Index> counts(7, 0);
    for (Index i = 0; i < many; ++i) {
        const Index k = r.below(i, 7);
        REQUIRE((k >= 0 && k < 7));
        ++counts[static_cast<std::size_t>(k)];
    }
    double chi_squared = 0;
    for (const Index count : counts) {
        const double d = static_cast<double>(count) - many / 7.0;
        chi_squared += d * d / (many / 7.0);
    }
    REQUIRE(chi_squared < 27.9);  // 6 degrees of freedom, one in ten thousand
    REQUIRE(r.below(5, 1) == 0);
}

TEST_CASE("sample() takes each entry where its part of the sum lies", "[core][random]") {
    const std::vector<double> p = {0.25, 0, 0.5, 0.125, 0.125};
    REQUIRE(sample(p, 0) == 0);
    REQUIRE(sample(p, 0.2499) == 0);
    REQUIRE(sample(p, 0.25) == 2);  // a part begins with its lower end and does not hold its upper one
    REQUIRE(sample(p, 0.7499) == 2);
    REQUIRE(sample(p, 0.75) == 3);
    REQUIRE(sample(p, 0.875) == 4);
    REQUIRE(sample(p, 1 - 0x1p-53) == 4);
    REQUIRE(sample(std::array{3.f}, 0.99) == 0);
    // what counts is the share of the sum: an entry set to 0 leaves its part to the others
    REQUIRE(sample(std::array{0.f, 1.f, 3.f}, 0.2499) == 1);
    REQUIRE(sample(std::array{0.f, 1.f, 3.f}, 0.2501) == 2);
    REQUIRE(sample(std::array{1e-300, 3e-300}, 0.5) == 1);
}

TEMPLATE_TEST_CASE("sample() never draws an entry of probability 0", "[core][random]", float, double) {
    using T = TestType;
    // Each of the small entries is lost when it is taken off a large number: some of u is left over at the end.
    std::vector<T> p(4096, T(0x1p-55));
    p.insert(p.end(), {T(0.5), T(0), T(0)});
    p.front() = 0;
    REQUIRE(sample(p, 0) == 1);
    for (const double u : {1 - 0x1p-53, 1 - 0x1p-43, 0.5}) REQUIRE(sample(p, u) == 4096);
    const Random r(3, 1);
    for (Index i = 0; i < 500; ++i) REQUIRE(p[static_cast<std::size_t>(sample(p, r.uniform(i)))] != T(0));
}

TEST_CASE("sample() refuses what is no distribution", "[core][random]") {
    const double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();
    using P = std::vector<double>;
    REQUIRE_THROWS_MATCHES(sample(P{0, 0}, 0.5), NumericError, says("sample", "sum to 0", "sum above 0"));
    REQUIRE_THROWS_AS(sample(P{}, 0.5), NumericError);
    REQUIRE_THROWS_AS(sample(P{0.5, nan}, 0.5), NumericError);
    REQUIRE_THROWS_AS(sample(P{0.5, inf}, 0.5), NumericError);
    REQUIRE_THROWS_MATCHES(sample(P{0.5, -0.1}, 0.5), NumericError, says("least of them -0.1"));
    REQUIRE_THROWS_MATCHES(sample(P{1}, 1), UsageError, says("u = 1", "at least 0 and below 1"));
    REQUIRE_THROWS_AS(sample(P{1}, -0.1), UsageError);
    REQUIRE_THROWS_AS(sample(P{1}, nan), UsageError);
}
