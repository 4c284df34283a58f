/// @file node/glnn.hpp  The gated leaky neural network.
#pragma once

#include <isogloss/node/sparse_recurrent.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The gated leaky neural network.
///
///     V_j^t = V_j^{t-1} + τ_{0jx_t} + Σ_{i→j} τ_{ijx_t} a_i^{t-1},   a = s(V)
///
/// Shapes, options, start values and errors: see SparseRecurrent and SparseRecurrentOptions.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (12)-(13).
template <class T> struct Glnn : SparseRecurrent<T, true, true> {};

}}  // namespace isogloss
