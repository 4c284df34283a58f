#include <isogloss/counts/lag_counts.hpp>
#include <limits>
#include <map>

#include "allocations.hpp"
#include "catch.hpp"
#include "lds/texts.hpp"
#include "threads.hpp"

using namespace isogloss;
using namespace isogloss::counts;

namespace {

// N_k as a map, by two loops.
std::map<std::pair<Token, Token>, Index> by_hand(const std::vector<Token>& text, Index k, Token boundary) {
    std::map<std::pair<Token, Token>, Index> n;
    for (Index t = k; t < std::ssize(text); ++t) {
        bool crosses = false;
        for (Index q = t - k; q < t; ++q) crosses = crosses || text[std::size_t(q)] == boundary;
        if (!crosses) ++n[{text[std::size_t(t)], text[std::size_t(t - k)]}];
    }
    return n;
}

void check_counts(const LagCounts& counts, const std::vector<Token>& text) {
    for (Index k = 1; k <= counts.lags(); ++k) {
        const auto expected = by_hand(text, k, counts.options().boundary);
        const SparseCounts& found = counts.lag(k);
        CHECK(found.pairs() == std::ssize(expected));
        bool equal = true;
        for (const auto& [pair, n] : expected) equal = equal && found(pair.first, pair.second) == n;
        CHECK(equal);
    }
}

}  // namespace

TEST_CASE("Counts are those of two loops, for blocks of any size, on any number of threads",
          "[counts][lag_counts]") {
    const auto text = texts::markov(700, 30);
    for (const Token boundary : {-1, 4})
        for (const Index block : {1, 7, 100, 100000})
            for (const int n : {1, 3}) {
                const Threads set(n);
                LagCounts counts(30, {.lags = 5, .boundary = boundary, .block = block});
                counts.add(text);
                check_counts(counts, text);
                CHECK(counts.tokens() == 700);
                CHECK(counts.occurrences()[3] == std::count(text.begin(), text.end(), 3));
            }
}

TEST_CASE("Shards cut anywhere and added give exactly the counts of one pass", "[counts][lag_counts]") {
    const auto text = texts::markov(2000, 40);
    for (const Token boundary : {-1, 2}) {
        const CountOptions options{.lags = 6, .boundary = boundary};
        LagCounts whole(40, options), sum(40, options);
        whole.add(text);
        const Index cuts[] = {0, 3, 777, 778, 1500, 2000};
        std::vector<LagCounts> shards;
        for (int i = 0; i < 5; ++i) {
            shards.emplace_back(40, options);
            shards.back().add(text, cuts[i], cuts[i + 1]);
        }
        for (const int i : {3, 0, 4, 2, 1}) sum.add(shards[std::size_t(i)]);
        CHECK(sum == whole);
        CHECK(sum.tokens() == whole.tokens());
        sum.add(text);
        CHECK_FALSE(sum == whole);
    }
}

TEST_CASE("Counts of two vocabularies are not added where both are known", "[counts][lag_counts]") {
    const std::vector<Token> text = {0, 1, 2};
    const auto counted = [&](std::uint64_t words) {
        LagCounts counts(3, {.lags = 1, .vocabulary_checksum = words});
        counts.add(text);
        return counts;
    };
    LagCounts sum = counted(7);
    REQUIRE_THROWS_MATCHES(sum.add(counted(8)), UsageError, says("of another vocabulary"));
    CHECK(sum == counted(7));
    sum.add(counted(7));
    sum.add(counted(0));
    CHECK(sum.tokens() == 9);
    CHECK(sum.options().vocabulary_checksum == 7);
    LagCounts unknown = counted(0);
    unknown.add(counted(7));
    CHECK(unknown.options().vocabulary_checksum == 7);
    REQUIRE_THROWS_MATCHES(unknown.add(counted(8)), UsageError, says("of another vocabulary"));
}

TEST_CASE("Where memory runs out the counts are as before, or no lag of them is left",
          "[counts][lag_counts][errors]") {
    const auto text = texts::markov(300, 20);
    const CountOptions options{.lags = 3, .block = 100};
    LagCounts some(20, options);
    some.add(text);
    for (const bool whole : {false, true}) {
        int kept = 0, lost = 0;
        for (std::size_t k = 0;; ++k) {
            LagCounts counts = some, other = some;
            bool refused = false;
            {
                const FailingAllocation failing(k);
                try {
                    if (whole) counts.add(std::move(other));
                    else counts.add(text);
                } catch (const DataError&) {
                    refused = true;
                }
                if (!failing.happened()) break;
            }
            INFO("allocation " << k << " fails");
            REQUIRE(refused);
            try {
                counts.lag(1);
                REQUIRE(counts == some);
                ++kept;
            } catch (const UsageError&) {
                ++lost;
            }
        }
        CHECK((kept > 10) == !whole);
        CHECK(lost > 5);
    }
}

TEST_CASE("Words never seen, one word, and texts shorter than the lags are counted as they are",
          "[counts][lag_counts]") {
    LagCounts counts(5, {.lags = 4});
    counts.add(std::vector<Token>{2, 2, 2});
    CHECK(counts.lag(1)(2, 2) == 2);
    CHECK(counts.lag(2)(2, 2) == 1);
    CHECK(counts.lag(3).pairs() == 0);
    CHECK(counts.occurrences() == std::vector<std::int64_t>{0, 0, 3, 0, 0});
    counts.add(std::vector<Token>{});
    CHECK(counts.tokens() == 3);
}

TEST_CASE("What cannot be counted is refused, and leaves the counts as they were", "[counts][lag_counts]") {
    REQUIRE_THROWS_MATCHES(LagCounts(0), UsageError, says("vocabulary = 0"));
    REQUIRE_THROWS_MATCHES(LagCounts(3, {.lags = 0}), UsageError, says("lags = 0", "1 to 1000"));
    REQUIRE_THROWS_MATCHES(LagCounts(3, {.block = 0}), UsageError, says("block = 0"));
    LagCounts counts(3, {.lags = 2});
    counts.add(std::vector<Token>{0, 1, 2});
    const LagCounts before = counts;
    REQUIRE_THROWS_MATCHES(counts.add(std::vector<Token>{0, 3}), DataError, says("token 1 is 3", "3 words"));
    REQUIRE_THROWS_MATCHES(counts.add(std::vector<Token>{0, 1}, 1, 3), UsageError, says("1 … 3", "2 tokens"));
    REQUIRE_THROWS_MATCHES(counts.add(LagCounts(3, {.lags = 3})), UsageError, says("3 lags", "alike"));
    REQUIRE_THROWS_MATCHES(counts.lag(3), UsageError, says("lag 3", "count with lags = 3"));
    CHECK(counts == before);
}

TEST_CASE("Parts whose sum cannot be counted are refused", "[counts][lag_counts][errors]") {
    const auto from = [](std::vector<std::int64_t> occurrences) {
        const SparseCounts none{Array<std::int64_t>(occurrences.size() + 1), {}, {}};
        return LagCounts::from_parts({.lags = 1}, std::move(occurrences), {none});
    };
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(from({most - 2, 2}).tokens() == most);
    REQUIRE_THROWS_AS(from({most, 1}), UsageError);
    REQUIRE_THROWS_AS(from({most, most}), UsageError);  // wraps to -2
    REQUIRE_THROWS_AS(from({3, -1}), UsageError);
    LagCounts sum = from({most - 2, 1});
    REQUIRE_THROWS_MATCHES(sum.add(from({1, 1})), DataError, says("2⁶³ - 1"));
    CHECK(sum.tokens() == most - 1);
    const SparseCounts more{{0, 1, 1}, {1}, {3}};
    CHECK(LagCounts::from_parts({.lags = 1}, {3, 0}, {more}).lag(1)(0, 1) == 3);
    REQUIRE_THROWS_MATCHES(LagCounts::from_parts({.lags = 1}, {2, 5}, {more}), UsageError,
                           says("not the counts of one text"));
}

TEST_CASE("Counts near 2^62 add up", "[counts][lag_counts]") {
    constexpr std::int64_t n = (std::int64_t{1} << 62) - 1;
    const auto part = [&] {
        return LagCounts::from_parts({.lags = 1}, {n, 0}, {SparseCounts{{0, 1, 1}, {0}, {}, {n - 1}}});
    };
    LagCounts sum = part();
    sum.add(part());
    CHECK(sum.tokens() == 2 * n);
    CHECK(sum.lag(1)(0, 0) == 2 * (n - 1));
    REQUIRE_THROWS_MATCHES(sum.add(part()), DataError, says("2⁶³ - 1"));
    CHECK(sum.lag(1)(0, 0) == 2 * (n - 1));
}

TEST_CASE("Counts of any size are refused with an error of the library, or work",
          "[counts][lag_counts][errors]") {
    const std::vector<Token> text = {0, 1, 2};
    for (const Index n : {Index{1} << 31, (Index{1} << 31) - 1, Index{1} << 62,
                          std::numeric_limits<Index>::max(), Index{-1}, std::numeric_limits<Index>::min()}) {
        const LargestAllocation small_machine(std::size_t{64} << 20);
        REQUIRE_THROWS_AS(LagCounts(n), UsageError);
        REQUIRE_THROWS_AS(LagCounts(3, {.lags = n}), UsageError);
        if (n != (Index{1} << 31) - 1) REQUIRE_THROWS_AS(LagCounts(3, {.block = n}), UsageError);
        LagCounts counts(3);
        REQUIRE_THROWS_AS(counts.add(text, n, 3), UsageError);
        REQUIRE_THROWS_AS(counts.add(text, 0, n), UsageError);
        REQUIRE_THROWS_AS(counts.lag(n), UsageError);
        CHECK(counts.tokens() == 0);
    }
}
