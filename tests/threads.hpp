/// @file threads.hpp  A number of threads for the rest of a test.
#pragma once

#include <isogloss/threads.hpp>

/// From here to the end of the scope the library works on n threads, afterwards on one.
struct Threads {
    explicit Threads(int n) { isogloss::threads(n); }
    ~Threads() { isogloss::threads(1); }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
};
