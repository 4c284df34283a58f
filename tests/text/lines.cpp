#include <fstream>
#include <isogloss/text/lines.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;

namespace {
std::vector<std::string> lines_of(LineReader& lines) {
    std::vector<std::string> all;
    for (std::string_view line; lines.next(line);) all.emplace_back(line);
    return all;
}
std::vector<std::string> lines_of(const std::string& bytes, LineOptions options = {}) {
    std::istringstream in(bytes);
    LineReader lines(in, "memory", options);
    return lines_of(lines);
}
std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> all;
    for_each_word(line, [&](std::string_view w) { all.emplace_back(w); });
    return all;
}
using Strings = std::vector<std::string>;
}  // namespace

TEST_CASE("Lines come with all line ends and without them", "[text][lines]") {
    REQUIRE(lines_of("one\ntwo\n") == Strings{"one", "two"});
    REQUIRE(lines_of("one\ntwo") == Strings{"one", "two"});
    REQUIRE(lines_of("one\r\ntwo\r\n") == Strings{"one", "two"});
    REQUIRE(lines_of("\n\r\n\n") == Strings{"", "", ""});
    REQUIRE(lines_of("a\rb\r\r\nc\r") == Strings{"a\rb\r", "c\r"});
    REQUIRE(lines_of("\n") == Strings{""});
    REQUIRE(lines_of("").empty());
    REQUIRE(lines_of("\xEF\xBB\xBFone\ntwo") == Strings{"one", "two"});
    REQUIRE(lines_of("\xEF\xBB\xBF").empty());
    REQUIRE(lines_of("one\n\xEF\xBB\xBFtwo") == Strings{"one", "\xEF\xBB\xBFtwo"});
}

TEST_CASE("Lines longer than the buffer and lines across its border come whole", "[text][lines]") {
    Strings expected;
    std::string all;
    for (std::size_t n :
         {0u, 1u, 70'000u, 262'143u, 262'144u, 262'145u, 3u, 1'000'000u, 100u, 524'288u, 5u}) {
        std::string line(n, 'a');
        for (std::size_t i = 0; i < n; ++i) line[i] = static_cast<char>('a' + i % 23);
        expected.push_back(line);
        all += line + (n % 2 ? "\r\n" : "\n");
    }
    REQUIRE(lines_of(all) == expected);
    TemporaryDirectory scratch;
    LineReader file(put(scratch / "long.txt", all));
    REQUIRE(lines_of(file) == expected);
    REQUIRE(file.line() == 11);
    REQUIRE(file.bytes() == static_cast<Index>(all.size()));
}

TEST_CASE("A line over the limit is an error with its number", "[text][lines]") {
    REQUIRE(lines_of("1234567890\n12345\n", {.max_line_bytes = 10}) == Strings{"1234567890", "12345"});
    REQUIRE(lines_of("1234567890\r\n1234567890", {.max_line_bytes = 10}).size() == 2);
    REQUIRE_THROWS_MATCHES(lines_of("short\n12345678901\n", {.max_line_bytes = 10}), DataError,
                           says("memory:2: the line is longer than 10 bytes", "max_line_bytes"));
    REQUIRE_THROWS_MATCHES(lines_of("short\n12345678901", {.max_line_bytes = 10}), DataError,
                           says("memory:2:"));
    // Refused before it is all in memory: far beyond the buffer, without any line end.
    const std::string endless(3'000'000, 'x');
    REQUIRE_THROWS_MATCHES(lines_of("a\nb\n" + endless, {.max_line_bytes = 300'000}), DataError,
                           says("memory:3:", "300000 bytes"));
    REQUIRE_THROWS_MATCHES(lines_of("x", {.max_line_bytes = 0}), DataError, says("max_line_bytes is 0"));
}

TEST_CASE("A bad byte is an error with line, value and offset", "[text][lines]") {
    TemporaryDirectory scratch;
    const auto read = [&](const std::string& bytes) {
        LineReader lines(put(scratch / "bad.txt", bytes));
        return lines_of(lines);
    };
    REQUIRE_THROWS_MATCHES(
        read("good\r\ncaf\xE9 au lait\n"), DataError,
        says("bad.txt:2: byte 0xE9 at offset 9 is not valid UTF-8", "byte 4 of the line", "convert"));
    REQUIRE_THROWS_MATCHES(read(std::string("good\n\nab\0c\n", 11)), DataError,
                           says("bad.txt:3: byte 0x00 at offset 8 is NUL", "byte 3 of the line", "binary"));
    REQUIRE_THROWS_MATCHES(read("\xEF\xBB\xBFgood\n\xFF"), DataError,
                           says("bad.txt:2: byte 0xFF at offset 8"));
    REQUIRE_THROWS_MATCHES(read("cut \xE6\x88"), DataError, says("bad.txt:1: byte 0xE6 at offset 4"));
    REQUIRE_THROWS_MATCHES(read(std::string(500'000, 'x') + "\n\x80"), DataError,
                           says("bad.txt:2: byte 0x80 at offset 500001"));
}

TEST_CASE("A reader names what it cannot open", "[text][lines]") {
    TemporaryDirectory scratch;
    REQUIRE_THROWS_MATCHES(LineReader(scratch / "none.txt"), FileError, says("none.txt", "No such file"));
    REQUIRE_THROWS_MATCHES(LineReader(scratch.path().string()), FileError, says("Is a directory"));
    std::ifstream missing(scratch / "none.txt");
    REQUIRE_THROWS_MATCHES(LineReader(missing, "none.txt"), FileError, says("none.txt", "good state"));
}

TEST_CASE("Words are the runs between ASCII white space", "[text][lines]") {
    REQUIRE(words_of("the  quick\tbrown\v\ffox \r") == Strings{"the", "quick", "brown", "fox"});
    REQUIRE(words_of(" \t ").empty());
    REQUIRE(words_of("").empty());
    // Other control bytes and other spaces belong to the word.
    REQUIRE(words_of("a\x01"
                     "b\x1F"
                     "c d\u00A0e\u3000f") == Strings{"a\x01"
                                                     "b\x1F"
                                                     "c",
                                                     "d\u00A0e\u3000f"});
}

TEST_CASE("The search for white space agrees with a look at every byte", "[text][lines]") {
    // Every byte at every distance from the start and the end of a line, with false marks before and after.
    std::size_t wrong = 0;
    for (int c = 0; c < 256; ++c)
        for (std::size_t at = 0; at < 20; ++at)
            for (const char around : {'x', '!', '\x7F', '\x80', '\xA0', '\x01'}) {
                std::string line(20, around);
                line[at] = static_cast<char>(c);
                const bool space = c == ' ' || (c >= 9 && c <= 13);
                const char* const found = find_space(line.data(), line.data() + line.size());
                wrong += found != line.data() + (space ? at : line.size());
            }
    REQUIRE(wrong == 0);
}

TEST_CASE("Characters are code points", "[text][lines]") {
    Strings all;
    for_each_character("a \u00E9\u6226\U0001F600\t.", [&](std::string_view c) { all.emplace_back(c); });
    REQUIRE(all == Strings{"a", " ", "\u00E9", "\u6226", "\U0001F600", "\t", "."});
}
