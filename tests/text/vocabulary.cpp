#include <isogloss/text/vocabulary.hpp>
#include <locale>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/files.hpp"
#include "text/vocabulary_of.hpp"

using namespace isogloss;
using namespace isogloss::text;

namespace {
using Stream = std::vector<Token>;
}  // namespace

TEST_CASE("A vocabulary counts and looks up", "[text][vocabulary]") {
    const auto v = vocabulary_of("the cat and the dog\nthe end\n");
    REQUIRE(v.words() == Strings{"the", "<eos>", "cat", "and", "dog", "end", "<unk>"});
    REQUIRE(v.counts() == Counts{3, 2, 1, 1, 1, 1, 0});
    REQUIRE(v.size() == 7);
    REQUIRE(v.total() == 9);
    REQUIRE(v.level() == Level::word);
    REQUIRE(v["the"] == 0);
    REQUIRE(v["bird"] == v.unk());
    REQUIRE(v.find("cat") == 2);
    REQUIRE_FALSE(v.find("bird"));
    REQUIRE(v.eos() == 1);
    REQUIRE(v.word(4) == "dog");
    REQUIRE(v.count(0) == 3);
    REQUIRE(v.has_unk());
    REQUIRE(v.has_eos());
}

TEST_CASE("Tokens outside the vocabulary are refused", "[text][vocabulary]") {
    const auto v = vocabulary_of("a b\n");
    REQUIRE_THROWS_AS(v.word(4), DataError);
    REQUIRE_THROWS_AS(v.word(-1), DataError);
    REQUIRE_THROWS_AS(v.count(99), DataError);
    REQUIRE_THROWS_AS(v.decode(Stream{0, 7}), DataError);
}

TEST_CASE("Without a type for unknown words they are an error", "[text][vocabulary]") {
    const auto v = vocabulary_of("a b\n", {.eos_per_line = false, .unk = ""});
    REQUIRE(v.words() == Strings{"a", "b"});
    REQUIRE_FALSE(v.has_unk());
    REQUIRE_FALSE(v.has_eos());
    REQUIRE_THROWS_AS(v["c"], DataError);
    REQUIRE_THROWS_AS(v.unk(), DataError);
    REQUIRE_THROWS_AS(v.eos(), DataError);
    Stream out{5};
    REQUIRE_THROWS_AS(v.encode("a b c", out), DataError);
    REQUIRE(out == Stream{5});
    const auto letters = vocabulary_of("ab", {.level = Level::character, .eos_per_line = false, .unk = ""});
    REQUIRE_THROWS_AS(letters["c"], DataError);
}

TEST_CASE("A line becomes tokens and comes back", "[text][vocabulary]") {
    const auto v = vocabulary_of("the cat sat\non the mat\n");
    Stream out{42};
    REQUIRE(v.encode(" the  dog sat\t", out) == 1);
    REQUIRE(out == Stream{42, v["the"], v.unk(), v["sat"], v.eos()});
    out.clear();
    REQUIRE(v.encode_prefix("the mat", out) == 0);
    REQUIRE(out == Stream{v["the"], v["mat"]});
    REQUIRE(v.decode(out) == "the mat");
    v.encode("", out);
    v.encode("on the cat", out);
    REQUIRE(v.decode(out) == "the mat\non the cat\n");
    REQUIRE(v.decode({}).empty());
    out.clear();
    REQUIRE(v.encode("<unk> cat", out) == 1);
}

TEST_CASE("A line to encode is one line of valid UTF-8", "[text][vocabulary]") {
    const auto v = vocabulary_of("a\n");
    Stream out;
    REQUIRE_THROWS_AS(v.encode("a\na", out), DataError);
    REQUIRE_THROWS_AS(v.encode("a \xFF", out), DataError);
    REQUIRE_THROWS_AS(v.encode(std::string_view("a\0", 2), out), DataError);
    REQUIRE(out.empty());
}

TEST_CASE("Characters are types too", "[text][vocabulary]") {
    const auto v = vocabulary_of("a\u00E9a \na\n", {.level = Level::character});
    REQUIRE(v.words() == Strings{"a", "\n", "\u00E9", " ", "<unk>"});
    REQUIRE(v.counts() == Counts{3, 2, 1, 1, 0});
    REQUIRE(v.word(v.eos()) == "\n");
    Stream out;
    REQUIRE(v.encode("\u00E9 a?", out) == 1);
    REQUIRE(out == Stream{2, 3, 0, v.unk(), 1});
    REQUIRE(v.decode(Stream{0, 2, 3, 0, 1, 0}) == "a\u00E9 a\na");

    const auto marked = vocabulary_of("ab\n", {.level = Level::character, .add_unk = false, .eos = "<eos>"});
    REQUIRE(marked.words() == Strings{"a", "b", "<eos>"});
    REQUIRE(marked.decode(Stream{0, 2, 1}) == "a\nb");
    const auto open = vocabulary_of("ab\nc\n", {.level = Level::character, .eos_per_line = false});
    REQUIRE(open.words() == Strings{"a", "b", "c", "<unk>"});
}

TEST_CASE("A list of words is taken in its own order", "[text][vocabulary]") {
    const auto v = Vocabulary::from_words({"b", "<eos>", "a"}, {1, 5, 9});
    REQUIRE(v.words() == Strings{"b", "<eos>", "a"});
    REQUIRE(v.count(2) == 9);
    REQUIRE(v.total() == 15);
    REQUIRE_FALSE(v.has_unk());
    const auto bare = Vocabulary::from_words({"</s>", "UNK", "the"}, {}, {.unk = "UNK", .eos = "</s>"});
    REQUIRE(bare.unk() == 1);
    REQUIRE(bare.eos() == 0);
    REQUIRE(bare.total() == 0);
    const auto counted = vocabulary_of("x y x\nz\n", {.min_count = 2});
    REQUIRE(Vocabulary::from_words(counted.words(), counted.counts(), {.min_count = 2}) == counted);
}

TEST_CASE("A list of words that is none is refused", "[text][vocabulary]") {
    const VocabularyOptions open{.eos_per_line = false};
    const auto from = [&](const Strings& w, const Counts& c = {}) {
        return Vocabulary::from_words(w, c, open);
    };
    REQUIRE_THROWS_AS(from({"a", "b", "a"}), DataError);
    REQUIRE_THROWS_AS(from({"a", ""}), DataError);
    REQUIRE_THROWS_AS(from({"a b"}), DataError);
    REQUIRE_THROWS_AS(from({"\xFF"}), DataError);
    REQUIRE_THROWS_AS(from({"a"}, {-1}), DataError);
    REQUIRE_THROWS_AS(from({"a"}, {1, 2}), DataError);
    REQUIRE_THROWS_AS(Vocabulary::from_words({"a"}), DataError);
    REQUIRE_THROWS_AS(Vocabulary::from_words({"ab"}, {}, {.level = Level::character, .eos_per_line = false}),
                      DataError);
    REQUIRE_THROWS_AS(Vocabulary::from_words({"a"}, {}, {.unk = "x", .eos = "x"}), DataError);
    REQUIRE_THROWS_AS(Vocabulary::from_words({"a"}, {}, {.unk = "un known"}), DataError);
}

TEST_CASE("The checksum is that of what makes tokens of a text", "[text][vocabulary]") {
    const Strings words{"<unk>", "<eos>", "a", "b"};
    const auto v = Vocabulary::from_words(words, {4, 3, 2, 1});
    REQUIRE(v.checksum() == Vocabulary::from_words(words).checksum());
    REQUIRE(v.checksum() != Vocabulary::from_words({"<unk>", "<eos>", "b", "a"}).checksum());
    REQUIRE(v.checksum() != Vocabulary::from_words(words, {}, {.eos_per_line = false}).checksum());
    REQUIRE(v.checksum() != Vocabulary::from_words(words, {}, {.unk = "a"}).checksum());
    REQUIRE(v.checksum() != Vocabulary::from_words(words, {}, {.eos = "a"}).checksum());
    const VocabularyOptions characters{.level = Level::character, .eos = "<eos>"};
    REQUIRE(v.checksum() != Vocabulary::from_words(words, {}, characters).checksum());
}

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
    const auto number = message(10000, ' ', 0.5);  // names in files are made like this
    std::locale::global(before);
    REQUIRE(now == written);
    REQUIRE(number == "10000 0.5");
}

TEST_CASE("A vocabulary cut anywhere is refused", "[text][vocabulary]") {
    for (std::size_t n = 0; n < written.size(); ++n)
        REQUIRE_THROWS_AS(parse(written.substr(0, n)), DataError);
}

TEST_CASE("What to_text would not write is refused, with the line", "[text][vocabulary]") {
    using Change = std::pair<const char*, const char*>;
    for (const auto& [found, changed] : {Change{"vocabulary\t1", "vocabulary\t2"},
                                         {"word\n", "byte\n"},
                                         {"true", "yes"},
                                         {"unk\t", "unknown\t"},
                                         {"eos\t<eos>", "eos\t"},
                                         {"eos\t<eos>", "eos\t<unk>"},
                                         {"types\t3", "types\t2"},
                                         {"types\t3", "types\t4"},
                                         {"types\t3", "types\tmany"},
                                         {"<eos>\t7", "a\\\\b\t7"},
                                         {"<eos>\t7", "end\t7"},
                                         {"<eos>\t7", "\t7"},
                                         {"<eos>\t7", "a b\t7"},
                                         {"<eos>\t7", "\xFF\t7"}})
        REQUIRE_THROWS_AS(parse(with(found, changed)), DataError);
    for (const char* bad : {"-1", "+1", "01", "1.5", "", " 1", "1 ", "1\r", "99999999999999999999",
                            "9223372036854775807", "12\t00"})
        REQUIRE_THROWS_AS(parse(with("1200", bad)), DataError);
    for (const char* bad :
         {"\\", "\\x", "\\x1", "\\q", "\\xZZ", "\\x-1", "\\x 1", "\\x41", "\\x0a", "\x01", "\\x5C"})
        REQUIRE_THROWS_MATCHES(parse(with("\\x01", bad)), DataError, says("file:9:"));
    REQUIRE_THROWS_MATCHES(parse(with("true", "yes")), DataError, says("file:3:"));
    REQUIRE_THROWS_AS(parse("the quick brown fox\n"), DataError);
    REQUIRE_THROWS_AS(parse(written + "\n"), DataError);
}

TEST_CASE("A vocabulary is saved and loaded", "[text][vocabulary]") {
    TemporaryDirectory scratch;
    const auto v = parse(written);
    v.save(scratch / "v.tsv");
    REQUIRE(contents(scratch / "v.tsv") == written);
    REQUIRE(Vocabulary::load(scratch / "v.tsv") == v);
    REQUIRE(scratch.entries() == 1);
    REQUIRE_THROWS_AS(Vocabulary::load(scratch / "none"), FileError);
    REQUIRE_THROWS_MATCHES(Vocabulary::load(put(scratch / "bad", written + "x")), DataError, says("bad"));
}
