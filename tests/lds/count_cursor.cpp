#include <cmath>
#include <isogloss/lds/count_cursor.hpp>
#include <isogloss/random.hpp>
#include <limits>

#include "allocations.hpp"
#include "catch.hpp"
#include "io/files.hpp"
#include "lds/count_runs.hpp"

using namespace isogloss;
using namespace isogloss::lds;
using count_runs::Pairs;

namespace {

constexpr std::int64_t V = std::int64_t{1} << 31;  // the largest of vocabularies: steps of all sizes

// Pairs whose rows, columns and counts have from one digit to the most that there are.
Pairs pairs_of_all_sizes(Index n) {
    const Random random(4, 2);
    Pairs pairs;
    for (Index i = 0; i < n; ++i) {
        const auto any = [&](Index place, std::int64_t below) {
            const double size = std::log2(double(below)) * random.uniform(6 * i + place);
            return std::min<std::int64_t>(below - 1, static_cast<std::int64_t>(std::exp2(size)) - 1);
        };
        pairs[{any(0, V), any(1, V)}] = 1 + any(2, std::int64_t{1} << 62);
    }
    pairs[{V - 1, V - 1}] = std::numeric_limits<std::int64_t>::max();
    return pairs;
}

CountRunHeader header(std::int64_t vocabulary = V) {
    CountRunHeader h;
    h.vocabulary = vocabulary, h.last = 7;
    return h;
}

}  // namespace

TEST_CASE("A cursor gives the pairs that were written, in order, through a buffer of any size",
          "[lds][count_cursor]") {
    const TemporaryDirectory place;
    const Pairs one = pairs_of_all_sizes(3000), none, two{{{0, 0}, 1}, {{0, 1}, 2}};
    count_runs::write(place / "run", header(), {one, none, two});
    const CountRun run(place / "run");
    CHECK(run.header().vocabulary == V);
    CHECK(run.header().last == 7);
    CHECK(run.header().lags == 2);
    CHECK(run.path() == place / "run");
    CHECK(run.bytes() == Index(contents(place / "run").size()));
    CHECK(run.section(0).pairs == std::ssize(one));
    for (const Index buffer : {0, 64, 65, 100, 4096, 1 << 20}) {
        CHECK(count_runs::read(run, 0, buffer) == one);
        CHECK(count_runs::read(run, 1, buffer) == none);
        CHECK(count_runs::read(run, 2, buffer) == two);
        std::uint64_t before = 0;
        Index met = 0, descents = 0;
        for (CountRunCursor at(run, 0, buffer); at.next(); before = at.key(), ++met) {
            descents += met > 0 && at.key() <= before;
            descents += at.key() != (std::uint64_t(at.row()) << 32 | std::uint64_t(at.column()));
        }
        CHECK(met == std::ssize(one));
        CHECK(descents == 0);
    }
}

TEST_CASE("A cursor takes its buffer and little else", "[lds][count_cursor]") {
    const TemporaryDirectory place;
    count_runs::write(place / "run", header(), {pairs_of_all_sizes(5000), {}});
    const CountRun run(place / "run");
    for (const Index buffer : {64, 4096, 20000}) {
        const MostBytes bytes;
        CountRunCursor at(run, 0, buffer);
        while (at.next()) {
        }
        CHECK(bytes.most() <= buffer + CountRunCursor::memory - Index{sizeof at});
        CHECK(bytes.most() >= buffer);
    }
}

TEST_CASE("No changed bit of a file of counts is taken for counts", "[lds][count_cursor]") {
    const TemporaryDirectory place;
    count_runs::write(place / "run", header(),
                      {{{{0, 0}, 300}, {{70000, 0}, 2}}, {{{5, 7}, 1}, {{5, 9}, 1000}}});
    const std::string whole = contents(place / "run");
    const auto refused = [&](const std::string& bytes) {
        put(place / "changed", bytes);
        try {
            const CountRun run(place / "changed");
            for (Index k = 0; k <= run.header().lags; ++k) count_runs::read(run, k);
        } catch (const DamagedCounts& error) {
            CHECK_THAT(error, says(place / "changed", "is damaged"));
            return true;
        } catch (
            const FileError& error) {  // the version and the byte order follow the 8 bytes by which it starts
            CHECK((bytes.substr(0, 8) == whole.substr(0, 8) && bytes.substr(8, 8) != whole.substr(8, 8)));
            CHECK_THAT(error, says(place / "changed", "of format version"));
            return true;
        }
        return false;
    };
    CHECK(!refused(whole));
    Index taken = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)
        for (int bit = 0; bit < 8; ++bit) {
            std::string bytes = whole;
            bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
            taken += !refused(bytes);
        }
    for (std::size_t size = 0; size < whole.size(); ++size) taken += !refused(whole.substr(0, size));
    taken += !refused(whole + '\0');
    CHECK(taken == 0);
}

TEST_CASE("What no writer writes is refused though its checksums are right", "[lds][count_cursor]") {
    const TemporaryDirectory place;
    const auto written = [&](CountRunHeader h, const std::vector<Pairs>& sections) {
        count_runs::write(place / "run", h, sections);
        return CountRun(place / "run");
    };
    const auto outside = [&](const Pairs& pairs) {
        REQUIRE_THROWS_MATCHES(count_runs::read(written(header(10), {{}, pairs}), 1), FileError,
                               says("a pair lies outside the vocabulary"));
    };
    outside({{{10, 0}, 1}});
    outside({{{0, 10}, 1}});
    outside({{{0, 0}, 0}});
    CHECK(count_runs::read(written(header(10), {{}, {{{9, 9}, 1}}}), 1).size() == 1);
    REQUIRE_THROWS_MATCHES(written(header(10), std::vector<Pairs>(1)), FileError, says("it has 0 lags"));
    REQUIRE_THROWS_MATCHES(written(header(10), std::vector<Pairs>(1002)), FileError,
                           says("it has 1001 lags"));
    auto later = header(10);
    later.version = 2;
    try {
        written(later, {{}, {}});
        FAIL("a file of another version was read");
    } catch (const DamagedCounts& error) {
        FAIL(error.what());  // which would have it removed
    } catch (const FileError& error) {
        CHECK_THAT(error, says(place / "run", "format version 2, expected 1", "the version that wrote it"));
    }
}

TEST_CASE("A file of counts that becomes shorter while it is read is an error", "[lds][count_cursor]") {
    const TemporaryDirectory place;
    Pairs pairs;
    for (std::int64_t i = 0; i < 1000; ++i) pairs[{i, 0}] = 1;
    count_runs::write(place / "run", header(), {pairs, {}});
    const CountRun run(place / "run");
    CountRunCursor at(run, 0, 64);
    CHECK(at.next());
    std::filesystem::resize_file(place / "run", 300);
    const auto read_on = [&] {
        while (at.next()) {
        }
    };
    REQUIRE_THROWS_MATCHES(read_on(), DamagedCounts, says("it became shorter"));
    std::filesystem::remove(place / "run");
    REQUIRE_THROWS_AS(CountRunCursor(run, 0, 64), FileError);
}
