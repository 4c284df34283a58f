#include <isogloss/node/rnn.hpp>

#include "by_hand.hpp"
#include "catch.hpp"
#include "laws.hpp"
#include "reference/values.hpp"

using namespace isogloss;

TEST_CASE("Rnn obeys the laws of a node", "[node][rnn]") {
    const double keep = GENERATE(1., 0.6);
    const auto scheme = GENERATE(DropoutScheme::tied, DropoutScheme::gal, DropoutScheme::recurrent);
    const auto activation = GENERATE(Activation::tanh, Activation::logistic);
    CAPTURE(keep, static_cast<int>(scheme), static_cast<int>(activation));
    REQUIRE(laws([=](auto& g) {
                const auto x = g.input("x", 3);
                return check::probe(
                    g, g.template add<Rnn>(
                           "rnn", {.units = 4, .keep = keep, .scheme = scheme, .activation = activation}, x));
            }) == "");
}

TEST_CASE("Rnn with its masks is what its equation says, unit by unit", "[node][rnn]") {
    const double keep = GENERATE(1., 0.6);
    const auto scheme = GENERATE(DropoutScheme::tied, DropoutScheme::gal, DropoutScheme::recurrent);
    CAPTURE(keep, static_cast<int>(scheme));
    const auto d = by_hand::compare<Rnn>({.keep = keep, .scheme = scheme}, "z",
                                         [&](auto& net, auto& cell, const auto& x) {
                                             return by_hand::rnn(net, cell, x, scheme == DropoutScheme::tied);
                                         });
    CAPTURE(d.value, d.gradient, d.modulus, d.unit_gradient, d.unit_modulus);
    REQUIRE(d.largest() < 1e-14);
}

TEST_CASE("Rnn agrees with PyTorch", "[node][rnn][reference]") {
    namespace ref = reference::rnn;
    Graph<double> g({.time = 3, .batch = 2});
    const auto x = g.input("x", 3), w = g.input("w", 4);
    const auto y = g.add<Rnn>("rnn", {.units = 4}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    set(g, "rnn.W", ref::W);
    set(g, "rnn.U", ref::U);
    set(g, "rnn.b", ref::b);
    g.states().restore({{Numbers(std::begin(ref::before), std::end(ref::before))}});
    g.forward(l, {x, ref::x, 3, 2}, {w, ref::w, 3, 2});
    g.backward(l);
    REQUIRE(apart(flat(g.value(y)), ref::y) < 1e-14);
    REQUIRE(apart(flat(g.adjoint(x)), ref::d_x) < 1e-13);
    REQUIRE(apart(gradient(g, "rnn.W"), ref::d_W) < 1e-13);
    REQUIRE(apart(gradient(g, "rnn.U"), ref::d_U) < 1e-13);
    REQUIRE(apart(gradient(g, "rnn.b"), ref::d_b) < 1e-13);
}

TEST_CASE("Rnn of one unit is a scalar recursion that goes on from pass to pass", "[node][rnn]") {
    const auto activation = GENERATE(Activation::tanh, Activation::logistic, Activation::relu);
    const auto s = [=](double z) {
        return activation == Activation::tanh       ? std::tanh(z)
               : activation == Activation::logistic ? 1 / (1 + std::exp(-z))
                                                    : std::max(z, 0.);
    };
    Graph<double> g({.time = 2, .batch = 1});
    const auto x = g.input("x", 1);
    const auto y = g.add<Rnn>("rnn", {.units = 1, .activation = activation}, x);
    set(g, "rnn.W", {0.5});
    set(g, "rnn.U", {-2});
    set(g, "rnn.b", {0.1});
    const Numbers in = {0.3, -0.7, 1.1, 0.2};
    Numbers expected, got;
    for (double h = 0; const double v : in) expected.push_back(h = s(0.5 * v - 2 * h + 0.1));
    for (const Index first : {0, 2}) {
        g.forward(y, {x, in.data() + first, 2, 1});
        for (const double v : flat(g.value(y))) got.push_back(v);
    }
    REQUIRE(apart(got, expected) < 1e-15);
    g.reset();
    g.forward(y, {x, in.data(), 2, 1});
    REQUIRE(flat(g.value(y))[0] == Approx(expected[0]).epsilon(1e-15));
}

TEST_CASE("The tied scheme sends up m h, with one m for all steps and the recurrence",
          "[node][rnn][dropout]") {
    constexpr Index T = 3, B = 2, n = 4;
    Graph<double> g({.time = T, .batch = B});
    const auto x = g.input("x", 1);
    const auto y = g.add<Rnn>("rnn", {.units = n, .keep = 0.5}, x);
    const Numbers in = numbers(T * B, 4);
    g.forward(y, {x, in.data(), T, B});
    const Numbers h = flat(g.value(sequence(g, "rnn.h"))), up = flat(g.value(y));
    const auto W = g.value(g.weight("rnn.W")), U = g.value(g.weight("rnn.U"));
    Index dropped = 0;
    for (Index b = 0; b < B; ++b)
        for (Index j = 0; j < n; ++j) {
            const auto at = [&](const Numbers& v, Index t, Index k) {
                return v[std::size_t((t * B + b) * n + k)];
            };
            const double m = at(up, 0, j) / at(h, 0, j);
            REQUIRE((m == 0 || m == Approx(2)));
            dropped += m == 0;
            for (Index t = 1; t < T; ++t) {
                REQUIRE(at(up, t, j) == Approx(m * at(h, t, j)));
                // what went up at the last step, masked, is what enters this one
                double z = in[std::size_t(t * B + b)] * W(0, std::size_t(j));
                for (Index i = 0; i < n; ++i) z += at(up, t - 1, i) * U(std::size_t(i), std::size_t(j));
                REQUIRE(at(h, t, j) == Approx(std::tanh(z)));
            }
        }
    REQUIRE((dropped > 0 && dropped < B * n));

    g.training(false);
    g.forward(y, {x, in.data(), T, B});
    REQUIRE(flat(g.value(y)) == flat(g.value(sequence(g, "rnn.h"))));
}

TEST_CASE("Only the tied scheme masks what goes up", "[node][rnn][dropout]") {
    const auto scheme = GENERATE(DropoutScheme::gal, DropoutScheme::recurrent);
    Graph<double> g({.time = 1, .batch = 1});
    const auto y = g.add<Rnn>("rnn", {.units = 3, .keep = 0.5, .scheme = scheme}, g.input("x", 2));
    REQUIRE(y.id == sequence(g, "rnn.h").id);
}
