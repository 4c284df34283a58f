/// @file node/random_edges.hpp  The random graphs that sparse networks stand on.
#pragma once

#include <isogloss/graph/store.hpp>
#include <limits>
#include <numeric>
#include <vector>

namespace isogloss {

/// A random oriented graph: each unit has d distinct targets, one of them itself. Edges are listed by target,
/// the loop first.
///
/// Throws UsageError unless 1 ≤ d ≤ units < 2³¹, and where the machine has not the memory.
inline graph::EdgesRecord random_edges(Index units, Index d, std::uint64_t seed) {
    if (units < 1 || units > std::numeric_limits<std::int32_t>::max() || d < 1 || d > units)
        throw UsageError(
            message("edges: found ", units, " units with ", d,
                    " edges each, expected 1 to 2^31 - 1 units and 1 to units edges (the loop counts)"));
    return within_memory("edges", bytes_of("edges", {units, d}, sizeof(Index)), [&] {
        const Random random(seed, stream_of("edges"));
        std::vector<std::vector<Index>> into(static_cast<std::size_t>(units));
        for (Index i = 0; i < units; ++i) into[static_cast<std::size_t>(i)].push_back(i);
        std::vector<Index> others(static_cast<std::size_t>(units - 1));
        for (Index i = 0; i < units; ++i) {
            std::iota(others.begin(), others.end(), Index{0});
            for (Index k = 0; k + 1 < d; ++k) {  // the first d - 1 places of a shuffle
                const Index pick = k + random.below(i * units + k, units - 1 - k);
                std::swap(others[static_cast<std::size_t>(k)], others[static_cast<std::size_t>(pick)]);
                const Index j = others[static_cast<std::size_t>(k)];
                into[static_cast<std::size_t>(j < i ? j : j + 1)].push_back(i);
            }
        }
        graph::EdgesRecord r;
        r.units = units;
        r.first.push_back(0);
        for (const auto& sources : into) {
            r.from.insert(r.from.end(), sources.begin(), sources.end());
            r.first.push_back(r.edges());
        }
        return r;
    });
}

}  // namespace isogloss
