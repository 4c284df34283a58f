#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <isogloss/file/output_file.hpp>
#include <string>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::file;
namespace fs = std::filesystem;

TEST_CASE("A link to what is not there yet stays, and what it points to comes into being",
          "[file][output_file]") {
    TemporaryDirectory scratch;
    fs::create_directory(scratch / "place");
    fs::create_symlink("place/new", scratch / "relative");
    fs::create_symlink(scratch / "relative", scratch / "chain");
    for (const char* text : {"first", "second"}) {
        OutputFile out(scratch / "chain");
        out.write(text);
        out.commit();
        REQUIRE(fs::is_symlink(scratch / "chain"));
        REQUIRE(fs::is_symlink(scratch / "relative"));
        REQUIRE(contents(scratch / "place/new") == text);
    }
    REQUIRE(link_target(scratch / "chain") == scratch / "place/new");
    REQUIRE(link_target("plain") == "plain");
    fs::create_symlink("none/new", scratch / "nowhere");
    REQUIRE_THROWS_MATCHES(OutputFile(scratch / "nowhere"), FileError,
                           says("cannot create a file beside", "none/new"));
    fs::create_symlink("loop", scratch / "loop");
    REQUIRE_THROWS_MATCHES(OutputFile(scratch / "loop"), FileError, says("loop", "symbolic links"));
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const std::string pipe =
        "/proc/self/fd/" + std::to_string(ends[1]);  // a link to a name that does not exist
    REQUIRE_THROWS_MATCHES(OutputFile(pipe), FileError, says(pipe, "regular file"));
    ::close(ends[0]), ::close(ends[1]);
}

TEST_CASE("A name without a folder is one of the working directory", "[file][output_file]") {
    REQUIRE(folder_of("x") == "./");
    REQUIRE(folder_of("a/b/x") == "a/b/");
    TemporaryDirectory scratch;
    fs::create_symlink("real", scratch / "link");
    const auto before = fs::current_path();
    fs::current_path(scratch.path());
    const auto target = link_target("link");
    fs::current_path(before);
    REQUIRE(target == "./real");
}

TEST_CASE("A name of any length that the file system accepts can be written", "[file][output_file]") {
    TemporaryDirectory scratch;
    for (const std::size_t length : {1u, 200u, 201u, 255u}) {
        const std::string name = scratch / std::string(length, 'a');
        for (const char* text : {"old", "new"}) {
            write_atomically(name, [&](OutputFile& out) { out.write(text); });
            REQUIRE(contents(name) == text);
        }
    }
    REQUIRE(scratch.entries() == 4);
    REQUIRE_THROWS_MATCHES(OutputFile(scratch / std::string(256, 'a')), FileError,
                           says("File name too long"));
}

TEST_CASE("Two writers of one file do not disturb each other", "[file][output_file]") {
    TemporaryDirectory scratch;
    OutputFile first(scratch / "x"), second(scratch / "x");
    first.write("first");
    second.write("second");
    second.commit();
    REQUIRE(contents(scratch / "x") == "second");
    first.commit();
    REQUIRE(contents(scratch / "x") == "first");
    REQUIRE(scratch.entries() == 1);
}

TEST_CASE("A new file has the permissions of any other", "[file][output_file]") {
    TemporaryDirectory scratch;
    put(scratch / "plain", "x");
    OutputFile out(scratch / "ours");
    out.commit();
    REQUIRE(fs::status(scratch / "ours").permissions() == fs::status(scratch / "plain").permissions());
}

TEST_CASE("What replaces a file has its permissions, and nobody else reads it before",
          "[file][output_file]") {
    TemporaryDirectory scratch;
    const auto path = put(scratch / "x", "old");
    const auto mode = [](const std::string& of) {
        struct stat status = {};
        REQUIRE(::stat(of.c_str(), &status) == 0);
        return status.st_mode & 07777;
    };
    for (const mode_t wanted : {0600u, 0640u, 0666u, 0755u}) {
        REQUIRE(::chmod(path.c_str(), wanted) == 0);
        OutputFile out(path);
        out.write("new");
        for (const auto& entry : fs::directory_iterator(scratch.path()))
            REQUIRE(mode(entry.path()) == wanted);
        out.commit();
        REQUIRE(mode(path) == wanted);
    }
}
