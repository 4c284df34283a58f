/// @file interrupt.hpp  Ctrl-C as a request that is checked between two steps of work.
#pragma once

#include <csignal>
#include <iostream>

namespace interrupt {

/// The signal that requested the end of the work; 0 before any has.
inline volatile std::sig_atomic_t wanted = 0;

/// From now on SIGINT, SIGTERM, SIGHUP (the terminal is closed) and SIGPIPE (the output has no reader any
/// more) set `wanted` and let the program continue; what it prints after SIGPIPE is lost. The second SIGINT
/// or SIGTERM ends the program at once. SIGHUP and SIGPIPE may arrive several times for one cause and never
/// end it; where they were already ignored, for instance by nohup, they stay so.
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

/// The exit status of a program ended by a signal, as shells report it: 128 plus its number.
inline int status() { return 128 + wanted; }

/// The stream on which messages at the end of interrupted work can still be read.
inline std::ostream& out() { return wanted == SIGPIPE ? std::cerr : std::cout; }

}  // namespace interrupt
