/// @file interrupt.hpp  Ctrl-C as a wish that is looked at between two steps of work.
#pragma once

#include <csignal>

namespace interrupt {

inline volatile std::sig_atomic_t wanted = 0;

/// From now on the first SIGINT or SIGTERM sets wanted, and the second ends the program at once.
inline void catch_signals() {
    struct sigaction action = {};
    action.sa_handler = [](int) {
        wanted = 1;
        std::signal(SIGINT, SIG_DFL);
        std::signal(SIGTERM, SIG_DFL);
    };
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

}  // namespace interrupt
