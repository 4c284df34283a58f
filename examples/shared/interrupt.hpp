/// @file interrupt.hpp  Ctrl-C as a wish that is looked at between two steps of work.
#pragma once

#include <csignal>
#include <iostream>

namespace interrupt {

/// The signal that asks for the end of the work, 0 before it has come.
inline volatile std::sig_atomic_t wanted = 0;

/// From now on SIGINT, SIGTERM, SIGHUP (the terminal is closed) and SIGPIPE (nobody reads the output any
/// more) set `wanted` and let the program go on; what it prints after SIGPIPE is lost. The second SIGINT or
/// SIGTERM ends the program at once. SIGHUP and SIGPIPE may come several times for one cause and never do;
/// where they were ignored before, by nohup for instance, they stay so.
inline void catch_signals() {
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
        if (wanted == 0) wanted = signal;
        if (signal != SIGINT && signal != SIGTERM) return;
        std::signal(SIGINT, SIG_DFL);
        std::signal(SIGTERM, SIG_DFL);
    };
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    for (const int signal : {SIGHUP, SIGPIPE}) {
        struct sigaction before = {};
        sigaction(signal, nullptr, &before);
        if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
    }
}

/// The exit status of a program that a signal ended, as shells count it: 128 and its number.
inline int status() { return 128 + wanted; }

/// Where what is said at the end of interrupted work can still be read.
inline std::ostream& out() { return wanted == SIGPIPE ? std::cerr : std::cout; }

}  // namespace interrupt
