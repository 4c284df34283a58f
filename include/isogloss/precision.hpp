/// @file precision.hpp  The type to which the factors of matrix products are rounded.
#pragma once

#include <isogloss/config.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The type to which the factors of a model's matrix products are rounded in training. Parameters, states,
/// gradients, sums and all other operations stay in the type of the graph, as do evaluation passes.
enum class Precision {
    full,  ///< no rounding: products in the type of the graph
    bf16,  ///< bfloat16, 8 significant bits; for float only
    /// bf16 if a measurement, made once per process, finds its products faster on this processor than those of
    /// BLAS in float; else full. The choice changes the bits of results.
    automatic,
    /// 8-bit integers with a scale for each column of a matrix and each row of its left factor; for float, and
    /// only for weights packed for evaluation, see Graph::packed_weights.
    int8,
};

}}  // namespace isogloss
