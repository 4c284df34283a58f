// The gradient of a table of which shards touch some rows, summed over ranks that are threads.
#include <isogloss/distributed/row_sum.hpp>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/embedding.hpp>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using distributed::RowSum;
using distributed::ThreadGroup;

namespace {

// A table [5, 2] that is read by rows.
template <class T> struct Table {
    Graph<T> g{GraphOptions{}};
    Parameter<T>& E = [this]() -> Parameter<T>& {
        g.template add<Embedding>("embed", {}, g.tokens("x", 5), g.weight("E", 5, 2, constant(0)));
        return g.parameter("E");
    }();
    void add(Index row, T size) {
        T* at = E.gradient_row(row);
        at[0] += size, at[1] -= size;
    }
};

struct Found {
    std::vector<Index> rows;  // in ascending order
    std::vector<double> values;
    bool operator==(const Found&) const = default;
};

template <class T> Found found(Parameter<T>& p) {
    Found f{{p.touched.begin(), p.touched.end()}, {}};
    std::ranges::sort(f.rows);
    for (const Index row : f.rows)
        for (Index c = 0; c < 2; ++c) f.values.push_back(double(p.gradient[row * 2 + c]));
    return f;
}

}  // namespace

TEMPLATE_TEST_CASE("Rows touched by some shard are summed on every rank, step after step",
                   "[distributed][row_sum]", float, double) {
    using T = TestType;
    const Index size = GENERATE(1, 2, 3);
    const bool ordered = GENERATE(true, false);
    // By step and shard: the rows touched. The second step touches fewer, the third none.
    const std::vector<std::vector<std::vector<Index>>> steps = {
        {{0, 3}, {3}, {}, {1, 3}}, {{}, {4}, {4}, {}}, {{}, {}, {}, {}}, {{2}, {0}, {2}, {0}}};
    // Shard s adds ±2ˢ to each.
    const std::vector<Found> expected = {
        {{0, 1, 3}, {1, -1, 8, -8, 11, -11}}, {{4}, {6, -6}}, {{}, {}}, {{0, 2}, {10, -10, 5, -5}}};
    std::vector<std::vector<Found>> all(static_cast<std::size_t>(size));
    ThreadGroup::run(size, [&](auto& ranks) {
        Table<T> table;
        const auto mine = distributed::shards_of(ranks.rank(), size, 4);
        RowSum<T> sum(&table.E, mine.last - mine.first);
        distributed::ArrayTreeSum<T> tree;
        for (const auto& shards : steps) {
            for (Index s = mine.first; s < mine.last; ++s) {
                for (const Index row : shards[static_cast<std::size_t>(s)])
                    table.add(row, static_cast<T>(Index{1} << s));
                sum.take(s - mine.first);
            }
            sum.finish(ranks, mine, mine.last - mine.first, 4, ordered,
                       [&](const auto& own, std::span<T> to) {
                           if (ordered) return tree.run(ranks, 4, std::span<const T* const>(own), to);
                           std::copy_n(own[0], to.size(), to.data());
                           ranks.all_reduce(to);
                       });
            all[static_cast<std::size_t>(ranks.rank())].push_back(found(table.E));
            table.E.clear_gradient();
        }
    });
    CAPTURE(size, ordered);
    for (const auto& of_rank : all) CHECK(of_rank == expected);
}

TEST_CASE("A shard with a dense gradient touches every row", "[distributed][row_sum]") {
    Table<double> table;
    distributed::Alone alone;
    RowSum<double> sum(&table.E, 2);
    table.add(1, 1);
    sum.take(0);
    table.E.dense_gradient();
    table.add(4, 2);
    sum.take(1);
    sum.finish(alone, {0, 2}, 2, 2, true,
               [](const auto& own, std::span<double> to) { std::copy_n(own[0], to.size(), to.data()); });
    CHECK(found(table.E) == Found{{0, 1, 2, 3, 4}, {0, 0, 1, -1, 0, 0, 0, 0, 2, -2}});
}
