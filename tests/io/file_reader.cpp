#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <isogloss/io/file_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "files.hpp"

using namespace isogloss;

TEST_CASE("FileReader hands out every byte once, by pieces of all sizes", "[io][file_reader]") {
    TemporaryDirectory dir;
    std::string all;
    for (int i = 0; i < 900000; ++i) all += static_cast<char>(i * 31 + i / 256);
    FileReader in(put(dir / "f", all));
    REQUIRE(in.bytes() == 900000);
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
    REQUIRE_THROWS_MATCHES(in.read(more), FileError, says(dir / "f", "ends at byte 900000", "cut"));
}

TEST_CASE("FileReader splits at a delimiter, across its buffer too", "[io][file_reader]") {
    TemporaryDirectory dir;
    const std::string lengthy(700000, 'x');
    FileReader in(put(dir / "f", "a\n\n" + lengthy + "\nlast"));
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

TEST_CASE("FileReader says why a file cannot be read", "[io][file_reader]") {
    TemporaryDirectory dir;
    REQUIRE_THROWS_MATCHES(FileReader(dir / "none"), FileError,
                           says(dir / "none", "No such file or directory"));
    REQUIRE_THROWS_MATCHES(FileReader(dir.path()), FileError, says("not a regular file"));
    REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
    REQUIRE_THROWS_MATCHES(FileReader(dir / "pipe"), FileError, says(dir / "pipe", "not a regular file"));
}

TEST_CASE("Names from files are shown harmless and short", "[io][file_reader]") {
    REQUIRE(in_quotes("E") == "'E'");
    REQUIRE(in_quotes(std::string_view("a\n\0\x7f", 4)) == "'a\\x0a\\x00\\x7f'");
    REQUIRE(in_quotes(std::string(500, 'w')) == "'" + std::string(100, 'w') + "…'");
}
