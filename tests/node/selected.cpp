// Inputs selected by a token: what gated networks are made of.
#include <isogloss/node/linear.hpp>

#include "by_hand.hpp"
#include "catch.hpp"
#include "laws.hpp"

using namespace isogloss;

namespace {

// V_j^{t+1} = Σ_i τ_{i j x_t} a_i^t,  a = tanh(V), with an always-on unit a_0 = 1 whose weights are ρ, and,
// if asked for, a second layer b_t = Σ_i υ_{i j x_t} a_i^{t+1} within the step.
template <class Scalar> struct Gated {
    struct Options {
        Index units = 0;
        bool second = false;
    };
    Options options;
    Units<Scalar> V, W;
    Seq<Scalar> one, a, b;

    Seq<Scalar> setup(Setup<Scalar>& s, Tokens x) {
        one = s.sequence("one", 1);
        a = s.recurrent("a", options.units);
        V = s.units("V", options.units).init(uniform(0.9)).from("rho", one, x).from("tau", s.previous(a), x);
        if (!options.second) return a;
        b = s.sequence("b", 2);
        W = s.units("W", 2).init(uniform(0.9)).from("upsilon", s.current(a), x).bias("c", constant(0.1));
        return b;
    }
    void forward(Forward<Scalar>& p) {
        std::fill_n(p.data(one), p.rows(), Scalar(1));
        p.affine(V);
        if (options.second) p.affine(W);
        for (const Index t : p.steps()) {
            p.affine(V, t);
            noalias(p.at(a, t)) = tanh(p.at(Seq<Scalar>(V), t));
            if (!options.second) continue;
            p.affine(W, t);
            noalias(p.at(b, t)) = tanh(p.at(Seq<Scalar>(W), t));
        }
    }
    template <class Quantity> void backward(Backward<Scalar, Quantity>& p) {
        const auto through_tanh = [&](Seq<Scalar> out, Units<Scalar> in, Index t) {
            noalias(p.adjoint(Seq<Scalar>(in), t)) =
                p.chain(Scalar(1) - square(p.at(out, t))) * p.adjoint(out, t);
            p.affine_backward(in, t);
        };
        for (const Index t : p.steps_back()) {
            if (options.second) through_tanh(b, W, t);
            through_tanh(a, V, t);
        }
        p.affine_backward(V);
        if (options.second) p.affine_backward(W);
    }
};

// The matrix of every position's symbol applied to a whole sequence at once.
template <class Scalar> struct Selected {
    struct Options {
        Index units = 0;
    };
    Options options;
    Units<Scalar> z;

    Seq<Scalar> setup(Setup<Scalar>& s, Seq<Scalar> in, Tokens x) {
        z = s.units("z", options.units).init(uniform(0.9)).from("W", in, x);
        return z;
    }
    Seq<Scalar> setup(Setup<Scalar>& s, Seq<Scalar> in, Tokens x, Weight<Scalar> shared) {
        z = s.units("z", options.units).from(shared, in, x);
        return z;
    }
    void forward(Forward<Scalar>& p) { p.affine(z); }
    template <class Quantity> void backward(Backward<Scalar, Quantity>& p) { p.affine_backward(z); }
};

constexpr Index symbols = 3, T = 5, B = 2, n = 4;
const std::vector<Token> x = {0, 2, 1, 1, 0, 0, 2, 1, 2, 0};

}  // namespace

TEST_CASE("A gated cell obeys the laws of a node", "[node][selected]") {
    const bool second = GENERATE(false, true);
    const Index units = GENERATE(1, 4);
    CAPTURE(second, units);
    REQUIRE(laws([=](auto& g) {
                const auto in = g.tokens("x", symbols);
                return check::probe(g, g.template add<Gated>("cell", {.units = units, .second = second}, in));
            }) == "");
}

TEST_CASE("A map selected by tokens obeys the laws of a node", "[node][selected]") {
    REQUIRE(laws([](auto& g) {
                const auto in = g.input("u", 3);
                const auto z = g.template add<Selected>("map", {.units = 4}, in, g.tokens("x", symbols));
                // the same stack of matrices once more, with the symbols of another input
                const auto W = g.weight("map.W");
                return check::probe(g,
                                    g.template add<Selected>("again", {.units = 4},
                                                             g.template add<Linear>("down", {.units = 3}, z),
                                                             g.tokens("y", symbols), W));
            }) == "");
}

TEST_CASE("A gated cell is what its equation says, unit by unit", "[node][selected][modulus]") {
    const bool second = GENERATE(false, true);
    CAPTURE(second);
    Graph<double> g({.time = T, .batch = B});
    const auto in = g.tokens("x", symbols);
    const auto y = g.add<Gated>("cell", {.units = n, .second = second}, in);
    const Index width = y.width;
    const auto w = g.input("w", width);
    const auto l = g.add<Dot>("loss", {}, w, y);
    const Numbers weights = numbers(T * B * width, 4);
    const auto pass = [&] { g.forward(l, {in, {x.data(), T, B}}, {w, weights.data(), T, B}); };
    pass();
    const Numbers before = g.states().saved().values[0];
    pass();
    g.backward(l);
    g.backward<Modulus>(l);

    // tau_{i j s} is row s n + i, column j
    const auto rho = g.value(g.weight("cell.rho")), tau = g.value(g.weight("cell.tau"));
    by_hand::Net net;
    by_hand::Ids V, a, b, state = net.given(before);
    for (Index t = 0; t < T; ++t) {
        by_hand::Ids next;
        for (Index column = 0; column < B; ++column) {
            const auto symbol = static_cast<std::size_t>(x[std::size_t(t * B + column)]);
            const by_hand::Ids back = by_hand::Cell::row(state, 0, column, B, n);
            for (std::size_t j = 0; j < n; ++j) {
                Numbers by;
                for (std::size_t i = 0; i < n; ++i) by.push_back(tau(symbol * n + i, j));
                V.push_back(by_hand::affine(net, {{back, by}}, rho(symbol, j)));
                next.push_back(net.unit({V.back()}, [](const auto& v) { return std::tanh(v[0]); }));
            }
            for (std::size_t j = 0; second && j < 2; ++j) {
                Numbers by;
                for (std::size_t i = 0; i < n; ++i)
                    by.push_back(g.value(g.weight("cell.upsilon"))(symbol * n + i, j));
                const int z = by_hand::affine(net, {{by_hand::Ids(next.end() - n, next.end()), by}}, 0.1);
                b.push_back(net.unit({z}, [](const auto& v) { return std::tanh(v[0]); }));
            }
        }
        state = next;
        a.insert(a.end(), next.begin(), next.end());
    }
    const by_hand::Ids& up = second ? b : a;
    for (std::size_t i = 0; i < weights.size(); ++i) net.upstream(up[i], weights[i]);
    REQUIRE(apart(flat(g.value(y)), net.values(up)) < 1e-14);
    const Numbers dV = net.flow(V, false);
    REQUIRE(apart(flat(g.adjoint(sequence(g, "cell.V"))), dV) < 1e-14);

    // the gradient of tau_{i j s}: a_i^{t-1} dV_j^t over the positions whose symbol is s; nothing else
    Numbers d_tau(symbols * n * n), d_rho(symbols * n);
    for (std::size_t r = 0; r < T * B; ++r)
        for (std::size_t j = 0; j < n; ++j) {
            const auto symbol = static_cast<std::size_t>(x[r]);
            d_rho[symbol * n + j] += dV[r * n + j];
            for (std::size_t i = 0; i < n; ++i)
                d_tau[(symbol * n + i) * n + j] +=
                    (r < B ? before[r * n + i] : net.value(a[(r - B) * n + i])) * dV[r * n + j];
        }
    REQUIRE(apart(gradient(g, "cell.tau"), d_tau) < 1e-14);
    REQUIRE(apart(gradient(g, "cell.rho"), d_rho) < 1e-14);

    for (std::size_t i = 0; i < weights.size(); ++i)
        net.upstream(up[i], weights[i] * weights[i] - weights[i]);
    REQUIRE(apart(flat(g.modulus(sequence(g, "cell.V"))), net.flow(V, true)) < 1e-14);
}
