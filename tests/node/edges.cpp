#include <isogloss/node/edges.hpp>
#include <set>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("A random graph has d distinct edges from every unit, its loop among them", "[node][edges]") {
    const Index units = GENERATE(1, 2, 7, 20), edges = GENERATE(1, 2, 3, 7);
    if (edges > units) return;
    std::set<std::vector<Index>> graphs;
    for (std::uint64_t seed = 1; seed < 6; ++seed) {
        const auto g = random_edges(units, edges, seed);
        graphs.insert(g.from);
        REQUIRE(g.count() == units * edges);
        std::vector<std::set<Index>> targets(static_cast<std::size_t>(units));
        for (Index j = 0; j < units; ++j) {
            REQUIRE(g.from[std::size_t(g.first[std::size_t(j)])] == j);  // the loop comes first
            for (Index k = g.first[std::size_t(j)]; k < g.first[std::size_t(j) + 1]; ++k)
                targets[std::size_t(g.from[std::size_t(k)])].insert(j);
        }
        for (Index i = 0; i < units; ++i) {
            REQUIRE(std::ssize(targets[std::size_t(i)]) == edges);
            REQUIRE(targets[std::size_t(i)].contains(i));
        }
        REQUIRE(random_edges(units, edges, seed).from == g.from);
    }
    if (units == 20 && edges > 1) REQUIRE(graphs.size() == 5);
}

TEST_CASE("The edges of a unit are a shuffle of the others, of its own", "[node][edges]") {
    const Index units = 9, d = 4;
    const Random random(3, stream_of("edges"));
    std::vector<std::set<Index>> sources(std::size_t{9});
    for (Index i = 0; i < units; ++i) {
        std::vector<Index> others;
        for (Index j = 0; j < units; ++j)
            if (j != i) others.push_back(j);
        for (Index k = 0; k + 1 < d; ++k) {
            std::swap(others[std::size_t(k)],
                      others[std::size_t(k + random.below(i * units + k, units - 1 - k))]);
            sources[std::size_t(others[std::size_t(k)])].insert(i);
        }
    }
    const Edges g = random_edges(units, d, 3);
    for (Index j = 0; j < units; ++j) {
        const auto row = g.from.begin();
        CHECK(std::set<Index>(row + g.first[j] + 1, row + g.first[j + 1]) == sources[std::size_t(j)]);
    }
    CHECK(random_edges(300'000, 3, 1).count() == 900'000);  // as many steps: no unit looks at all others
}
