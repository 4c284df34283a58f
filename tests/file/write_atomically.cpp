#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <isogloss/file/output_file.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::file;
namespace fs = std::filesystem;

namespace {
// Runs `body` in a child process; its result is the exit status, 99 an exception.
template <class Body> int in_child(Body&& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        int status = 99;
        try {
            status = body();
        } catch (...) {
        }
        ::_exit(status);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
}  // namespace

TEST_CASE("Small and large pieces are written in order", "[file][output_file]") {
    TemporaryDirectory dir;
    std::string expected;
    write_atomically(dir / "f", [&](OutputFile& out) {
        for (const std::size_t n : {1u, 0u, 1000u, 300000u, 5u, 262144u, 262143u, 2u}) {
            const std::string piece(n, static_cast<char>('a' + expected.size() % 26));
            out.write(piece);
            out.write(std::as_bytes(std::span(piece)));
            expected += piece + piece;
        }
    });
    REQUIRE(contents(dir / "f") == expected);
    REQUIRE(dir.entries() == 1);
}

TEST_CASE("A file is not there before commit and never after a failure", "[file][output_file]") {
    TemporaryDirectory dir;
    put(dir / "f", "old");
    {
        OutputFile file(dir / "f");
        file.write("new");
        REQUIRE(contents(dir / "f") == "old");
        REQUIRE(dir.entries() == 2);
    }
    REQUIRE(contents(dir / "f") == "old");
    REQUIRE(dir.entries() == 1);

    REQUIRE_THROWS_AS(write_atomically(dir / "f",
                                       [](OutputFile& out) {
                                           out.write("half");
                                           throw std::runtime_error("stop");
                                       }),
                      std::runtime_error);
    REQUIRE(contents(dir / "f") == "old");
    REQUIRE(dir.entries() == 1);

    write_atomically(dir / "f", [](OutputFile& out) {
        out.write("????");
        out.write(" world");
        out.write_at(0, "hell");
        out.write("!");
    });
    REQUIRE(contents(dir / "f") == "hell world!");
    REQUIRE(dir.entries() == 1);
}

TEST_CASE("A full disk leaves the old file", "[file][output_file]") {
    TemporaryDirectory dir;
    put(dir / "f", "old");
    const int status = in_child([&] {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{100000, 100000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        try {
            write_atomically(dir / "f", [](OutputFile& out) { out.write(std::string(400000, 'x')); });
        } catch (const FileError& e) {
            const std::string what = e.what();
            return what.find(dir / "f") != std::string::npos &&
                           what.find("File too large") != std::string::npos
                       ? 7
                       : 8;
        }
        return 0;
    });
    REQUIRE(status == 7);
    REQUIRE(contents(dir / "f") == "old");
    REQUIRE(dir.entries() == 1);
}

TEST_CASE("A program killed while it writes leaves a whole file", "[file][output_file]") {
    TemporaryDirectory dir;
    const std::string a(1000000, 'a'), b(1000000, 'b');
    put(dir / "f", a);
    for (int round = 0; round < 12; ++round) {
        const pid_t child = ::fork();
        if (child == 0) {
            for (int i = 0;; ++i)
                write_atomically(dir / "f", [&](OutputFile& out) { out.write(i % 2 == 0 ? b : a); });
        }
        std::this_thread::sleep_for(std::chrono::microseconds(1500 * round + 700));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        const std::string found = contents(dir / "f");
        REQUIRE((found == a || found == b));
    }
}

TEST_CASE("Targets that are not plain files are refused and stay", "[file][output_file]") {
    TemporaryDirectory dir;
    fs::create_directory(dir / "folder");
    const auto write = [](const std::string& path) {
        write_atomically(path, [](OutputFile& out) { out.write("x"); });
    };
    REQUIRE_THROWS_MATCHES(write(dir / "folder"), FileError, says(dir / "folder", "regular file"));
    REQUIRE(fs::is_directory(dir / "folder"));
    REQUIRE_THROWS_MATCHES(write("/dev/null"), FileError, says("'/dev/null'", "regular file"));
    REQUIRE(fs::is_character_file("/dev/null"));
    REQUIRE_THROWS_MATCHES(write(dir / "none/f"), FileError,
                           says(dir / "none/f", "No such file or directory"));
    REQUIRE_THROWS_MATCHES(write(""), FileError, says("cannot write ''"));
    put(dir / "f", "old");
    REQUIRE_THROWS_MATCHES(write(dir / "f/g"), FileError, says(dir / "f/g", "Not a directory"));
    REQUIRE(dir.entries() == 2);
}

TEST_CASE("A link stays a link and its target is replaced", "[file][output_file]") {
    TemporaryDirectory dir;
    fs::create_directory(dir / "store");
    put(dir / "store/f", "old");
    fs::create_symlink("store/f", dir / "link");
    write_atomically(dir / "link", [](OutputFile& out) { out.write("new"); });
    REQUIRE(fs::is_symlink(dir / "link"));
    REQUIRE(contents(dir / "store/f") == "new");
}

TEST_CASE("A write-protected file is not replaced", "[file][output_file]") {
    TemporaryDirectory dir;
    fs::permissions(dir.path(), fs::perms::all);
    put(dir / "f", "best");
    fs::permissions(dir / "f", fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
    const int status = in_child([&] {
        if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0))
            return 1;  // root may write all
        try {
            write_atomically(dir / "f", [](OutputFile& out) { out.write("worse"); });
        } catch (const FileError& e) {
            return std::string(e.what()).find("Permission denied") != std::string::npos ? 7 : 8;
        }
        return 0;
    });
    REQUIRE(status == 7);
    REQUIRE(contents(dir / "f") == "best");
    REQUIRE(dir.entries() == 1);
}
