#include "laws.hpp"

#include "allocations.hpp"

namespace {
// In every test program.
[[maybe_unused]] const bool counting = (isogloss::check::allocations = allocations, true);
}  // namespace
