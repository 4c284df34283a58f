#include <isogloss/loss/activation_penalty.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/nonlinearity.hpp>
#include <isogloss/node/sum.hpp>
#include <isogloss/update/adam.hpp>
#include <limits>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
#include "reference/values.hpp"

using namespace isogloss;

TEST_CASE("Nonlinearity obeys the laws of a node", "[node][nonlinearity]") {
    const auto s = GENERATE(Activation::tanh, Activation::logistic, Activation::relu, Activation::identity);
    CAPTURE(static_cast<int>(s));
    // Of a map: one of the random inputs is too close to 0, where relu has a kink, for a difference quotient.
    REQUIRE(laws([=](auto& g) {
                const auto h =
                    g.template add<Linear>("map", {.units = 3, .init = uniform(1)}, g.input("x", 3));
                return check::probe(g, g.template add<Nonlinearity>("s", {.activation = s}, h));
            }) == "");
    // Between maps, and on a sequence to which another node sends a gradient too.
    REQUIRE(laws([=](auto& g) {
                const auto h =
                    g.template add<Linear>("below", {.units = 4, .init = uniform(1)}, g.input("x", 3));
                const auto y =
                    g.template add<Linear>("above", {.units = 4, .init = uniform(1)},
                                           g.template add<Nonlinearity>("s", {.activation = s}, h));
                return check::probe(g, g.template add<Nonlinearity>("last", {.activation = s},
                                                                    g.template add<Sum>("both", {}, h, y)));
            }) == "");
}

TEMPLATE_TEST_CASE("Nonlinearity agrees with PyTorch", "[node][nonlinearity][reference]", float, double) {
    namespace ref = reference::nonlinearity;
    using T = TestType;
    const double allowed = std::is_same_v<T, float> ? 1e-6 : 1e-15;
    const auto compare = [&](Activation s, const auto& value, const auto& gradient) {
        Graph<T> g({.time = 3, .batch = 2});
        const auto x = g.input("x", 4), w = g.input("w", 4);
        const auto y = g.template add<Nonlinearity>("s", {.activation = s}, x);
        const auto l = g.template add<Dot>("loss", {}, w, y);
        const std::vector<T> in(std::begin(ref::x), std::end(ref::x)),
            weights(std::begin(ref::w), std::end(ref::w));
        g.forward(l, {x, in.data(), 3, 2}, {w, weights.data(), 3, 2});
        g.backward(l);
        g.template backward<Modulus>(l);
        REQUIRE(apart(flat(g.value(y)), value) < allowed);
        REQUIRE(apart(flat(g.adjoint(x)), gradient) < allowed);
        Numbers squares;
        for (const double d : gradient) squares.push_back(d * d);
        REQUIRE(apart(flat(g.modulus(x)), squares) < 10 * allowed);  // (s' w)², Dot's modulus being w²
    };
    compare(Activation::tanh, ref::tanh, ref::d_tanh);
    compare(Activation::logistic, ref::logistic, ref::d_logistic);
    compare(Activation::relu, ref::relu, ref::d_relu);
    compare(Activation::identity, ref::x, ref::w);
}

TEST_CASE("Nonlinearity treats every unit of wide passes, 0 and what is not a number",
          "[node][nonlinearity]") {
    const Index n = 401, T = 3;  // 1203 numbers: no multiple of a chunk
    Graph<double> g({.time = T, .batch = 1});
    const auto x = g.input("x", n), w = g.input("w", n);
    const auto y = g.add<Nonlinearity>("s", {.activation = Activation::relu}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    Numbers in = numbers(n * T, 1);
    const Numbers weights = numbers(n * T, 2);
    in[0] = 0;
    g.forward(l, {x, in.data(), T, 1}, {w, weights.data(), T, 1});
    g.backward(l);
    const Numbers value = flat(g.value(y)), d = flat(g.adjoint(x));
    for (std::size_t i = 0; i < in.size(); ++i) {
        REQUIRE(value[i] == (in[i] > 0 ? in[i] : 0));
        REQUIRE(d[i] == (in[i] > 0 ? weights[i] : 0));
    }
    in[0] = std::numeric_limits<double>::quiet_NaN();
    for (const auto s : {Activation::tanh, Activation::logistic, Activation::relu, Activation::identity}) {
        double a = 0;
        kernel::activate(s, 1, in.data(), &a);
        REQUIRE(std::isnan(a));  // not silently 0
    }
}
