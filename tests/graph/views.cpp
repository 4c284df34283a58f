// What is assigned to the views that a graph gives of its memory.
#include <isogloss/isogloss.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("Weights and states are assigned by value and shape", "[graph][errors]", float, double) {
    using T = TestType;
    Graph<T> g({.time = 1, .batch = 3});
    const auto a = g.weight("a", 2, 3, uniform(0.5)), b = g.weight("b", 2, 3, uniform(0.5)),
               c = g.weight("c", 3, 2, uniform(0.5));
    g.value(a) = g.value(b);
    REQUIRE(xt::all(xt::equal(g.value(a), g.value(b))));
    g.value(a)(0, 0) = 7;
    REQUIRE(g.value(b)(0, 0) != 7);
    auto view = g.value(a);
    view = g.value(b);  // into the same memory, not another view
    REQUIRE(g.value(a)(0, 0) == g.value(b)(0, 0));

    const Tensor<T, 2> kept = g.value(a);
    for (const Tensor<T, 2>& wrong : {Tensor<T, 2>({3, 2}, T(1)), Tensor<T, 2>({1, 6}, T(1)),
                                      Tensor<T, 2>({1, 3}, T(1)), Tensor<T, 2>({4, 3}, T(1))}) {
        REQUIRE_THROWS_MATCHES(g.value(a) = wrong, UsageError, says("'a'"));
        REQUIRE_THROWS_MATCHES(g.value(a) = 2 * wrong, UsageError, says("'a'"));
        REQUIRE_THROWS_MATCHES(noalias(g.value(a)) = 2 * wrong, UsageError, says("'a'"));
    }
    const xt::xarray<T> deep = xt::ones<T>({1, 2, 3}), flat = xt::ones<T>({6});
    REQUIRE_THROWS_MATCHES(g.value(a) = deep, UsageError, says("'a'"));
    REQUIRE_THROWS_MATCHES(g.value(a) = flat, UsageError, says("'a'"));
    REQUIRE_THROWS_MATCHES(g.value(a) = g.value(c), UsageError, says("'a'"));
    REQUIRE(xt::all(xt::equal(g.value(a), kept)));
    g.value(a) = xt::transpose(g.value(c));
    REQUIRE(g.value(a)(0, 2) == g.value(c)(2, 0));

    g.template add<Rnn>("rnn", {.units = 2}, g.input("u", 2));
    g.states().at("rnn.h") = Tensor<T, 2>({3, 2}, T(1));
    const Tensor<T, 2> turned({2, 3}, T(1));
    REQUIRE_THROWS_MATCHES(g.states().at("rnn.h") = turned, UsageError, says("'rnn.h'"));
}
