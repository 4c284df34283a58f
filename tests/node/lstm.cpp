#include <isogloss/node/lstm.hpp>

#include "by_hand.hpp"
#include "catch.hpp"
#include "laws.hpp"
#include "reference/values.hpp"

using namespace isogloss;

TEST_CASE("Lstm obeys the laws of a node", "[node][lstm]") {
    const double keep = GENERATE(1., 0.6);
    const auto scheme = GENERATE(DropoutScheme::tied, DropoutScheme::gal, DropoutScheme::recurrent);
    CAPTURE(keep, static_cast<int>(scheme));
    REQUIRE(laws([=](auto& g) {
                const auto x = g.input("x", 3);
                return check::probe(
                    g, g.template add<Lstm>("lstm", {.units = 4, .keep = keep, .scheme = scheme}, x));
            }) == "");
}

TEST_CASE("Lstm with its masks is what its equations say, unit by unit", "[node][lstm]") {
    const double keep = GENERATE(1., 0.6);
    const auto scheme = GENERATE(DropoutScheme::tied, DropoutScheme::gal, DropoutScheme::recurrent);
    CAPTURE(keep, static_cast<int>(scheme));
    const auto d = by_hand::compare<Lstm>(
        {.keep = keep, .scheme = scheme}, "z", [&](auto& net, auto& cell, const auto& x) {
            return by_hand::lstm(net, cell, x, scheme == DropoutScheme::tied);
        });
    CAPTURE(d.value, d.gradient, d.modulus, d.unit_gradient, d.unit_modulus);
    REQUIRE(d.largest() < 1e-14);
}

TEST_CASE("Lstm agrees with PyTorch", "[node][lstm][reference]") {
    namespace ref = reference::lstm;
    Graph<double> g({.time = 3, .batch = 2});
    const auto x = g.input("x", 3), w = g.input("w", 4);
    const auto y = g.add<Lstm>("lstm", {.units = 4}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    set(g, "lstm.W", ref::W);
    set(g, "lstm.U", ref::U);
    set(g, "lstm.b", ref::b);
    g.states().restore({{Numbers(std::begin(ref::before), std::end(ref::before)),
                         Numbers(std::begin(ref::cells_before), std::end(ref::cells_before))}});
    g.forward(l, {x, ref::x, 3, 2}, {w, ref::w, 3, 2});
    g.backward(l);
    REQUIRE(apart(flat(g.value(y)), ref::y) < 1e-14);
    REQUIRE(apart(g.states().saved().values[1], ref::last_cells) < 1e-14);
    REQUIRE(apart(flat(g.adjoint(x)), ref::d_x) < 1e-13);
    REQUIRE(apart(gradient(g, "lstm.W"), ref::d_W) < 1e-13);
    REQUIRE(apart(gradient(g, "lstm.U"), ref::d_U) < 1e-13);
    REQUIRE(apart(gradient(g, "lstm.b"), ref::d_b) < 1e-13);
}

TEST_CASE("Lstm with open gates adds up its input, over passes too", "[node][lstm]") {
    Graph<double> g({.time = 2, .batch = 1});
    const auto x = g.input("x", 1);
    const auto y = g.add<Lstm>("lstm", {.units = 1}, x);
    set(g, "lstm.W", {0, 0, 1, 0});
    set(g, "lstm.U", {0, 0, 0, 0});
    set(g, "lstm.b", {40, 40, 0, 40});  // i = f = o = 1, g = tanh(x)
    const Numbers in = {0.3, -0.1, 0.7, 1.9};
    Numbers expected, got;
    for (double c = 0; const double v : in) expected.push_back(std::tanh(c += std::tanh(v)));
    for (const Index first : {0, 2}) {
        g.forward(y, {x, in.data() + first, 2, 1});
        for (const double v : flat(g.value(y))) got.push_back(v);
    }
    REQUIRE(apart(got, expected) < 1e-15);
}

TEST_CASE("Lstm with a shut forget gate knows its last input only", "[node][lstm]") {
    Graph<double> g({.time = 3, .batch = 1});
    const auto x = g.input("x", 1);
    const auto y = g.add<Lstm>("lstm", {.units = 1}, x);
    set(g, "lstm.W", {0, 0, 1, 0});
    set(g, "lstm.U", {0, 0, 0, 0});
    set(g, "lstm.b", {40, -800, 0, 0});  // i = 1, f = 0, o = 1/2
    const Numbers in = {0.3, -0.1, 0.7};
    g.forward(y, {x, in.data(), 3, 1});
    Numbers expected;
    for (const double v : in) expected.push_back(0.5 * std::tanh(std::tanh(v)));
    REQUIRE(apart(flat(g.value(y)), expected) < 1e-15);
}

TEST_CASE("The forget bias starts where it is told, the other biases at 0", "[node][lstm]") {
    Graph<double> g({.time = 1, .batch = 1});
    g.add<Lstm>("lstm", {.units = 2, .forget_bias = 1.5}, g.input("x", 1));
    REQUIRE(flat(g.value(g.weight("lstm.b"))) == Numbers{0, 0, 1.5, 1.5, 0, 0, 0, 0});
}

TEST_CASE("Lstm stays finite and right with gates driven to the end of the range", "[node][lstm]") {
    Graph<float> g({.time = 2, .batch = 1});
    const auto x = g.input("x", 1), w = g.input("w", 1);
    const auto y = g.add<Lstm>("lstm", {.units = 1}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    set(g, "lstm.W", {1, -1, 1, 1});
    const float in[] = {1e30f, -1e30f}, weights[] = {1, 1};
    g.forward(l, {x, in, 2, 1}, {w, weights, 2, 1});
    // i = 1, f = 0, g = 1, o = 1; then i = 0, f = 1, g = -1, o = 0
    REQUIRE(g.value(y)(0, 0) == Approx(std::tanh(1.f)));
    REQUIRE(g.value(y)(1, 0) == 0);
    g.backward(l);
    for (const double v : gradient(g, "lstm.W")) REQUIRE(std::isfinite(v));
}
