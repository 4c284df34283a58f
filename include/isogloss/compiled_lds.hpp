/// @file compiled_lds.hpp  The contents of lds.hpp, compiled once for float and double; see compiled.hpp.
#pragma once

#include <isogloss/compiled.hpp>
#include <isogloss/lds.hpp>

#define ISOGLOSS_COMPILED_LDS_LIST(make, T)                                                             \
    make class LagMoments<T>;                                                                           \
    make HankelSvd<T> hankel_svd(const HankelOperator<T>&, Index, RandomisedSvdOptions, SvdState<T>,    \
                                 const SvdCheckpoint<T>&);                                              \
    make Subspace<T> subspace_identification(const LagMoments<T>&, SubspaceOptions, SubspaceWatch<T>);  \
    make Statistics<T> asos_statistics(const Lds<T>&, const SteadyState&, const LagMoments<T>&, Index); \
    make double maximise<T>(Statistics<T>, Lds<T>&, MaximiseOptions);                                   \
    make class TextFilter<T>;                                                                           \
    make class TokenEmbedding<T>;                                                                       \
    make TallMatrix<T> type_embedding<T>(const Lds<T>&, const SmallMatrix&);                            \
    make std::vector<Direction> dynamics<T>(const Lds<T>&, const SmallMatrix&, Index, Index, double);

#ifdef ISOGLOSS_COMPILED_LDS
namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {
ISOGLOSS_COMPILED_LDS_LIST(extern template, float)
ISOGLOSS_COMPILED_LDS_LIST(extern template, double)
}}}  // namespace isogloss::lds
#endif
