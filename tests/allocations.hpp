/// @file allocations.hpp  How often this program has asked for memory.
#pragma once

#include <cstddef>

/// Calls of operator new, in all its forms, since the program began.
std::size_t allocations();
