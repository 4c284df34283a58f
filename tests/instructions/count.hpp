// Under callgrind the instructions of a call are written under a name: see budgets.py.
#pragma once

#include <valgrind/callgrind.h>

// Instructions of the second of two calls, as the first may allocate; before() precedes each.
template <class Call, class Before> void count(const char* name, Call&& call, Before&& before) {
    before(), call(), before();
    CALLGRIND_ZERO_STATS;
    call();
    CALLGRIND_DUMP_STATS_AT(name);
}
template <class Call> void count(const char* name, Call&& call) {
    count(name, call, [] {});
}

void count_models();
