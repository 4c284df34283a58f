#include <isogloss/lds/files.hpp>
#include <isogloss/lds/spilled_counts.hpp>
#include <isogloss/lds/text_pairs.hpp>
#include <limits>
#include <stdexcept>

#include "allocations.hpp"
#include "catch.hpp"
#include "io/files.hpp"
#include "lds/spilled.hpp"
#include "lds/texts.hpp"
#include "threads.hpp"

using namespace isogloss;
using namespace isogloss::lds;
using namespace isogloss::spilled;

namespace {
struct Stop {};
}  // namespace

TEST_CASE("Counts put aside in files and merged are those of one pass", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(60000, V);
    for (const Token boundary : {-1, 4})
        for (const int n : {1, 3})
            for (const Index open : {2, 3, 64}) {
                const Threads set(n);
                const auto options = tight(V, {.lags = 5, .boundary = boundary, .open_files = open});
                SpilledCounts counts(V, place / "spill", options);
                give(counts, text);
                const Index files = counts.files();
                CHECK(files == 60000 / counts.block());
                CHECK(files >= 13);
                CHECK(counts.counts() == in_memory(text, V, options));
                CHECK(counts.tokens() == 60000);
                CHECK(counts.files() == 1);
                if (open == 2) CHECK(counts.merges() == files);  // the rest of the text is one more file
                if (open == 3) CHECK(counts.merges() >= 6);
                counts.clear();
                CHECK(place.entries() == 0);
            }
}

TEST_CASE("The file of counts is the same to the byte with and without a bound", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 50;
    for (const Index tokens : {0, 1, 3, 4096, 30000}) {
        const auto text = texts::markov(tokens, V);
        const auto options = tight(V, {.lags = 4, .boundary = 7, .open_files = 3}, 30);
        SpilledCounts counts(V, place / "spill", options);
        give(counts, text);
        save_counts(place / "bounded", counts, words(V));
        save_counts(place / "whole", in_memory(text, V, options), words(V));
        CHECK(contents(place / "bounded") == contents(place / "whole"));
        CHECK(load_counts(place / "bounded").counts == in_memory(text, V, options));
        counts.clear();
    }
    SpilledCounts counts(V, place / "spill", {});
    REQUIRE_THROWS_MATCHES(save_counts(place / "f", counts, words(V + 1)), UsageError,
                           says("50 words", "51"));
}

TEST_CASE("A merge that failed goes on at the next call", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(60000, V);
    auto options = tight(V, {.lags = 5, .open_files = 3});
    bool stop = true;
    options.watch = [&](const SpillProgress& at) {
        if (stop && at.merging) throw Stop();
    };
    SpilledCounts counts(V, place / "spill", options);
    give(counts, text);
    REQUIRE_THROWS_AS(counts.finish(), Stop);
    REQUIRE(counts.files() > 1);
    stop = false;
    CHECK(counts.counts() == in_memory(text, V, options));
    counts.clear();
}

TEST_CASE("Counting stays within its memory", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 20000;
    std::vector<Token> text;  // pairs that hardly repeat: the counts are larger than the text
    const Random random(3, 1);
    for (Index t = 0; t < 300000; ++t) text.push_back(static_cast<Token>(random.below(t, V)));
    for (const int n : {1, 2}) {
        const Threads set(n);
        const auto options = tight(V, {.lags = 3, .open_files = 8}, 1000);
        const MostBytes bytes;
        SpilledCounts counts(V, place / "spill", options);
        give(counts, text, 4000);
        CHECK(counts.files() > 20);
        counts.finish();
        CHECK(bytes.most() < options.memory);
        save_counts(place / "f", counts, words(V));
        counts.clear();
        CHECK(options.memory < 3'000'000);
    }
    const MostBytes bytes;
    const auto whole = in_memory(text, V, {.lags = 3});
    CHECK(bytes.most() > 7'000'000);
    CHECK(load_counts(place / "f").counts == whole);
}

TEST_CASE("A counting that was stopped anywhere goes on to the same counts", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(40000, V);
    const auto expected = in_memory(text, V, {.lags = 3});
    int stops = 0, restored = 0;
    for (int every = 1; every < 60; every += every < 10 ? 1 : 7) {
        int calls = 0;
        for (int attempt = 0;; ++attempt) {
            REQUIRE(attempt < 400);
            // another bound each time, so that blocks begin elsewhere
            auto options = tight(
                V,
                {.lags = 3, .open_files = 3, .existing = attempt > 0 ? Existing::resume : Existing::refuse},
                10 * attempt);
            // a stop within the first block, of up to 10 calls, would be one for ever
            options.watch = [&, allowed = 11 + every](const SpillProgress&) {
                if (++calls % allowed == 0) throw Stop();
            };
            try {
                SpilledCounts counts(V, place / "spill", options);
                restored += counts.files() > 0;
                give(counts, text, 500 + 100 * std::size_t(attempt));
                const auto found = counts.counts();
                CHECK(found == expected);
                counts.clear();
                break;
            } catch (const Stop&) {
                ++stops;
            }
        }
        CHECK(std::filesystem::is_empty(place / "spill"));
    }
    CHECK(stops > 40);
    CHECK(restored > 30);
}

TEST_CASE("A large block is watched all along, and stopped anywhere in it", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40, T = 5 * PairBlock::stride / 2, lags = 2;
    const auto text = texts::markov(T, V);
    for (const int n : {1, 2}) {
        const Threads set(n);
        for (const Token boundary : {-1, 4}) {
            SpillOptions options{.lags = lags, .boundary = boundary};
            options = tight(V, options, 2 * T);
            int calls = 0, stop = 0;
            options.watch = [&](const SpillProgress& p) {
                CHECK(!p.merging);
                if (++calls == stop) throw Stop();
            };
            const auto expected = in_memory(text, V, options);
            const auto all = [&] {
                SpilledCounts counts(V, place / "spill", options);
                REQUIRE(counts.block() > T);
                counts.add(text);
                const auto found = counts.counts();
                counts.clear();
                return found;
            };
            CHECK(all() == expected);
            // Three strides: to sort the words the tokens are read twice, and there are the places, and for a boundary as
            // much again; the pairs of each lag and the cells of the first, or on two threads of both, where the pairs
            // of both are counted at once; and what is written of each lag is less than a stride.
            CHECK(calls == 3 * 3 + (boundary >= 0 ? 2 * 3 : 0) + 3 * (lags + 1) + lags);
            const int last = calls;
            for (stop = 1; stop <= last; stop += 5) {
                calls = 0;
                CHECK_THROWS_AS(all(), Stop);
                for (const auto& entry : std::filesystem::directory_iterator(place / "spill"))
                    FAIL(entry.path());  // neither a file of counts nor a part of one
            }
            stop = 0;
            CHECK(all() == expected);
        }
    }
}

TEST_CASE("A damaged file is named, and its tokens are counted anew", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(30000, V);
    auto options = tight(V, {.lags = 3, .open_files = 3});
    const auto expected = in_memory(text, V, options);
    std::string second;
    {
        SpilledCounts counts(V, place / "spill", options);
        give(counts, text);
        second = message(place / "spill", "/counts-", counts.block(), "-", 2 * counts.block(), ".run");
    }
    const std::string whole = contents(second);
    options.existing = Existing::resume;
    auto roomy = options;  // a block of which is longer than what the damaged file is of
    roomy.memory += 50'000;
    const auto damaged_by = [&](const std::string& bytes) {
        put(second, bytes);
        SpilledCounts counts(V, place / "spill", roomy);
        give(counts, text, 900);
        REQUIRE(counts.damaged().size() == 1);
        CHECK_THAT(counts.damaged()[0], Catch::Matchers::ContainsSubstring(second));
        CHECK(counts.block() > 7000);
        CHECK(counts.files() == 7);
        CHECK(contents(second) == whole);
    };
    for (const std::size_t at : {std::size_t{0}, std::size_t{50}, std::size_t{90}, std::size_t{200},
                                 std::size_t{260}, whole.size() / 2, whole.size() - 1}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ 4);
        damaged_by(bytes);
    }
    for (const std::size_t size : {std::size_t{0}, std::size_t{50}, std::size_t{120}, whole.size() - 1})
        damaged_by(whole.substr(0, size));
    damaged_by(whole + "x");

    // in the middle of the work it ends it, and the next goes on
    {
        SpilledCounts counts(V, place / "spill", options);
        give(counts, text);
        std::string bytes = whole;
        bytes[whole.size() - 20] = static_cast<char>(bytes[whole.size() - 20] ^ 1);
        put(second, bytes);
        REQUIRE_THROWS_MATCHES(counts.finish(), FileError, says(second, "is damaged"));
    }
    SpilledCounts counts(V, place / "spill", options);
    CHECK(counts.damaged().size() == 1);
    give(counts, text);
    CHECK(counts.counts() == expected);
}

TEST_CASE("What a killed program has left incomplete does not keep the next from counting",
          "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    std::filesystem::create_directory(place / "spill");
    put(place / "spill/counts-0-5.run.isogloss-part-12-0", "left by a killed program");
    SpilledCounts counts(3, place / "spill", tight(3, {.lags = 1}));
    CHECK(std::filesystem::is_empty(place / "spill"));
    counts.add(std::vector<Token>{0, 1, 2});
    CHECK(counts.counts().tokens() == 3);
}

TEST_CASE("Counts of the same words in another order are refused on resuming, and any use after clear()",
          "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const std::vector<Token> a = {0, 1, 0, 1, 0, 1, 1}, b = {0, 0, 1, 0, 1, 1, 1};
    const auto o = tight(V, {.lags = 1});
    auto resumed = o;
    resumed.existing = Existing::resume;
    SpilledCounts(V, place / "added", o).add(in_memory(a, V, o));
    {
        SpilledCounts same(V, place / "added", resumed);
        same.add(in_memory(a, V, o));
        CHECK(same.counts() == in_memory(a, V, o));
        REQUIRE_THROWS_MATCHES(save_counts(place / "f", same, words(3)), UsageError, says("40 words"));
        same.clear();
        same.clear();  // does nothing more
        REQUIRE_THROWS_MATCHES(same.counts(), UsageError, says("a use after clear()"));
        REQUIRE_THROWS_MATCHES(same.finish(), UsageError, says("a use after clear()"));
    }
    SpilledCounts(V, place / "added", o).add(in_memory(a, V, o));
    SpilledCounts other_text(V, place / "added", resumed);
    REQUIRE_THROWS_MATCHES(other_text.add(in_memory(b, V, o)), DataError, says("the text is not that of"));
}

TEST_CASE("Counts that know their words are saved with no others", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    const auto given = words(3),
               others = text::Vocabulary::from_words({"x", "y", "z"}, {}, {.eos_per_line = false});
    SpilledCounts named(3, place / "named", tight(3, {.lags = 1, .vocabulary_checksum = given.checksum()}));
    named.add(std::vector<Token>{0, 1, 2});
    REQUIRE_THROWS_MATCHES(save_counts(place / "f", named, others), UsageError,
                           says("expected that of the counts"));
    save_counts(place / "f", named, given);
    const auto back = load_counts(place / "f");
    CHECK(back.vocabulary == given);
    CHECK(back.counts.options().vocabulary_checksum == given.checksum());
    CHECK(named.counts().options().vocabulary_checksum == given.checksum());
    REQUIRE_THROWS_MATCHES(save_counts(place / "g", back.counts, others), UsageError,
                           says("expected that of the counts"));
    save_counts(place / "g", back.counts, given);
    CHECK(contents(place / "f") == contents(place / "g"));

    LagCounts unknown(3, {.lags = 1});
    unknown.add(std::vector<Token>{0, 1, 2});
    save_counts(place / "h", unknown, others);
    SpilledCounts sum(3, place / "sum", tight(3, {.lags = 1, .vocabulary_checksum = given.checksum()}));
    sum.add(back.counts);
    sum.add(unknown);
    REQUIRE_THROWS_MATCHES(sum.add(load_counts(place / "h").counts), UsageError, says("another vocabulary"));

    SpilledCounts learns(3, place / "learns", tight(3, {.lags = 1}));
    learns.add(back.counts);
    REQUIRE_THROWS_MATCHES(learns.add(load_counts(place / "h").counts), UsageError,
                           says("another vocabulary"));
    CHECK(learns.vocabulary_checksum() == given.checksum());
    REQUIRE_THROWS_MATCHES(save_counts(place / "i", learns, others), UsageError,
                           says("expected that of the counts"));
    CHECK(learns.counts() == back.counts);
    CHECK(learns.counts().options().vocabulary_checksum == given.checksum());
}

TEST_CASE("Counting goes on with a vocabulary that is known only now", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(20000, V);
    LagCounts whole(V, {.lags = 3});
    whole.add(text);
    auto options = tight(V, {.lags = 3});
    {
        SpilledCounts counts(V, place / "spill", options);
        give(counts, {text.begin(), text.begin() + 10000});
        REQUIRE(counts.files() > 1);
    }
    options.existing = Existing::resume;
    options.vocabulary_checksum = 5;
    SpilledCounts counts(V, place / "spill", options);
    give(counts, text);
    CHECK(counts.finish().header().words == 5);
    CHECK(counts.counts() == whole);
}

TEST_CASE("A part of a text has the pairs whose later word lies in it", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(20000, V);
    const std::span<const Token> all(text);
    for (const auto& [first, last] : {std::pair(0, 1), std::pair(2, 9000), std::pair(8190, 20000)}) {
        const auto options = tight(V, {.lags = 6, .boundary = 3});
        LagCounts expected(V, {.lags = 6, .boundary = 3});
        expected.add(text, first, last);
        SpilledCounts counts(V, place / "spill", options);
        const auto a = std::size_t(first), b = std::size_t(last);
        counts.pass(all.first(a / 2));
        counts.pass(all.subspan(a / 2, a - a / 2));
        counts.add(all.subspan(a, b - a));
        counts.pass(all.subspan(b));
        CHECK(counts.counts() == expected);
        counts.clear();
    }
}

TEST_CASE("Counts of other programs are added, up to 2^63 - 1 tokens", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr std::int64_t n = (std::int64_t{1} << 62) - 1;
    const auto part = [&](std::int64_t pairs) {
        return LagCounts::from_parts({.lags = 1}, {n, 0}, {SparseCounts{{0, 1, 1}, {0}, {}, {pairs}}});
    };
    const auto options = tight(2, {.lags = 1});
    LagCounts expected = part(n - 1), small(2, {.lags = 1});
    expected.add(part(n - 2));
    small.add(std::vector<Token>{0});
    expected.add(small);
    for (const bool stopped : {false, true}) {
        if (stopped) {
            SpilledCounts counts(2, place / "spill", options);
            counts.add(part(n - 1));
        }
        auto o = options;
        if (stopped) o.existing = Existing::resume;
        SpilledCounts counts(2, place / "spill", o);
        CHECK(counts.files() == (stopped ? 1 : 0));
        counts.add(part(n - 1));
        counts.add(part(n - 2));
        counts.add(std::vector<Token>{0});
        CHECK(counts.tokens() == 2 * n + 1);
        REQUIRE_THROWS_MATCHES(counts.add(part(1)), DataError, says("2⁶³ - 1"));
        save_counts(place / "f", counts, words(2));
        const auto back = load_counts(place / "f");
        CHECK(back.counts == expected);
        CHECK(back.counts.lag(1)(0, 0) == 2 * n - 3);
        save_counts(place / "g", back.counts, words(2));
        CHECK(contents(place / "f") == contents(place / "g"));
        CHECK(counts.counts() == expected);
        CHECK(back.counts.tokens() == 2 * n + 1);
        counts.clear();
    }
    SpilledCounts counts(2, place / "spill", options);
    REQUIRE_THROWS_MATCHES(counts.add(LagCounts(3, {.lags = 1})), UsageError, says("3 words", "alike"));
}
