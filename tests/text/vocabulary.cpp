#include <isogloss/text/vocabulary.hpp>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {
Vocabulary vocabulary_of(const std::string& text, const VocabularyOptions& options = {}) {
    std::istringstream in(text);
    return Vocabulary::from_stream(in, "memory", options);
}
using Strings = std::vector<std::string>;
using Counts = std::vector<std::int64_t>;
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
    REQUIRE_THROWS_MATCHES(v.word(4), DataError, says("token 4 is outside the vocabulary of 4 types"));
    REQUIRE_THROWS_MATCHES(v.word(-1), DataError, says("token -1"));
    REQUIRE_THROWS_MATCHES(v.count(99), DataError, says("token 99"));
    REQUIRE_THROWS_MATCHES(v.decode(Stream{0, 7}), DataError, says("token 7"));
}

TEST_CASE("Without a type for unknown words they are an error", "[text][vocabulary]") {
    const auto v = vocabulary_of("a b\n", {.eos_per_line = false, .unk = ""});
    REQUIRE(v.words() == Strings{"a", "b"});
    REQUIRE_FALSE(v.has_unk());
    REQUIRE_FALSE(v.has_eos());
    REQUIRE_THROWS_MATCHES(v["c"], DataError,
                           says("'c' is not among the 2 types", "no type for unknown words"));
    REQUIRE_THROWS_MATCHES(v.unk(), DataError, says("no type for unknown words"));
    REQUIRE_THROWS_MATCHES(v.eos(), DataError, says("no type for line ends", "<eos>"));
    Stream out{5};
    REQUIRE_THROWS_AS(v.encode("a b c", out), DataError);
    REQUIRE(out == Stream{5});
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
    REQUIRE_THROWS_MATCHES(v.encode("a\na", out), DataError, says("line feed", "one line"));
    REQUIRE_THROWS_MATCHES(v.encode("a \xFF", out), DataError, says("byte 0xFF at offset 2", "UTF-8"));
    REQUIRE_THROWS_MATCHES(v.encode(std::string_view("a\0", 2), out), DataError, says("byte 0x00", "NUL"));
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
    REQUIRE_THROWS_MATCHES(from({"a", "b", "a"}), DataError, says("word 2: 'a' is there twice"));
    REQUIRE_THROWS_MATCHES(from({"a", ""}), DataError, says("word 1: '' is empty"));
    REQUIRE_THROWS_MATCHES(from({"a b"}), DataError, says("word 0: 'a b' holds white space"));
    REQUIRE_THROWS_MATCHES(from({"\xFF"}), DataError, says("word 0", "UTF-8"));
    REQUIRE_THROWS_MATCHES(from({"a"}, {-1}), DataError, says("'a' has a count below 0"));
    REQUIRE_THROWS_MATCHES(from({"a"}, {1, 2}), DataError, says("1 words, but 2 counts"));
    REQUIRE_THROWS_MATCHES(
        Vocabulary::from_words({"a"}), DataError,
        says("each line end is to be a token, but '<eos>' is not among the 1 types", "eos_per_line"));
    REQUIRE_THROWS_MATCHES(
        Vocabulary::from_words({"ab"}, {}, {.level = Level::character, .eos_per_line = false}), DataError,
        says("'ab' is more than one character"));
    REQUIRE_THROWS_MATCHES(Vocabulary::from_words({"a"}, {}, {.unk = "x", .eos = "x"}), DataError,
                           says("both spelled 'x'"));
    REQUIRE_THROWS_MATCHES(Vocabulary::from_words({"a"}, {}, {.unk = "un known"}), DataError,
                           says("'un known' cannot stand for unknown words"));
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

TEST_CASE("An empty vocabulary has nothing and breaks nothing", "[text][vocabulary]") {
    const Vocabulary v;
    REQUIRE(v.size() == 0);
    REQUIRE_FALSE(v.find("a"));
    REQUIRE_THROWS_AS(v["a"], DataError);
    REQUIRE_THROWS_AS(v.word(0), DataError);
    REQUIRE(v.decode({}).empty());
}

TEST_CASE("Counts whose sum cannot be counted are refused", "[text][vocabulary][errors]") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(Vocabulary::from_words({"a", "<eos>"}, {most - 1, 1}).total() == most);
    REQUIRE_THROWS_MATCHES(Vocabulary::from_words({"a", "b", "<eos>"}, {most, 1, 0}), DataError,
                           says("word 1", "'b'", "2^63 - 1"));
}
