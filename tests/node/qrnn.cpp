#include <isogloss/node/qrnn.hpp>

#include "by_hand.hpp"
#include "catch.hpp"
#include "laws.hpp"
#include "reference/qrnn_values.hpp"
#include "threads.hpp"

using namespace isogloss;

TEST_CASE("Qrnn obeys the laws of a node", "[node][qrnn]") {
    const double keep = GENERATE(1., 0.6);
    const auto scheme = GENERATE(DropoutScheme::tied, DropoutScheme::gal);
    const Index window = GENERATE(1, 2);
    CAPTURE(keep, static_cast<int>(scheme), window);
    const auto model = [=](auto& g) {
        return check::probe(
            g, g.template add<Qrnn>(
                   "qrnn", {.units = 4, .window = window, .keep = keep, .scheme = scheme, .forget_bias = 0.5},
                   g.input("x", 3)));
    };
    REQUIRE(laws(model) == "");
}

TEST_CASE("Qrnn with its masks is what its equations say, unit by unit", "[node][qrnn]") {
    const double keep = GENERATE(1., 0.6);
    const auto scheme = GENERATE(DropoutScheme::tied, DropoutScheme::gal);
    const Index window = GENERATE(1, 2);
    CAPTURE(keep, static_cast<int>(scheme), window);
    const auto d = by_hand::compare<Qrnn>(
        {.window = window, .keep = keep, .scheme = scheme}, "z", [&](auto& net, auto& cell, const auto& x) {
            return by_hand::qrnn(net, cell, x, scheme == DropoutScheme::tied, window);
        });
    CAPTURE(d.value, d.gradient, d.modulus, d.unit_gradient, d.unit_modulus);
    REQUIRE(d.largest() < 1e-14);
}

TEST_CASE("Qrnn agrees with its equations in NumPy", "[node][qrnn][reference]") {
    namespace ref = reference::qrnn;
    Graph<double> g({.time = 3, .batch = 2});
    const auto x = g.input("x", 3), w = g.input("w", 4);
    const auto y = g.add<Qrnn>("qrnn", {.units = 4}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    set(g, "qrnn.W", ref::W);
    set(g, "qrnn.V", ref::V);
    set(g, "qrnn.b", ref::b);
    g.states().restore({{Numbers(std::begin(ref::cells_before), std::end(ref::cells_before)),
                         Numbers(std::begin(ref::x_before), std::end(ref::x_before))}});
    g.forward(l, {x, ref::x, 3, 2}, {w, ref::w, 3, 2});
    g.backward(l);
    REQUIRE(apart(flat(g.value(y)), ref::y) < 1e-14);
    REQUIRE(apart(g.states().saved().values[0], ref::last_cells) < 1e-14);
    REQUIRE(apart(flat(g.adjoint(x)), ref::d_x) < 1e-13);
    REQUIRE(apart(gradient(g, "qrnn.W"), ref::d_W) < 1e-13);
    REQUIRE(apart(gradient(g, "qrnn.V"), ref::d_V) < 1e-13);
    REQUIRE(apart(gradient(g, "qrnn.b"), ref::d_b) < 1e-13);
}

TEST_CASE("Qrnn that keeps half of c is a moving average of tanh(x_{t-1})", "[node][qrnn]") {
    Graph<double> g({.time = 2, .batch = 1});
    const auto x = g.input("x", 1);
    const auto y = g.add<Qrnn>("qrnn", {.units = 1}, x);
    set(g, "qrnn.W", {0, 0, 0});
    set(g, "qrnn.V", {1, 0, 0});
    set(g, "qrnn.b", {0, 0, 40});  // f = 1/2, o = 1
    const Numbers in = {0.3, -0.1, 0.7, 1.9};
    Numbers expected, got;
    double c = 0, before = 0;
    for (const double v : in) {
        expected.push_back(c = c / 2 + std::tanh(before) / 2);
        before = v;
    }
    for (const Index first : {0, 2}) {  // over two passes
        g.forward(y, {x, in.data() + first, 2, 1});
        for (const double v : flat(g.value(y))) got.push_back(v);
    }
    REQUIRE(apart(got, expected) < 1e-15);
}

TEST_CASE("Qrnn computes in short passes what it computes in a long one", "[node][qrnn]") {
    const Index window = GENERATE(1, 2), T = 6, B = 3;
    const Numbers in = numbers(T * B * 2, 1);
    const auto read = [&](Index steps) {
        Graph<double> g({.time = T, .batch = B});
        const auto x = g.input("x", 2);
        const auto h = g.add<Qrnn>("below", {.units = 5, .window = window, .init = uniform(1)}, x);
        const auto y = g.add<Qrnn>("above", {.units = 4, .window = window, .init = uniform(1)}, h);
        Numbers out;
        for (Index t = 0; t < T; t += steps) {
            g.forward(y, {x, in.data() + t * B * 2, steps, B});
            for (const double v : flat(g.value(y))) out.push_back(v);
        }
        return out;
    };
    for (const Index steps : {1, 2, 3}) REQUIRE(apart(read(steps), read(T)) < 1e-15);
}

TEST_CASE("Qrnn without its second window is a Qrnn of window 1", "[node][qrnn]") {
    const Numbers in = numbers(4 * 2 * 3, 1);
    const auto of = [&](Index window) {
        Graph<double> g({.time = 4, .batch = 2});
        const auto x = g.input("x", 3);
        const auto y = g.add<Qrnn>("qrnn", {.units = 4, .window = window}, x);
        if (window == 2) set(g, "qrnn.V", Numbers(3 * 12));
        g.forward(y, {x, in.data(), 4, 2});
        return flat(g.value(y));
    };
    REQUIRE(of(1) == of(2));
}

TEST_CASE("The biases of Qrnn start at 0, that of f where it is told", "[node][qrnn]") {
    Graph<double> g({.time = 1, .batch = 1});
    g.add<Qrnn>("qrnn", {.units = 2, .forget_bias = 1.5}, g.input("x", 1));
    REQUIRE(flat(g.value(g.weight("qrnn.b"))) == Numbers{0, 0, 1.5, 1.5, 0, 0});
}

TEST_CASE("Qrnn refuses windows above 2, and masks on a state that no matrix multiplies",
          "[node][qrnn][errors]") {
    Graph<double> g({});
    const auto x = g.input("x", 3);
    REQUIRE_THROWS_MATCHES(g.add<Qrnn>("node", {.units = 2, .window = 3}, x), UsageError, says("window = 3"));
    REQUIRE_THROWS_MATCHES(
        g.add<Qrnn>("node", {.units = 2, .keep = 0.5, .scheme = DropoutScheme::recurrent}, x), UsageError,
        says("tied or gal"));
    REQUIRE_THROWS_MATCHES(g.add<Qrnn>("node", {.units = 2, .keep = 0, .scheme = DropoutScheme::gal}, x),
                           UsageError, says("keep"));
    g.add<Qrnn>("node", {.units = 2, .scheme = DropoutScheme::recurrent}, x);
}

TEMPLATE_TEST_CASE("Qrnn in portable mode has the same bits on any number of threads", "[node][qrnn]", float,
                   double) {
    using T = TestType;
    portable(true);
    const auto run = [](int count) {
        const Threads several(count);
        Graph<T> g({.time = 5, .batch = 13});
        const auto x = g.input("x", 7), w = g.input("w", 6);
        const auto y = g.template add<Qrnn>("qrnn", {.units = 6}, x);
        const auto l = g.template add<Dot>("loss", {}, w, y);
        const Random random(7, 1);
        std::vector<T> in(5 * 13 * 7), weights(5 * 13 * 6);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<T>(random.normal(Index(i)));
        for (std::size_t i = 0; i < weights.size(); ++i)
            weights[i] = static_cast<T>(random.normal(Index(1000 + i)));
        g.forward(l, {x, in.data(), 5, 13}, {w, weights.data(), 5, 13});
        g.backward(l);
        Numbers all = flat(g.value(y));
        for (const double v : flat(g.adjoint(x))) all.push_back(v);
        for (const char* name : {"qrnn.W", "qrnn.V", "qrnn.b"})
            for (const double v : gradient(g, name)) all.push_back(v);
        return all;
    };
    const Numbers alone = run(1);
    for (const int count : {2, 3}) CHECK(run(count) == alone);
    portable(false);
}
