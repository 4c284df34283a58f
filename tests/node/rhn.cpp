#include <isogloss/node/rhn.hpp>

#include "by_hand.hpp"
#include "catch.hpp"
#include "laws.hpp"
#include "reference/values.hpp"

using namespace isogloss;

TEST_CASE("Rhn obeys the laws of a node", "[node][rhn]") {
    const double keep = GENERATE(1., 0.6);
    const auto scheme = GENERATE(DropoutScheme::tied, DropoutScheme::gal, DropoutScheme::recurrent);
    const Index depth = GENERATE(1, 3);
    CAPTURE(keep, static_cast<int>(scheme), depth);
    REQUIRE(laws([=](auto& g) {
                const auto x = g.input("x", 3);
                return check::probe(
                    g, g.template add<Rhn>("rhn",
                                           {.units = 4, .depth = depth, .keep = keep, .scheme = scheme}, x));
            }) == "");
}

TEST_CASE("Rhn with its masks is what its equations say, unit by unit", "[node][rhn]") {
    const double keep = GENERATE(1., 0.6);
    const auto scheme = GENERATE(DropoutScheme::tied, DropoutScheme::gal, DropoutScheme::recurrent);
    const Index depth = GENERATE(1, 3);
    CAPTURE(keep, static_cast<int>(scheme), depth);
    const auto d = by_hand::compare<Rhn>(
        {.depth = depth, .keep = keep, .scheme = scheme}, "z1", [&](auto& net, auto& cell, const auto& x) {
            return by_hand::rhn(net, cell, x, scheme == DropoutScheme::tied, depth);
        });
    CAPTURE(d.value, d.gradient, d.modulus, d.unit_gradient, d.unit_modulus);
    REQUIRE(d.largest() < 1e-14);
}

TEST_CASE("Rhn agrees with its equations in PyTorch", "[node][rhn][reference]") {
    namespace ref = reference::rhn;
    Graph<double> g({.time = 3, .batch = 2});
    const auto x = g.input("x", 3), w = g.input("w", 4);
    const auto y = g.add<Rhn>("rhn", {.units = 4, .depth = 2}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    set(g, "rhn.W", ref::W);
    set(g, "rhn.R1", ref::R1);
    set(g, "rhn.b1", ref::b1);
    set(g, "rhn.R2", ref::R2);
    set(g, "rhn.b2", ref::b2);
    g.states().restore({{Numbers(std::begin(ref::before), std::end(ref::before))}});
    g.forward(l, {x, ref::x, 3, 2}, {w, ref::w, 3, 2});
    g.backward(l);
    REQUIRE(apart(flat(g.value(y)), ref::y) < 1e-14);
    REQUIRE(apart(flat(g.adjoint(x)), ref::d_x) < 1e-13);
    REQUIRE(apart(gradient(g, "rhn.W"), ref::d_W) < 1e-13);
    REQUIRE(apart(gradient(g, "rhn.R1"), ref::d_R1) < 1e-13);
    REQUIRE(apart(gradient(g, "rhn.b1"), ref::d_b1) < 1e-13);
    REQUIRE(apart(gradient(g, "rhn.R2"), ref::d_R2) < 1e-13);
    REQUIRE(apart(gradient(g, "rhn.b2"), ref::d_b2) < 1e-13);
}

TEST_CASE("Rhn with its transform gates shut carries its state", "[node][rhn]") {
    const Index depth = GENERATE(1, 4);
    Graph<double> g({.time = 3, .batch = 1});
    const auto x = g.input("x", 2);
    const auto y = g.add<Rhn>("rhn", {.units = 3, .depth = depth, .transform_bias = -800}, x);
    const Numbers in = numbers(6, 1), start = {0.9, -0.4, 0.1};
    g.states().restore({{start}});
    g.forward(y, {x, in.data(), 3, 1});
    for (Index i = 0; i < 9; ++i) REQUIRE(flat(g.value(y))[std::size_t(i)] == start[std::size_t(i % 3)]);
}

TEST_CASE("Rhn with open transform gates is a deep tanh network", "[node][rhn]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto x = g.input("x", 1);
    const auto y = g.add<Rhn>("rhn", {.units = 1, .depth = 3}, x);
    set(g, "rhn.W", {0.7, 0});
    for (const auto& layer : {"1", "2", "3"}) {
        set(g, std::string("rhn.R") + layer, {1.3, 0});
        set(g, std::string("rhn.b") + layer, {0.2, 40});
    }
    g.states().restore({{Numbers{-0.6}}});
    const double in = 0.9;
    g.forward(y, {x, &in, 1, 1});
    double s = std::tanh(0.7 * 0.9 + 1.3 * -0.6 + 0.2);
    for (int l = 0; l < 2; ++l) s = std::tanh(1.3 * s + 0.2);
    REQUIRE(g.value(y)(0, 0) == Approx(s).epsilon(1e-14));
}

TEST_CASE("The transform biases start at -2, the others at 0", "[node][rhn]") {
    Graph<double> g({.time = 1, .batch = 1});
    g.add<Rhn>("rhn", {.units = 2, .depth = 2}, g.input("x", 1));
    for (const auto& name : {"rhn.b1", "rhn.b2"})
        REQUIRE(flat(g.value(g.weight(name))) == Numbers{0, 0, -2, -2});
}
