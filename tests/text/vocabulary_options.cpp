#include <isogloss/text/vocabulary.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/files.hpp"
#include "text/vocabulary_of.hpp"

using namespace isogloss;
using namespace isogloss::text;

namespace {
const std::string example = "d c b a d\nc b d\nc d\n";  // d 4, c 3, <eos> 3, b 2, a 1
}  // namespace

TEST_CASE("Types are ordered by count, then by first occurrence", "[text][vocabulary]") {
    const auto v = vocabulary_of(example);
    REQUIRE(v.words() == Strings{"d", "c", "<eos>", "b", "a", "<unk>"});
    REQUIRE(v.counts() == Counts{4, 3, 3, 2, 1, 0});
    REQUIRE(vocabulary_of("z y x w\n").words() == Strings{"z", "y", "x", "w", "<eos>", "<unk>"});
}

TEST_CASE("Rare types are cut off and counted as unknown", "[text][vocabulary]") {
    const auto v = vocabulary_of(example, {.min_count = 3});
    REQUIRE(v.words() ==
            Strings{"d", "c", "<unk>", "<eos>"});  // <unk> stands for b, which comes before <eos>
    REQUIRE(v.counts() == Counts{4, 3, 3, 3});
    REQUIRE(v.total() == 13);
    // eos and unk stay however rare they are.
    REQUIRE(vocabulary_of("a a a <unk>\n", {.min_count = 3}).words() == Strings{"a", "<unk>", "<eos>"});
}

TEST_CASE("The size limit holds for the whole vocabulary", "[text][vocabulary]") {
    for (Index limit = 3; limit <= 8; ++limit) {
        const auto v = vocabulary_of(example, {.max_size = limit});
        REQUIRE(v.size() == std::min<Index>(limit, 6));
        REQUIRE(v.total() == 13);
        REQUIRE(v.find("d"));
    }
    REQUIRE(vocabulary_of(example, {.max_size = 4}).words() == Strings{"d", "c", "<unk>", "<eos>"});
    // Five types fill the limit exactly; an <unk> nobody needs would push one out.
    const auto five = vocabulary_of(example, {.max_size = 5, .add_unk = false});
    REQUIRE(five.words() == Strings{"d", "c", "<eos>", "b", "a"});
    const auto four = vocabulary_of(example, {.max_size = 4, .add_unk = false});
    REQUIRE(four.words() == Strings{"d", "c", "<unk>", "<eos>"});
    // Of equally frequent types the earlier stay.
    REQUIRE(vocabulary_of("z y x w\n", {.max_size = 4}).words() == Strings{"<unk>", "z", "y", "<eos>"});
}

TEST_CASE("Unknown words spelled out in the text are the same type", "[text][vocabulary]") {
    const auto v = vocabulary_of("a <unk> a b\n<unk> c a\n", {.min_count = 2});
    REQUIRE(v.words() == Strings{"<unk>", "a", "<eos>"});
    REQUIRE(v.counts() == Counts{4, 3, 2});
    REQUIRE(v.unk() == 0);
    const auto eos = vocabulary_of("a <eos> b\n");
    REQUIRE(eos.count(eos.eos()) == 2);
}

TEST_CASE("Several texts are counted as one", "[text][vocabulary]") {
    TemporaryDirectory scratch;
    const auto a = put(scratch / "a.txt", "x y\n"), b = put(scratch / "b.txt", "y z"),
               both = put(scratch / "ab.txt", "x y\ny z\n");
    REQUIRE(Vocabulary::from_files({a, b}) == Vocabulary::from_file(both));
}

TEST_CASE("Texts that give no vocabulary are refused", "[text][vocabulary]") {
    TemporaryDirectory scratch;
    REQUIRE_THROWS_AS(Vocabulary::from_file(put(scratch / "empty.txt", "")), DataError);
    REQUIRE_THROWS_AS(Vocabulary::from_files({put(scratch / "a.txt", "a\n"), scratch / "empty.txt"}),
                      DataError);
    REQUIRE_THROWS_AS(Vocabulary::from_files({}), DataError);
    REQUIRE_THROWS_AS(Vocabulary::from_file(scratch / "none.txt"), FileError);
    REQUIRE_THROWS_AS(vocabulary_of(" \n\n", {.eos_per_line = false}), DataError);
    REQUIRE_THROWS_MATCHES(vocabulary_of("a\nb \xC3\n"), DataError, says("memory:2: byte 0xC3"));
    REQUIRE_THROWS_MATCHES(vocabulary_of("a\nlong line\n", {.max_line_bytes = 5}), DataError,
                           says("memory:2:"));
}

TEST_CASE("Options that contradict each other are refused", "[text][vocabulary]") {
    REQUIRE_THROWS_AS(vocabulary_of("a\n", {.min_count = 0}), DataError);
    REQUIRE_THROWS_AS(vocabulary_of("a\n", {.max_size = 2}), DataError);
    REQUIRE_THROWS_AS(vocabulary_of("a\n", {.max_size = -1}), DataError);
    REQUIRE_THROWS_AS(vocabulary_of("a\n", {.unk = "<eos>"}), DataError);
    REQUIRE_THROWS_AS(vocabulary_of("a\n", {.eos = "end of line"}), DataError);
    REQUIRE_THROWS_MATCHES(vocabulary_of("a\n", {.unk = std::string("u\0", 2)}), DataError, says("'u\\x00'"));
    REQUIRE_THROWS_AS(vocabulary_of("a a b\n", {.min_count = 2, .unk = ""}), DataError);
    REQUIRE_THROWS_AS(vocabulary_of("a b\n", {.min_count = 5}), DataError);
}
