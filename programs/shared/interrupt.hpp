/// @file interrupt.hpp  Ctrl-C as a request that is checked between two steps of work.
#pragma once

#include <time.h>

#include <atomic>
#include <csignal>
#include <iostream>

namespace interrupt {

/// The signal that requested the end of the work; 0 before any has.
inline volatile std::sig_atomic_t wanted = 0;

namespace detail {

// When the first SIGINT or SIGTERM came, in milliseconds of a clock that nobody sets; 0 before.
inline std::atomic<long long> first = 0;

inline long long now() {
    timespec t = {};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1000LL * t.tv_sec + t.tv_nsec / 1000000 + 1;
}

}  // namespace detail

/// From now on SIGINT, SIGTERM, SIGHUP (the terminal is closed) and SIGPIPE (the output has no reader any
/// more) set `wanted` and let the program continue; what it prints after SIGPIPE is lost. A SIGINT or SIGTERM
/// more than a second after the first ends the program at once; until then it is taken for one of the same
/// cause, as where a batch system signals a script and its programs, and the script passes the signal on.
/// SIGHUP and SIGPIPE never end it; where they were already ignored, for instance by nohup, they stay so.
inline void catch_signals() {
    if (wanted == 0) detail::first = 0;
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
        if (wanted == 0) wanted = signal;
        if (signal != SIGINT && signal != SIGTERM) return;
        const long long now = detail::now();
        long long before = 0;
        if (detail::first.compare_exchange_strong(before, now) || now - before <= 1000) return;
        std::signal(signal, SIG_DFL);
        std::raise(signal);
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
