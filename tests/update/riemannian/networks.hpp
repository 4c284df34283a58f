/// @file networks.hpp  What the tests of the metrics share: a small network on a sparse graph over a random
/// text.
#pragma once

#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/gnn.hpp>
#include <isogloss/node/leaky_rnn.hpp>
#include <isogloss/node/sparse_rnn.hpp>
#include <isogloss/update/riemannian/search_step.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

/// A map of three inputs to two units, "map", whose outputs are weighed by an input: to the loss Σ w y both moduli of a
/// unit are w².
template <class Number = double> struct Map {
    static constexpr Index T = 6, B = 3;
    Graph<Number> g{GraphOptions{.time = T, .batch = B}};
    Seq<Number> x, w;
    Seq<Number> y;
    Loss<Number> l;
    Numbers in = numbers(T * B * 3, 1), weights = numbers(T * B * 2, 2);
    Map() : x(g.input("x", 3)), w(g.input("w", 2)) {
        y = g.template add<Linear>("map", {.units = 2}, x);
        l = g.template add<Dot>("loss", {}, w, y);
    }
    void backward(bool modulus = false) {
        const std::vector<Number> fed(in.begin(), in.end()), weighed(weights.begin(), weights.end());
        g.forward(l, {x, fed.data(), T, B}, {w, weighed.data(), T, B});
        g.backward(l);
        if (modulus) g.template backward<Modulus>(l);
    }
};

/// The steps of the source: of a network "net" on a sparse graph, and of a softmax head "out".
template <class T> SearchStep<T> transition_step(Graph<T>& g, UnitModulus modulus = UnitModulus::rbpm,
                                                 MetricForm form = MetricForm::automatic, double floor = 1) {
    return {g, "net.*", {.modulus = modulus, .form = form, .damping = 0, .floor = floor}};
}
template <class T>
SearchStep<T> softmax_step(Graph<T>& g, Tokens y, double floor = 1, std::vector<double> frequencies = {}) {
    if (frequencies.empty())
        frequencies.assign(std::size_t(y.vocabulary), 1 / static_cast<double>(y.vocabulary));
    return {g, "out.*", {.damping = 0, .floor = floor, .frequencies = frequencies}};
}

/// A network under a softmax head with random weights, over a random text of which some symbols are given.
template <template <class> class Node, class Number = double> struct Net {
    static constexpr bool gated =
        std::is_same_v<Node<Number>, Glnn<Number>> || std::is_same_v<Node<Number>, Gnn<Number>>;
    Graph<Number> g;
    Tokens x, y;
    Seq<Number> a;
    Loss<Number> l;
    std::vector<Token> text, next;
    Index columns;

    explicit Net(Index length, Activation s = Activation::tanh, Index units = 5, Index edges = 3,
                 Index symbols = 4, Index batch = 1)
        : g(GraphOptions{.time = length, .batch = batch}),
          x(g.tokens("x", symbols)),
          y(g.tokens("y", symbols)),
          columns(batch) {
        a = g.template add<Node>("net", {.units = units, .edges = edges, .activation = s}, x);
        l = g.template add<CrossEntropy>("loss", {},
                                         g.template add<Softmax>("out", {.vocabulary = symbols}, a), y);
        std::uint64_t seed = 1;
        for (auto* p : g.parameters()) {
            Numbers v = numbers(p->size(), ++seed);
            for (double& w : v) w *= 0.5;
            set(g, p->name, v);
        }
        if constexpr (std::is_same_v<Node<Number>, Glnn<Number>> ||
                      std::is_same_v<Node<Number>,
                                     LeakyRnn<Number>>) {  // loops that forget: units stay in range
            const auto& e = edge_record(g).edges;
            auto& tau = g.parameter("net.tau");
            for (Index row = gated ? units : 0; row < tau.size(); row += units + e.count())
                for (Index j = 0; j < units; ++j) tau.value[row + e.first[j]] = Number(-0.6);
        }
        const Random random(5, 5);
        for (Index i = 0; i < length * batch; ++i) {
            text.push_back(static_cast<Token>(random.below(3 * i, symbols)));
            next.push_back(random.uniform(3 * i + 1) < 0.2
                               ? not_predicted
                               : static_cast<Token>(random.below(3 * i + 2, symbols)));
        }
    }
    std::vector<Feed<Number>> feeds() {
        const Index T = std::ssize(text) / columns;
        return {{x, {text.data(), T, columns}}, {y, {next.data(), T, columns}}};
    }
    double forward() {
        g.reset();
        const auto f = feeds();
        return g.forward(l, std::span<const Feed<Number>>(f));
    }
    double backward(SearchStep<Number>& step) {
        const double loss = forward();
        g.backward(l);
        if (step.wants_modulus()) g.template backward<Modulus>(l);
        step.clear();
        step.add(1);
        g.parameters().clear_gradients();
        return loss;
    }
    /// One step at a fixed rate; returns the loss before it.
    double move(SearchStep<Number>& step, double rate) {
        const double loss = backward(step);
        step.solve();
        step.move(rate);
        return loss;
    }
};

/// Makes `to`, a logistic network, the image of `from`, a tanh one: V' = 2V, a' = (1 + a)/2.
template <class N> void map_to_logistic(N& from, N& to) {
    const auto& e = edge_record(from.g).edges;
    const Index units = e.units, E = e.count();
    const auto value = [](N& n, const char* name) { return n.g.parameter(name).value; };
    const Index A = from.x.vocabulary;
    for (Index s = 0; s < A; ++s) {
        double *bias, *bias_to, *weight, *weight_to;
        if (N::gated) {
            bias = value(from, "net.tau") + s * (units + E), bias_to = value(to, "net.tau") + s * (units + E);
            weight = bias + units, weight_to = bias_to + units;
        } else {
            bias = value(from, "net.rho") + s * units, bias_to = value(to, "net.rho") + s * units;
            weight = value(from, "net.tau"), weight_to = value(to, "net.tau");
        }
        for (Index j = 0; j < units; ++j) {
            bias_to[j] = 2 * bias[j];
            for (Index k = e.first[j]; k < e.first[j + 1]; ++k) {
                weight_to[k] = 4 * weight[k];
                bias_to[j] -= 2 * weight[k];
            }
        }
        double b = value(from, "out.b")[s];
        for (Index i = 0; i < units; ++i) {
            value(to, "out.W")[s * units + i] = 2 * value(from, "out.W")[s * units + i];
            b -= value(from, "out.W")[s * units + i];
        }
        value(to, "out.b")[s] = b;
    }
    for (Index j = 0; j < units; ++j) value(to, "net.start")[j] = 2 * value(from, "net.start")[j];
}
