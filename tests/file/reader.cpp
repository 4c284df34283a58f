#include <sys/stat.h>

#include <cstddef>
#include <fstream>
#include <isogloss/file/reader.hpp>
#include <span>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::file;

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
using Strings = std::vector<std::string>;
}  // namespace

TEST_CASE("A Reader of a file hands out every byte once, by pieces of all sizes", "[file][reader]") {
    TemporaryDirectory dir;
    std::string all;
    for (int i = 0; i < 900000; ++i) all += static_cast<char>(i * 31 + i / 256);
    Reader in(open_regular(put(dir / "f", all)));
    REQUIRE(in.remaining() == 900000);
    std::string got;
    for (const std::size_t n : {1u, 0u, 7u, 262144u, 1000u, 400000u, 236848u}) {
        std::vector<std::byte> piece(n);
        in.read(piece);
        got.append(reinterpret_cast<const char*>(piece.data()), n);
        REQUIRE(in.position() == static_cast<Index>(got.size()));
    }
    REQUIRE(in.remaining() == 0);
    REQUIRE(got == all);
    std::byte more[1];
    REQUIRE_THROWS_MATCHES(in.read(more), FileError, says(dir / "f", "ends at byte 900000", "truncated"));
}

TEST_CASE("It splits at a delimiter, across its buffer too", "[file][reader]") {
    TemporaryDirectory dir;
    const std::string lengthy(700000, 'x');
    Reader in(open_regular(put(dir / "f", "a\n\n" + lengthy + "\nlast")));
    std::string_view line;
    REQUIRE(in.until('\n', line));
    REQUIRE(line == "a");
    REQUIRE(in.until('\n', line));
    REQUIRE(line.empty());
    REQUIRE(in.until('\n', line));
    REQUIRE(line == lengthy);
    REQUIRE_FALSE(in.until('\n', line));
    REQUIRE(line == "last");
    REQUIRE_FALSE(in.until('\n', line));
    REQUIRE(line.empty());
    REQUIRE(in.remaining() == 0);
}

TEST_CASE("A Reader of a stream hands out bytes and pieces, and stops at a limit", "[file][reader]") {
    std::istringstream in("one,two" + std::string(600'000, 'x') + ",end");
    Reader r(in, "memory");
    std::string_view piece;
    REQUIRE(r.until(',', piece));
    REQUIRE(piece == "one");
    char two[3];
    r.read(std::as_writable_bytes(std::span(two)));
    REQUIRE((std::string_view(two, 3) == "two" && r.position() == 7));
    REQUIRE_FALSE(r.until(',', piece, 1000));  // does not go on to the comma
    REQUIRE((piece.size() > 1000 && piece.size() < 600'000));
    const auto part = piece.size();
    REQUIRE(r.until(',', piece));
    REQUIRE(part + piece.size() == 600'000);
    r.read(std::as_writable_bytes(std::span(two)));
    REQUIRE(std::string_view(two, 3) == "end");
    REQUIRE_THROWS_MATCHES(r.read(std::as_writable_bytes(std::span(two))), FileError,
                           says("memory: the file ends at byte 600011", "truncated"));
}

TEST_CASE("A file that is not regular is refused without waiting", "[file][reader]") {
    TemporaryDirectory dir;
    REQUIRE_THROWS_MATCHES(open_regular(dir / "none"), FileError,
                           says(dir / "none", "No such file or directory"));
    REQUIRE_THROWS_MATCHES(open_regular(dir.path().string()), FileError, says("Is a directory"));
#ifndef _WIN32
    REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
    REQUIRE_THROWS_MATCHES(open_regular(dir / "pipe"), FileError, says(dir / "pipe", "not a regular file"));
#endif
}

TEST_CASE("A stream that fails is no end of the text", "[file][reader]") {
    struct Failing : std::streambuf {
        std::string line = "one\ntw";
        bool given = false;
        int_type underflow() override {
            if (given) throw std::runtime_error("lost");
            given = true;
            setg(line.data(), line.data(), line.data() + line.size());
            return traits_type::to_int_type(line[0]);
        }
    } buffer;
    std::istream in(&buffer);
    REQUIRE_THROWS_MATCHES(
        [&] {
            LineReader lines(in, "pipe");
            lines_of(lines);
        }(),
        FileError, says("cannot read 'pipe'", "the stream failed"));

    buffer.given = false;
    std::istream throwing(&buffer);
    throwing.exceptions(std::ios::badbit);
    REQUIRE_THROWS_MATCHES(
        [&] {
            LineReader lines(throwing, "pipe");
            lines_of(lines);
        }(),
        FileError, says("cannot read 'pipe'", "the stream failed"));
}

TEST_CASE("A stream that throws at its end is read to the end", "[file][reader]") {
    for (const auto mask : {std::ios::failbit | std::ios::badbit, std::ios::eofbit | std::ios::failbit}) {
        std::istringstream in("one\ntwo");
        in.exceptions(mask);
        LineReader lines(in, "memory");
        REQUIRE(lines_of(lines) == Strings{"one", "two"});
        REQUIRE(in.exceptions() == mask);  // as its owner set them
    }
}

TEST_CASE("Lines come with all line ends and without them", "[file][reader]") {
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

TEST_CASE("Lines longer than the buffer and lines across its border come whole", "[file][reader]") {
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

TEST_CASE("A line over the limit is an error with its number", "[file][reader]") {
    REQUIRE(lines_of("1234567890\n12345\n", {.max_line_bytes = 10}) == Strings{"1234567890", "12345"});
    REQUIRE(lines_of("1234567890\r\n1234567890", {.max_line_bytes = 10}).size() == 2);
    REQUIRE_THROWS_MATCHES(lines_of("short\n12345678901\n", {.max_line_bytes = 10}), DataError,
                           says("memory:2: the line is longer than 10 bytes", "raise max_line_bytes"));
    REQUIRE_THROWS_MATCHES(lines_of("short\n12345678901", {.max_line_bytes = 10}), DataError,
                           says("memory:2:"));
    // Refused before it is all in memory: far beyond the buffer, without any line end.
    std::istringstream in("a\nb\n" + std::string(3'000'000, 'x'));
    LineReader lines(in, "memory", {.max_line_bytes = 300'000});
    REQUIRE_THROWS_MATCHES(lines_of(lines), DataError, says("memory:3:", "300000 bytes"));
    const auto read = static_cast<Index>(in.tellg());  // -1 at the end
    REQUIRE((read > 0 && read < 1'000'000));
    REQUIRE_THROWS_MATCHES(lines_of("x", {.max_line_bytes = 0}), DataError,
                           says("memory: found max_line_bytes = 0, expected at least 1"));
}

TEST_CASE("A bad byte is an error with line, value and offset", "[file][reader]") {
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

TEST_CASE("A reader names what it cannot open", "[file][reader]") {
    TemporaryDirectory scratch;
    REQUIRE_THROWS_MATCHES(LineReader(scratch / "none.txt"), FileError, says("none.txt", "No such file"));
    REQUIRE_THROWS_MATCHES(LineReader(scratch.path().string()), FileError, says("Is a directory"));
    std::ifstream missing(scratch / "none.txt");
    REQUIRE_THROWS_MATCHES(LineReader(missing, "none.txt"), FileError, says("none.txt", "good state"));
}
