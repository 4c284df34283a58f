// Signals of one cause that arrive together, and one that comes later, each in a process of its own.
#include "../../programs/shared/interrupt.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "catch.hpp"

namespace {

/// How a process ends that is sent SIGHUP first if wanted, three signals at once, and SIGINT again if wanted.
int end_of(bool hangup, bool later) {
    const pid_t child = ::fork();
    if (child == 0) {
        interrupt::catch_signals();
        if (hangup) std::raise(SIGHUP);
        for (const int signal : {SIGTERM, SIGINT, SIGTERM}) std::raise(signal);
        if (later) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1100));
            std::raise(SIGINT);
        }
        ::_exit(interrupt::status());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

}  // namespace

TEST_CASE("Signals within a second have one cause", "[programs][interrupt]") {
    const int status = end_of(false, false);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + SIGTERM);
    std::signal(SIGHUP, SIG_DFL);  // also where this test runs under nohup
    const int after_hangup = end_of(true, false);
    REQUIRE(WIFEXITED(after_hangup));
    CHECK(WEXITSTATUS(after_hangup) == 128 + SIGHUP);
}

TEST_CASE("A signal after a second ends the program at once", "[programs][interrupt]") {
    const int status = end_of(false, true);
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGINT);
}
