#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <isogloss/file/output_file.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::file;
namespace fs = std::filesystem;

TEST_CASE("A file appears whole or not at all", "[file][output_file]") {
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

TEST_CASE("A link stays, and what it points to is replaced", "[file][output_file]") {
    TemporaryDirectory scratch;
    put(scratch / "real", "old");
    fs::create_symlink("real", scratch / "link");
    OutputFile out(scratch / "link");
    out.write("new");
    out.commit();
    REQUIRE(fs::is_symlink(scratch / "link"));
    REQUIRE(contents(scratch / "real") == "new");
}

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
    REQUIRE_THROWS_MATCHES(OutputFile(pipe), FileError, says(pipe, "not a regular file"));
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
    REQUIRE(target == "real");
}

TEST_CASE("A name of any length that the file system accepts can be written", "[file][output_file]") {
    TemporaryDirectory scratch;
    for (const std::size_t length : {1, 218, 219, 220, 240, 250, 255}) {
        const std::string name = scratch / std::string(length, 'a');
        put(name.substr(0, name.size() - length + std::min<std::size_t>(length, 219)) + ".isogloss-part-1-2",
            "left behind");
        for (const char* text : {"old", "new"}) {
            OutputFile out(name);
            out.write(text);
            REQUIRE(scratch.entries() == (text[0] == 'o' ? 1 : 2));
            out.commit();
            REQUIRE(contents(name) == text);
        }
        fs::remove(name);
    }
    REQUIRE_THROWS_MATCHES(OutputFile(scratch / std::string(256, 'a')), FileError,
                           says("File name too long"));
    std::string accents;  // of two bytes each
    for (int i = 0; i < 127; ++i) accents += "\xC3\xA9";
    for (const std::string& name : {accents, "a" + accents}) {
        OutputFile out(scratch / name);
        for (const auto& entry : fs::directory_iterator(scratch.path())) {
            const std::string part = entry.path().filename();
            REQUIRE(part.find(".isogloss-part-") % 2 == (name[0] == 'a' ? 1 : 0));  // whole characters
        }
    }
    REQUIRE(scratch.entries() == 0);
}

TEST_CASE("A temporary name that a living writer holds is passed over", "[file][output_file]") {
    TemporaryDirectory scratch;
    const auto path = scratch / "x";
    const auto parts = [&] {
        std::vector<std::string> all;
        for (const auto& entry : fs::directory_iterator(scratch.path())) all.push_back(entry.path().string());
        return all;
    };
    std::string first;  // ends in the number that counts the files of this process
    {
        OutputFile out(path);
        first = parts().at(0);
    }
    const auto dash = first.rfind('-') + 1;
    const std::string next =
        put(first.substr(0, dash) + std::to_string(std::stoul(first.substr(dash)) + 1), "");
    const Descriptor held(::open(next.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(held, LOCK_EX | LOCK_NB) == 0);
    OutputFile out(path);
    REQUIRE(parts().size() == 2);
    out.write("new");
    out.commit();
    REQUIRE(contents(path) == "new");
    REQUIRE(contents(next).empty());
}

TEST_CASE("What cannot be written is named, and nothing is left behind", "[file][output_file]") {
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

namespace {
// Runs `body` in a child process that ends as it says; returns how it ended, as waitpid tells it.
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
    return status;
}
}  // namespace

TEST_CASE("The owner and the group are kept where the system allows it", "[file][output_file]") {
    if (::geteuid() != 0) {
        WARN("owners of files are not tested: that takes root");
        return;
    }  // nobody else may give files away
    TemporaryDirectory scratch;
    fs::permissions(scratch.path(), fs::perms::all);
    const auto path = put(scratch / "x", "old");
    const auto status = [&] {
        struct stat found = {};
        REQUIRE(::stat(path.c_str(), &found) == 0);
        return found;
    };
    const auto rewrite = [&] {
        OutputFile out(path);
        out.write("new");
        out.commit();
        return 7;
    };
    REQUIRE((::chown(path.c_str(), 1234, 4321) == 0 && ::chmod(path.c_str(), 0664) == 0));
    REQUIRE(rewrite() == 7);
    REQUIRE((status().st_uid == 1234 && status().st_gid == 4321 && (status().st_mode & 0777) == 0664));

    // Somebody who is not of the group: the group that it has then gets no more than all others.
    REQUIRE(::chmod(path.c_str(), 0666) == 0);
    REQUIRE(::chmod(path.c_str(), 0662) == 0);
    const int ended = in_child([&] {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
        return rewrite();
    });
    REQUIRE((WIFEXITED(ended) && WEXITSTATUS(ended) == 7));
    REQUIRE((status().st_uid == 65534 && status().st_gid == 65534 && (status().st_mode & 0777) == 0622));
}

TEST_CASE("What a killed program left is removed, what a living one writes is not", "[file][output_file]") {
    TemporaryDirectory scratch;
    const auto path = put(scratch / "x", "old");
    const int ended = in_child([&] {
        OutputFile out(path);
        out.write("half");
        ::kill(::getpid(), SIGKILL);
        return 0;
    });
    REQUIRE((WIFSIGNALED(ended) && scratch.entries() == 2));

    // Not ours to remove: other targets, other names, what is no file.
    for (const char* name : {"y.isogloss-part-1-2", "x.isogloss-part-", "x.isogloss-part-1",
                             "x.isogloss-part-1-", "x.isogloss-part--2", "x.isogloss-part-1-2-3",
                             "x.isogloss-part-1-2.bak", "x.isogloss-part-one-2", "ax.isogloss-part-1-2"})
        put(scratch / name, "mine");
    fs::create_directory(scratch / "x.isogloss-part-1-2");
    fs::create_symlink("y.isogloss-part-1-2", scratch / "x.isogloss-part-3-4");
    const long others = 11;
    REQUIRE(scratch.entries() == 2 + others);

    OutputFile alive(path);
    alive.write("alive");
    REQUIRE(scratch.entries() == 2 + others);  // the abandoned one is gone, this one has come
    const int other = in_child([&] {           // another process, while this one writes
        OutputFile out(path);
        out.write("other");
        out.commit();
        return 7;
    });
    REQUIRE((WIFEXITED(other) && WEXITSTATUS(other) == 7));
    REQUIRE(contents(path) == "other");
    REQUIRE(scratch.entries() == 2 + others);
    alive.commit();
    REQUIRE(contents(path) == "alive");
    REQUIRE(scratch.entries() == 1 + others);
}
