#include <isogloss/lds/count_merge.hpp>
#include <isogloss/random.hpp>
#include <limits>

#include "catch.hpp"
#include "io/files.hpp"
#include "lds/count_runs.hpp"

using namespace isogloss;
using namespace isogloss::lds;
using count_runs::Pairs;

namespace {

// Pairs of 20 words, others for another seed.
Pairs some(Index n, std::uint64_t seed) {
    const Random random(seed, 9);
    Pairs pairs;
    for (Index i = 0; i < n; ++i) pairs[{random.below(2 * i, 20), random.below(2 * i + 1, 20)}] += 1 + i;
    return pairs;
}

Pairs& operator+=(Pairs& to, const Pairs& from) {
    for (const auto& [at, count] : from) to[at] += count;
    return to;
}

// A file of the folder about tokens first … last-1.
CountRun make(const CountFolder& folder, std::int64_t first, std::int64_t last, const std::vector<Pairs>& s) {
    CountRunHeader h;
    h.vocabulary = 20, h.first = first, h.last = last;
    h.lags = std::ssize(s) - 1;
    h.text = std::uint64_t(last);
    count_runs::write(folder.name_of(h), h, s);
    return CountRun(folder.name_of(h));
}

using Parts = std::vector<std::pair<std::int64_t, std::int64_t>>;
Parts parts(const Array<CountRun>& runs) {
    Parts of;
    for (const CountRun& run : runs) of.push_back({run.header().first, run.header().last});
    return of;
}

}  // namespace

TEST_CASE("Merged files are the sum of their maps, in order", "[lds][count_merge]") {
    const TemporaryDirectory place;
    const CountFolder folder(place / "spill");
    for (const std::size_t n : {1u, 2u, 3u, 7u}) {
        Array<CountRun> runs;
        Pairs expected;
        for (std::size_t i = 0; i < n; ++i) {
            const Pairs own = i == 1 ? Pairs() : some(30 * Index(i + 1), i);  // one of them is empty
            expected += own;
            runs.push_back(make(folder, Index(i), Index(i + 1), {Pairs(), own}));
        }
        Pairs found;
        Index met = 0;
        std::pair<std::int64_t, std::int64_t> before(-1, -1);
        merge_count_runs(runs, 1, 64, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
            CHECK(std::pair(row, column) > before);
            before = {row, column};
            found[before] = count;
            ++met;
        });
        CHECK(found == expected);
        CHECK(met == std::ssize(expected));
        merge_count_runs(runs, 0, 64, [&](auto, auto, auto) { FAIL("a pair of an empty section"); });
    }
}

TEST_CASE("The neighbours with the fewest bytes are merged, and leave full merges", "[lds][count_merge]") {
    const TemporaryDirectory place;
    const CountFolder folder(place / "spill");
    Array<CountRun> runs;
    Pairs occurrences, lag;
    const Index sizes[] = {200, 200, 10, 20, 200, 30};
    for (Index i = 0; i < 6; ++i) {
        const Pairs a = some(3, std::uint64_t(i)), b = some(sizes[i], 10 + std::uint64_t(i));
        occurrences += a, lag += b;
        runs.push_back(make(folder, 10 * i, 10 * (i + 1), {a, b}));
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> said;
    const auto merge = [&](Index fan) {
        said.clear();
        merge_neighbours(runs, folder, fan, 64, [&](std::int64_t done, std::int64_t all) {
            said.push_back({done, all});
        });
    };
    const std::int64_t bytes = runs[2].bytes() + runs[3].bytes();
    merge(5);  // 2 at first: 5 are left then
    CHECK(parts(runs) == Parts{{0, 10}, {10, 20}, {20, 40}, {40, 50}, {50, 60}});
    CHECK(runs[2].header().text == 40);  // that of its last token
    REQUIRE(said.size() == 2);           // once for each section
    CHECK(said[1].second == bytes);
    CHECK(said[0].first < said[1].first);
    CHECK(said[1].first <= bytes);
    CHECK(runs[2].path() == place / "spill/counts-20-40.run");
    CHECK(std::distance(std::filesystem::directory_iterator(place / "spill"), {}) == 5);
    merge(3);  // the last three have the fewest
    CHECK(parts(runs) == Parts{{0, 10}, {10, 20}, {20, 60}});
    merge(64);
    CHECK(parts(runs) == Parts{{0, 60}});
    CHECK(count_runs::read(runs[0], 0) == occurrences);
    CHECK(count_runs::read(runs[0], 1) == lag);
    CHECK(std::distance(std::filesystem::directory_iterator(place / "spill"), {}) == 1);
}

TEST_CASE("A merge that is stopped leaves the files as they were", "[lds][count_merge]") {
    const TemporaryDirectory place;
    const CountFolder folder(place / "spill");
    Array<CountRun> runs;
    for (Index i = 0; i < 3; ++i) runs.push_back(make(folder, i, i + 1, {Pairs(), some(9, 1)}));
    struct Stop {};
    REQUIRE_THROWS_AS(merge_neighbours(runs, folder, 3, 64, [](auto, auto) { throw Stop(); }), Stop);
    CHECK(parts(runs) == Parts{{0, 1}, {1, 2}, {2, 3}});
    CHECK(std::distance(std::filesystem::directory_iterator(place / "spill"), {}) == 3);
    for (const CountRun& run : runs) CHECK(count_runs::read(run, 1) == some(9, 1));
}

TEST_CASE("A file in memory is what LagCounts counts, narrow counts and wide", "[lds][count_merge]") {
    const TemporaryDirectory place;
    const CountFolder folder(place / "spill");
    // 0 1 0 0 by hand, and once more with a billion times as many
    const auto counts = [&](std::int64_t times) {
        const Pairs n{{{0, 0}, 3 * times}, {{1, 0}, times}};
        const Pairs one{{{0, 0}, times}, {{0, 1}, times}, {{1, 0}, times}};
        const Pairs two{{{0, 0}, times}, {{0, 1}, times}};
        CountRunHeader h;
        h.vocabulary = 20, h.last = 4 * times;
        count_runs::write(place / "run", h, {n, one, two});
        return counts_of(CountRun(place / "run"), 64);
    };
    LagCounts expected(20, {.lags = 2});
    expected.add(std::vector<Token>{0, 1, 0, 0});
    CHECK(counts(1) == expected);
    constexpr std::int64_t many = 10'000'000'000;
    const LagCounts wide = counts(many);
    CHECK(wide.tokens() == 4 * many);
    CHECK(wide.lag(1)(0, 1) == many);
    CHECK(wide.lag(2)(0, 0) == many);
    CHECK(wide.lag(2)(1, 0) == 0);
    CHECK(wide.lag(1).pairs() == 3);
}
