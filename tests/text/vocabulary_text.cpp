#include <isogloss/text/vocabulary.hpp>
#include <locale>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;

namespace {
const std::string written =
    "isogloss-vocabulary\t1\nlevel\tword\neos_per_line\ttrue\nunk\t<unk>\neos\t<eos>\ntypes\t3\n"
    "a\\\\b\t1200\n<eos>\t7\n\\x01\t0\n";

std::string with(const std::string& from, const std::string& to) {
    std::string s = written;
    const auto at = s.find(from);
    REQUIRE(at != std::string::npos);
    return s.replace(at, from.size(), to);
}
Vocabulary parse(const std::string& s) { return Vocabulary::from_text(s, "file"); }
}  // namespace

TEST_CASE("A vocabulary is written as documented", "[text][vocabulary]") {
    const auto v = Vocabulary::from_words({"a\\b", "<eos>", "\x01"}, {1200, 7, 0});
    REQUIRE(v.to_text() == written);
    REQUIRE(parse(written) == v);
}

TEST_CASE("Every vocabulary survives the round trip", "[text][vocabulary]") {
    std::istringstream words("a\\x09 \u6226 \x7F\x01 a a\\\n<unk> \\\\ \n"),
        characters("a\\\tb\u00E9\rc\n\u3000");
    const Vocabulary all[] = {
        {},
        Vocabulary::from_stream(words, "words"),
        Vocabulary::from_stream(characters, "characters", {.level = Level::character}),
        Vocabulary::from_words({"x"}, {}, {.eos_per_line = false, .unk = ""}),
        Vocabulary::from_words({"\n", "?"}, {1, 2}, {.level = Level::character, .unk = "?"}),
    };
    for (const auto& v : all) {
        const auto back = Vocabulary::from_text(v.to_text());
        REQUIRE(back == v);
        REQUIRE(back.to_text() == v.to_text());
        REQUIRE(back.checksum() == v.checksum());
        REQUIRE(back.has_unk() == v.has_unk());
        REQUIRE(back.has_eos() == v.has_eos());
        REQUIRE(back.total() == v.total());
    }
}

TEST_CASE("The host program's locale does not show in the file", "[text][vocabulary]") {
    struct Grouping : std::numpunct<char> {
        char do_thousands_sep() const override { return ','; }
        std::string do_grouping() const override { return "\3"; }
    };
    const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
    const auto now = parse(written).to_text();
    std::locale::global(before);
    REQUIRE(now == written);
}

TEST_CASE("A vocabulary cut anywhere is refused", "[text][vocabulary]") {
    for (std::size_t n = 0; n < written.size(); ++n)
        REQUIRE_THROWS_AS(parse(written.substr(0, n)), DataError);
    REQUIRE_THROWS_MATCHES(parse(written.substr(0, written.size() - 1)), DataError,
                           says("file:9: the text ends within", "cut"));
    REQUIRE_THROWS_MATCHES(parse(written.substr(0, written.find("\\x01"))), DataError,
                           says("file:9: the text ends before the line with the next word"));
}

TEST_CASE("What to_text would not write is refused, with the line", "[text][vocabulary]") {
    REQUIRE_THROWS_MATCHES(parse("the quick brown fox\n"), DataError, says("file:1: this is no vocabulary"));
    REQUIRE_THROWS_MATCHES(parse(with("vocabulary\t1", "vocabulary\t2")), DataError,
                           says("file:1:", "version '2'"));
    REQUIRE_THROWS_MATCHES(parse(with("word\n", "byte\n")), DataError,
                           says("file:2: found level 'byte'", "character"));
    REQUIRE_THROWS_MATCHES(parse(with("true", "yes")), DataError, says("file:3: found eos_per_line 'yes'"));
    REQUIRE_THROWS_MATCHES(parse(with("unk\t", "unknown\t")), DataError,
                           says("file:4: found 'unknown'", "'unk'"));
    REQUIRE_THROWS_MATCHES(parse(with("eos\t<eos>", "eos\t")), DataError,
                           says("file:5:", "no name for line ends"));
    REQUIRE_THROWS_MATCHES(parse(with("eos\t<eos>", "eos\t<unk>")), DataError,
                           says("file:5:", "both spelled"));
    REQUIRE_THROWS_MATCHES(parse(with("types\t3", "types\tmany")), DataError,
                           says("file:6: found 'many'", "number"));
    REQUIRE_THROWS_MATCHES(parse(with("types\t3", "types\t2")), DataError, says("file:9:", "more text"));
    REQUIRE_THROWS_MATCHES(parse(with("types\t3", "types\t4")), DataError, says("file:10:", "cut"));
    REQUIRE_THROWS_MATCHES(parse(with("\t1200", " 1200")), DataError, says("file:7:", "one tab"));
    REQUIRE_THROWS_MATCHES(parse(with("\t1200", "\t12\t00")), DataError, says("file:7:", "one tab"));
    for (const char* bad : {"-1", "+1", "01", "1.5", "", " 1", "1 ", "1\r", "99999999999999999999"})
        REQUIRE_THROWS_MATCHES(parse(with("1200", bad)), DataError, says("file:7:", "whole number"));
    REQUIRE_THROWS_MATCHES(parse(with("<eos>\t7", "a\\\\b\t7")), DataError,
                           says("file:8: 'a\\b' is there twice"));
    REQUIRE_THROWS_MATCHES(parse(with("<eos>\t7", "\t7")), DataError, says("file:8:", "is empty"));
    REQUIRE_THROWS_MATCHES(parse(with("<eos>\t7", "a b\t7")), DataError, says("file:8:", "white space"));
    REQUIRE_THROWS_MATCHES(parse(with("<eos>\t7", "\xFF\t7")), DataError, says("file:8:", "UTF-8"));
    REQUIRE_THROWS_MATCHES(parse(with("<eos>\t7", "end\t7")), DataError,
                           says("file:", "'<eos>' is not among"));
    for (const char* bad : {"\\", "\\x", "\\x1", "\\q", "\\xZZ", "\\x-1", "\\x 1"})
        REQUIRE_THROWS_MATCHES(parse(with("\\x01", bad)), DataError, says("file:9:", "backslash"));
    for (const char* bad : {"\\x41", "\\x0a", "\x01"})  // spellings that to_text does not use
        REQUIRE_THROWS_MATCHES(parse(with("\\x01", bad)), DataError, says("file:9:", "should be written"));
    REQUIRE_THROWS_MATCHES(parse(written + "\n"), DataError, says("file:10:", "more text"));
}

TEST_CASE("A vocabulary is saved and loaded", "[text][vocabulary]") {
    TemporaryDirectory scratch;
    const auto v = parse(written);
    v.save(scratch / "v.tsv");
    REQUIRE(contents(scratch / "v.tsv") == written);
    REQUIRE(Vocabulary::load(scratch / "v.tsv") == v);
    REQUIRE(scratch.entries() == 1);
    REQUIRE_THROWS_MATCHES(Vocabulary::load(scratch / "none"), FileError, says("none", "No such file"));
    REQUIRE_THROWS_MATCHES(Vocabulary::load(put(scratch / "bad", written + "x")), DataError, says("bad:10:"));
}
