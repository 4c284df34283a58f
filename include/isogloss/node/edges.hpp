/// @file node/edges.hpp  Sparse graphs of recurrent units.
#pragma once

#include <isogloss/array.hpp>
#include <isogloss/graph/handles.hpp>
#include <isogloss/random.hpp>
#include <isogloss/sizes.hpp>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// A directed graph of units; edges are listed by target, each unit's self-loop first.
struct Edges {
    Index units = 0;
    Array<Index> first;  ///< [units + 1]: edges first[j] … first[j+1]-1 lead into unit j
    Array<Index> from;   ///< [count]: their source units

    Index count() const { return static_cast<Index>(from.size()); }
    /// Calls f(edge, i, j) for every edge i → j, in order of target.
    template <class F> void for_each(F&& f) const {
        for (Index j = 0, e = 0; j < units; ++j)
            for (; e < first[j + 1]; ++e) f(e, from[e], j);
    }
};

/// What a SparseRecurrent node publishes for the metrics: its graph, its sequences and its parameters. A row of
/// transition weights holds `units` biases (edges from the always-on unit), then the edges by target.
template <class T> struct EdgeRecord {
    std::string name;  ///< of the node
    Edges edges;
    Seq<T> activity, potential, started;  ///< a, V, and a flag: 1 from the first step after a reset
    Tokens tokens;                        ///< symbols that select the row; none if a sequence makes it
    Weight<T> tau, rho, start;            ///< rho, if any: biases by symbol, or those of the units of the
                                          ///< sequence; tau is then one row for all
};

/// A random directed graph: each unit has d distinct targets, one of them itself. Edges are listed by target,
/// the self-loop first.
///
/// Throws UsageError unless 1 ≤ d ≤ units < 2³¹, and if memory does not suffice.
inline Edges random_edges(Index units, Index d, std::uint64_t seed) {
    require("edges", "units", units, 1, std::numeric_limits<std::int32_t>::max());
    require("edges", "edges of each unit", d, 1, units);
    return within_memory("edges", bytes_of("edges", {units, d}, sizeof(Index)), [&] {
        const Random random(seed, stream_of("edges"));
        Array<std::vector<Index>> into(units);
        for (Index i = 0; i < units; ++i) into[i].push_back(i);
        Array<Index> others(units - 1), picks(d - 1);
        std::iota(others.begin(), others.end(), Index{0});
        for (Index i = 0; i < units; ++i) {
            for (Index k = 0; k + 1 < d; ++k) {  // the first d - 1 elements of a shuffle
                picks[k] = k + random.below(i * units + k, units - 1 - k);
                std::swap(others[k], others[picks[k]]);
                const Index j = others[k];
                into[j < i ? j : j + 1].push_back(i);
            }
            for (Index k = d - 1; k-- > 0;) std::swap(others[k], others[picks[k]]);  // in order again
        }
        Edges r;
        r.units = units;
        r.first.push_back(0);
        for (const auto& sources : into) {
            r.from.insert(r.from.end(), sources.begin(), sources.end());
            r.first.push_back(r.count());
        }
        return r;
    });
}

}}  // namespace isogloss
