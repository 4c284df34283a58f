/// @file progress.hpp  Where a long run stands, as all programs show it.
#pragma once

#include "../shared/progress.hpp"
#include "print.hpp"

namespace lm {

using program::CpuTime;
using program::Progress;
using program::Stopwatch;

}  // namespace lm
