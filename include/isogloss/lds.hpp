/// @file lds.hpp  Linear dynamical systems for text (component and namespace isogloss::lds). Not included are
/// isogloss/lds/files.hpp, as files also need isogloss::io, isogloss/lds/rnn_start.hpp, which needs graphs, and
/// isogloss/lds/ranks.hpp and isogloss/lds/count_ranks.hpp, which are for several processes.
#pragma once

// IWYU pragma: begin_exports
#include <isogloss/lds/asos.hpp>
#include <isogloss/lds/count_cursor.hpp>
#include <isogloss/lds/count_folder.hpp>
#include <isogloss/lds/count_merge.hpp>
#include <isogloss/lds/count_run.hpp>
#include <isogloss/lds/counts.hpp>
#include <isogloss/lds/dense.hpp>
#include <isogloss/lds/dynamics.hpp>
#include <isogloss/lds/embedding.hpp>
#include <isogloss/lds/hankel_svd.hpp>
#include <isogloss/lds/kalman.hpp>
#include <isogloss/lds/model.hpp>
#include <isogloss/lds/moments.hpp>
#include <isogloss/lds/pair_block.hpp>
#include <isogloss/lds/sparse_counts.hpp>
#include <isogloss/lds/spill_plan.hpp>
#include <isogloss/lds/spilled_counts.hpp>
#include <isogloss/lds/subspace.hpp>
#include <isogloss/lds/text_filter.hpp>
#include <isogloss/lds/text_pairs.hpp>
#include <isogloss/lds/whitening.hpp>
// IWYU pragma: end_exports
#ifdef ISOGLOSS_COMPILED_LDS
#include <isogloss/compiled_lds.hpp>
#endif
