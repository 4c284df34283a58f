// Part of the compiled core; the list is in isogloss/compiled_lds.hpp.
#include <isogloss/compiled_lds.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {
ISOGLOSS_COMPILED_LDS_LIST(template, float)
ISOGLOSS_COMPILED_LDS_LIST(template, double)
}}}  // namespace isogloss::lds
