// Counts of the parts of a text, one for each rank, added: those of one pass.
#include <isogloss/distributed/counts.hpp>
#include <isogloss/distributed/thread_group.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::distributed;

namespace {

constexpr Index V = 30, T = 5000;

Index begin_of(Index rank, Index ranks) { return T * rank / ranks; }

}  // namespace

TEST_CASE("The counts of any number of ranks are those of one pass", "[distributed][counts]") {
    const auto text = texts::markov(T, V);
    for (const Token boundary : {-1, 3}) {
        const CountOptions options{.lags = 3, .boundary = boundary};
        LagCounts whole(V, options);
        whole.add(text);
        Alone alone;
        CHECK(sum_of_ranks(whole, alone) == whole);
        for (const Index n : {2, 3, 4, 5}) {
            std::vector<LagCounts> found(static_cast<std::size_t>(n), LagCounts(V, options));
            ThreadGroup::run(n, [&](auto& ranks) {
                LagCounts own(V, options);
                own.add(text, begin_of(ranks.rank(), n), begin_of(ranks.rank() + 1, n));
                found[static_cast<std::size_t>(ranks.rank())] = sum_of_ranks(std::move(own), ranks);
            });
            for (const LagCounts& of_rank : found) {
                CHECK(of_rank == whole);
                CHECK(of_rank.tokens() == T);
            }
        }
    }
}

TEST_CASE("Counts beyond 32 bits are handed on", "[distributed][counts]") {
    // One word follows another 2³³ times on the last rank, and 5 times on the others.
    const auto counted = [](std::int64_t times) {
        return LagCounts::from_parts(
            {.lags = 1}, {std::vector<std::int64_t>{times, times}},
            {std::vector<SparseCounts>{{Array<std::int64_t>(std::vector<std::int64_t>{0, 1, 1}),
                                        Array<std::int32_t>(std::vector<std::int32_t>{1}),
                                        {},
                                        Array<std::int64_t>(std::vector<std::int64_t>{times})}}});
    };
    const std::int64_t many = std::int64_t{1} << 33;
    ThreadGroup::run(3, [&](auto& ranks) {
        const LagCounts sum = sum_of_ranks(counted(ranks.rank() == 2 ? many : 5), ranks);
        if (sum.lag(1)(0, 1) != many + 10) throw NumericError("not right");
    });
}

TEST_CASE("Ranks that count together say what is wrong", "[distributed][counts]") {
    REQUIRE_THROWS_MATCHES(
        ThreadGroup::run(2,
                         [&](auto& ranks) { sum_of_ranks(LagCounts(V + ranks.rank(), {.lags = 2}), ranks); }),
        UsageError, says("31 words", "rank 1", "expected 30"));
    REQUIRE_THROWS_MATCHES(
        ThreadGroup::run(2,
                         [&](auto& ranks) {
                             const auto words = static_cast<std::uint64_t>(7 + ranks.rank());
                             sum_of_ranks(LagCounts(V, {.lags = 2, .vocabulary_checksum = words}), ranks);
                         }),
        UsageError, says("another vocabulary", "rank 1"));
    for (const Index odd : {1, 2, 4}) {  // also one with which the first rank exchanges nothing at first
        REQUIRE_THROWS_MATCHES(
            ThreadGroup::run(5,
                             [&](auto& ranks) {
                                 sum_of_ranks(LagCounts(V, {.lags = ranks.rank() == odd ? 3 : 2}), ranks);
                             }),
            UsageError, says("3 lags", message("rank ", odd), "expected 30, 2"));
    }
}
