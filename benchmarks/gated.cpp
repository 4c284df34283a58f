// Networks on sparse graphs: the cost of a metric relative to forward and backward, and how it grows.
//
//     gated --benchmark_filter=glnn/rbpm

#include <isogloss/node/glnn.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/riemannian/search_step.hpp>

#include "measure.hpp"

using namespace isogloss;

namespace {

struct Shape {
    Index units, edges, symbols, length;
};

struct Net {
    Graph<double> g;
    Tokens x, y;
    Loss<double> l;
    std::vector<Token> text;
    Net(const Shape& s)
        : g(GraphOptions{.time = s.length, .batch = 1, .budget = (1 << 20) + 24 * s.length}),
          x(g.tokens("x", s.symbols)),
          y(g.tokens("y", s.symbols)) {
        const auto a = g.add<Glnn>("net", {.units = s.units, .edges = s.edges}, x);
        l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("out", {.vocabulary = s.symbols}, a), y);
        const Random random(1, 1);
        for (Index t = 0; t <= s.length; ++t) text.push_back(static_cast<Token>(random.below(t, s.symbols)));
    }
    void pass() {
        const Index T = std::ssize(text) - 1;
        g.reset();
        g.forward(l, {x, {text.data(), T, 1}}, {y, {text.data() + 1, T, 1}});
        g.backward(l);
    }
};

// Time of forward, backward, and sums and solution of a metric, against forward and backward only ("floor").
void metric(benchmark::State& state, SearchOptions options) {
    const Shape s{state.range(0), state.range(1), state.range(2), state.range(3)};
    Net net(s);
    options.damping = 0;
    SearchStep<double> step(net.g, "net.*", options);
    const auto all = net.g.parameters();
    measure::against_floor(
        state, 0, double(s.length),
        [&] {
            net.pass();
            if (step.wants_modulus()) net.g.backward<Modulus>(net.l);
            step.clear();
            step.add(1);
            all.clear_gradients();
            step.solve();
        },
        [&] {
            net.pass();
            all.clear_gradients();
        });
    state.counters["ratio"] = 1 / state.counters["floor/time"];
}

// The same for the softmax head.
void head(benchmark::State& state) {
    const Shape s{state.range(0), state.range(1), state.range(2), state.range(3)};
    Net net(s);
    SearchStep<double> step(
        net.g, "out.*",
        {.damping = 0, .frequencies = std::vector<double>(std::size_t(s.symbols), 1. / double(s.symbols))});
    const auto all = net.g.parameters();
    measure::against_floor(
        state, 0, double(s.length),
        [&] {
            net.pass();
            step.clear();
            step.add(1);
            all.clear_gradients();
            step.solve();
        },
        [&] {
            net.pass();
            all.clear_gradients();
        });
    state.counters["ratio"] = 1 / state.counters["floor/time"];
}

// A training step of a language model with two LSTM layers of 200 by Riemannian, against Sgd ("floor").
void lstm(benchmark::State& state, RiemannianOptions options) {
    constexpr Index T = 35, B = 20;
    const Index V = state.range(0);
    Graph<float> g({.time = T, .batch = B});
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    auto h = g.add<Embedding>("embed", {}, x, g.weight("E", V, 200, uniform(0.1)));
    h = g.add<Lstm>("lstm1", {.units = 200}, h);
    h = g.add<Lstm>("lstm2", {.units = 200}, h);
    const auto l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("out", {.vocabulary = V}, h), y);
    std::vector<Token> text;
    const Random random(1, 1);
    for (Index t = 0; t < 2 * T * B; ++t) text.push_back(static_cast<Token>(random.below(t, V)));
    Riemannian<float> cells(g, "lstm*", options), head(g, "out.*", options);
    Sgd<float> table(g.parameters("E"), {.rate = 0}), all(g.parameters(), {.rate = 0, .clip = 5});
    const auto pass = [&] {
        g.forward(l, {x, {text.data(), T, B}}, {y, {text.data() + T * B, T, B}});
        g.backward(l);
    };
    for (int k = 0; k < 20; ++k)  // the metric is updated at every step until its average is full
        pass(), cells.step(), head.step(), table.step();
    measure::against_floor(
        state, 0, double(T * B * options.every),
        [&] {
            for (Index k = 0; k < options.every; ++k) {
                pass();
                if (cells.wants_modulus()) g.backward<Modulus>(l);
                cells.step(), head.step(), table.step();
            }
        },
        [&] {
            for (Index k = 0; k < options.every; ++k) {
                pass();
                all.step();
            }
        });
    state.counters["ratio"] = 1 / state.counters["floor/time"];
}

void shapes(benchmark::internal::Benchmark* b) {
    b->ArgNames({"units", "edges", "symbols", "length"})
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->MinTime(0.2);
    b->Args({20, 3, 62, 20000})
        ->Args({20, 5, 62, 20000})
        ->Args({20, 3, 13, 20000})
        ->Args({20, 3, 250, 20000});
    b->Args({80, 3, 62, 20000})->Args({320, 3, 62, 20000})->Args({20, 3, 62, 100000});
}

}  // namespace

int main(int argc, char** argv) {
    for (const auto& [name, modulus] :
         {std::pair("ruop", UnitModulus::ruop), std::pair("rbpm", UnitModulus::rbpm)})
        for (const auto& [kind, form] :
             {std::pair("quasi_diagonal", MetricForm::quasi_diagonal), std::pair("full", MetricForm::full)})
            shapes(benchmark::RegisterBenchmark(message("glnn/", name, "/", kind).c_str(),
                                                [m = modulus, f = form](benchmark::State& state) {
                                                    metric(state, {.modulus = m, .form = f});
                                                }));
    shapes(benchmark::RegisterBenchmark("glnn/softmax", head));
    for (const Index every : {1, 4})
        for (const Index vocabulary : {1000, 10000})
            benchmark::RegisterBenchmark(
                message("lstm_2x200/ruop/quasi_diagonal/every:", every).c_str(),
                [every](benchmark::State& state) { lstm(state, {.rate = 0, .every = every}); })
                ->Arg(vocabulary)
                ->ArgName("vocabulary")
                ->UseManualTime()
                ->Unit(benchmark::kMillisecond)
                ->MinTime(0.2);
    return measure::run(argc, argv);
}
