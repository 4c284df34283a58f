/// @file precision.hpp  Which type the factors of matrix products are rounded to.
#pragma once

#include <isogloss/config.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// What the factors of a model's matrix products are rounded to while it is trained. Parameters, states, gradients,
/// sums and everything that is not a matrix product stay in the type of the graph; passes of evaluation are exact.
enum class Precision {
    full,  ///< nothing: products in the type of the graph
    bf16,  ///< bfloat16, 8 significant bits; for float alone
    /// bf16 where a measurement, taken once in the process, finds its products faster on this processor than BLAS
    /// is in float; else full. The bits of results depend on it.
    automatic,
    /// 8-bit integers with a scale for each column of a matrix and each row of what it is multiplied by; for float, and for
    /// weights that are packed for evaluation alone, see Graph::packed_weights.
    int8,
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
