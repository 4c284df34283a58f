#include <cmath>
#include <cstdint>
#include <cstring>
#include <isogloss/io/word_vectors.hpp>
#include <isogloss/random.hpp>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "files.hpp"

using namespace isogloss;
using namespace isogloss::io;

namespace {
using Format = WordVectorFormat;
constexpr Format formats[] = {Format::word2vec_text, Format::word2vec_binary, Format::glove_text};

bool same(const WordVectors& a, const WordVectors& b) {
    return a.words.words() == b.words.words() && a.dimension == b.dimension &&
           a.values.size() == b.values.size() &&
           std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0;
}

// Four bytes of a float as they stand in a binary file.
std::string bits(float x) { return {reinterpret_cast<const char*>(&x), 4}; }

const WordVectors two{{"king", "d\xC3\xA9j\xC3\xA0"}, 3, {0.5f, -1, 0.1f, 1e-7f, 2, -0.0f}};
}  // namespace

TEST_CASE("The formats are written byte by byte as described", "[io][word_vectors]") {
    TemporaryDirectory dir;
    write_word_vectors(dir / "t", two, Format::word2vec_text);
    REQUIRE(contents(dir / "t") == "2 3\nking 0.5 -1 0.1\nd\xC3\xA9j\xC3\xA0 1e-07 2 -0\n");
    write_word_vectors(dir / "g", two, Format::glove_text);
    REQUIRE(contents(dir / "g") == "king 0.5 -1 0.1\nd\xC3\xA9j\xC3\xA0 1e-07 2 -0\n");
    write_word_vectors(dir / "b", two, Format::word2vec_binary);
    REQUIRE(contents(dir / "b") == "2 3\nking " + bits(0.5f) + bits(-1) + bits(0.1f) +
                                       "\nd\xC3\xA9j\xC3\xA0 " + bits(1e-7f) + bits(2) + bits(-0.0f) + "\n");
    REQUIRE(dir.entries() == 3);
}

TEST_CASE("A row that no word has is refused", "[io][word_vectors][errors]") {
    REQUIRE(two.row(1)[1] == 2);
    REQUIRE_THROWS_MATCHES(two.row(two.words.find("queen")), UsageError, says("row = -1", "0 to 1"));
    REQUIRE_THROWS_MATCHES(two.row(2), UsageError, says("row = 2"));
}

TEST_CASE("Every finite float survives every format", "[io][word_vectors]") {
    TemporaryDirectory dir;
    WordVectors v;
    v.dimension = 50;
    const Random random(3, stream_of("floats"));
    for (Index i = 0; i < 300; ++i) {
        v.words.insert("w" + std::to_string(i));
        for (Index k = 0; k < v.dimension; ++k) {
            const std::uint32_t pattern = random.bits(i * v.dimension + k);  // denormals and extremes too
            float x;
            std::memcpy(&x, &pattern, 4);
            v.values.push_back(std::isfinite(x) ? x : std::numeric_limits<float>::max());
        }
    }
    v.values[0] = std::numeric_limits<float>::denorm_min();
    v.values[1] = -std::numeric_limits<float>::min();
    for (const Format format : formats) {
        write_word_vectors(dir / "v", v, format);
        REQUIRE(guess_word_vectors(dir / "v") == format);
        REQUIRE(same(read_word_vectors(dir / "v"), v));
        REQUIRE(same(read_word_vectors(dir / "v"), v));
    }
}

TEST_CASE("Files of other programs are read", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const WordVectors expected{{"</s>", "\xE2\x82\xAC"}, 2, {1, -0.25f, 3, 4}};
    // Spaces at the ends of lines, Windows line ends, tabs, no last line end, other spellings of numbers.
    put(dir / "t", "2 2 \r\n</s> 1.000000 -0.250000 \r\n\xE2\x82\xAC\t3e0  4.");
    REQUIRE(same(read_word_vectors(dir / "t"), expected));
    put(dir / "g", "</s> 1 -.25\n\xE2\x82\xAC 3 4E+00");
    REQUIRE(same(read_word_vectors(dir / "g"), expected));
    for (const std::string end : {"\n", ""}) {
        const std::string first = "</s> " + bits(1) + bits(-0.25f),
                          second = "\xE2\x82\xAC " + bits(3) + bits(4);
        std::string bytes = "2 2\n";
        bytes.append(first).append(end).append(second).append(end);
        put(dir / "b", bytes);
        REQUIRE(same(read_word_vectors(dir / "b"), expected));
    }
    // Below the range of a float, but a number.
    put(dir / "g", "a 1e-60 -1e-60 1e-45\n");
    REQUIRE(read_word_vectors(dir / "g", Format::glove_text).values == std::vector<float>{0, -0.0f, 1e-45f});
    // A no-break space is part of a word, as any bytes beyond ASCII; and so are bytes that are not UTF-8.
    put(dir / "g",
        "1\xC2\xA0"
        "000 7\n\xFF 8\n");
    REQUIRE(read_word_vectors(dir / "g", Format::glove_text).words.words() ==
            std::vector<std::string>{"1\xC2\xA0"
                                     "000",
                                     "\xFF"});
}

TEST_CASE("The format is guessed from the first line and control characters", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const auto format_of = [&](const std::string& bytes) {
        return guess_word_vectors(put(dir / "f", bytes));
    };
    REQUIRE(format_of("1\t2 \r\na 1 2\n") == Format::word2vec_text);
    REQUIRE(format_of("1 2\n\xC3\xA9\tone two\r\n") ==
            Format::word2vec_text);  // whose reader then says what is wrong
    REQUIRE(format_of("1 2\na " + bits(1) + bits(2) + "\n") == Format::word2vec_binary);
    REQUIRE(format_of("1 2 3\na 4 5\n") == Format::glove_text);
    REQUIRE(format_of("1 2.0\n") == Format::glove_text);
    REQUIRE_THROWS_MATCHES(guess_word_vectors(dir / "none"), FileError, says("No such file"));
}

TEST_CASE("A byte order mark is dropped and never written", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const std::string mark = "\xEF\xBB\xBF";
    for (const Format format : formats) {
        write_word_vectors(dir / "v", two, format);
        put(dir / "f", mark + contents(dir / "v"));
        REQUIRE(same(read_word_vectors(dir / "f"), two));
        REQUIRE_THROWS_MATCHES(write_word_vectors(dir / "g", {{mark + "a"}, 1, {1}}, format), DataError,
                               says("rename or remove it"));
    }
    REQUIRE_THROWS_AS(read_word_vectors(put(dir / "f", mark)), FileError);
}

TEST_CASE("Words with spaces, as in GloVe's largest file, are read", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const WordVectors expected{
        {",", ". . .", "at name@domain.com", "a\t b", "\xE2\x80\xA2 x"}, 2, {1, 2, 3, -4, 5, 6, 7, 8, 9, 1}};
    put(dir / "g", ", 1 2\n. . . 3 -4 \r\nat name@domain.com 5 6\na\t b\t7\t8\n\xE2\x80\xA2 x  9 1");
    REQUIRE(same(read_word_vectors(dir / "g"), expected));
    put(dir / "t", "5 2\n" + contents(dir / "g"));
    REQUIRE(same(read_word_vectors(dir / "t"), expected));
    for (const Format format : formats)
        REQUIRE_THROWS_MATCHES(write_word_vectors(dir / "v", expected, format), DataError,
                               says("'. . .'", "rename or remove it"));
}

TEST_CASE("Faulty text is refused with its line", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const auto refused = [&](Format format, const std::string& bytes, const auto&... reason) {
        INFO(bytes);
        CHECK_THROWS_MATCHES(read_word_vectors(put(dir / "f", bytes), format), FileError,
                             says(dir / "f", reason...));
    };
    for (const char* first : {"", "\n", "the 0.1 0.2\n", "-1 2\n", "2\n", "99999999999999999999 2\n", "0 5\n",
                              "5 0\na\n", "2 2\na 1 2\n", "9223372036854775807 9223372036854775807\na 1\n",
                              "9223372036854775807 1\na 1\n", "1 4611686018427387904\na 1\n"})
        refused(Format::word2vec_text, first, "line 1", "number of words and the dimension");
    refused(Format::word2vec_text, "2 1\naaaaaaaa 1\n", "expected a word and 1 finite numbers");
    refused(Format::word2vec_text, "1 2\na 1 2\nb 3 4\n", "more follows than the 1 words");
    for (const char* third :
         {"bbbbbbb", "bbbb 3", "b 3 4 5 6", "New York 3", "New York 3 4 5", "b 3 c 4 5", "b 3 nan", "b inf 4",
          "b 3 -1e39", "b 3 1e999", "b 3 4x", "b 3 0x4", "b 3 1,5", "a 3 4"})
        refused(Format::word2vec_text, std::string("2 2\na 1 2\n") + third + "\n", "line 3, word 2");
    refused(Format::word2vec_text, std::string("2 2\na 1 2\n\0 3 4\n", 16), "line 3", "'\\x00'");
    refused(Format::glove_text, "a 1\nb 2\na 3\n", "line 3", "the word 'a'", "expected another");
    for (const char* bytes : {"", "a\n", ". . . 1 2\n"}) refused(Format::glove_text, bytes, "line 1");
    for (const char* bytes :
         {"a 1 2\nb 3\n", "a 1 2\nb 3 4 5\n", "a 1 2\nb 3 4c 5 6\n", "a 1\n\n", "1 2\na 3 4\n"})
        refused(Format::glove_text, bytes, "line 2");
    refused(Format::glove_text, std::string(65537, 'x') + " 1\n", "line 1", "1 to 65536 bytes");
}

TEST_CASE("Faulty binary is refused with its word", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const auto refused = [&](const std::string& bytes, const auto&... reason) {
        INFO(bytes);
        CHECK_THROWS_MATCHES(read_word_vectors(put(dir / "f", bytes), Format::word2vec_binary), FileError,
                             says(dir / "f", reason...));
    };
    const std::string a = "a " + bits(1) + bits(2) + "\n", b = "b " + bits(3) + bits(4) + "\n";
    REQUIRE(read_word_vectors(put(dir / "f", "2 2\n" + a + b), Format::word2vec_binary).words.size() == 2);
    for (const std::string& bytes : {std::string(), std::string("0 2\n"), "2 2\n" + a,
                                     "1000000000000 300\n" + a, "1 2305843009213693952\n" + a})
        refused(bytes, "line 1", "number of words and the dimension");
    refused("2 2\n" + a + b + "\n", "more follows");
    refused("2 2\n" + a + b + "c", "more follows");
    refused("2 2\n" + a + a, "word 2", "the word 'a'", "expected another");
    refused("2 2\n" + a + "b " + bits(3) + bits(std::numeric_limits<float>::infinity()),
            "inf in the vector of 'b'");
    refused("2 2\n" + a + " " + bits(3) + bits(4) + "\n", "word 2", "the word ''");
    refused("1 2\naaaaaaaaaaaaaa", "word 1", "the word ''");
    refused("1 2\naaaaaaaaaa " + bits(1), "truncated");
    refused("1 2\na\tb " + bits(1) + bits(2), "'a\\x09b'");
    refused("1 2\n" + std::string(3'000'000, 'x'), "word 1");
    refused("1 1\n" + std::string(65537, 'x') + " " + bits(1), "1 to 65536 bytes");
}

TEST_CASE("A file cut or changed anywhere is read whole or refused", "[io][word_vectors]") {
    TemporaryDirectory dir;
    for (const Format format : formats) {
        write_word_vectors(dir / "v", two, format);
        const std::string whole = contents(dir / "v");
        const auto try_it = [&](const std::string& bytes) {
            put(dir / "f", bytes);
            for (int automatic = 0; automatic < 2; ++automatic) try {
                    const auto v = automatic ? read_word_vectors(dir / "f") : read_word_vectors(dir / "f");
                    if (v.words.size() == 0 || std::ssize(v.values) != v.words.size() * v.dimension)
                        FAIL("a half file was accepted");
                } catch (const FileError&) {
                }
        };
        for (std::size_t n = 0; n < whole.size(); ++n) {
            try_it(whole.substr(0, n));
            for (int change = 1; change < 256; change += change < 8 ? 1 : 5) {
                std::string bytes = whole;
                bytes[n] = static_cast<char>(bytes[n] ^ change);
                try_it(bytes);
            }
        }
    }
    // A header protects against a lost end, up to the last digits of the last number.
    write_word_vectors(dir / "v", two, Format::word2vec_binary);
    const std::string whole = contents(dir / "v");
    for (std::size_t n = 0; n + 1 < whole.size(); ++n)
        REQUIRE_THROWS_AS(read_word_vectors(put(dir / "f", whole.substr(0, n)), Format::word2vec_binary),
                          FileError);
}

TEST_CASE("Vectors that no file can hold are not written", "[io][word_vectors]") {
    TemporaryDirectory dir;
    put(dir / "v", "old");
    const std::string longest(65536, 'x');
    for (const Format format : formats) {
        const auto refused = [&](const WordVectors& v, const auto&... reason) {
            CHECK_THROWS_MATCHES(write_word_vectors(dir / "v", v, format), DataError, says(reason...));
        };
        refused({}, "0 words");
        refused({{"a"}, 0, {}}, "dimension 0");
        refused({{"a"}, 2, {1}}, "1 values");
        refused({{"a", "b"}, 2, {1, 2, 3}}, "3 values");
        for (const std::string& word : {std::string(), std::string("a b"), std::string("b\n"), longest + "x"})
            refused({{"a", word}, 1, {1, 2}}, "rename or remove it");
        refused({{"a", "b"}, 1, {1, std::nanf("")}}, "nan in 'b'");
        write_word_vectors(dir / "w", {{"a", longest}, 1, {1, 2}}, format);
        REQUIRE(read_word_vectors(dir / "w", format).words.find(longest) == 1);
    }
    REQUIRE(contents(dir / "v") == "old");
}
