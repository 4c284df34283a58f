#include <isogloss/node/gru.hpp>

#include "by_hand.hpp"
#include "catch.hpp"
#include "laws.hpp"
#include "reference/values.hpp"

using namespace isogloss;

TEST_CASE("Gru obeys the laws of a node", "[node][gru]") {
    const double keep = GENERATE(1., 0.6);
    const auto scheme = GENERATE(DropoutScheme::tied, DropoutScheme::gal, DropoutScheme::recurrent);
    const bool after = GENERATE(false, true);
    CAPTURE(keep, static_cast<int>(scheme), after);
    REQUIRE(laws([=](auto& g) {
                return check::probe(
                    g, g.template add<Gru>("gru",
                                           {.units = 4, .keep = keep, .scheme = scheme, .reset_after = after},
                                           g.input("x", 3)));
            }) == "");
}

TEST_CASE("Gru with its masks is what its equations say, unit by unit", "[node][gru]") {
    const double keep = GENERATE(1., 0.6);
    const auto scheme = GENERATE(DropoutScheme::tied, DropoutScheme::gal, DropoutScheme::recurrent);
    const bool after = GENERATE(false, true);
    CAPTURE(keep, static_cast<int>(scheme), after);
    const auto d = by_hand::compare<Gru>({.keep = keep, .scheme = scheme, .reset_after = after}, "gates",
                                         [&](auto& net, auto& cell, const auto& x) {
                                             return by_hand::gru(net, cell, x, scheme == DropoutScheme::tied,
                                                                 scheme == DropoutScheme::gal, after);
                                         });
    CAPTURE(d.value, d.gradient, d.modulus, d.unit_gradient, d.unit_modulus);
    REQUIRE(d.largest() < 1e-14);
}

TEST_CASE("Gru agrees with its equations in PyTorch", "[node][gru][reference]") {
    namespace ref = reference::gru;
    Graph<double> g({.time = 3, .batch = 2});
    const auto x = g.input("x", 3), w = g.input("w", 4);
    const auto y = g.add<Gru>("gru", {.units = 4}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    set(g, "gru.W", ref::W);
    set(g, "gru.U", ref::U);
    set(g, "gru.b", ref::b);
    set(g, "gru.Wq", ref::Wq);
    set(g, "gru.Uq", ref::Uq);
    set(g, "gru.bq", ref::bq);
    g.states().restore({{Numbers(std::begin(ref::before), std::end(ref::before))}});
    g.forward(l, {x, ref::x, 3, 2}, {w, ref::w, 3, 2});
    g.backward(l);
    REQUIRE(apart(flat(g.value(y)), ref::y) < 1e-14);
    REQUIRE(apart(flat(g.adjoint(x)), ref::d_x) < 1e-13);
    REQUIRE(apart(gradient(g, "gru.W"), ref::d_W) < 1e-13);
    REQUIRE(apart(gradient(g, "gru.U"), ref::d_U) < 1e-13);
    REQUIRE(apart(gradient(g, "gru.b"), ref::d_b) < 1e-13);
    REQUIRE(apart(gradient(g, "gru.Wq"), ref::d_Wq) < 1e-13);
    REQUIRE(apart(gradient(g, "gru.Uq"), ref::d_Uq) < 1e-13);
    REQUIRE(apart(gradient(g, "gru.bq"), ref::d_bq) < 1e-13);
}

TEST_CASE("Gru with z = 1 holds its state, with z = 0 it forgets", "[node][gru]") {
    constexpr Index T = 3, n = 4;
    Graph<double> g({.time = T, .batch = 1});
    const auto x = g.input("x", 2);
    const auto y = g.add<Gru>("gru", {.units = n}, x);
    const Numbers in = numbers(T * 2, 1), start = {0.9, -0.4, 0.1, -1};
    g.states().restore({{start}});
    set(g, "gru.b", {800, 800, 800, 800, 0, 0, 0, 0});
    g.forward(y, {x, in.data(), T, 1});
    for (Index i = 0; i < T * n; ++i) REQUIRE(flat(g.value(y))[std::size_t(i)] == start[std::size_t(i % n)]);

    // z = 0 and no way back into the candidate: tanh of the input
    set(g, "gru.b", {-800, -800, -800, -800, 0, 0, 0, 0});
    set(g, "gru.Uq", Numbers(n * n));
    g.forward(y, {x, in.data(), T, 1});
    const auto Wq = g.value(g.weight("gru.Wq"));
    for (std::size_t t = 0; t < T; ++t)
        for (std::size_t j = 0; j < n; ++j)
            REQUIRE(g.value(y)(t, j) == Approx(std::tanh(in[2 * t] * Wq(0, j) + in[2 * t + 1] * Wq(1, j))));
}

TEST_CASE("Gru with r = 0 shuts its past out of the candidate", "[node][gru]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto x = g.input("x", 1);
    const auto y = g.add<Gru>("gru", {.units = 1}, x);
    set(g, "gru.W", {0, 0});
    set(g, "gru.U", {0, 0});
    set(g, "gru.b", {0, -800});  // z = 1/2, r = 0
    set(g, "gru.Wq", {1});
    set(g, "gru.Uq", {5});
    g.states().restore({{Numbers{0.8}}});
    const double in = 0.3;
    g.forward(y, {x, &in, 1, 1});
    REQUIRE(g.value(y)(0, 0) == Approx(0.5 * 0.8 + 0.5 * std::tanh(0.3)));
}

TEST_CASE("Gru starts with the bias of its update gate: the larger, the longer it keeps its state",
          "[node][gru]") {
    const auto kept = [](double bias) {
        Graph<double> g({.time = 5, .batch = 1});
        const auto x = g.input("x", 1);
        const auto h = g.add<Gru>("gru", {.units = 2, .update_bias = bias}, x);
        REQUIRE(flat(g.value(g.weight("gru.b"))) == Numbers{bias, bias, 0, 0});
        REQUIRE(flat(g.value(g.weight("gru.bq"))) == Numbers{0, 0});
        g.states().restore({{{1, 1}}});
        const Numbers in(5);
        g.forward(h, {x, in.data(), 5, 1});
        return g.value(h)(4, 0);
    };
    REQUIRE(kept(-3) < 0.01);
    REQUIRE(kept(0) < 0.2);
    REQUIRE(kept(3) > 0.7);
    REQUIRE(kept(800) == 1);
}
