// Part of the compiled core; the list is in isogloss/compiled.hpp.
#include <isogloss/compiled.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {
ISOGLOSS_COMPILED_NODES(template, float)
ISOGLOSS_COMPILED_NODES(template, double)
}}  // namespace isogloss
