// Counts of the parts of a text, one for each rank, added: those of one pass.
#include <filesystem>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/lds/count_ranks.hpp>
#include <isogloss/lds/files.hpp>
#include <isogloss/lds/spilled_counts.hpp>
#include <limits>

#include "catch.hpp"
#include "io/files.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::lds;
using distributed::Alone;
using distributed::ThreadGroup;

namespace {

constexpr Index V = 30, T = 5000;

Index begin_of(Index rank, Index ranks) { return T * rank / ranks; }

}  // namespace

TEST_CASE("The counts of any number of ranks are those of one pass", "[lds][distributed][count_ranks]") {
    const auto text = texts::markov(T, V);
    for (const Token boundary : {-1, 3}) {
        const CountOptions options{.lags = 3, .boundary = boundary};
        LagCounts whole(V, options);
        whole.add(text);
        Alone alone;
        CHECK(sum_of_ranks(whole, alone) == whole);
        CHECK(sum_on_all_ranks(whole, alone) == whole);
        for (const Index n : {2, 3, 4, 5}) {
            std::vector<LagCounts> found(static_cast<std::size_t>(n), LagCounts(V, options));
            ThreadGroup::run(n, [&](auto& ranks) {
                LagCounts own(V, options);
                own.add(text, begin_of(ranks.rank(), n), begin_of(ranks.rank() + 1, n));
                found[static_cast<std::size_t>(ranks.rank())] = sum_of_ranks(std::move(own), ranks);
            });
            CHECK(found.front() == whole);
            for (std::size_t r = 1; r < found.size(); ++r) CHECK(found[r].tokens() == 0);
            ThreadGroup::run(n, [&](auto& ranks) {
                LagCounts own(V, options);
                own.add(text, begin_of(ranks.rank(), n), begin_of(ranks.rank() + 1, n));
                found[static_cast<std::size_t>(ranks.rank())] = sum_on_all_ranks(std::move(own), ranks);
            });
            for (const LagCounts& of_rank : found) {
                CHECK(of_rank == whole);
                CHECK(of_rank.tokens() == T);
            }
        }
    }
}

TEST_CASE("Counts beyond 32 bits are handed on", "[lds][distributed][count_ranks]") {
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
        if (ranks.rank() == 0 && sum.lag(1)(0, 1) != many + 10) throw NumericError("not right");
        const LagCounts all = sum_on_all_ranks(counted(ranks.rank() == 2 ? many : 5), ranks);
        if (all.lag(1)(0, 1) != many + 10) throw NumericError("not right on all ranks");
    });
}

TEST_CASE("Ranks that do not know their vocabulary learn it from one that does",
          "[lds][distributed][count_ranks]") {
    const auto text = texts::markov(T, V);
    for (const Index knows : {0, 1, 2})
        ThreadGroup::run(3, [&](auto& ranks) {
            const std::uint64_t words = ranks.rank() == knows ? 7 : 0;
            LagCounts own(V, {.lags = 2, .vocabulary_checksum = words});
            own.add(text, begin_of(ranks.rank(), 3), begin_of(ranks.rank() + 1, 3));
            const LagCounts sum = sum_of_ranks(own, ranks), all = sum_on_all_ranks(own, ranks);
            for (const LagCounts* found : {&sum, &all})
                if (found->options().vocabulary_checksum != 7) throw NumericError("not right");
            if (all.tokens() != T) throw NumericError("not right: ", all.tokens(), " tokens");
        });
}

TEST_CASE("Files of counts of any number of ranks are merged into the file of one pass",
          "[lds][distributed][count_ranks]") {
    const TemporaryDirectory place;
    const auto text = texts::markov(T, V);
    std::vector<std::string> names;
    for (Index i = 0; i < V; ++i) names.push_back(message("w", i));
    const auto words = isogloss::text::Vocabulary::from_words(names, {}, {.eos_per_line = false});
    LagCounts whole(words.size(), {.lags = 3});
    whole.add(text);
    save_counts(place / "whole", whole, words);
    for (const Index n : {1, 2, 3, 4, 6}) {  // more ranks than lags and occurrences, too
        ThreadGroup::run(n, [&](auto& ranks) {
            const std::string folder = message(place / "rank-", ranks.rank());
            SpilledCounts own(words.size(), folder,
                              {.lags = 3,
                               .memory = Index{1} << 20,
                               .vocabulary_checksum = ranks.rank() == n - 1 ? words.checksum() : 0});
            const Index first = begin_of(ranks.rank(), n), last = begin_of(ranks.rank() + 1, n);
            const std::span<const Token> all(text);
            own.pass(all.first(static_cast<std::size_t>(first)));
            own.add(all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
            const auto merged = merge_of_ranks(own.finish(), folder + "/merged.run", 4096, ranks);
            if (std::ssize(merged) != ranks.size() || merged.front().header().last != T)
                throw NumericError("not right: ", merged.size(), " files");
            if (merged.front().header().words != words.checksum())  // which the last rank alone knew
                throw NumericError("the vocabulary is not known");
            if (ranks.rank() == 0) save_counts(place / "summed", merged, words, 4096);
            ranks.barrier();
            std::filesystem::remove(folder + "/merged.run");
            own.clear();
        });
        CHECK(contents(place / "summed") == contents(place / "whole"));
    }
}

TEST_CASE("Files with more than 2^63 - 1 tokens together are not merged",
          "[lds][distributed][count_ranks][errors]") {
    const TemporaryDirectory place;
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const bool same :
         {false, true})  // of the same word, whose count would overflow; or of others, the total alone
        for (const Index n : {2, 3}) {
            const auto merge = [&](auto& ranks) {
                const Index word = same ? 0 : ranks.rank();
                std::vector<std::int64_t> occurrences(3, 0);
                occurrences[static_cast<std::size_t>(word)] = most;
                const std::string folder = message(place / "rank-", ranks.rank());
                SpilledCounts own(3, folder,
                                  {.lags = 1, .memory = Index{1} << 20, .existing = Existing::remove});
                own.add(
                    LagCounts::from_parts({.lags = 1}, occurrences, {SparseCounts{{0, 0, 0, 0}, {}, {}}}));
                merge_of_ranks(own.finish(), folder + "/merged.run", 4096, ranks);
            };
            REQUIRE_THROWS_MATCHES(ThreadGroup::run(n, merge), DataError, says("2⁶³ - 1"));
        }
}

TEST_CASE("Ranks that count together say what is wrong", "[lds][distributed][count_ranks]") {
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
    REQUIRE_THROWS_MATCHES(
        ThreadGroup::run(
            3,
            [&](auto& ranks) {  // the first knows no words
                sum_of_ranks(LagCounts(V, {.lags = 2, .vocabulary_checksum = std::uint64_t(ranks.rank())}),
                             ranks);
            }),
        UsageError, says("another vocabulary", "rank 2"));
    const TemporaryDirectory place;
    REQUIRE_THROWS_MATCHES(
        ThreadGroup::run(2,
                         [&](auto& ranks) {
                             const std::string folder = message(place / "rank-", ranks.rank());
                             SpilledCounts own(V, folder,
                                               {.lags = 2 + ranks.rank(), .memory = Index{1} << 20});
                             merge_of_ranks(own.finish(), folder + "/merged.run", 4096, ranks);
                         }),
        DataError, says("3 lags", "expected 30, 2"));
    REQUIRE_THROWS_AS(ThreadGroup::run(2,
                                       [&](auto& ranks) {
                                           const std::string folder = message(place / "gone-", ranks.rank());
                                           SpilledCounts own(V, folder,
                                                             {.lags = 2, .memory = Index{1} << 20});
                                           own.finish();
                                           const CountRun& run = own.finish();
                                           ranks.barrier();
                                           if (ranks.rank() == 1) std::filesystem::remove(run.path());
                                           ranks.barrier();
                                           merge_of_ranks(run, folder + "/merged.run", 4096, ranks);
                                       }),
                      FileError);
}
