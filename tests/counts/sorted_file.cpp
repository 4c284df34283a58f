#include <sys/stat.h>

#include <cstring>
#include <isogloss/counts/sorted_file.hpp>
#include <isogloss/random.hpp>
#include <limits>
#include <map>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::counts;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

// (row, column) → count.
using Pairs = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;

SortedFile write(const std::string& path, std::int64_t vocabulary, const std::vector<Pairs>& sections) {
    return SortedFile::write(path, {.vocabulary = vocabulary, .lags = std::ssize(sections) - 1, .last = 7},
                             [&](Index k, auto&& add) {
                                 for (const auto& [at, count] : sections[std::size_t(k)])
                                     add(at.first, at.second, count);
                             });
}

Pairs read(const SortedFile& file, Index k, Index buffer = 65536) {
    Pairs pairs;
    std::pair<std::int64_t, std::int64_t> before(-1, -1);
    file.read(k, buffer, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
        if (!(std::pair(row, column) > before)) FAIL("pairs that do not ascend");
        before = {row, column};
        pairs[before] = count;
    });
    return pairs;
}

// Rows, columns and counts from one digit to the most that there are.
Pairs pairs_of_all_sizes(Index n, std::int64_t V, std::uint64_t seed = 4) {
    const Random random(seed, 2);
    Pairs pairs;
    for (Index i = 0; i < n; ++i) {
        const auto any = [&](Index place, std::int64_t below) {
            return std::int64_t(random.uniform(6 * i + place) *
                                double(below >> random.below(6 * i + place + 3, 50)));
        };
        pairs[{any(0, V), any(1, V)}] = 1 + any(2, std::int64_t{1} << 62);
    }
    return pairs;
}

}  // namespace

TEST_CASE("A file of counts has the bytes of its description", "[counts][sorted_file]") {
    const TemporaryDirectory place;
    const auto file = write(
        place / "f", 300,
        {{{{0, 0}, 3}, {{1, 0}, 200}}, {{{0, 1}, 2}, {{0, 5}, 1}, {{3, 0}, 128}, {{299, 299}, 16384}}, {}});
    const std::string bytes = contents(place / "f");
    const std::size_t begin = 80 + 3 * 40;
    const std::string first{"\x03\x01\x03\x03\x01\xC8\x01", 7};
    const std::string second{
        "\x03\x02\x02"                   // row 0 after -1, column 1, twice
        "\x08\x01"                       // four columns on, once
        "\x07\x01\x80\x01"               // three rows on, column 0, 128 times
        "\xD1\x04\xAC\x02\x80\x80\x01",  // 296 rows on, column 299, 2¹⁴ times
        16};
    REQUIRE(bytes.size() == begin + first.size() + second.size());
    CHECK(bytes.starts_with("isocount"));
    CHECK(bytes.substr(begin) == first + second);
    CHECK(file.section(1).begin == std::int64_t(begin + first.size()));
    CHECK(file.section(1).pairs == 4);
    CHECK(file.section(1).largest == 16384);
    CHECK(file.section(2).bytes == 0);
    CHECK(file.bytes() == std::ssize(bytes));
    const SortedFile opened(place / "f");
    CHECK(opened.header().checksum == file.header().checksum);
    CHECK(opened.header().last == 7);
    CHECK(opened.section(1).checksum == file.section(1).checksum);
}

TEST_CASE("Pairs come back in order through a buffer of any size", "[counts][sorted_file]") {
    const TemporaryDirectory place;
    constexpr std::int64_t V = std::numeric_limits<std::int32_t>::max();
    Pairs one = pairs_of_all_sizes(3000, V);
    one[{V - 1, V - 1}] = most;
    const Pairs none, two{{{0, 0}, 1}, {{0, 1}, 2}};
    const auto file = write(place / "f", V, {one, none, two});
    for (const Index buffer : {0, 64, 65, 100, 4096, 1 << 20}) {
        CHECK(read(file, 0, buffer) == one);
        CHECK(read(file, 1, buffer) == none);
        CHECK(read(file, 2, buffer) == two);
    }
}

TEST_CASE("Merged files are the sum of their maps, in order", "[counts][sorted_file]") {
    const TemporaryDirectory place;
    for (const std::size_t n : {1u, 2u, 3u, 7u}) {
        std::vector<SortedFile> files;
        Pairs expected;
        for (std::size_t i = 0; i < n; ++i) {
            const Pairs own = i == 1 ? Pairs() : pairs_of_all_sizes(300, 20, i);  // one of them is empty
            for (const auto& [at, count] : own) expected[at] += count / 8;
            Pairs part;
            for (const auto& [at, count] : own)
                if (count / 8 > 0) part[at] = count / 8;
            files.push_back(write(place / std::to_string(i), 20, {{}, part}));
        }
        std::erase_if(expected, [](const auto& pair) { return pair.second == 0; });
        Pairs found;
        std::pair<std::int64_t, std::int64_t> before(-1, -1);
        SortedFile::merge(files, 1, 64, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
            CHECK(std::pair(row, column) > before);
            before = {row, column};
            found[before] = count;
        });
        CHECK(found == expected);
        SortedFile::merge(files, 0, 64, [&](auto, auto, auto) { FAIL("a pair of an empty section"); });
    }
    const auto a = write(place / "a", 3, {{{{1, 1}, most}}, {}}),
               b = write(place / "b", 3, {{{{1, 1}, 1}}, {}});
    REQUIRE_THROWS_MATCHES(SortedFile::merge(std::vector{a, b}, 0, 64, [](auto, auto, auto) {}), DataError,
                           says("2⁶³ - 1"));
}

TEST_CASE("A file whose writing ends by an exception leaves nothing", "[counts][sorted_file]") {
    const TemporaryDirectory place;
    struct Stop {};
    const auto write_half = [&] {
        SortedFile::write(place / "f", {.vocabulary = 3, .lags = 1}, [&](Index k, auto&& add) {
            if (k == 1) throw Stop();
            add(0, 0, 1);
        });
    };
    REQUIRE_THROWS_AS(write_half(), Stop);
    CHECK(place.entries() == 0);
}

TEST_CASE("A changed bit, a missing and a further byte are refused", "[counts][sorted_file][errors]") {
    const TemporaryDirectory place;
    write(place / "f", 300, {{{{0, 0}, 3}, {{1, 0}, 200}}, {{{0, 1}, 2}, {{299, 299}, 16384}}});
    const std::string whole = contents(place / "f");
    const auto refused = [&](const std::string& bytes) {
        put(place / "changed", bytes);
        try {
            const SortedFile file(place / "changed");
            for (const Index k : {0, 1}) read(file, k);
        } catch (const FileError& error) {
            CHECK_THAT(error, says(place / "changed"));
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

TEST_CASE("What no writer writes is refused though its checksums are right",
          "[counts][sorted_file][errors]") {
    const TemporaryDirectory place;
    for (const Pairs& pairs : {Pairs{{{10, 0}, 1}}, Pairs{{{0, 10}, 1}}, Pairs{{{0, 0}, 0}}}) {
        write(place / "f", 10, {{}, pairs});
        REQUIRE_THROWS_MATCHES(read(SortedFile(place / "f"), 1), FileError, says("is damaged"));
    }
    write(place / "f", 10, {{}, {{{9, 9}, 1}}});
    CHECK(read(SortedFile(place / "f"), 1).size() == 1);
    for (const std::int64_t V : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 31}) {
        write(place / "f", V, {{}, {}});
        REQUIRE_THROWS_MATCHES(SortedFile(place / "f"), FileError, says("is damaged"));
    }
    for (const std::size_t sections : {1, 1002}) {
        write(place / "f", 10, std::vector<Pairs>(sections));
        REQUIRE_THROWS_MATCHES(SortedFile(place / "f"), FileError, says("is damaged"));
    }

    // Sections whose sizes do not fit together, in a file of one lag with a pair each.
    write(place / "f", 10, {{{{0, 0}, 3}}, {{{0, 1}, 2}}});
    const std::string whole = contents(place / "f");
    struct Head {
        SortedFile::Header header;
        SortedFile::Section sections[2];
    };
    Head good = {};
    REQUIRE(sizeof good == 160);
    std::memcpy(static_cast<void*>(&good), whole.data(), sizeof good);
    const auto with = [&](Head head) {
        head.header.checksum = 0;
        file::Crc64 crc;
        crc.add(std::as_bytes(std::span(&head, 1)));
        head.header.checksum = crc.value();
        put(place / "f",
            std::string(reinterpret_cast<const char*>(&head), sizeof head) + whole.substr(sizeof head));
        const SortedFile file(place / "f");
        read(file, 0), read(file, 1);
    };
    CHECK_NOTHROW(with(good));
    for (const std::size_t k : {0u, 1u})
        for (std::int64_t SortedFile::Section::*const field :
             {&SortedFile::Section::begin, &SortedFile::Section::bytes, &SortedFile::Section::pairs,
              &SortedFile::Section::largest})
            for (const std::int64_t value : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1},
                                             std::int64_t{0}, std::int64_t{2}, most}) {
                Head head = good;
                head.sections[k].*field = value;
                const bool harmless =
                    field == &SortedFile::Section::largest && value > good.sections[k].*field - 1;
                INFO("section " << k << ", value " << value);
                if (harmless) CHECK_NOTHROW(with(head));
                else REQUIRE_THROWS_MATCHES(with(head), FileError, says("is damaged"));
            }
}

TEST_CASE("A pipe, a folder and nothing of the name of a file are refused, and not waited for",
          "[counts][sorted_file][errors]") {
    const TemporaryDirectory place;
    const auto file = write(place / "f", 3, {{}, {{{0, 0}, 1}}});
    std::filesystem::remove(place / "f");
    REQUIRE_THROWS_AS(SortedFile(place / "f"), FileError);
    REQUIRE_THROWS_AS(read(file, 1), FileError);
    REQUIRE(::mkfifo((place / "f").c_str(), 0600) == 0);
    REQUIRE_THROWS_MATCHES(SortedFile(place / "f"), FileError, says("not a regular file"));
    REQUIRE_THROWS_MATCHES(read(file, 1), FileError, says("not a regular file"));
    REQUIRE_THROWS_AS(SortedFile(place.path().string()), FileError);
}
