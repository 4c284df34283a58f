#include <isogloss/lds/files.hpp>
#include <isogloss/lds/spilled_counts.hpp>
#include <isogloss/lds/text_pairs.hpp>
#include <limits>
#include <stdexcept>

#include "allocations.hpp"
#include "catch.hpp"
#include "io/files.hpp"
#include "lds/texts.hpp"
#include "threads.hpp"

using namespace isogloss;
using namespace isogloss::lds;

namespace {

// Memory for blocks of the least size and `more` tokens.
SpillOptions tight(Index V, SpillOptions options, Index more = 0) {
    options.memory = SpilledCounts::least_memory(V, options) + 16 * more;
    return options;
}

// Gives a text in pieces of uneven sizes.
void give(SpilledCounts& counts, const std::vector<Token>& text, std::size_t piece = 700) {
    std::span<const Token> left = text;
    for (std::size_t i = 1; !left.empty(); ++i) {
        const auto some = left.first(std::min(left.size(), piece * (1 + i % 3)));
        counts.add(some);
        left = left.subspan(some.size());
    }
}

LagCounts in_memory(const std::vector<Token>& text, Index V, const SpillOptions& o) {
    LagCounts counts(V, {.lags = o.lags, .boundary = o.boundary});
    counts.add(text);
    return counts;
}

text::Vocabulary words(Index V) {
    std::vector<std::string> all;
    for (Index i = 0; i < V; ++i) all.push_back("w" + std::to_string(i));
    return text::Vocabulary::from_words(all, {}, {.eos_per_line = false});
}

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

TEST_CASE("Files of another text, vocabulary or kind of counts are refused", "[lds][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(20000, V);
    const auto options = tight(V, {.lags = 3, .vocabulary_checksum = 5});
    {
        SpilledCounts counts(V, place / "spill", options);
        give(counts, text);
        REQUIRE_THROWS_MATCHES(SpilledCounts(V, place / "spill", options), FileError,
                               says("this or another program is counting in"));
    }
    auto again = options;
    again.existing = Existing::resume;
    const auto refused = [&](Index vocabulary, const SpillOptions& o, const char* what) {
        REQUIRE_THROWS_MATCHES(SpilledCounts(vocabulary, place / "spill", tight(vocabulary, o)), DataError,
                               says(what, "resume with the same options"));
    };
    auto other = again;
    other.lags = 4;
    refused(V, other, "3 lags");
    other = again;
    other.boundary = 2;
    refused(V, other, "boundary -1");
    other = again;
    other.vocabulary_checksum = 6;
    refused(V, other, "of another vocabulary");
    refused(V + 1, again, "40 words");
    for (const std::size_t at : {std::size_t{0}, std::size_t{4000}, std::size_t{9000}}) {
        auto changed = text;
        changed[at] = (changed[at] + 1) % V;
        SpilledCounts counts(V, place / "spill", again);
        REQUIRE_THROWS_MATCHES(give(counts, changed), DataError, says("the text is not that of"));
    }
    {
        SpilledCounts counts(V, place / "spill", again);
        give(counts, {text.begin(), text.begin() + 6000});
        REQUIRE_THROWS_MATCHES(counts.finish(), DataError, says("the text has 6000 tokens"));
    }
    {
        SpilledCounts counts(V, place / "spill", again);
        REQUIRE_THROWS_MATCHES(counts.pass(text), DataError, says("not to be counted here"));
    }
    put(place / "spill/notes", "of somebody");
    put(place / "spill/counts-0-5.run.isogloss-part-12-0", "left by a killed program");
    const auto entries = [&] {
        return std::distance(std::filesystem::directory_iterator(place / "spill"), {});
    };
    const auto before = entries();
    REQUIRE_THROWS_MATCHES(
        SpilledCounts(V, place / "spill", options), FileError,
        says(place / "spill", "4 files of an earlier counting", "Existing::resume", "Existing::remove"));
    CHECK(entries() == before);  // an option that was forgotten costs nothing
    auto anew = options;
    anew.existing = Existing::remove;
    SpilledCounts counts(V, place / "spill", anew);  // nothing of before counts
    CHECK(counts.files() == 0);
    CHECK(std::distance(std::filesystem::directory_iterator(place / "spill"), {}) == 1);
    give(counts, text);
    CHECK(counts.counts() == in_memory(text, V, options));
    counts.clear();
    CHECK(contents(place / "spill/notes") == "of somebody");
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

TEST_CASE("Tokens passed between counted ones are refused: a resumed run would take them as counted",
          "[lds][spilled_counts][errors]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(300, V);
    const std::span<const Token> all(text);
    const auto options = tight(V, {.lags = 3});
    SpilledCounts counts(V, place / "spill", options);
    counts.pass(all.first(50));
    counts.add(all.subspan(50, 50));
    counts.pass({});  // none, which leaves no gap
    counts.add(all.subspan(100, 50));
    counts.pass(all.subspan(150, 50));
    counts.pass(all.subspan(200, 50));
    counts.add(std::vector<Token>{});
    counts.add(LagCounts(V, {.lags = 3}));
    const auto refused = says("found tokens to count after passed ones", "a part of a text in one piece");
    REQUIRE_THROWS_MATCHES(counts.add(all.subspan(250)), UsageError, refused);
    REQUIRE_THROWS_MATCHES(counts.add(in_memory(text, V, options)), UsageError, refused);
    CHECK(counts.tokens() == 250);
    LagCounts expected(V, {.lags = 3});
    expected.add(text, 50, 150);
    CHECK(counts.counts() == expected);
}

TEST_CASE("Where memory runs out counts stay in their file, and a sound file is not called another one",
          "[lds][spilled_counts][errors]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(2000, V);
    const auto options = tight(V, {.lags = 2});
    SpilledCounts counts(V, place / "spill", options);
    counts.add(text);
    counts.finish();
    save_counts(place / "f", counts, words(V));
    const auto expected = in_memory(text, V, options);
    const auto run_out = [&](auto&& read) {  // at each allocation in turn; says what was thrown
        std::vector<std::string> said;
        for (std::size_t k = 0;; ++k) {
            std::string what;
            bool happened = false;
            {
                const FailingAllocation failing(k);
                try {
                    read();
                } catch (const std::exception& error) {
                    what = error.what();
                }
                happened = failing.happened();
            }
            if (!happened) break;
            said.push_back(what);
        }
        return said;
    };
    const auto of_counts = run_out([&] {
        try {
            static_cast<void>(counts.counts());
        } catch (const DataError&) {
            throw;
        } catch (...) {
            throw std::runtime_error("none of the library");
        }
    });
    CHECK(of_counts.size() > 5);
    for (const std::string& what : of_counts)
        CHECK_THAT(what, Catch::Matchers::ContainsSubstring("for all counts at once"));
    CHECK(counts.counts() == expected);
    const auto of_file = run_out([&] { static_cast<void>(load_counts(place / "f")); });
    CHECK(of_file.size() > 5);
    for (const std::string& what : of_file)
        CHECK_THAT(what, !Catch::Matchers::ContainsSubstring("was not written by save_counts"));
    CHECK(load_counts(place / "f").counts == expected);
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

TEST_CASE("Options out of range, and tokens at the wrong time, are refused",
          "[lds][spilled_counts][errors]") {
    const TemporaryDirectory place;
    const auto make = [&](Index V, SpillOptions o) { SpilledCounts(V, place / "spill", o); };
    for (const Index n :
         {Index{0}, Index{-1}, std::numeric_limits<Index>::max(), std::numeric_limits<Index>::min()}) {
        REQUIRE_THROWS_AS(make(n, {}), UsageError);
        REQUIRE_THROWS_AS(make(3, {.lags = n}), UsageError);
        if (n < 1) REQUIRE_THROWS_AS(make(3, {.open_files = n}), UsageError);
        if (n < 1) REQUIRE_THROWS_AS(make(3, {.memory = n}), UsageError);
    }
    REQUIRE_THROWS_MATCHES(make(3, {.memory = 1000}), UsageError,
                           says("memory = 1000", "at least", "3 words"));
    REQUIRE_THROWS_MATCHES(make(3, {.open_files = 1}), UsageError, says("open_files = 1"));
    for (const Token none : {-2, 3}) {
        REQUIRE_THROWS_MATCHES(make(3, {.boundary = none}), UsageError, says("boundary = ", "-1 to 2"));
        REQUIRE_THROWS_MATCHES(LagCounts(3, {.boundary = none}), UsageError, says("boundary = ", "-1 to 2"));
        const std::vector<Token> text = {0, 1};
        REQUIRE_THROWS_MATCHES(TextPairs(text, 3, {.boundary = none}), UsageError,
                               says("boundary = ", "-1 to 2"));
    }
    {
        const LargestAllocation small_machine(std::size_t{64} << 20);
        REQUIRE_THROWS_MATCHES(make(3, {.memory = Index{1} << 45}), UsageError,
                               says("which are not available"));
    }
    CHECK(place.entries() <= 1);
    REQUIRE_THROWS_MATCHES(SpilledCounts(3, place / "none/spill"), FileError,
                           says("cannot create the folder"));
    REQUIRE_THROWS_MATCHES(SpilledCounts(3, ""), FileError, says("empty name"));
    SpilledCounts counts(3, place / "spill", tight(3, {.lags = 2}));
    counts.add(std::vector<Token>{0, 1, 2});
    REQUIRE_THROWS_MATCHES(counts.add(std::vector<Token>{0, 3}), DataError, says("token 4 is 3", "3 words"));
    CHECK(counts.tokens() == 3);
    CHECK(counts.counts().tokens() == 3);
    REQUIRE_THROWS_MATCHES(counts.add(std::vector<Token>{0}), UsageError, says("after the end"));
}
