#include <cmath>
#include <isogloss/distributed/gradient_sum.hpp>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/embedding.hpp>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using distributed::Alone;
using distributed::GradientSum;
using distributed::ThreadGroup;

namespace {

using Values = std::vector<double>;

// A table [6, 2] that is read by rows alone, a matrix [2, 2], and one that no pass gives a gradient.
template <class T> struct Group {
    Graph<T> g{GraphOptions{}};
    Group() {
        const auto x = g.tokens("x", 6);
        g.template add<Embedding>("embed", {}, x, g.weight("E", 6, 2, constant(0)));
        g.weight("W", 2, 2, constant(0));
        g.weight("unused", 1, 2, constant(0));
    }
    Parameter<T>& E() { return g.parameter("E"); }
    Parameter<T>& W() { return g.parameter("W"); }

    // The pass of a shard: 2ˢ (k + 1) at place k of W, 2ˢ in rows s and s + 1 of the table.
    void pass(Index shard) {
        const T size = std::exp2(T(shard));
        for (Index k = 0; k < 4; ++k) W().dense_gradient().data[k] += size * T(k + 1);
        for (const Index row : {shard + 1, shard})
            for (Index c = 0; c < 2; ++c) E().gradient_row(row)[c] += size;
    }
    Values gradient(Parameter<T>& p) {
        const auto d = p.dense_gradient();
        return Values(d.data, d.data + p.size());
    }
};

// What the passes of shards 0 … 3 add up to: 15 (k + 1), and 2ʳ + 2ʳ⁻¹ in row r.
const Values dense_sum = {15, 30, 45, 60}, table_sum = {1, 1, 3, 3, 6, 6, 12, 12, 8, 8, 0, 0};

}  // namespace

TEMPLATE_TEST_CASE("The gradients of four shards add up to their closed form on every rank",
                   "[distributed][gradient_sum]", float, double) {
    using T = TestType;
    const Index size = GENERATE(1, 2, 3, 4);
    struct Found {
        Values dense, table, unused;
        bool emptied = true, dense_after = false;
    };
    std::vector<Found> found(static_cast<std::size_t>(size));
    ThreadGroup::run(size, [&](auto& ranks) {
        using Condition = typename Parameter<T>::Condition;
        Group<T> group;
        GradientSum<T> sum(group.g.parameters(), 4);
        const auto mine = distributed::shards_of(ranks.rank(), size, 4);
        Found& f = found[static_cast<std::size_t>(ranks.rank())];
        for (int repeat = 0; repeat < 2; ++repeat) {  // nothing of the sum before is left
            for (Index shard = mine.first; shard < mine.last; ++shard) {
                group.pass(shard);
                sum.take(shard);
                for (auto* p : group.g.parameters())
                    f.emptied = f.emptied && p->condition == Condition::empty;
            }
            sum.finish(ranks);
            f.dense_after = group.W().condition == Condition::dense;
            f.dense = group.gradient(group.W());
            f.table = group.gradient(group.E());
            f.unused = group.gradient(group.g.parameter("unused"));
            group.g.parameters().clear_gradients();
        }
    });
    for (const Found& f : found) {
        CHECK(f.dense == dense_sum);
        CHECK(f.table == table_sum);
        CHECK(f.unused == Values{0, 0});
        CHECK(f.emptied);
        CHECK(f.dense_after);
    }
}

TEST_CASE("A shard without a gradient counts as zeros, one with a dense table with all its rows",
          "[distributed][gradient_sum]") {
    Alone ranks;
    Group<double> group;
    GradientSum<double> sum(group.g.parameters(), 3);
    group.pass(0);
    sum.take(0);
    sum.take(1);  // of a shard whose pass has reached no parameter
    const auto all = group.E().dense_gradient();
    for (Index i = 0; i < 12; ++i) all.data[i] = double(i);
    sum.take(2);
    sum.finish(ranks);
    CHECK(group.gradient(group.W()) == Values{1, 2, 3, 4});
    CHECK(group.gradient(group.E()) == Values{1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11});
}

TEST_CASE("What was taken is forgotten where a pass has failed", "[distributed][gradient_sum]") {
    Alone ranks;
    Group<double> group;
    GradientSum<double> sum(group.g.parameters(), 4);
    for (Index shard = 0; shard < 3; ++shard) {
        group.pass(shard + 1);
        sum.take(shard);
    }
    sum.clear();
    for (Index shard = 0; shard < 4; ++shard) {
        group.pass(shard);
        sum.take(shard);
    }
    sum.finish(ranks);
    CHECK(group.gradient(group.W()) == dense_sum);
    CHECK(group.gradient(group.E()) == table_sum);
}
