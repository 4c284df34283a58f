// Metrics of Riemannian updates, summed over shards and ranks.
#include <isogloss/distributed/data_parallel.hpp>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;
using distributed::Alone;
using distributed::DataParallel;
using distributed::DataParallelOptions;
using distributed::ThreadGroup;

namespace {

constexpr Index V = 12, steps = 5;

std::vector<Token> random_text(Index n) {
    const Random random(8, 5);
    std::vector<Token> tokens;
    for (Index i = 0; i < n; ++i) tokens.push_back(static_cast<Token>(random.below(i, V)));
    return tokens;
}

// A layer of units and a network on a graph under a tied head; a table and cells have an update each.
struct Model {
    Graph<double> g;
    Tokens x, y;
    Loss<double> l;
    Riemannian<double> cells, head;
    Model(Index columns, UnitModulus modulus, MetricForm form = MetricForm::quasi_diagonal)
        : g({.time = steps, .batch = columns, .seed = 5}),
          x(g.tokens("x", V)),
          y(g.tokens("y", V)),
          l(build(g, x, y)),
          cells(g, "rnn*,net*", options(modulus, form)),
          head(g, "E,softmax*", options(modulus, MetricForm::quasi_diagonal)) {}
    static Loss<double> build(Graph<double>& g, Tokens x, Tokens y) {
        const auto E = g.weight("E", V, 6, uniform(0.5));
        const auto e = g.add<Embedding>("embed", {.keep = 0.8}, x, E);
        const auto h = g.add<Rnn>("rnn", {.units = 3, .init = uniform(0.5)}, e);
        const auto a = g.add<Glnn>("net", {.units = 3, .edges = 2}, x);
        const auto both = g.add<Concatenate>("both", {}, h, a);
        return g.add<CrossEntropy>("loss", {}, g.add<TiedSoftmax>("softmax", {.bias = true}, both, E), y);
    }
    static RiemannianOptions options(UnitModulus modulus, MetricForm form) {
        return {.modulus = modulus, .form = form, .rate = 0.05, .decay = 0.5, .every = 1, .clip = 1};
    }
    void pass(const text::Batch& part) {
        g.forward(l, {x, part.input}, {y, part.target});
        g.backward(l);
        if (cells.wants_modulus()) g.backward<Modulus>(l);
    }
    Numbers values() {
        Numbers all;
        for (const auto* p : g.parameters()) all.insert(all.end(), p->value, p->value + p->size());
        return all;
    }
    void step() { cells.step(), head.step(); }
};

template <class Ranks> Numbers train(Ranks& ranks, Index shards, UnitModulus modulus, MetricForm form) {
    const auto text = random_text(400);
    const DataParallelOptions cut{.columns = 7, .shards = shards};
    Model m(distributed::widest_shard(cut), modulus, form);
    DataParallel parallel(m.g, m.g.parameters(), ranks, cut);
    for (const auto& batch : text::Batches(text, V, {steps, 7})) {
        parallel.gradients(
            batch, [&](const text::Batch& part) { m.pass(part); }, m.cells, m.head);
        m.step();
    }
    return m.values();
}

}  // namespace

TEST_CASE("Metrics summed over shards are those of the whole batch", "[distributed][data_parallel]") {
    const auto modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const auto form = GENERATE(MetricForm::automatic, MetricForm::diagonal);
    Alone alone;
    const Numbers whole = train(alone, 1, modulus, form), start = Model(7, modulus).values();
    REQUIRE(apart(whole, start) > 0.05);
    for (const Index shards : {2, 3, 7}) REQUIRE(apart(train(alone, shards, modulus, form), whole) < 1e-9);
}

TEST_CASE("1, 2, 3 and 4 ranks take the same Riemannian steps, to the bit", "[distributed][data_parallel]") {
    const auto modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    Alone alone;
    const Numbers expected = train(alone, 5, modulus, MetricForm::automatic);
    for (const Index size : {2, 3, 4}) {
        std::vector<Numbers> found(static_cast<std::size_t>(size));
        ThreadGroup::run(size, [&](auto& ranks) {
            found[static_cast<std::size_t>(ranks.rank())] = train(ranks, 5, modulus, MetricForm::automatic);
        });
        for (const auto& f : found) REQUIRE(f == expected);
    }
}

TEST_CASE("Metrics that were left out of the sum over shards are refused", "[distributed][data_parallel]") {
    const auto text = random_text(100);
    Alone alone;
    Model m(2, UnitModulus::ruop);
    DataParallel parallel(m.g, m.g.parameters(), alone, {.columns = 4, .shards = 2});
    text::Batches batches(text, V, {steps, 4});
    parallel.gradients(
        *batches.begin(), [&](const text::Batch& part) { m.pass(part); }, m.cells);
    REQUIRE(m.cells.step() > 0);
    REQUIRE_THROWS_WITH(m.head.step(), Catch::Matchers::ContainsSubstring("the gradient of 'softmax.b'") &&
                                           Catch::Matchers::ContainsSubstring("DataParallel"));
}

TEST_CASE("What cannot be summed is refused", "[distributed][data_parallel]") {
    Model m(3, UnitModulus::ruop);
    const std::vector<double> few(2);
    REQUIRE_THROWS_WITH(m.cells.give_sums(few),
                        Catch::Matchers::ContainsSubstring("numbers of give_sums = 2"));
    Graph<double> g({.time = 3, .batch = 2});
    const auto x = g.tokens("x", 4), y = g.tokens("y", 4);
    const auto a = g.add<Glnn>("net", {.units = 4, .edges = 2}, x);
    g.add<CrossEntropy>("loss", {}, g.add<Softmax>("out", {.vocabulary = 4}, a), y);
    Riemannian<double> update(g, "net*", {});
    REQUIRE_THROWS_WITH(update.sums(), Catch::Matchers::ContainsSubstring("every = 4, expected 1"));
    REQUIRE(Riemannian<double>(g, "net*", {.every = 1}).sums() > 0);
    g.parameters("net.start").trained(false);
    REQUIRE(Riemannian<double>(g, "net*", {}).sums() > 0);
}
