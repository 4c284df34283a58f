/// @file node/leaky_rnn.hpp  The leaky recurrent network without gates.
#pragma once

#include <isogloss/node/sparse_recurrent.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The leaky recurrent network on a sparse graph: the leak of Glnn without its gates.
///
///     V_j^t = V_j^{t-1} + ρ_{jx_t} + Σ_{i→j} τ_{ij} a_i^{t-1},   a = s(V)
///
/// Shapes, options, start values and errors: see SparseRecurrent and SparseRecurrentOptions.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", remark 1.
template <class T> struct LeakyRnn : SparseRecurrent<T, true, false> {};

}}  // namespace isogloss
