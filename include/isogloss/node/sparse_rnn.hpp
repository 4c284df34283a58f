/// @file node/sparse_rnn.hpp  The simple recurrent network on a sparse graph.
#pragma once

#include <isogloss/node/sparse_recurrent.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The simple recurrent network on a sparse graph.
///
///     V_j^t = ρ_{jx_t} + Σ_{i→j} τ_{ij} a_i^{t-1},   a = s(V)
///
/// Shapes, options, start values and errors: see SparseRecurrent and SparseRecurrentOptions.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (8)-(9); without τ_{0j}, which ρ
///          includes.
template <class T> struct SparseRnn : SparseRecurrent<T, false, false> {};

}}  // namespace isogloss
