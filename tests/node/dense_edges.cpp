// Whole matrices against edges one by one (node/dense_edges.hpp): a pass long enough for the former gives
// what short ones give by the latter.
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/leaky_rnn.hpp>
#include <isogloss/node/sparse_rnn.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "tolerance.hpp"

using namespace isogloss;

namespace {

template <class T, template <class> class Node> void agrees() {
    constexpr Index steps = 48, piece = 3, A = 4, units = 19;
    Graph<T> g(GraphOptions{.time = steps, .batch = 1});
    const auto x = g.tokens("x", A);
    const auto a = g.template add<Node>("net", {.units = units, .edges = 9}, x);
    for (auto* p : g.parameters()) {
        const Numbers v = numbers(p->size(), 3);
        for (Index i = 0; i < p->size(); ++i) p->value[i] += static_cast<T>(0.1 * v[std::size_t(i)]);
    }
    const Random random(2, 2);
    std::vector<Token> text;
    for (Index t = 0; t < steps; ++t) text.push_back(static_cast<Token>(random.below(t, A)));
    g.reset();
    g.forward(a, {x, {text.data(), steps, 1}});
    const auto whole = flat(g.value(a));
    g.reset();
    for (Index t = 0; t < steps; t += piece) {
        g.forward(a, {x, {text.data() + t, piece, 1}});
        const auto part = flat(g.value(a));
        for (Index i = 0; i < piece * units; ++i)
            REQUIRE(double(part[std::size_t(i)]) ==
                    to_rounding<T>(double(whole[std::size_t(t * units + i)]), 1e-4, 1e-12));
    }
}

}  // namespace

TEMPLATE_TEST_CASE("A network with many edges gives the same by whole matrices and by edges", "[node][edges]",
                   float, double) {
    agrees<TestType, Glnn>();
    agrees<TestType, LeakyRnn>();
    agrees<TestType, SparseRnn>();
}
