#include <isogloss/lds/count_folder.hpp>

#include "catch.hpp"
#include "io/files.hpp"
#include "lds/count_runs.hpp"

using namespace isogloss;
using namespace isogloss::lds;

namespace {

// A complete file of the folder about tokens first … last-1.
std::string make(const CountFolder& folder, std::int64_t first, std::int64_t last) {
    CountRunHeader h;
    h.vocabulary = 3, h.first = first, h.last = last;
    h.lags = 1;
    count_runs::write(folder.name_of(h), h, {{{{0, 0}, 2}}, {{{0, 1}, 1}, {{2, 1}, 1}}});
    return folder.name_of(h);
}

std::vector<std::string> names(const std::vector<CountRun>& runs) {
    std::vector<std::string> of;
    for (const CountRun& run : runs) of.push_back(run.path());
    return of;
}

}  // namespace

TEST_CASE("A folder restores its complete files by their first token", "[lds][count_folder]") {
    const TemporaryDirectory place;
    const CountFolder folder(place / "spill");
    CHECK(folder.path() == place / "spill/");
    const auto a = make(folder, 0, 9), b = make(folder, 9, 20), c = make(folder, 100, 120);
    CHECK(b == place / "spill/counts-9-20.run");
    make(folder, 2, 5);      // merged into the first
    make(folder, 0, 4);      // the same, of its first token too
    make(folder, 105, 125);  // of tokens that another is of
    make(folder, 30, 30);    // of none
    put(place / "spill/counts-9-20.run.isogloss-part-71-0", "what a killed program left");
    put(place / "spill/notes", "of somebody");
    put(place / "spill/counts-a-b.run", "of somebody else");
    put(place / "spill/counts-1-2-3.run", "of somebody else");
    std::vector<std::string> damaged;
    CHECK(folder.files() == 7);
    CHECK(names(folder.restore(damaged)) == std::vector{a, b, c});
    CHECK(folder.files() == 3);
    CHECK(damaged.empty());
    CHECK(std::distance(std::filesystem::directory_iterator(place / "spill"), {}) == 6);
    CHECK(!std::filesystem::exists(place / "spill/counts-9-20.run.isogloss-part-71-0"));
    CHECK(contents(place / "spill/notes") == "of somebody");

    folder.remove(b);
    folder.remove(b);  // it is gone: that is no fault
    CHECK(names(folder.restore(damaged)) == std::vector{a, c});
    folder.clear();
    CHECK(folder.restore(damaged).empty());
    CHECK(std::distance(std::filesystem::directory_iterator(place / "spill"), {}) == 3);
}

TEST_CASE("A folder removes a damaged file and says what was wrong with it", "[lds][count_folder]") {
    const TemporaryDirectory place;
    const CountFolder folder(place / "spill");
    const auto a = make(folder, 0, 9), b = make(folder, 9, 20), c = make(folder, 20, 30);
    std::string bytes = contents(b);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);  // in the last section
    put(b, bytes);
    put(c, "");
    std::vector<std::string> damaged;
    CHECK(names(folder.restore(damaged)) == std::vector{a});
    REQUIRE(damaged.size() == 2);
    CHECK_THAT(damaged[0], Catch::Matchers::ContainsSubstring(c));  // "20-30" comes before "9-20"
    CHECK_THAT(damaged[1], Catch::Matchers::ContainsSubstring(b));
    CHECK(std::distance(std::filesystem::directory_iterator(place / "spill"), {}) == 1);
}

TEST_CASE("A file that may be sound is not removed: it cannot be opened, or is of another version",
          "[lds][count_folder][errors]") {
    const TemporaryDirectory place;
    const CountFolder folder(place / "spill");
    const auto a = make(folder, 0, 9), b = make(folder, 9, 20), c = make(folder, 20, 30);
    const std::string whole = contents(b);
    const auto entries = [&] {
        return std::distance(std::filesystem::directory_iterator(place / "spill"), {});
    };
    std::vector<std::string> damaged;

    std::filesystem::rename(b, place / "elsewhere");
    std::filesystem::create_symlink(place / "not mounted", b);
    REQUIRE_THROWS_MATCHES(folder.restore(damaged), FileError, says("cannot open", b));
    CHECK(entries() == 3);
    CHECK(std::filesystem::is_symlink(b));

    std::string later = whole;
    later[8] = 2;
    put(b, later);
    REQUIRE_THROWS_MATCHES(folder.restore(damaged), FileError, says(b, "format version 2"));
    CHECK(entries() == 3);
    CHECK(contents(b) == later);

    put(b, whole);
    CHECK(damaged.empty());
    CHECK(names(folder.restore(damaged)) == std::vector{a, b, c});
}

TEST_CASE("What watch throws while files are checked is passed on, and no file is lost",
          "[lds][count_folder][errors]") {
    const TemporaryDirectory place;
    const CountFolder folder(place / "spill");
    count_runs::Pairs many;
    for (std::int64_t i = 0; i < 600; ++i)
        for (std::int64_t j = 0; j < 600; ++j) many[{i, j}] = 1;
    CountRunHeader h;
    h.vocabulary = 600, h.last = 9;
    count_runs::write(folder.name_of(h), h, {many, many});  // 720,000 pairs: two calls
    std::vector<std::string> damaged;
    int calls = 0;
    CHECK(folder.restore(damaged, [&] { ++calls; }).size() == 1);
    CHECK(calls == 2);
    REQUIRE_THROWS_MATCHES(folder.restore(damaged, [] { throw FileError("the log is full"); }), FileError,
                           says("the log is full"));
    REQUIRE_THROWS_AS(folder.restore(damaged, [] { throw DamagedCounts("of something else"); }),
                      DamagedCounts);
    CHECK(damaged.empty());
    CHECK(names(folder.restore(damaged)) == std::vector{folder.name_of(h)});
}

TEST_CASE("A folder is removed by who made it, once it is empty", "[lds][count_folder]") {
    const TemporaryDirectory place;
    const auto there = [&] { return std::filesystem::exists(place / "spill"); };
    {
        const CountFolder made(place / "spill");
        put(place / "spill/notes", "of somebody");
        made.remove_if_made();
        CHECK(there());
        std::filesystem::remove(place / "spill/notes");
        made.remove_if_made();
        CHECK(!there());
    }
    std::filesystem::create_directory(place / "spill");
    const CountFolder found(place / "spill/");
    CHECK(found.path() == place / "spill/");
    found.remove_if_made();
    CHECK(there());
}

TEST_CASE("A folder serves one counting at a time", "[lds][count_folder][errors]") {
    const TemporaryDirectory place;
    {
        const CountFolder first(place / "spill");
        REQUIRE_THROWS_MATCHES(CountFolder(place / "spill"), FileError,
                               says("another program is counting in", place / "spill", "use another"));
    }
    CHECK_NOTHROW(CountFolder(place / "spill"));
    put(place / "file", "");
    REQUIRE_THROWS_MATCHES(CountFolder(place / "file"), FileError, says("folder", place / "file"));
    REQUIRE_THROWS_MATCHES(CountFolder(place / "none/spill"), FileError, says("cannot create the folder"));
    REQUIRE_THROWS_MATCHES(CountFolder(""), FileError, says("empty name"));
}
