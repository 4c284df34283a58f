// The modulus through whole models, against the definition. That of each cell is in the cell's own test.
#include <isogloss/loss/augmented.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/dropout.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/rnn.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/update/sgd.hpp>

#include "by_hand.hpp"
#include "catch.hpp"

using namespace isogloss;

namespace {

constexpr Index T = 3, B = 2, n = 4, V = 6;
const std::vector<Token> targets = {0, 5, not_predicted, 2, 2, 3};

// Var_p(w_i) for p = softmax((W h + b) / temperature), in the obvious way.
Numbers variances(const Numbers& W, const Numbers& b, const Numbers& h, double temperature) {
    Numbers p(V), variance(n);
    double sum = 0;
    for (std::size_t v = 0; v < V; ++v) {
        double z = b[v];
        for (std::size_t i = 0; i < n; ++i) z += W[v * n + i] * h[i];
        sum += p[v] = std::exp(z / temperature);
    }
    for (std::size_t i = 0; i < n; ++i) {
        double mean = 0;
        for (std::size_t v = 0; v < V; ++v) mean += p[v] / sum * W[v * n + i];
        for (std::size_t v = 0; v < V; ++v) variance[i] += p[v] / sum * std::pow(W[v * n + i] - mean, 2);
    }
    return variance;
}

// What a head of weights W and b sends to the hidden states [T, B, n]: a Var at 1 plus c Var at a
// temperature.
Numbers from_head(const Numbers& W, const Numbers& b, const Numbers& h, double a, double c = 0,
                  double temperature = 1) {
    Numbers phi;
    for (std::size_t r = 0; r < targets.size(); ++r) {
        const Numbers at(h.begin() + std::ptrdiff_t(r) * n, h.begin() + std::ptrdiff_t(r + 1) * n);
        const Numbers hard = variances(W, b, at, 1), soft = variances(W, b, at, temperature);
        for (std::size_t i = 0; i < n; ++i) phi.push_back(targets[r] < 0 ? 0 : a * hard[i] + c * soft[i]);
    }
    return phi;
}

}  // namespace

TEST_CASE("A head sends back the variance of its weights under the prediction", "[loss][modulus]") {
    const bool augmented = GENERATE(false, true);
    const Index budget = GENERATE(Index{32} << 20, Index{1});  // one block, or one row at a time
    CAPTURE(augmented, budget);
    Graph<double> g({.time = T, .batch = B, .budget = budget});
    const auto h = g.input("h", n);
    const auto y = g.tokens("y", V);
    const auto o = g.add<Softmax>("head", {.vocabulary = V, .init = uniform(2)}, h);
    set(g, "head.b", numbers(V, 5));
    const auto l = augmented ? g.add<AugmentedLoss>("loss", {.alpha = 1.5, .temperature = 4}, o, y,
                                                    g.weight("E", V, 3, uniform(1)))
                             : g.add<CrossEntropy>("loss", {}, o, y);
    const Numbers in = numbers(T * B * n, 6);
    g.forward(l, {h, in.data(), T, B}, {y, {targets.data(), T, B}});
    g.backward<Modulus>(l);
    const Numbers W = flat(g.value(g.weight("head.W"))), b = flat(g.value(g.weight("head.b")));
    REQUIRE(apart(flat(g.modulus(h)), from_head(W, b, in, 1, augmented ? 1.5 / 16 : 0, 4)) < 1e-14);
}

TEST_CASE("The variance over a large table in float is not lost in its mean", "[loss][modulus]") {
    constexpr Index words = 3000;
    Graph<float> g({.time = 1, .batch = 1});
    const auto h = g.input("h", 2);
    const auto y = g.tokens("y", words);
    const auto l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("head", {.vocabulary = words}, h), y);
    const Random random(1, 1);
    Numbers W;
    for (Index v = 0; v < words; ++v) {
        W.push_back(random.normal(v));
        W.push_back(3 + 0.1 * random.normal(words + v));  // a mean thirty times the deviation
    }
    set(g, "head.W", W);
    const float in[] = {0, 0};
    const Token target = 0;
    g.forward(l, {h, in, 1, 1}, {y, {&target, 1, 1}});
    g.backward<Modulus>(l);
    for (std::size_t i = 0; i < 2; ++i) {
        double mean = 0, variance = 0;
        for (std::size_t v = 0; v < words; ++v) mean += W[2 * v + i] / words;
        for (std::size_t v = 0; v < words; ++v) variance += std::pow(W[2 * v + i] - mean, 2) / words;
        REQUIRE(g.modulus(h)(0, i) == Approx(variance).epsilon(2e-3));
    }
}

TEST_CASE("The modulus of a stack of cells under a head follows from the definition", "[node][modulus]") {
    const double keep = GENERATE(1., 0.6);
    Graph<double> g({.time = T, .batch = B});
    const auto x = g.input("x", 3);
    const auto y = g.tokens("y", V);
    const auto below = g.add<Rnn>("rnn", {.units = 5, .keep = keep, .init = uniform(0.9)}, x);
    const auto above = g.add<Lstm>("lstm", {.units = n, .keep = keep, .init = uniform(0.9)}, below);
    const auto o = g.add<Softmax>("head", {.vocabulary = V, .init = uniform(2)}, above);
    const auto l = g.add<CrossEntropy>("loss", {}, o, y);
    const Numbers in = numbers(T * B * 3, 7);
    const auto pass = [&] { g.forward(l, {x, in.data(), T, B}, {y, {targets.data(), T, B}}); };
    pass();
    const auto before = g.states().saved().values;
    pass();
    g.backward<Modulus>(l);

    by_hand::Net net;
    by_hand::Cell rnn(g, "rnn", 3, 5), lstm(g, "lstm", 5, n);
    rnn.before = {before[0]};
    lstm.before = {before[1], before[2]};
    const auto first = by_hand::rnn(net, rnn, net.given(in), keep < 1);
    const auto second = by_hand::lstm(net, lstm, first.y, keep < 1);
    const Numbers W = flat(g.value(g.weight("head.W"))), b = flat(g.value(g.weight("head.b")));
    const Numbers phi = from_head(W, b, net.values(second.y), 1);
    for (std::size_t i = 0; i < phi.size(); ++i) net.upstream(second.y[i], phi[i]);

    REQUIRE(apart(flat(g.value(above)), net.values(second.y)) < 1e-14);
    REQUIRE(apart(flat(g.modulus(sequence(g, "lstm.z"))), net.flow(second.z, true)) < 1e-14);
    REQUIRE(apart(flat(g.modulus(below)), net.flow(first.y, true)) < 1e-14);
    REQUIRE(apart(flat(g.modulus(sequence(g, "rnn.z"))), net.flow(first.z, true)) < 1e-14);
    REQUIRE(apart(flat(g.modulus(x)), net.flow(first.x, true)) < 1e-14);
}

TEST_CASE("The modulus pass leaves gradients alone, and follows weights that move", "[node][modulus]") {
    Graph<double> g({.time = T, .batch = B});
    const auto x = g.input("x", 3), w = g.input("w", n);
    const Seq<double> y = g.add<Linear>("map", {.units = n}, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    const Numbers in = numbers(T * B * 3, 1), weights = numbers(T * B * n, 2);
    const auto modulus_by_hand = [&] {
        const auto W = g.value(g.weight("map.W"));
        Numbers phi(T * B * 3);
        for (std::size_t r = 0; r < T * B; ++r)
            for (std::size_t i = 0; i < 3; ++i)
                for (std::size_t j = 0; j < n; ++j)
                    phi[r * 3 + i] += std::pow(W(i, j) * weights[r * n + j], 2);
        return phi;
    };
    REQUIRE_THROWS_AS(g.modulus(x), UsageError);
    for (int step = 0; step < 2; ++step) {
        g.forward(l, {x, in.data(), T, B}, {w, weights.data(), T, B});
        g.backward(l);
        const Numbers before = gradient(g, "map.W");
        const Numbers adjoint = flat(g.adjoint(x));
        g.backward<Modulus>(l);
        REQUIRE(gradient(g, "map.W") == before);
        REQUIRE(flat(g.adjoint(x)) == adjoint);
        REQUIRE(apart(flat(g.modulus(x)), modulus_by_hand()) < 1e-14);
        Sgd<double>(g.parameters(), {.rate = 0.3}).step();
    }
    // a node added after the memory for moduli was taken carries them too
    const Seq<double> z = g.add<Linear>("more", {.units = n}, y);
    const auto k = g.add<Dot>("more_loss", {}, w, z);
    g.forward(k, {x, in.data(), T, B}, {w, weights.data(), T, B});
    g.backward<Modulus>(k);
    const auto W = g.value(g.weight("more.W"));
    Numbers phi(T * B * n);
    for (std::size_t r = 0; r < T * B; ++r)
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) phi[r * n + i] += std::pow(W(i, j) * weights[r * n + j], 2);
    REQUIRE(apart(flat(g.modulus(y)), phi) < 1e-14);
}

namespace {

// h_t = tanh(x_t W + h_{t-1} U), for the gradient alone, in plain xtensor.
template <class Scalar> struct PlainCell {
    struct Options {
        Index units = 0;
    };
    Options options;
    Units<Scalar> z;
    Seq<Scalar> h;

    Seq<Scalar> setup(Setup<Scalar>& s, Seq<Scalar> x) {
        h = s.recurrent("h", options.units);
        z = s.units("z", options.units).from("W", x).from("U", s.previous(h));
        return h;
    }
    void forward(Forward<Scalar>& p) {
        p.affine(z);
        for (const Index t : p.steps()) {
            p.affine(z, t);
            noalias(p.at(h, t)) = tanh(p.at(z, t));
        }
    }
    void backward(Backward<Scalar>& p) {
        for (const Index t : p.steps_back()) {
            noalias(p.adjoint(z, t)) = (1 - square(p.at(h, t))) * p.adjoint(h, t);
            p.affine_backward(z, t);
        }
        p.affine_backward(z);
    }
};

// The same for both quantities.
template <class Scalar> struct BothCell : PlainCell<Scalar> {
    template <class Quantity> void backward(Backward<Scalar, Quantity>& p) {
        for (const Index t : p.steps_back()) {
            noalias(p.adjoint(this->z, t)) =
                p.chain(Scalar(1) - square(p.at(this->h, t))) * p.adjoint(this->h, t);
            p.affine_backward(this->z, t);
        }
        p.affine_backward(this->z);
    }
};

}  // namespace
