// Rounds in which the input and the state of Lstm and Gru gate one another.
#include <isogloss/node/gru.hpp>
#include <isogloss/node/lstm.hpp>

#include "by_hand.hpp"
#include "catch.hpp"
#include "laws.hpp"
#include "reference/mogrifier_values.hpp"

using namespace isogloss;

namespace {

constexpr DropoutScheme schemes[] = {DropoutScheme::tied, DropoutScheme::gal, DropoutScheme::recurrent};

}  // namespace

TEST_CASE("Lstm and Gru obey the laws of a node with rounds of a mogrifier", "[node][mogrifier]") {
    const Index rounds = GENERATE(1, 2, 5), rank = GENERATE(0, 2);
    const auto scheme = schemes[rounds % 3];
    CAPTURE(rounds, rank, static_cast<int>(scheme));
    REQUIRE(laws([=](auto& g) {
                return check::probe(
                    g,
                    g.template add<Lstm>(
                        "cell", {.units = 4, .keep = 0.6, .scheme = scheme, .rounds = rounds, .rank = rank},
                        g.input("x", 3)));
            }) == "");
    for (const bool after : {false, true}) {
        CAPTURE(after);
        REQUIRE(laws([=](auto& g) {
                    return check::probe(g, g.template add<Gru>("cell",
                                                               {.units = 4,
                                                                .keep = 0.6,
                                                                .scheme = scheme,
                                                                .reset_after = after,
                                                                .rounds = rounds,
                                                                .rank = rank},
                                                               g.input("x", 3)));
                }) == "");
    }
}

TEST_CASE("Lstm and Gru with rounds are what their equations say, unit by unit", "[node][mogrifier]") {
    const Index rounds = GENERATE(1, 2, 5), rank = GENERATE(0, 2);
    const double keep = GENERATE(1., 0.6);
    for (const auto scheme : schemes) {
        CAPTURE(rounds, rank, keep, static_cast<int>(scheme));
        const bool tied = scheme == DropoutScheme::tied, gal = scheme == DropoutScheme::gal;
        const auto l =
            by_hand::compare<Lstm>({.keep = keep, .scheme = scheme, .rounds = rounds, .rank = rank}, "z",
                                   [&](auto& net, auto& cell, const auto& x) {
                                       return by_hand::lstm(net, cell, x, tied, {rounds, rank, gal});
                                   });
        CAPTURE(l.value, l.gradient, l.modulus, l.unit_gradient, l.unit_modulus);
        REQUIRE(l.largest() < 1e-13);
        for (const bool after : {false, true}) {
            const auto d = by_hand::compare<Gru>(
                {.keep = keep, .scheme = scheme, .reset_after = after, .rounds = rounds, .rank = rank},
                "gates", [&](auto& net, auto& cell, const auto& x) {
                    return by_hand::gru(net, cell, x, tied, gal, after, {rounds, rank, gal});
                });
            CAPTURE(after, d.value, d.gradient, d.modulus, d.unit_gradient, d.unit_modulus);
            REQUIRE(d.largest() < 1e-13);
        }
    }
}

TEST_CASE("Lstm after three rounds agrees with NumPy", "[node][mogrifier][reference]") {
    namespace ref = reference::mogrifier::lstm;
    Graph<double> g({.time = 3, .batch = 2});
    const auto x = g.input("x", 3), w = g.input("w", 4);
    const auto y = g.add<Lstm>("cell", {.units = 4, .rounds = 3}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    set(g, "cell.W", ref::W);
    set(g, "cell.U", ref::U);
    set(g, "cell.b", ref::b);
    set(g, "cell.Q1", ref::Q1);
    set(g, "cell.R2", ref::R2);
    set(g, "cell.Q3", ref::Q3);
    g.states().restore({{Numbers(std::begin(ref::before), std::end(ref::before)),
                         Numbers(std::begin(ref::cells_before), std::end(ref::cells_before))}});
    g.forward(l, {x, ref::x, 3, 2}, {w, ref::w, 3, 2});
    g.backward(l);
    REQUIRE(apart(flat(g.value(y)), ref::y) < 1e-14);
    REQUIRE(apart(flat(g.adjoint(x)), ref::d_x) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.W"), ref::d_W) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.U"), ref::d_U) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.b"), ref::d_b) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.Q1"), ref::d_Q1) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.R2"), ref::d_R2) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.Q3"), ref::d_Q3) < 1e-13);
}

TEST_CASE("Gru after three rounds of rank 2 agrees with NumPy", "[node][mogrifier][reference]") {
    namespace ref = reference::mogrifier::gru;
    Graph<double> g({.time = 3, .batch = 2});
    const auto x = g.input("x", 3), w = g.input("w", 4);
    const auto y = g.add<Gru>("cell", {.units = 4, .rounds = 3, .rank = 2}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    set(g, "cell.W", ref::W);
    set(g, "cell.U", ref::U);
    set(g, "cell.b", ref::b);
    set(g, "cell.Wq", ref::Wq);
    set(g, "cell.Uq", ref::Uq);
    set(g, "cell.bq", ref::bq);
    set(g, "cell.Q1_left", ref::Q1_left);
    set(g, "cell.Q1_right", ref::Q1_right);
    set(g, "cell.R2_left", ref::R2_left);
    set(g, "cell.R2_right", ref::R2_right);
    set(g, "cell.Q3_left", ref::Q3_left);
    set(g, "cell.Q3_right", ref::Q3_right);
    g.states().restore({{Numbers(std::begin(ref::before), std::end(ref::before))}});
    g.forward(l, {x, ref::x, 3, 2}, {w, ref::w, 3, 2});
    g.backward(l);
    REQUIRE(apart(flat(g.value(y)), ref::y) < 1e-14);
    REQUIRE(apart(flat(g.adjoint(x)), ref::d_x) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.W"), ref::d_W) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.U"), ref::d_U) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.b"), ref::d_b) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.Wq"), ref::d_Wq) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.Uq"), ref::d_Uq) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.bq"), ref::d_bq) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.Q1_left"), ref::d_Q1_left) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.Q1_right"), ref::d_Q1_right) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.R2_left"), ref::d_R2_left) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.R2_right"), ref::d_R2_right) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.Q3_left"), ref::d_Q3_left) < 1e-13);
    REQUIRE(apart(gradient(g, "cell.Q3_right"), ref::d_Q3_right) < 1e-13);
}

TEST_CASE("In one round the state of before scales the input, over passes too", "[node][mogrifier]") {
    Graph<double> g({.time = 2, .batch = 1});
    const auto x = g.input("x", 1);
    const auto y = g.add<Lstm>("cell", {.units = 1, .rounds = 1}, x);
    set(g, "cell.W", {0, 0, 1, 0});
    set(g, "cell.U", {0, 0, 0, 0});
    set(g, "cell.b", {40, 40, 0, 40});  // i = f = o = 1, g = tanh(x^1)
    set(g, "cell.Q1", {1.5});
    const Numbers in = {0.3, -0.1, 0.7, 1.9};
    Numbers expected, got;
    double c = 0, h = 0;
    for (const double v : in) {
        c += std::tanh(2 / (1 + std::exp(-1.5 * h)) * v);
        expected.push_back(h = std::tanh(c));
    }
    for (const Index first : {0, 2}) {
        g.forward(y, {x, in.data() + first, 2, 1});
        for (const double v : flat(g.value(y))) got.push_back(v);
    }
    REQUIRE(apart(got, expected) < 1e-15);
}

TEST_CASE("Rounds whose matrices are 0 change nothing", "[node][mogrifier]") {
    Graph<double> g({.time = 3, .batch = 2});
    const auto x = g.input("x", 3);
    const auto plain = g.add<Lstm>("plain", {.units = 4}, x),
               with = g.add<Lstm>("cell", {.units = 4, .rounds = 5}, x);
    for (const std::string name : {"W", "U"})
        set(g, "cell." + name, flat(g.value(g.weight("plain." + name))));
    for (const auto* p : g.parameters("cell.Q*, cell.R*")) std::fill_n(p->value, p->size(), 0.0);
    const Numbers in = numbers(18, 1);
    g.forward(plain, {x, in.data(), 3, 2});
    const Numbers expected = flat(g.value(plain));
    g.forward(with, {x, in.data(), 3, 2});
    REQUIRE(apart(flat(g.value(with)), expected) < 1e-15);
}

TEST_CASE("The leak of Gru takes its state ungated", "[node][mogrifier]") {
    Graph<double> g({.time = 3, .batch = 1});
    const auto x = g.input("x", 1);
    const auto y = g.add<Gru>("cell", {.units = 1, .rounds = 2}, x);
    set(g, "cell.b", {800, 0});  // z = 1
    set(g, "cell.R2", {100});    // doubles the state that the gates read
    g.states().restore({{{0.9}}});
    const Numbers in = {1, 1, 1};
    g.forward(y, {x, in.data(), 3, 1});
    REQUIRE(flat(g.value(y)) == Numbers{0.9, 0.9, 0.9});
}

TEST_CASE("Rounds and rank of a mogrifier out of range are refused", "[node][mogrifier][errors]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto x = g.input("x", 1);
    const auto add = [&](Index rounds, Index rank) {
        return [&, rounds, rank] { g.add<Lstm>("cell", {.units = 1, .rounds = rounds, .rank = rank}, x); };
    };
    REQUIRE_THROWS_AS(add(9, 0)(), UsageError);
    REQUIRE_THROWS_AS(add(-1, 0)(), UsageError);
    REQUIRE_THROWS_AS(add(1, -1)(), UsageError);
    add(8, 1)();
}
