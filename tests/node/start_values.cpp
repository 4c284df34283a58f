// The start values of the weights of nodes: their options and defaults.
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/gru.hpp>
#include <isogloss/node/qrnn.hpp>
#include <isogloss/node/rhn.hpp>
#include <isogloss/node/rnn.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

constexpr Index T = 2, B = 1, n = 3;

// All entries of the matrices, and none of the biases, of a node that `add` adds to a graph.
template <class Add> Numbers matrices(Add add) {
    Graph<double> g({.time = T, .batch = B});
    add(g);
    Numbers all;
    for (const auto* p : g.parameters("node.*"))
        if (p->rows > 1) all.insert(all.end(), p->value, p->value + p->size());
    return all;
}

template <template <class> class Node>
void starts_with_init(double width, typename Node<double>::Options options = {}) {
    const auto of_options = [&] {
        return matrices([&](auto& g) { g.template add<Node>("node", options, g.input("x", 2)); });
    };
    options.units = n;
    const Numbers usual = of_options();
    const auto largest = *std::ranges::max_element(usual, {}, [](double v) { return std::abs(v); });
    CHECK(std::abs(largest) <= width);
    CHECK(std::abs(largest) > 0.5 * width);
    options.init = constant(0.25);
    const Numbers given = of_options();
    REQUIRE(given.size() == usual.size());
    CHECK(std::ranges::all_of(given, [](double v) { return v == 0.25; }));
}

}  // namespace

TEST_CASE("The matrices of a cell start as init says", "[node][init]") {
    starts_with_init<Rnn>(0.1);
    starts_with_init<Lstm>(0.1);
    starts_with_init<Gru>(0.1);
    starts_with_init<Lstm>(0.1, {.rounds = 3, .rank = 2});
    starts_with_init<Rhn>(0.04);
    starts_with_init<Qrnn>(0.1);
}

TEST_CASE("The projection of a tied head starts as init says", "[node][init]") {
    const Numbers given = matrices([](auto& g) {
        const auto E = g.weight("E", 7, 4, uniform(1));
        g.template add<TiedSoftmax>("node", {.projection = true, .init = constant(0.25)}, g.input("h", n), E);
    });
    REQUIRE(given == Numbers(n * 4, 0.25));
}

TEST_CASE("The edges of a network on a sparse graph follow its seed, the biases its spread", "[node][init]") {
    struct Net {
        Graph<double> g{GraphOptions{.time = T, .batch = B}};
        explicit Net(std::uint64_t seed, double spread = 1) {
            g.add<Glnn>("net", {.units = 12, .edges = 4, .seed = seed, .spread = spread}, g.tokens("x", 3));
        }
        auto from() {
            return std::vector<Index>(edge_record(g).edges.from.begin(), edge_record(g).edges.from.end());
        }
        // The biases of symbol 1.
        Numbers biases() {
            const double* row = g.parameter("net.tau").value + 12 + edge_record(g).edges.count();
            return {row, row + 12};
        }
    };
    CHECK(Net(1).from() == Net(1).from());
    CHECK(Net(1).from() != Net(2).from());
    const auto wide = Net(1, 2).biases(), usual = Net(1, 1).biases();
    CHECK(Net(1, 0).biases() == Numbers(12, 0.0));
    CHECK(usual != Numbers(12, 0.0));
    for (std::size_t j = 0; j < 12; ++j) CHECK(wide[j] == Approx(2 * usual[j]));
}
