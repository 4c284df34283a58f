/// @file precision.hpp  The type to which the factors of matrix products are rounded.
#pragma once

#include <atomic>
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

namespace detail {
inline std::atomic<bool>& is_portable() {
    static std::atomic<bool> it{false};
    return it;
}
}  // namespace detail

/// Whether all results of this process are the same bits on every processor; false unless set.
inline bool portable() { return detail::is_portable().load(std::memory_order_relaxed); }

/// With `wanted`, training, evaluation, sampling and scoring give the same bits for every instruction set, compiler,
/// level of optimisation and number of threads: products of matrices are the library's own in place of those of BLAS,
/// and subnormal numbers are kept. Compile with -ffp-contract=off, as the CMake targets do. Set it before models are
/// built. Not covered: bfloat16, 8-bit integers, and what calls LAPACK (linear dynamical systems, principal angles).
inline void portable(bool wanted) { detail::is_portable().store(wanted, std::memory_order_relaxed); }

}}  // namespace isogloss
