#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <isogloss/text/output_file.hpp>
#include <string>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
namespace fs = std::filesystem;

TEST_CASE("A file appears whole or not at all", "[text][file]") {
    TemporaryDirectory scratch;
    const auto path = put(scratch / "x", "old");
    {
        OutputFile out(path);
        out.write("never committed");
        REQUIRE(scratch.entries() == 2);
        REQUIRE(contents(path) == "old");
    }
    REQUIRE(scratch.entries() == 1);
    REQUIRE(contents(path) == "old");
    OutputFile out(path);
    out.write("????");
    out.write(" world");
    out.write_at(0, "hell");
    out.write("!");
    REQUIRE(contents(path) == "old");
    out.commit();
    REQUIRE(contents(path) == "hell world!");
    REQUIRE(scratch.entries() == 1);
}

TEST_CASE("A link stays, and what it points to is replaced", "[text][file]") {
    TemporaryDirectory scratch;
    put(scratch / "real", "old");
    fs::create_symlink("real", scratch / "link");
    OutputFile out(scratch / "link");
    out.write("new");
    out.commit();
    REQUIRE(fs::is_symlink(scratch / "link"));
    REQUIRE(contents(scratch / "real") == "new");
}

TEST_CASE("What cannot be written is named, and nothing is left behind", "[text][file]") {
    TemporaryDirectory scratch;
    REQUIRE_THROWS_MATCHES(OutputFile(scratch / "none/x"), FileError,
                           says("cannot create a file beside", "none/x", "No such file or directory"));
    REQUIRE_THROWS_MATCHES(OutputFile(scratch.path().string()), FileError,
                           says("cannot write", "regular file"));
    REQUIRE_THROWS_MATCHES(OutputFile("/dev/null"), FileError, says("'/dev/null'", "not replaced"));

    // A disk that is full, as far as this process can tell: no file may pass 1000 bytes.
    const auto path = put(scratch / "x", "old");
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit small = before;
    small.rlim_cur = 1000;
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    std::string message;
    try {
        OutputFile out(path);
        out.write(std::string(900, 'a'));
        out.write(std::string(900, 'b'));
        out.commit();
    } catch (const FileError& error) {
        message = error.what();
    }
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    REQUIRE(message == "isogloss: cannot write '" + path + "': File too large");
    REQUIRE(contents(path) == "old");
    REQUIRE(scratch.entries() == 1);
}

TEST_CASE("A new file has the permissions of any other", "[text][file]") {
    TemporaryDirectory scratch;
    put(scratch / "plain", "x");
    OutputFile out(scratch / "ours");
    out.commit();
    REQUIRE(fs::status(scratch / "ours").permissions() == fs::status(scratch / "plain").permissions());
}
