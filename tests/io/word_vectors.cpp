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

WordVectors read_as(Format format, const std::string& path) {
    return format == Format::word2vec_text     ? read_word2vec_text(path)
           : format == Format::word2vec_binary ? read_word2vec_binary(path)
                                               : read_glove_text(path);
}

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
    write_word2vec_text(dir / "t", two);
    REQUIRE(contents(dir / "t") == "2 3\nking 0.5 -1 0.1\nd\xC3\xA9j\xC3\xA0 1e-07 2 -0\n");
    write_glove_text(dir / "g", two);
    REQUIRE(contents(dir / "g") == "king 0.5 -1 0.1\nd\xC3\xA9j\xC3\xA0 1e-07 2 -0\n");
    write_word2vec_binary(dir / "b", two);
    REQUIRE(contents(dir / "b") == "2 3\nking " + bits(0.5f) + bits(-1) + bits(0.1f) +
                                       "\nd\xC3\xA9j\xC3\xA0 " + bits(1e-7f) + bits(2) + bits(-0.0f) + "\n");
    REQUIRE(dir.entries() == 3);
}

TEST_CASE("A row that no word has is refused", "[io][word_vectors][errors]") {
    REQUIRE(two.row(1)[1] == 2);
    REQUIRE_THROWS_MATCHES(two.row(two.words.find("queen")), UsageError,
                           says("row -1", "one of the 2 words"));
    REQUIRE_THROWS_MATCHES(two.row(2), UsageError, says("row 2"));
}

TEST_CASE("The numbers of the first line may be any blanks apart", "[io][word_vectors]") {
    TemporaryDirectory dir;
    for (const char* first : {"1\t2", "1  2", "1 \t 2\t \r"}) {
        const std::string path = put(dir / "f", first + std::string("\na 3 4\n"));
        CHECK(recognise_word_vectors(path) == Format::word2vec_text);
        CHECK(read_word_vectors(path).values == std::vector<float>{3, 4});
    }
    REQUIRE_FALSE(word2vec_header("1\r2"));
    REQUIRE_FALSE(word2vec_header("12"));
    REQUIRE_FALSE(word2vec_header("1 2 3"));
    REQUIRE_THROWS_MATCHES(read_glove_text(put(dir / "f", "1 2\na 3 4\n")), FileError,
                           says("line 2: 2 numbers", "expected 1", "word2vec's text"));
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
        REQUIRE(recognise_word_vectors(dir / "v") == format);
        REQUIRE(same(read_as(format, dir / "v"), v));
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
    REQUIRE(read_glove_text(dir / "g").values == std::vector<float>{0, -0.0f, 1e-45f});
    // A no-break space is part of a word, as any bytes beyond ASCII; and so are bytes that are not UTF-8.
    put(dir / "g",
        "1\xC2\xA0"
        "000 7\n\xFF 8\n");
    REQUIRE(read_glove_text(dir / "g").words.words() == std::vector<std::string>{"1\xC2\xA0"
                                                                                 "000",
                                                                                 "\xFF"});
}

TEST_CASE("Recognition looks at two lines", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const auto format_of = [&](const std::string& bytes) {
        return recognise_word_vectors(put(dir / "f", bytes));
    };
    REQUIRE(format_of("1 2\na 1 2\n") == Format::word2vec_text);
    REQUIRE(format_of("1 2\na one two\n") == Format::word2vec_text);  // whose reader then says what is wrong
    REQUIRE(format_of("1 2\na " + bits(1) + bits(2) + "\n") == Format::word2vec_binary);
    REQUIRE(format_of("2 1\nnew york 1\n\xC3\xA9 2\n") == Format::word2vec_text);  // faulty, too
    REQUIRE(format_of("1 2\na 1\n\xC3\xA9 2\n") == Format::word2vec_text);
    REQUIRE(format_of("2 2\n\xC3\xA9\t1\t2 \r\nb 3 4") == Format::word2vec_text);
    REQUIRE(format_of("1 1\na 1.50\n") == Format::word2vec_text);  // the same bytes as in binary
    REQUIRE(format_of("1 2 3\na 4 5\n") == Format::glove_text);
    REQUIRE(format_of("1 2.0\n") == Format::glove_text);
    REQUIRE(format_of("the 0.1\n") == Format::glove_text);
    REQUIRE_THROWS_MATCHES(format_of(""), FileError, says(dir / "f", "empty"));
    REQUIRE_THROWS_MATCHES(recognise_word_vectors(dir / "none"), FileError, says("No such file"));
}

TEST_CASE("A line feed in a number does not make binary text", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const Index dimension = GENERATE(1, 2, 3, 5, 300);
    const Random random(4, stream_of("line feeds"));
    Index place = 0;
    for (const std::size_t byte : {0, 1, 2, 4, 5, 9}) {  // of the first vector, as far as it has them
        if (byte >= std::size_t(4 * dimension)) continue;
        WordVectors v{{"north", "\xC3\xA9t\xC3\xA9"}, dimension, {}};
        for (Index k = 0; k < 2 * dimension;
             ++k)  // one number of a negative exponent has a byte beyond ASCII
            v.values.push_back(k == 0 ? -0.3f : static_cast<float>(random.uniform(place++) - 0.5));
        for (std::size_t k = 0; k < byte; ++k)  // printable up to there
            reinterpret_cast<char*>(v.values.data())[k] = k % 4 == 3 ? '>' : 'x';
        reinterpret_cast<char*>(v.values.data())[byte] = '\n';
        INFO(dimension << ", " << byte);
        write_word2vec_binary(dir / "v", v);
        REQUIRE(recognise_word_vectors(dir / "v") == Format::word2vec_binary);
        REQUIRE(same(read_word_vectors(dir / "v"), v));
        const std::string ends = contents(dir / "v");  // the last record without its line end
        REQUIRE(same(read_word_vectors(put(dir / "f", ends.substr(0, ends.size() - 1))), v));
    }
    WordVectors alone{{"north"}, 300, std::vector<float>(300, 0.25f)};
    alone.values[0] = 1.0000012f;  // 0x3f80000A
    write_word2vec_binary(dir / "v", alone);
    REQUIRE(same(read_word_vectors(dir / "v"), alone));
}

TEST_CASE("A byte order mark is dropped and never written", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const std::string mark = "\xEF\xBB\xBF";
    for (const Format format : formats) {
        write_word_vectors(dir / "v", two, format);
        put(dir / "f", mark + contents(dir / "v"));
        REQUIRE(recognise_word_vectors(dir / "f") == format);
        REQUIRE(same(read_word_vectors(dir / "f"), two));
        REQUIRE(same(read_as(format, dir / "f"), two));
    }
    REQUIRE_THROWS_MATCHES(read_glove_text(put(dir / "f", mark)), FileError, says("the file is empty"));
    const WordVectors marked{{mark + "a", mark}, 1, {1, 2}};
    REQUIRE_THROWS_MATCHES(write_glove_text(dir / "g", marked), DataError, says("word 0", "byte order mark"));
    for (const Format format : {Format::word2vec_text, Format::word2vec_binary}) {
        write_word_vectors(dir / "v", marked, format);
        REQUIRE(same(read_as(format, dir / "v"), marked));
    }
}

TEST_CASE("Words with spaces, as in GloVe's largest file, are read and written", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const WordVectors expected{
        {",", ". . .", "at name@domain.com", "a\t b", "\xE2\x80\xA2 x"}, 2, {1, 2, 3, -4, 5, 6, 7, 8, 9, 1}};
    put(dir / "g", ", 1 2\n. . . 3 -4 \r\nat name@domain.com 5 6\na\t b\t7\t8\n\xE2\x80\xA2 x  9 1");
    REQUIRE(same(read_glove_text(dir / "g"), expected));
    REQUIRE(same(read_word_vectors(dir / "g"), expected));
    put(dir / "t", "5 2\n" + contents(dir / "g"));
    REQUIRE(same(read_word2vec_text(dir / "t"), expected));
    REQUIRE(same(read_word_vectors(dir / "t"), expected));
    // With a first line the first word may have them too.
    const WordVectors first{{"New York", "a"}, 1, {1, 2}};
    REQUIRE(same(read_word_vectors(put(dir / "t", "2 1\nNew York 1\na 2\n")), first));
    for (const Format format : {Format::word2vec_text, Format::glove_text}) {
        write_word_vectors(dir / "v", expected, format);
        REQUIRE(same(read_as(format, dir / "v"), expected));
    }
    write_word2vec_text(dir / "v", first);
    REQUIRE(same(read_word2vec_text(dir / "v"), first));
    REQUIRE_THROWS_MATCHES(write_glove_text(dir / "v", first), DataError,
                           says("word 0, 'New York', holds a space", "put another word first"));
    REQUIRE_THROWS_MATCHES(write_word2vec_binary(dir / "v", expected), DataError,
                           says("word 1, '. . .', cannot be stored", "rename or remove it, or write text"));
    for (const std::string word : {"b ", " b", "b 1", "b 1 c", "b\t-.5e3", "b c\r"}) {
        INFO(word);
        for (const Format format : formats)
            CHECK_THROWS_MATCHES(write_word_vectors(dir / "v", WordVectors{{"a", word}, 1, {1, 2}}, format),
                                 DataError,
                                 says("word 1", "cannot be stored", "space", "rename or remove it"));
    }
    REQUIRE(same(read_word2vec_text(dir / "v"), first));
}

TEST_CASE("Faulty text is refused with its line", "[io][word_vectors]") {
    TemporaryDirectory dir;
    struct Case {
        std::string bytes;
        std::vector<std::string> reason;
    };
    const std::vector<Case> with_header{
        {"", {"the file is empty"}},
        {"\n", {"line 1", "''"}},
        {"the 0.1 0.2\n", {"line 1", "'the 0.1 0.2'", "GloVe"}},
        {"-1 2\n", {"line 1", "'-1 2'"}},
        {"2\n", {"line 1", "'2'"}},
        {"99999999999999999999 2\n", {"line 1", "is not the number of words"}},
        {"0 5\n", {"line 1", "0 words of dimension 5"}},
        {"5 0\na\n", {"line 1", "5 words of dimension 0"}},
        {"2 2\na 1 2\n", {"line 1", "2 words of dimension 2 do not fit into the 6 bytes"}},
        {"2 1\naaaaaaaa 1\n", {"line 1 promises 2 words, but the file ends after 1"}},
        {"9223372036854775807 9223372036854775807\na 1\n", {"do not fit into the 4 bytes"}},
        {"9223372036854775807 1\na 1\n", {"do not fit into the 4 bytes"}},
        {"1 4611686018427387904\na 1\n", {"do not fit into the 4 bytes"}},
        {"1 2\na 1 2\nb 3 4\n", {"line 1 promises 1 words, but more follow in line 3"}},
        {"1 2\na 1 2\n\n", {"more follow in line 3"}},
        {"2 2\na 1 2\n\nb 3 4\n", {"line 3", "'' is not a word"}},
        {"2 2\na 1 2\nbbbb 3\n", {"line 3", "1 numbers after the word 'bbbb', expected 2"}},
        {"2 2\na 1 2\nb 3 4 5 6\n", {"line 3", "4 numbers after the word 'b', expected 2"}},
        {"2 2\na 1 2\nNew York 3\n", {"line 3", "'York' after the word 'New' is not a finite number"}},
        {"2 3\na 1 2 3\nNew York 3\n", {"line 3", "1 numbers after the word 'New York', expected 3"}},
        {"2 2\na 1 2\nNew York 3 4 5\n", {"line 3", "3 numbers after the word 'New York', expected 2"}},
        {"2 2\na 1 2\nb 3 c 4 5\n", {"line 3", "'c' after the word 'b' is not a finite number"}},
        {"2 2\na 1 2\n b 3 4\n", {"line 3", "' b' is not a word"}},
        {"2 2\na 1 2\nNew York 3 4\nNew York 5 6\n", {"line 1 promises 2 words, but more follow in line 4"}},
        {"3 2\na 1 2\nNew York 3 4\nNew York 5 6\n",
         {"line 4: the word 'New York' appears twice, first in line 3"}},
        {"2 2\na 1 2\nb 3 nan\n", {"line 3", "'nan'", "'b'", "finite"}},
        {"2 2\na 1 2\nb inf 4\n", {"line 3", "'inf'"}},
        {"2 2\na 1 2\nb 3 -1e39\n", {"line 3", "'-1e39'"}},
        {"2 2\na 1 2\nb 3 1e999\n", {"line 3", "'1e999'"}},
        {"2 2\na 1 2\nb 3 4x\n", {"line 3", "'4x'"}},
        {"2 2\na 1 2\nb 3 0x4\n", {"line 3", "'0x4'"}},
        {"2 2\na 1 2\nb 3 1,5\n", {"line 3", "'1,5'"}},
        {"2 2\na 1 2\na 3 4\n", {"line 3: the word 'a' appears twice, first in line 2"}},
        {std::string("2 2\na 1 2\n\0 3 4\n", 16), {"line 3", "'\\x00' is not a word"}},
        {"2 2\na 1 2\n 3 4\n", {"line 3", "'' is not a word"}},
    };
    for (const auto& c : with_header) {
        INFO(c.bytes);
        CHECK_THROWS_MATCHES(read_word2vec_text(put(dir / "f", c.bytes)), FileError, Says(c.reason));
    }
    const std::vector<Case> without{
        {"", {"the file is empty"}},
        {"a\n", {"line 1", "0 numbers", "at least 1"}},
        {"a 1 2\nb 3\n", {"line 2", "1 numbers", "expected 2"}},
        {"a 1 2\nb 3 4 5\n", {"line 2", "3 numbers", "expected 2"}},
        {". . . 1 2\n",
         {"line 1", "'.' after the word '.'", "the first word of a file cannot contain a space"}},
        {"a 1 2\nb 3 4c 5 6\n", {"line 2", "'4c' after the word 'b'"}},  // two lines made one
        {"a 1\nb 2\na 3\n", {"line 3: the word 'a' appears twice, first in line 1"}},
        {"a 1\n\n", {"line 2", "'' is not a word"}},
    };
    for (const auto& c : without) {
        INFO(c.bytes);
        CHECK_THROWS_MATCHES(read_glove_text(put(dir / "f", c.bytes)), FileError, Says(c.reason));
    }
}

TEST_CASE("Faulty binary is refused with its word", "[io][word_vectors]") {
    TemporaryDirectory dir;
    const auto refused = [&](const std::string& bytes, const auto&... reason) {
        INFO(bytes);
        CHECK_THROWS_MATCHES(read_word2vec_binary(put(dir / "f", bytes)), FileError,
                             says(dir / "f", reason...));
    };
    const std::string a = "a " + bits(1) + bits(2) + "\n", b = "b " + bits(3) + bits(4) + "\n";
    REQUIRE(read_word2vec_binary(put(dir / "f", "2 2\n" + a + b)).words.size() == 2);
    refused("", "empty");
    refused("0 2\n", "0 words");
    refused("2 2\n" + a, "2 words of dimension 2 do not fit into the 11 bytes");
    refused("1000000000000 300\n" + a, "do not fit");
    refused("1 2305843009213693952\n" + a, "do not fit");
    refused("2 2\n" + a + b + "\n", "bytes follow after the last");
    refused("2 2\n" + a + b + "c", "bytes follow after the last");
    refused("2 2\n" + a + a, "word 2: the word 'a' appears twice, first in word 1");
    refused("2 2\n" + a + "b " + bits(3) + bits(std::numeric_limits<float>::infinity()),
            "word 2 of 2, from byte 14", "'b'", "number 2 is not finite");
    refused("2 2\n" + a + " " + bits(3) + bits(4) + "\n", "word 2 of 2", "'' is not a word");
    refused("1 2\naaaaaaaaaaaaaa", "word 1 of 1", "truncated or not in this format");
    refused("1 2\naaaaaaaaaa " + bits(1), "truncated");
    refused("1 2\na\tb " + bits(1) + bits(2), "'a\\x09b' is not a word");
}

TEST_CASE("A file without line ends or spaces is not read whole", "[io][word_vectors][errors]") {
    TemporaryDirectory dir;
    const std::string endless(3'000'000, 'x');
    const auto stops = [&](const std::string& bytes, auto&& read, const auto&... reason) {
        WordVectorReader r(put(dir / "f", bytes), 300'000);
        REQUIRE_THROWS_MATCHES(read(r), FileError, says(dir / "f", reason...));
        REQUIRE(r.in.position() < 1'000'000);
    };
    const auto text = [](WordVectorReader& r) {
        while (r.text_row()) {
        }
    };
    stops(endless, text, "line 1 is longer than 300000 bytes", "word vectors?");
    stops("a 1\nb 2\n" + endless, text, "line 3 is longer than 300000 bytes");
    stops(
        endless, [](WordVectorReader& r) { r.header(2); }, "line 1 is longer");
    stops(
        "1 2\n" + endless, [](WordVectorReader& r) { r.binary_row(0, r.header(4)); },
        "word 1 of 1, from byte 4", "is not a word; expected 1 to 65536 bytes");

    std::string word(most_word_bytes, 'x');  // the longest
    for (const Format format : formats) {
        const WordVectors v{{"a", word}, 2, {1, 2, 3, 4}};
        write_word_vectors(dir / "v", v, format);
        REQUIRE(same(read_as(format, dir / "v"), v));
    }
    word += 'x';
    REQUIRE_THROWS_MATCHES(write_word2vec_binary(dir / "v", {{word}, 1, {1}}), DataError, says("too long"));
    REQUIRE_THROWS_MATCHES(read_word2vec_binary(put(dir / "f", "1 1\n" + word + " " + bits(1))), FileError,
                           says("is not a word; expected 1 to 65536 bytes"));
    REQUIRE_THROWS_MATCHES(read_glove_text(put(dir / "f", word + " 1\n")), FileError,
                           says("line 1", "is not a word; expected 1 to 65536 bytes"));
}

TEST_CASE("A file cut or changed anywhere is read whole or refused", "[io][word_vectors]") {
    TemporaryDirectory dir;
    for (const Format format : formats) {
        write_word_vectors(dir / "v", two, format);
        const std::string whole = contents(dir / "v");
        const auto try_it = [&](const std::string& bytes) {
            put(dir / "f", bytes);
            for (int automatic = 0; automatic < 2; ++automatic) try {
                    const auto v = automatic ? read_word_vectors(dir / "f") : read_as(format, dir / "f");
                    if (v.words.size() == 0 || std::ssize(v.values) != v.words.size() * v.dimension)
                        FAIL("a half file was accepted");
                    require_storable(v, Format::word2vec_text);
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
    write_word2vec_binary(dir / "v", two);
    const std::string whole = contents(dir / "v");
    for (std::size_t n = 0; n + 1 < whole.size(); ++n)
        REQUIRE_THROWS_AS(read_word2vec_binary(put(dir / "f", whole.substr(0, n))), FileError);
}

TEST_CASE("Vectors that no file can hold are not written", "[io][word_vectors]") {
    TemporaryDirectory dir;
    put(dir / "v", "old");
    const auto refused = [&](const WordVectors& v, const auto&... reason) {
        for (const Format format : formats)
            CHECK_THROWS_MATCHES(write_word_vectors(dir / "v", v, format), DataError, says(reason...));
    };
    refused({}, "0 words");
    refused({{"a"}, 0, {}}, "dimension 0");
    refused({{"a"}, 2, {1}}, "1 values");
    refused({{"a", "b"}, 2, {1, 2, 3}}, "3 values");
    refused({{"a"}, -1, {1}}, "dimension -1");
    refused({{"a", ""}, 1, {1, 2}}, "word 1, ''");
    refused({{"a 2"}, 1, {1}}, "'a 2'", "space");
    refused({{"a\n"}, 1, {1}}, "'a\\x0A'");
    CHECK_THROWS_MATCHES(refused({{"a", "b", "a"}, 1, {1, 2, 3}}), DataError,
                         says("'a' appears twice", "0 and 2"));
    refused({{"a", "b"}, 1, {1, std::nanf("")}}, "'b'", "not finite");
    REQUIRE(contents(dir / "v") == "old");
    REQUIRE(dir.entries() == 1);
}
