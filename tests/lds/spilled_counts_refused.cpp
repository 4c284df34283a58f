// What counts put aside in files refuse, and what they say where memory runs out.
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
    other.vocabulary_checksum = 0;  // unknown, and known from the files from now on
    {
        SpilledCounts counts(V, place / "spill", other);
        CHECK(counts.vocabulary_checksum() == 5);
    }
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
