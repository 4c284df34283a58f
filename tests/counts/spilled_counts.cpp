#include <limits>

#include "allocations.hpp"
#include "catch.hpp"
#include "counts/spilled.hpp"
#include "io/files.hpp"
#include "lds/texts.hpp"
#include "threads.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::spilled;

namespace {
struct Stop {};

// Entries of a folder.
Index entries(const std::string& folder) {
    return std::distance(std::filesystem::directory_iterator(folder), {});
}
}  // namespace

TEST_CASE("Counts put aside in files and merged are those of one pass, to the byte",
          "[counts][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    for (const Index tokens : {0, 1, 3, 4096, 40000}) {
        const auto text = texts::markov(tokens, V);
        for (const Token boundary : {-1, 4})
            for (const int n : {1, 3})
                for (const Index open : {2, 3, 64}) {
                    const Threads set(n);
                    const auto options = tight(V, {.lags = 5, .boundary = boundary, .open_files = open});
                    SpilledCounts counts(V, place / "spill", options);
                    give(counts, text);
                    CHECK(counts.files() == tokens / counts.block());
                    save_counts(place / "spilled", counts, words(V));
                    save_counts(place / "whole", in_memory(text, V, options), words(V));
                    CHECK(contents(place / "spilled") == contents(place / "whole"));
                    CHECK(counts.tokens() == tokens);
                    CHECK(counts.files() == 1);
                    counts.clear();
                    CHECK(entries(place / "spill") == 0);
                }
    }
}

TEST_CASE("Counts of a text beyond the memory fill no more than it", "[counts][spilled_counts]") {
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
        CHECK(options.memory < 3'000'000);
        counts.clear();
    }
    const MostBytes bytes;
    in_memory(text, V, {.lags = 3});
    CHECK(bytes.most() > 7'000'000);
}

TEST_CASE("A block has as many tokens as the memory has room for", "[counts][spilled_counts]") {
    const TemporaryDirectory place;
    // tokens and places of 4096 + 3 positions, two tables of 1001 words, rows and cells of one lag
    constexpr Index fixed = SortedFile::writer_memory + (1 << 16),
                    one = fixed + 4 * 4099 + 4 * 4099 + 8 * 1001 + 8 * (4096 + 1000);
    CHECK(SpilledCounts::least_memory(1000, {.lags = 3}) == one);
    CHECK(SpilledCounts::least_memory(1000, {.lags = 3, .boundary = 0}) == one + 2 * 4099);
    const auto block = [&](SpillOptions o, Index more) {
        o.memory = SpilledCounts::least_memory(1000, o) + more;
        return SpilledCounts(1000, place / "spill", o).block();
    };
    CHECK(block({.lags = 3}, 15) == 4096);
    CHECK(block({.lags = 3}, 16) == 4097);  // 16 bytes a token
    CHECK(block({.lags = 3, .boundary = 0}, 18000) == 5096);
    const Threads set(3);
    CHECK(SpilledCounts::least_memory(1000, {.lags = 3}) == one + 2 * 8 * 5096);
    CHECK(block({.lags = 7}, 32000) == 5096);  // 8 more on each further thread
    const auto buffer = [&](Index files, Index memory) {
        return SpilledCounts(10, place / "spill", {.lags = 1, .memory = memory, .open_files = files})
            .buffer();
    };
    CHECK(buffer(50, fixed + 50 * (10000 + SortedFile::reader_memory)) == 10000);
    CHECK(buffer(50, fixed + 50 * (Index{1} << 22)) == 1 << 20);
    CHECK(buffer(1000, fixed + 100000) == 4096);
}

TEST_CASE("A counting that was stopped anywhere goes on to the same counts", "[counts][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(40000, V);
    const auto expected = in_memory(text, V, {.lags = 3});
    int stops = 0, restored = 0, merging = 0;
    for (int every = 1; every < 60; every += every < 10 ? 1 : 7) {
        int calls = 0;
        for (int attempt = 0;; ++attempt) {
            REQUIRE(attempt < 400);
            // another bound each time, so that blocks begin elsewhere
            auto options = tight(V, {.lags = 3, .open_files = 3}, 10 * attempt);
            // a stop within the first block, of up to 10 calls, would be one for ever
            options.watch = [&, allowed = 11 + every](Index, Index all) {
                merging += all > 0;
                if (++calls % allowed == 0) throw Stop();
            };
            try {
                SpilledCounts counts(V, place / "spill", options);
                restored += counts.files() > 0;
                give(counts, text, 500 + 100 * std::size_t(attempt));
                const auto found = saved(counts, place / "f");
                CHECK(found == expected);
                counts.clear();
                break;
            } catch (const Stop&) {
                ++stops;
            }
        }
        CHECK(entries(place / "spill") == 0);
    }
    CHECK(stops > 40);
    CHECK(restored > 30);
}

TEST_CASE("A large block is watched all along, and stopped anywhere in it", "[counts][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40, T = 5 * PairBlock::stride / 2, lags = 2;
    const auto text = texts::markov(T, V);
    for (const int n : {1, 2}) {
        const Threads set(n);
        auto options = tight(V, {.lags = lags, .boundary = 4}, 2 * T);
        int calls = 0, stop = 0;
        options.watch = [&](Index, Index) {
            if (++calls == stop) throw Stop();
        };
        const auto expected = in_memory(text, V, options);
        const auto all = [&] {
            SpilledCounts counts(V, place / "spill", options);
            counts.add(text);
            const auto found = saved(counts, place / "f");
            counts.clear();
            return found;
        };
        CHECK(all() == expected);
        // Three strides: to sort the words the tokens are read twice, and there are the places, and for a boundary as
        // much again; the pairs of each lag and the cells of the first, or on two threads of both, where the pairs
        // of both are counted at once; and what is written of each lag is less than a stride.
        CHECK(calls == 3 * 3 + 2 * 3 + 3 * (lags + 1) + lags);
        const int last = calls;
        for (stop = 1; stop <= last; stop += 5) {
            calls = 0;
            CHECK_THROWS_AS(all(), Stop);
            CHECK(entries(place / "spill") == 0);  // neither a file of counts nor a part of one
        }
    }
}

TEST_CASE("A merge that failed goes on at the next call", "[counts][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 300;
    const auto text = texts::markov(200000, V);
    auto options = tight(V, {.lags = 3, .open_files = 3}, 4000);
    bool stop = true;
    options.watch = [&](Index done, Index all) {
        CHECK(done <= all);
        if (stop && all > 0) throw Stop();
    };
    SpilledCounts counts(V, place / "spill", options);
    give(counts, text);
    const Index files = counts.files();
    REQUIRE(files > 3);
    REQUIRE_THROWS_AS(counts.finish(), Stop);
    CHECK(entries(place / "spill") >= counts.files());
    stop = false;
    CHECK(saved(counts, place / "f") == in_memory(text, V, options));
}

TEST_CASE("A damaged file is named and stays, and once it is gone its tokens are counted again",
          "[counts][spilled_counts][errors]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(30000, V);
    const auto options = tight(V, {.lags = 3, .open_files = 3}), roomy = tight(V, {.lags = 3}, 3000);
    Index block = 0;
    {
        SpilledCounts counts(V, place / "spill", options);
        give(counts, text);
        block = counts.block();
    }
    for (const Index number : {0, 1, 3}) {
        const auto name =
            message(place / "spill", "/counts-", number * block, "-", (number + 1) * block, ".run");
        const std::string whole = contents(name);
        for (const std::size_t at : {std::size_t{50}, whole.size() - 20}) {  // in its head, and in its pairs
            std::string bytes = whole;
            bytes[at] = static_cast<char>(bytes[at] ^ 4);
            put(name, bytes);
            const auto count = [&] {
                SpilledCounts counts(V, place / "spill", options);
                give(counts, text);
                counts.finish();
            };
            const std::string copy = place / "copy";
            std::filesystem::copy(place / "spill", copy);
            REQUIRE_THROWS_MATCHES(count(), FileError, says(name, "is damaged"));
            std::filesystem::remove_all(place / "spill");  // as it was before the merges
            std::filesystem::rename(copy, place / "spill");
        }
        std::filesystem::remove(name);
        SpilledCounts counts(V, place / "spill", roomy);  // a block of which is longer
        give(counts, text, 900);
        CHECK(counts.files() == 7);
        CHECK(contents(name) == whole);
    }
    SpilledCounts counts(V, place / "spill", options);
    give(counts, text);
    CHECK(saved(counts, place / "f") == in_memory(text, V, options));
}

TEST_CASE("Files of another text, vocabulary or kind of counts are refused, and stay",
          "[counts][spilled_counts][errors]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(20000, V);
    const auto options = tight(V, {.lags = 3, .vocabulary_checksum = 5});
    {
        SpilledCounts counts(V, place / "spill", options);
        give(counts, text);
    }
    put(place / "spill/notes", "of somebody");
    put(place / "spill/counts-0-5.run.isogloss-part-12-0", "left by a killed program");
    CHECK(entries(place / "spill") == 6);
    const auto refused = [&](Index vocabulary, const SpillOptions& o, const char* what) {
        REQUIRE_THROWS_MATCHES(SpilledCounts(vocabulary, place / "spill", tight(vocabulary, o)), DataError,
                               says(what, "count all parts alike"));
    };
    auto other = options;
    other.lags = 4;
    refused(V, other, "3 lags");
    other = options;
    other.boundary = 2;
    refused(V, other, "boundary -1");
    other = options;
    other.vocabulary_checksum = 6;
    refused(V, other, "of another vocabulary");
    refused(V + 1, options, "40 words");
    for (const std::size_t at : {std::size_t{0}, std::size_t{4000}, std::size_t{9000}}) {
        auto changed = text;
        changed[at] = (changed[at] + 1) % V;
        SpilledCounts counts(V, place / "spill", options);
        REQUIRE_THROWS_MATCHES(give(counts, changed), DataError, says("the text is not that of"));
    }
    {
        SpilledCounts counts(V, place / "spill", options);
        give(counts, {text.begin(), text.begin() + 6000});
        REQUIRE_THROWS_MATCHES(counts.finish(), DataError, says("the text has 6000 tokens"));
    }
    {
        SpilledCounts counts(V, place / "spill", options);
        REQUIRE_THROWS_MATCHES(counts.pass(text), DataError, says("not to be counted here"));
    }
    CHECK(entries(place / "spill") == 5);
    SpilledCounts::remove(place / "spill");
    CHECK(entries(place / "spill") == 1);
    CHECK(contents(place / "spill/notes") == "of somebody");
}

TEST_CASE("A part of a text has the pairs whose later word lies in it", "[counts][spilled_counts]") {
    const TemporaryDirectory place;
    constexpr Index V = 40;
    const auto text = texts::markov(20000, V);
    const std::span<const Token> all(text);
    const auto options = tight(V, {.lags = 6, .boundary = 3});
    for (const auto& [first, last] : {std::pair(0, 1), std::pair(2, 9000), std::pair(8190, 20000)}) {
        LagCounts expected(V, {.lags = 6, .boundary = 3});
        expected.add(text, first, last);
        const auto a = std::size_t(first), b = std::size_t(last);
        for (const bool stopped : {true, false}) {  // and goes on
            SpilledCounts counts(V, place / "spill", options);
            counts.pass(all.first(a / 2));
            counts.pass(all.subspan(a / 2, a - a / 2));
            counts.add(all.subspan(a, b - a));
            if (stopped) continue;
            counts.pass(all.subspan(b));
            CHECK(saved(counts, place / "f") == expected);
            if (b < all.size())
                REQUIRE_THROWS_MATCHES(counts.add(all.subspan(b)), UsageError, says("after finish()"));
            counts.clear();
            REQUIRE_THROWS_MATCHES(counts.finish(), UsageError, says("clear()"));
        }
    }
    SpilledCounts counts(V, place / "spill", options);
    counts.add(all.first(50));
    counts.pass({});  // none, which leaves no gap
    counts.add(all.subspan(50, 50));
    counts.pass(all.subspan(100, 50));
    REQUIRE_THROWS_MATCHES(counts.add(all.subspan(150)), UsageError, says("after passed ones"));
    CHECK(counts.tokens() == 150);
}

TEST_CASE("Options out of range, and tokens that are no words, are refused",
          "[counts][spilled_counts][errors]") {
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
    REQUIRE_THROWS_MATCHES(make(3, {.boundary = 3}), UsageError, says("boundary = ", "-1 to 2"));
    {
        const LargestAllocation small_machine(std::size_t{64} << 20);
        REQUIRE_THROWS_MATCHES(make(3, {.memory = Index{1} << 45}), UsageError,
                               says("which are not available"));
    }
    REQUIRE_THROWS_MATCHES(SpilledCounts(3, place / "none/spill"), FileError,
                           says("cannot create the folder"));
    SpilledCounts counts(3, place / "spill", tight(3, {.lags = 2}));
    counts.add(std::vector<Token>{0, 1, 2});
    REQUIRE_THROWS_MATCHES(counts.add(std::vector<Token>{0, 3}), DataError, says("token 4 is 3", "3 words"));
    CHECK(counts.tokens() == 3);
    CHECK(saved(counts, place / "f").tokens() == 3);
}
