// Part of the compiled core; the list is in isogloss/compiled.hpp.
#include <isogloss/compiled.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {
ISOGLOSS_COMPILED_FACTOR(template, float)
ISOGLOSS_COMPILED_FACTOR(template, double)
}}  // namespace isogloss
