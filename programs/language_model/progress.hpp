/// @file progress.hpp  The progress of a long run, shown as in all programs.
#pragma once

#include "../shared/progress.hpp"
#include "print.hpp"

namespace lm {

using program::CpuTime;
using program::Progress;
using program::Stopwatch;

}  // namespace lm
