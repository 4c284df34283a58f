#include <isogloss/lds/counts.hpp>
#include <limits>
#include <map>

#include "allocations.hpp"
#include "catch.hpp"
#include "lds/texts.hpp"
#include "threads.hpp"

using namespace isogloss;
using namespace isogloss::lds;

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
          "[lds][counts]") {
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

TEST_CASE("Shards cut anywhere and added give exactly the counts of one pass", "[lds][counts]") {
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

TEST_CASE("Several texts are counted as if each were added alone, in blocks of any size", "[lds][counts]") {
    const auto words = texts::markov(700, 30);
    const std::span<const Token> all(words);
    std::vector<std::span<const Token>> parts = {all.first(0)};
    const Random random(3, 5);
    for (std::size_t at = 0; at < all.size();) {  // of 0 to 29 words, and one that is longer than some blocks
        const auto n = std::size_t(at == 0 ? 250 : random.below(Index(at), 30));
        parts.push_back(all.subspan(at, std::min(n, all.size() - at)));
        at += parts.back().size() + (n == 0);  // word `at` is left out
    }
    parts.push_back(all.first(3));  // the same words again
    for (const Token boundary : {-1, 4})
        for (const int n : {1, 3}) {
            const Threads set(n);
            CountOptions options{.lags = 5, .boundary = boundary};
            LagCounts alone(30, options);
            for (const auto& part : parts) alone.add(part);
            REQUIRE(std::ssize(parts) > 30);
            for (const Index block : {1, 4, 7, 100, 100000}) {
                options.block = block;
                LagCounts together(30, options);
                together.add(parts);
                CHECK(together == alone);
                CHECK(together.tokens() == alone.tokens());
                together.add(parts);
                alone.add(alone);
                CHECK(together == alone);
                alone = LagCounts(30, options);
                for (const auto& part : parts) alone.add(part);
            }
        }
    LagCounts counts(30, {.lags = 2});
    counts.add(LagCounts::Texts());
    CHECK(counts.tokens() == 0);
    const std::vector<Token> good = {0, 1}, bad = {2, 30};
    const std::vector<std::span<const Token>> mixed = {good, bad};
    REQUIRE_THROWS_MATCHES(counts.add(mixed), DataError, says("token 3 is 30", "30 words"));
    CHECK(counts.tokens() == 0);
}

TEST_CASE("Counts of two vocabularies are not added where both are known", "[lds][counts]") {
    const std::vector<Token> text = {0, 1, 2};
    const auto counted = [&](std::uint64_t words) {
        LagCounts counts(3, {.lags = 1, .vocabulary_checksum = words});
        counts.add(text);
        return counts;
    };
    LagCounts sum = counted(7);
    REQUIRE_THROWS_MATCHES(sum.add(counted(8)), UsageError,
                           says("counts of another vocabulary of 3 words", "with the same vocabulary"));
    CHECK(sum == counted(7));
    sum.add(counted(7));
    sum.add(counted(0));
    CHECK(sum.tokens() == 9);
    CHECK(sum.options().vocabulary_checksum == 7);
    LagCounts unknown = counted(0);
    unknown.add(counted(7));
    CHECK(unknown.options().vocabulary_checksum == 7);
    REQUIRE_THROWS_MATCHES(unknown.add(counted(8)), UsageError, says("counts of another vocabulary"));
}

TEST_CASE("Where memory runs out the counts are as before or those of no tokens, and the message says which",
          "[lds][counts][errors]") {
    const auto text = texts::markov(300, 20);
    const std::span<const Token> all(text);
    const std::vector<std::span<const Token>> parts = {all.first(50), all.subspan(50)};
    const CountOptions options{.lags = 3, .block = 100};
    const LagCounts none(20, options);
    LagCounts some(20, options);
    some.add(text);
    for (const LagCounts* before : std::initializer_list<const LagCounts*>{&none, &some})
        for (const int what : {0, 1, 2}) {
            int kept = 0, lost = 0;
            for (std::size_t k = 0;; ++k) {
                LagCounts counts = *before, other = some;
                std::string said;
                bool happened = false;
                {
                    const FailingAllocation failing(k);
                    try {
                        if (what == 0) counts.add(text);
                        else if (what == 1) counts.add(parts);
                        else counts.add(std::move(other));
                    } catch (const DataError& error) {
                        said = error.what();
                    }
                    happened = failing.happened();
                }
                if (!happened) break;
                INFO("allocation " << k << " fails: " << said);
                const bool gone = said.find("lost") != std::string::npos;
                REQUIRE(said.find(gone ? "those of no tokens" : "were not added") != std::string::npos);
                REQUIRE(counts == (gone ? none : *before));
                REQUIRE(counts.tokens() == (gone ? 0 : before->tokens()));
                counts.add(text);  // they can be used as before
                REQUIRE(counts.tokens() == (gone ? 300 : before->tokens() + 300));
                if (gone) REQUIRE(counts == some);
                gone ? ++lost : ++kept;
            }
            CHECK((kept > 10) == (what < 2));
            CHECK((lost > 5) == (before == &some));  // the first counts are taken as they are
            if (before == &none) CHECK(lost == 0);
        }
}

TEST_CASE("Words never seen, one word, and texts shorter than the lags are counted as they are",
          "[lds][counts]") {
    LagCounts counts(5, {.lags = 4});
    counts.add(std::vector<Token>{2, 2, 2});
    CHECK(counts.lag(1)(2, 2) == 2);
    CHECK(counts.lag(2)(2, 2) == 1);
    CHECK(counts.lag(3).pairs() == 0);
    CHECK(counts.occurrences() == std::vector<std::int64_t>{0, 0, 3, 0, 0});
    counts.add(std::vector<Token>{});
    CHECK(counts.tokens() == 3);
}

TEST_CASE("What cannot be counted is refused, and leaves the counts as they were", "[lds][counts]") {
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

TEST_CASE("Parts whose sum cannot be counted are refused", "[lds][counts][errors]") {
    const auto from = [](std::vector<std::int64_t> occurrences) {
        const SparseCounts none{Array<std::int64_t>(occurrences.size() + 1), {}, {}};
        return LagCounts::from_parts({.lags = 1}, std::move(occurrences), {none});
    };
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(from({most - 2, 2}).tokens() == most);
    REQUIRE_THROWS_MATCHES(from({most, 1}), UsageError, says("2⁶³ - 1"));
    REQUIRE_THROWS_AS(from({most, most}), UsageError);  // wraps to -2
    REQUIRE_THROWS_MATCHES(from({3, -1}), UsageError, says("-1 times"));
    LagCounts sum = from({most - 2, 1});
    REQUIRE_THROWS_MATCHES(sum.add(from({1, 1})), DataError, says("2⁶³ - 1"));
    CHECK(sum.tokens() == most - 1);
    const SparseCounts more{{0, 1, 1}, {1}, {3}};
    CHECK(LagCounts::from_parts({.lags = 1}, {3, 0}, {more}).lag(1)(0, 1) == 3);
    REQUIRE_THROWS_MATCHES(LagCounts::from_parts({.lags = 1}, {2, 5}, {more}), UsageError,
                           says("lag 1 has more pairs with a word than the word has occurrences"));
}

TEST_CASE("Counts near 2^62 add up", "[lds][counts]") {
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

TEST_CASE("Counts of any size are refused with an error of the library, or work", "[lds][counts][errors]") {
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
