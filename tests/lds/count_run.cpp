#include <cstring>
#include <isogloss/lds/count_run.hpp>
#include <limits>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::lds;

namespace {

constexpr std::size_t head_bytes = sizeof(CountRunHeader), section_bytes = sizeof(CountRunSection);

template <class Record> Record record(const std::string& bytes, std::size_t at) {
    Record out;
    REQUIRE(bytes.size() >= at + sizeof out);
    std::memcpy(&out, bytes.data() + at, sizeof out);
    return out;
}

std::uint64_t crc(std::string_view bytes) {
    file::Crc64 sum;
    sum.add(bytes);
    return sum.value();
}

}  // namespace

TEST_CASE("A file of counts has the bytes of its description", "[lds][count_run]") {
    const TemporaryDirectory place;
    const std::string path = place / "run";
    CountRunHeader header;
    header.vocabulary = 300, header.lags = 2, header.first = 5, header.last = 9;
    header.words = 11, header.text = 12;
    CountRunWriter out(path, header);
    out.section();
    out.add(0, 0, 3);
    out.add(1, 0, 200);
    out.section();
    out.add(0, 1, 2);
    out.add(0, 5, 1);
    out.add(3, 0, 128);
    out.add(299, 299, 16384);
    out.section();  // without a pair
    CHECK(!std::filesystem::exists(path));
    out.commit();

    const std::string bytes = contents(path);
    const std::size_t begin = head_bytes + 3 * section_bytes;
    const std::string first{"\x03\x01\x03\x03\x01\xC8\x01", 7};
    const std::string second{
        "\x03\x02\x02"                   // row 0 after -1, column 1, twice
        "\x08\x01"                       // four columns on, once
        "\x07\x01\x80\x01"               // three rows on, column 0, 128 times
        "\xD1\x04\xAC\x02\x80\x80\x01",  // 296 rows on, column 299, 2¹⁴ times
        16};
    REQUIRE(bytes.size() == begin + first.size() + second.size());
    CHECK(bytes.substr(begin) == first + second);

    const auto at = [&](std::size_t k) {
        return record<CountRunSection>(bytes, head_bytes + k * section_bytes);
    };
    const auto is = [](const CountRunSection& s, std::size_t from, const std::string& of, Index pairs,
                       Index largest) {
        CHECK(s.begin == std::int64_t(from));
        CHECK(s.bytes == std::ssize(of));
        CHECK(s.pairs == pairs);
        CHECK(s.largest == largest);
        CHECK(s.checksum == crc(of));
    };
    is(at(0), begin, first, 2, 200);
    is(at(1), begin + first.size(), second, 4, 16384);
    is(at(2), begin + first.size() + second.size(), "", 0, 0);

    auto found = record<CountRunHeader>(bytes, 0);
    CHECK(bytes.starts_with("isocount"));
    CHECK(found.vocabulary == 300);
    CHECK(found.lags == 2);
    CHECK(found.boundary == -1);
    CHECK(found.words == 11);
    CHECK(found.first == 5);
    CHECK(found.last == 9);
    CHECK(found.text == 12);
    const std::uint64_t sum = std::exchange(found.checksum, 0);
    CHECK(sum == crc(std::string(reinterpret_cast<const char*>(&found), head_bytes) +
                     bytes.substr(head_bytes, 3 * section_bytes)));
}

TEST_CASE("A file of counts may be longer than the writer's buffer, a count as large as 63 bits",
          "[lds][count_run]") {
    const TemporaryDirectory place;
    CountRunHeader header;
    header.vocabulary = 100000, header.lags = 1;
    CountRunWriter out(place / "run", header);
    out.section();
    for (Index i = 0; i < 100000; ++i) out.add(i, 0, std::numeric_limits<std::int64_t>::max());
    out.section();
    out.add(0, 0, 1);
    out.commit();
    const std::string bytes = contents(place / "run");
    const std::size_t begin = head_bytes + 2 * section_bytes;
    REQUIRE(bytes.size() == begin + 100000 * 11 + 3);  // 1 digit, 1 digit, 9 digits
    const std::string pair = std::string("\x03\x01") + std::string(8, '\xFF') + "\x7F";
    bool same = true;
    for (std::size_t i = 0; i < 100000; ++i) same = same && bytes.compare(begin + 11 * i, 11, pair) == 0;
    CHECK(same);
    const auto s = record<CountRunSection>(bytes, head_bytes);
    CHECK(s.largest == std::numeric_limits<std::int64_t>::max());
    CHECK(s.checksum == crc(std::string_view(bytes).substr(begin, 100000 * 11)));
}

TEST_CASE("A file of counts that was not completed leaves nothing", "[lds][count_run]") {
    const TemporaryDirectory place;
    {
        CountRunHeader header;
        header.vocabulary = 3, header.lags = 1;
        CountRunWriter out(place / "run", header);
        out.section();
        out.add(0, 0, 1);
        CHECK(place.entries() == 1);  // the temporary file
    }
    CHECK(place.entries() == 0);
}
