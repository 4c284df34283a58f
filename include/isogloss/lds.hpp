/// @file lds.hpp  Linear dynamical systems for text (component and namespace isogloss::lds). Not included are
/// isogloss/lds/files.hpp, as files also need isogloss::io, isogloss/lds/rnn_start.hpp, which needs graphs, and what is for
/// several processes (isogloss/distributed/lds.hpp).
#pragma once

// IWYU pragma: begin_exports
#include <isogloss/counts/lag_counts.hpp>
#include <isogloss/lds/asos.hpp>
#include <isogloss/lds/dense.hpp>
#include <isogloss/lds/dynamics.hpp>
#include <isogloss/lds/embedding.hpp>
#include <isogloss/lds/hankel_svd.hpp>
#include <isogloss/lds/kalman.hpp>
#include <isogloss/lds/model.hpp>
#include <isogloss/lds/moments.hpp>
#include <isogloss/lds/subspace.hpp>
#include <isogloss/lds/text_filter.hpp>
#include <isogloss/lds/text_pairs.hpp>
#include <isogloss/lds/whitening.hpp>
// IWYU pragma: end_exports
#ifdef ISOGLOSS_COMPILED_LDS
#include <isogloss/compiled_lds.hpp>
#endif
