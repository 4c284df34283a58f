#include "laws.hpp"

#include "allocations.hpp"

namespace {
// In every test program, also for those who call isogloss::check::laws themselves.
[[maybe_unused]] const bool counting = (isogloss::check::allocations = allocations, true);
}  // namespace

std::string laws(const Model& model, const isogloss::check::LawOptions& options) {
    return isogloss::check::laws(model, options);
}
std::vector<isogloss::check::Breach> broken_laws(const Model& model,
                                                 const isogloss::check::LawOptions& options) {
    return isogloss::check::broken_laws(model, options);
}
