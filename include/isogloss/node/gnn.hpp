/// @file node/gnn.hpp  The gated neural network.
#pragma once

#include <isogloss/node/sparse_recurrent.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The gated neural network.
///
///     V_j^t = τ_{0jx_t} + Σ_{i→j} τ_{ijx_t} a_i^{t-1},   a = s(V)
///
/// Shapes, options, start values and errors: see SparseRecurrent and SparseRecurrentOptions.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (10)-(11).
template <class T> struct Gnn : SparseRecurrent<T, false, true> {};

}}  // namespace isogloss
