// Part of the compiled core; the lists are in isogloss/compiled.hpp.
#include <isogloss/compiled.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {
ISOGLOSS_COMPILED_LOSSES(template, float)
ISOGLOSS_COMPILED_LOSSES(template, double)
}}  // namespace isogloss
