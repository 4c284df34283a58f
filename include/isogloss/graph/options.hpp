/// @file graph/options.hpp  Options of a graph and of its weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/graph/logits.hpp>
#include <isogloss/graph/store.hpp>
#include <isogloss/sizes.hpp>
#include <limits>
#include <optional>
#include <type_traits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Capacities, seed and modes of a graph.
struct GraphOptions {
    Index time = 1;          ///< T ≥ 1: most steps in one pass
    Index batch = 1;         ///< B ≥ 1: most columns in one pass
    std::uint64_t seed = 1;  ///< of initial values and dropout masks
    /// Bytes a loss may take for blocks of logits, > 0; see FusedSoftmax. Includes 20 bytes for each of the T·B
    /// positions, 40 with epsilon (AugmentedLoss 28, with epsilon 48, or 68 with the gradient through the target): raise it
    /// for a text of millions of steps in one pass, or blocks shrink to single rows. Empty: 32 MiB, or in bfloat16 3/2
    /// of the bytes of the head's table, and for an AugmentedLoss with another table of that one too, if that is more.
    std::optional<Index> budget = {};
    Precision precision =
        Precision::full;  ///< of the matrix products of training passes; bf16 for float only
    double epsilon =
        0;  ///< ε, 0 ≤ ε < 1: entries of dl/dz below it are sampled in training passes, without bias,
            ///< see FusedSoftmax; 0: all are computed. 1/256 is good for thousands of words
    bool gradients =
        true;  ///< false: a graph for evaluation only, without memory for gradients, adjoints and masks.
               ///< training() stays false, backward is refused; precision and epsilon have no effect, but
               ///< Precision::int8 is refused as always
};

/// Options of a weight made with Graph::weight.
struct WeightOptions {
    bool unit_rows = false;  ///< every row has norm 1, at the start and after every update
    /// false: frozen at its initial, loaded or written values. Passes compute no gradient of it and the graph has
    /// no memory for one; updates skip it. Moduli still flow through it. For weights made by nodes, or to freeze
    /// temporarily, see Parameters::trained.
    bool trained = true;
};

namespace graph {

/// Sets up an empty store for a graph with these options. Throws UsageError for one that is out of range.
template <class T> void configure(Store<T>& store, GraphOptions options) {
    require("graph", "time", options.time, 1);
    require("graph", "batch", options.batch, 1);
    require("graph", "budget", options.budget.value_or(1), 1);
    require("graph", "epsilon", options.epsilon, 0, Exclusive{1});
    bytes_of("graph: time, batch", {options.time, options.batch}, 2 * sizeof(double));
    if (options.precision == Precision::int8 ||
        (!std::is_same_v<T, float> && options.precision == Precision::bf16 && options.gradients))
        throw UsageError("graph: found precision = ", options.precision == Precision::int8 ? "int8" : "bf16",
                         "; only a graph of float trains in bf16, and none in int8: see packed_weights()");
    if (!options.gradients) options.precision = Precision::full, options.epsilon = 0;
    store.gradients = store.training = options.gradients;
    store.precision = options.precision == Precision::automatic ? fastest_precision<T>() : options.precision;
    store.epsilon = options.epsilon;
    store.capacity = {options.time, options.batch};
    store.seed = options.seed;
    constexpr Index most =
        std::numeric_limits<Index>::max() / 4;  // "no limit", but sums of it do not overflow
    if (options.budget) store.budget = std::min(*options.budget, most);
}

/// The options of the graph with this store: see Graph::options.
template <class T> GraphOptions options_of(const Store<T>& store) {
    return {.time = store.capacity.time,
            .batch = store.capacity.batch,
            .seed = store.seed,
            .budget = store.budget,
            .precision = store.precision,
            .epsilon = store.epsilon,
            .gradients = store.gradients};
}

}  // namespace graph
}}  // namespace isogloss
