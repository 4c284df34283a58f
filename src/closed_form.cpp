// Part of the compiled core; the list is in isogloss/compiled.hpp.
#include <isogloss/compiled.hpp>

namespace isogloss {
ISOGLOSS_COMPILED_CLOSED_FORM(template, float)
ISOGLOSS_COMPILED_CLOSED_FORM(template, double)
}  // namespace isogloss
