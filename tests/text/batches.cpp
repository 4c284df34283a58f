#include <algorithm>
#include <cmath>
#include <isogloss/text/batches.hpp>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"

using namespace isogloss;
using namespace isogloss::text;

namespace {
std::vector<Token> numbers(Index n) {
    std::vector<Token> s(static_cast<std::size_t>(n));
    std::iota(s.begin(), s.end(), 0);
    return s;
}

// A batch with its own memory.
struct Copy {
    std::vector<Token> input, target;
    Index time, index, predicted;
    bool first;
    bool operator==(const Copy&) const = default;
};

std::vector<Copy> all(Batches batches) {
    std::vector<Copy> copies;
    for (const auto& b : batches) {
        REQUIRE(b.input.time == b.target.time);
        REQUIRE(b.input.batch == b.target.batch);
        copies.push_back({{b.input.data, b.input.data + b.input.size()},
                          {b.target.data, b.target.data + b.target.size()},
                          b.input.time,
                          b.index,
                          b.predicted,
                          b.first});
    }
    return copies;
}
using Stream = std::vector<Token>;
}  // namespace

TEST_CASE("A stream becomes columns of equal length", "[text][batches]") {
    // 14 tokens make 13 predictions: 3 columns of 4 steps, one prediction unused.
    const auto s = numbers(14);
    Batches batches(s, 14, {.time = 3, .batch = 3});
    REQUIRE(batches.length() == 4);
    REQUIRE(batches.count() == 2);
    REQUIRE(batches.predictions() == 12);
    const auto b = all(batches);
    REQUIRE(b.size() == 2);
    REQUIRE(b[0].input == Stream{0, 4, 8, 1, 5, 9, 2, 6, 10});
    REQUIRE(b[0].target == Stream{1, 5, 9, 2, 6, 10, 3, 7, 11});
    REQUIRE(b[0].first);
    REQUIRE(b[0].predicted == 9);
    REQUIRE(b[1].input == Stream{3, 7, 11});
    REQUIRE(b[1].target == Stream{4, 8, 12});
    REQUIRE_FALSE(b[1].first);
    REQUIRE(b[1].index == 1);
    REQUIRE(b[1].time == 1);
}

TEST_CASE("The documented formula holds for every size", "[text][batches]") {
    // Prediction j = b L + p_k + t: input s_j and target s_{j+1}, or s_{j-1} and s_j behind a given start.
    for (Index n = 2; n <= 23; ++n)
        for (Index T = 1; T <= 6; ++T)
            for (Index B = 1; B <= 5; ++B)
                for (const bool pad : {false, true})
                    for (const bool start : {false, true}) {
                        const auto s = numbers(n);
                        const Index predictions = start ? n : n - 1;
                        const Index L = pad ? (predictions + B - 1) / B : predictions / B;
                        if (L == 0) continue;
                        BatchOptions options{.tail = pad ? Tail::pad : Tail::drop};
                        if (start) options.predict_first = 77;
                        Batches batches(s, 100, {.time = T, .batch = B}, options);
                        std::vector<int> made(static_cast<std::size_t>(predictions), 0);
                        Index at = 0, k = 0, total = 0;
                        for (const auto& batch : batches) {
                            REQUIRE(batch.index == k++);
                            REQUIRE(batch.input.time == std::min(T, L - at));
                            REQUIRE(batch.input.batch == B);
                            total += batch.predicted;
                            for (Index t = 0; t < batch.input.time; ++t)
                                for (Index b = 0; b < B; ++b) {
                                    const Index j = b * L + at + t;
                                    if (j >= predictions) {
                                        REQUIRE(batch.target(t, b) == not_predicted);
                                        REQUIRE(batch.input(t, b) == n - 2);
                                        continue;
                                    }
                                    ++made[static_cast<std::size_t>(j)];
                                    REQUIRE(batch.target(t, b) == (start ? j : j + 1));
                                    REQUIRE(batch.input(t, b) == (!start ? j : j == 0 ? 77 : j - 1));
                                }
                            at += batch.input.time;
                        }
                        REQUIRE(at == L);
                        REQUIRE(k == batches.count());
                        REQUIRE(total == batches.predictions());
                        const Index once = pad ? predictions : B * L;
                        for (Index j = 0; j < predictions; ++j)
                            REQUIRE(made[static_cast<std::size_t>(j)] == (j < once ? 1 : 0));
                    }
}

TEST_CASE("A pass begins again and does not depend on the capacity's spare steps", "[text][batches]") {
    const auto s = numbers(50);
    Batches batches(s, 50, {.time = 7, .batch = 2});
    const auto once = all(batches);
    auto it = batches.begin();
    ++it;
    REQUIRE(it->index == 1);
    REQUIRE(all(batches) == once);
    REQUIRE(all(Batches(s, 50, {.time = 35, .batch = 2}, {.time = 7})) == once);
    REQUIRE(all(Batches(s, 50, {.time = Index{1} << 40, .batch = 2})).size() ==
            1);  // memory is that of the text
}

TEST_CASE("A stream shorter than its columns is padded for evaluation", "[text][batches]") {
    const auto s = numbers(3);
    const auto b = all(Batches(s, 3, {.time = 5, .batch = 4}, {.tail = Tail::pad}));
    REQUIRE(b.size() == 1);
    REQUIRE(b[0].target == Stream{1, 2, -1, -1});
    REQUIRE(b[0].input == Stream{0, 1, 1, 1});
    REQUIRE(b[0].predicted == 2);
    const auto one = all(Batches(numbers(1), 3, {.time = 5, .batch = 1}, {.predict_first = 2}));
    REQUIRE(one[0].input == Stream{2});
    REQUIRE(one[0].target == Stream{0});
}

TEST_CASE("Random lengths follow the documented rule", "[text][batches]") {
    const auto s = numbers(1'000'001);
    const BatchOptions options{.time = 70, .random_length = true, .seed = 9, .epoch = 3};
    const auto b = all(Batches(s, 1'000'001, {.time = 80, .batch = 2}, options));
    // Restated from the text: the same generator, the same streams, nothing else shared.
    const Random half(9, stream_of("bptt half"), 3), length(9, stream_of("bptt length"), 3);
    Index at = 0, halves = 0;
    double sum = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        const auto k = static_cast<Index>(i);
        const bool is_half = half.uniform(k) >= 0.95;
        const double z = (is_half ? 35.0 : 70.0) + 5 * length.normal(k);
        const Index expected = std::min<Index>(80, std::max<Index>(5, static_cast<Index>(std::floor(z))));
        REQUIRE(b[i].time == std::min(expected, 500'000 - at));
        REQUIRE(b[i].input[0] == at);
        at += b[i].time;
        halves += b[i].time < 52;
        sum += static_cast<double>(b[i].time);
    }
    REQUIRE(at == 500'000);
    const auto count = static_cast<double>(b.size());
    REQUIRE(static_cast<double>(halves) / count == Approx(0.05).margin(0.01));
    REQUIRE(sum / count ==
            Approx(0.95 * 70 + 0.05 * 35 - 0.5).margin(0.5));  // rounding down takes half a step
}

TEST_CASE("Random lengths keep within 5 and the capacity, and differ by seed and epoch", "[text][batches]") {
    const auto s = numbers(4001);
    const auto lengths = [&](Capacity capacity, BatchOptions options) {
        options.random_length = true;
        std::vector<Index> times;
        Batches batches(s, 4001, capacity, options);
        for (const auto& b : batches) times.push_back(b.input.time);
        return times;
    };
    const auto a = lengths({.time = 20, .batch = 1}, {.time = 8, .seed = 1});
    for (std::size_t i = 0; i + 1 < a.size(); ++i) REQUIRE((a[i] >= 5 && a[i] <= 20));
    REQUIRE(a == lengths({.time = 20, .batch = 1}, {.time = 8, .seed = 1}));
    REQUIRE(a != lengths({.time = 20, .batch = 1}, {.time = 8, .seed = 2}));
    REQUIRE(a != lengths({.time = 20, .batch = 1}, {.time = 8, .seed = 1, .epoch = 1}));
    for (const Index t : lengths({.time = 3, .batch = 1}, {})) REQUIRE(t <= 3);
}

TEST_CASE("Rotated columns make every prediction once, from places of their own", "[text][batches]") {
    for (const auto tail : {Tail::drop, Tail::pad})
        for (const bool first : {false, true})
            for (const Index n : {8, 50, 1001}) {
                CAPTURE(tail == Tail::pad, first, n);
                const auto s = numbers(n);
                const Capacity capacity{.time = 9, .batch = 4};
                BatchOptions options{.time = 7, .tail = tail, .random_length = true, .seed = 3, .epoch = 5};
                if (first) options.predict_first = Token{0};
                // Of each column its pairs of input and target, in order.
                const auto columns = [&](bool rotate, std::uint64_t epoch) {
                    options.rotate = rotate, options.epoch = epoch;
                    std::vector<std::vector<std::pair<Token, Token>>> pairs(4);
                    for (const auto& b : all(Batches(s, n, capacity, options)))
                        for (std::size_t i = 0; i < b.input.size(); ++i)
                            pairs[i % 4].emplace_back(b.input[i], b.target[i]);
                    return pairs;
                };
                const auto still = columns(false, 5), turned = columns(true, 5), later = columns(true, 6);
                const auto L = static_cast<Index>(still[0].size());
                const Random places(3, stream_of("rotation"), 5);
                for (std::size_t b = 0; b < 4; ++b) {
                    auto expected = still[b];
                    std::rotate(expected.begin(), expected.begin() + places.below(static_cast<Index>(b), L),
                                expected.end());
                    REQUIRE(turned[b] == expected);
                }
                if (n == 1001) {
                    REQUIRE((turned != still && later != turned && turned == columns(true, 5)));
                    options.seed = 4;
                    REQUIRE(turned != columns(true, 5));
                }
            }
}

TEST_CASE("A pass goes on where it was stopped", "[text][batches]") {
    const auto s = numbers(997);
    for (const bool random : {false, true})
        for (const auto tail : {Tail::drop, Tail::pad}) {
            BatchOptions options{
                .time = 9, .tail = tail, .random_length = random, .rotate = random, .seed = 4, .epoch = 2};
            const Capacity capacity{.time = 13, .batch = 4};
            const auto whole = all(Batches(s, 997, capacity, options));
            for (std::size_t k = 0; k <= whole.size(); ++k) {
                options.start = static_cast<Index>(k);
                Batches rest(s, 997, capacity, options);
                REQUIRE(rest.count() == static_cast<Index>(whole.size()));
                REQUIRE(all(rest) ==
                        std::vector<Copy>(whole.begin() + static_cast<std::ptrdiff_t>(k), whole.end()));
            }
            options.start = static_cast<Index>(whole.size()) + 1;
            REQUIRE_THROWS_AS(Batches(s, 997, capacity, options), DataError);
        }
}

TEST_CASE("Nothing is allocated in the loop", "[text][batches]") {
    const auto s = numbers(10'000);
    Batches batches(s, 10'000, {.time = 35, .batch = 20}, {.time = 20, .random_length = true});
    const auto before = allocations();
    Index predicted = 0;
    for (int pass = 0; pass < 2; ++pass)
        for (auto batch : batches) predicted += batch.predicted;
    const auto after = allocations();
    REQUIRE(after == before);
    REQUIRE(predicted == 2 * batches.predictions());
}

TEST_CASE("What cannot be cut into batches is refused", "[text][batches]") {
    const auto s = numbers(10);
    const auto cut = [&](Capacity capacity, BatchOptions options = {}) {
        return Batches(s, 10, capacity, options, "train.txt");
    };
    REQUIRE_THROWS_AS(cut({.time = 35, .batch = 20}), DataError);
    REQUIRE(cut({.time = 35, .batch = 9}).count() == 1);
    REQUIRE_THROWS_AS(Batches(numbers(1), 10, {.time = 1, .batch = 1}, {.tail = Tail::pad}), DataError);
    REQUIRE_THROWS_AS(Batches({}, 10, {.time = 1, .batch = 1}), DataError);
    REQUIRE_THROWS_AS(cut({.time = 0, .batch = 1}), DataError);
    REQUIRE_THROWS_AS(cut({.time = 1, .batch = -2}), DataError);
    REQUIRE_THROWS_AS(cut({.time = 5, .batch = 1}, {.time = 6}), DataError);
    REQUIRE_THROWS_AS(cut({.time = 5, .batch = 1}, {.time = -1}), DataError);
    REQUIRE_THROWS_AS(cut({.time = 5, .batch = 1}, {.start = -1}), DataError);
    REQUIRE_THROWS_AS(cut({.time = 5, .batch = 1}, {.epoch = std::uint64_t{1} << 40}), DataError);
    REQUIRE_THROWS_AS(cut({.time = 5, .batch = 1}, {.predict_first = 10}), DataError);
}

TEST_CASE("A token outside the vocabulary is refused where it comes up", "[text][batches]") {
    auto s = numbers(10);
    s[7] = 12;
    Batches batches(s, 10, {.time = 3, .batch = 1}, {}, "train.tokens");
    auto it = batches.begin();
    ++it;
    REQUIRE_THROWS_AS(++it, DataError);
    s[7] = 10;
    REQUIRE_THROWS_AS(all(batches), DataError);
    s[7] = -1;
    REQUIRE_THROWS_AS(all(batches), DataError);
}

TEST_CASE("Columns for which there is no memory are refused", "[text][batches][errors]") {
    const std::vector<Token> text = {0, 1, 2};
    REQUIRE_THROWS_AS(
        Batches(text, 3, {.time = 2, .batch = std::numeric_limits<Index>::max()}, {.tail = Tail::pad}, "t"),
        DataError);
    {
        // Holds a block of 100,000 columns, not their places.
        const LargestAllocation tiny_machine(std::size_t{1} << 19);
        for (const Index columns : {100'000, 10'000'000})
            REQUIRE_THROWS_MATCHES(
                Batches(text, 3, {.time = 2, .batch = columns}, {.tail = Tail::pad, .rotate = true}, "t"),
                DataError, says(columns == 100'000 ? "t: needs 800000 bytes" : "t: needs 80000000 bytes"));
    }
    const LargestAllocation small_machine(std::size_t{1} << 20);
    REQUIRE_THROWS_AS(Batches(text, 3, {.time = 2, .batch = 10'000'000}, {.tail = Tail::pad}, "t"),
                      DataError);
    REQUIRE_THROWS_AS(Batches(text, 0, {.time = 1, .batch = 1}), DataError);
}
