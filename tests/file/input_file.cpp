#include <filesystem>
#include <isogloss/file/input_file.hpp>
#include <isogloss/file/output_file.hpp>
#include <string>
#include <utility>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::file;
namespace fs = std::filesystem;

TEST_CASE("A file is read in pieces or whole", "[file][input_file]") {
    TemporaryDirectory scratch;
    const std::string bytes = std::string(100'000, 'a') + "b" + std::string(1, '\0') + "c";
    const auto path = put(scratch / "x", bytes);
    InputFile file(path);
    REQUIRE(file.bytes() == 100'003);
    char five[5];
    REQUIRE(file.read(five, 5) == 5);
    InputFile moved = std::move(file);
    REQUIRE(moved.read_all() == bytes.substr(5));
    REQUIRE(moved.read(five, 5) == 0);
    REQUIRE(InputFile(put(scratch / "empty", "")).read_all().empty());
}

TEST_CASE("What cannot be read is named, with the reason", "[file][input_file]") {
    TemporaryDirectory scratch;
    REQUIRE_THROWS_MATCHES(InputFile(scratch / "none.txt"), FileError,
                           says("isogloss: cannot open", "none.txt", "No such file or directory"));
    REQUIRE_THROWS_MATCHES(InputFile(scratch.path().string()), FileError,
                           says("cannot ", scratch.path().string(), "Is a directory"));
#ifndef _WIN32
    fs::create_symlink("loop", scratch / "loop");
    REQUIRE_THROWS_MATCHES(InputFile(scratch / "loop"), FileError,
                           says("cannot open", "loop", "symbolic links"));
    put(scratch / "plain", "x");
    REQUIRE_THROWS_MATCHES(InputFile(scratch / "plain/below"), FileError, says("Not a directory"));
    const std::string lengthy(5000, 'n');  // no name that is not there, but none that can be
    REQUIRE_THROWS_MATCHES(file_status(lengthy), FileError, says("cannot stat 'nnn", "too long"));
#endif
}

TEST_CASE("A mapped file is its bytes, even when it is replaced", "[file][input_file]") {
    TemporaryDirectory scratch;
    const auto path = put(scratch / "x", "first");
    MappedFile mapped(path);
    OutputFile out(path);
    out.write("second one");
#ifdef _WIN32
    REQUIRE_THROWS_MATCHES(out.commit(), FileError, says("cannot replace", "Permission denied"));
    mapped = MappedFile(put(scratch / "y", "first"));
    put(path, "second one");
#else
    out.commit();
#endif
    MappedFile moved = std::move(mapped);
    REQUIRE(std::string(moved.data(), static_cast<std::size_t>(moved.bytes())) == "first");
    REQUIRE(contents(path) == "second one");
    moved = MappedFile(path);
    REQUIRE(moved.bytes() == 10);
    const MappedFile empty(put(scratch / "empty", ""));
    REQUIRE(empty.bytes() == 0);
#ifndef _WIN32
    REQUIRE_THROWS_MATCHES(MappedFile("/dev/null"), FileError, says("'/dev/null'", "regular"));
#endif
    REQUIRE_THROWS_MATCHES(MappedFile(scratch / "none"), FileError, says("none", "No such file"));
}
