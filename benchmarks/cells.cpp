// The recurrent cells, T = 35, B = 20, compared with their matrix products alone.
//
//     cells --threads=1 --benchmark_filter=lstm

#include <isogloss/check.hpp>

#include "measure.hpp"

using namespace isogloss;
using measure::Data;

namespace {

constexpr Index T = 35, B = 20;

/// One cell of `width` units on `width` inputs, its output fed a gradient of ones.
template <template <class> class Cell> struct Layer {
    Graph<float> g;
    Seq<float> x, h;
    Loss<float> l;
    std::vector<float> input;
    Parameters<float> all;

    Layer(typename Cell<float>::Options options, Index width, Precision precision)
        : g({.time = T, .batch = B, .precision = precision}),
          x(g.input("x", width)),
          h(g.add<Cell>("cell", std::move(options), x)),
          l(g.add<Total>("total", {}, h)),
          all(g.parameters()) {
        const Random random(1, 1);
        for (Index i = 0; i < T * B * width; ++i) input.push_back(static_cast<float>(random.normal(i)));
    }

    /// Σ y: a loss that costs one pass over the output.
    template <class S> struct Total {
        struct Options {};
        Options options;
        Seq<S> y;
        Loss<S> l;
        Loss<S> setup(Setup<S>& s, Seq<S> in) {
            y = in;
            return l = s.loss(false);
        }
        void forward(Forward<S>& p) { p.set(l, 0, p.rows()); }
        template <class Quantity> void backward(Backward<S, Quantity>& p) {
            std::fill_n(p.adjoint_data(y), p.rows() * y.width, S(1));
        }
    };
};

/// Columns of the products of a step and of those of the whole sequence, in multiples of the width.
struct Shape {
    Index step_columns;   // columns of the recurrent matrices together
    Index input_columns;  // columns of the input matrix
};

template <template <class> class Cell> void cell(benchmark::State& state,
                                                 typename Cell<float>::Options options, Shape gates,
                                                 bool backward, Index n, Precision precision) {
    const Index in = gates.input_columns * n, rec = gates.step_columns * n;
    options.units = n;
    Layer<Cell> layer(std::move(options), n, precision);
    layer.g.training(backward);
    Data x(T * B * n), z(T * B * std::max(in, rec)), W(n * in), U(n * rec), h(T * B * n), dW(n * in),
        dU(n * rec);
    const double flops = 2.0 * double(T * B * n) * double(in + rec) * (backward ? 3 : 1);
    measure::against_floor(
        state, flops, double(T * B),
        [&] {
            layer.g.forward(layer.l, {layer.x, layer.input.data(), T, B});
            if (!backward) return;
            layer.g.backward(layer.l);
            layer.all.clear_gradients();
        },
        [&] {
            const auto X = x.matrix(T * B, n), H = h.matrix(T * B, n), Ut = t(U.matrix(n, rec));
            measure::product(X, W.matrix(n, in), 0.f, z.matrix(T * B, in));
            for (Index t = 0; rec > 0 && t < T; ++t)
                measure::product(H.rows_from(t * B, B), U.matrix(n, rec), 1.f,
                                 z.matrix(T * B, rec).rows_from(t * B, B));
            if (!backward) return;
            for (Index t = 0; rec > 0 && t < T; ++t)
                measure::product(z.matrix(T * B, rec).rows_from(t * B, B), Ut, 1.f, H.rows_from(t * B, B));
            measure::product(z.matrix(T * B, in), t(W.matrix(n, in)), 0.f, X);
            measure::product(t(X), z.matrix(T * B, in), 0.f, dW.matrix(n, in));
            if (rec > 0) measure::product(t(H), z.matrix(T * B, rec), 0.f, dU.matrix(n, rec));
            // The numbers of the floor must not grow from round to round.
            kernel::scale(T * B * n, 0.f, h.data());
            kernel::scale(T * B * n, 0.f, x.data());
        });
}

template <template <class> class Cell>
void add(const std::string& name, typename Cell<float>::Options options, Shape gates) {
    for (const bool backward : {false, true})
        for (const auto& [suffix, precision, epsilon] : measure::variants()) {
            // There is no dl/dz to sample, and passes without gradients are in float.
            if (epsilon > 0 || (precision != Precision::full && !backward)) continue;
            for (const Index n : {200, 650, 1500})
                benchmark::RegisterBenchmark(
                    message(name, backward ? "" : "_forward", "/width:", n, suffix).c_str(),
                    [=, precision = precision](benchmark::State& state) {
                        cell<Cell>(state, options, gates, backward, n, precision);
                    })
                    ->UseManualTime()
                    ->Unit(benchmark::kMillisecond)
                    ->MinTime(0.5);
        }
}

void add_rows() {
    add<Lstm>("lstm", {}, {4, 4});
    add<Gru>("gru", {}, {3, 3});
    add<Rnn>("rnn", {}, {1, 1});
    add<Rhn>("rhn_depth_1", {}, {2, 2});
    add<Rhn>("rhn_depth_5", {.depth = 5}, {10, 2});
    add<Qrnn>("qrnn", {}, {0, 6});
    add<Qrnn>("qrnn_window_1", {.window = 1}, {0, 3});
}

}  // namespace

int main(int argc, char** argv) { return measure::run(argc, argv, add_rows); }
