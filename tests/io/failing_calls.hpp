/// @file failing_calls.hpp  System calls that fail when a test says so. failing_calls.cpp puts them before
/// those of the C library, for the test program alone.
#pragma once

namespace failing {

/// What happens to the calls on files that follow.
struct Plan {
    int after = -1;         ///< so many calls pass first; -1: all do
    int error = 0;          ///< what errno is then; 0: half of what is to be read or written is
    bool for_ever = false;  ///< every later call fails too, not just one
};

/// Calls on files since `begin`, and whether one of them failed.
inline int calls = 0;
inline bool failed = false;
inline bool active = false;
inline Plan plan;

/// From now on calls are counted and fail as planned.
inline void begin(Plan p) {
    plan = p;
    calls = 0;
    failed = false;
    active = true;
}
/// From now on they do not.
inline void end() { active = false; }

}  // namespace failing
