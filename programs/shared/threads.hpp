/// @file threads.hpp  The option --threads of the example programs.
#pragma once

#include <isogloss/error.hpp>
#include <isogloss/threads.hpp>
#include <string_view>

namespace program {

/// Sets the number of threads of the library to the --threads of a command. Throws UsageError for one out of range.
inline void use_threads(std::string_view command, int n) {
    isogloss::require(command, "--threads", n, 1, isogloss::most_threads);
    isogloss::threads(n);
}

}  // namespace program
