// Value and gradient of softmax over concatenated embeddings, compared with its three products, gathers and
// scatter alone.
//
//     closed_form --threads=1

#include <isogloss/closed_form/concatenated_softmax.hpp>

#include "measure.hpp"

using namespace isogloss;
using measure::Data;

namespace {

constexpr Index V = 10000, H = 100, M = 4, N = 512;

/// The rows of E that each example names, concatenated.
void gather(MatrixRef<float> E, const std::vector<Token>& X, MatrixRef<float> phi) {
    for (Index i = 0; i < N * M; ++i) std::copy_n(E.row(X[std::size_t(i)]), H, phi.data + i * H);
}
void scatter(MatrixRef<float> b, const std::vector<Token>& X, MatrixRef<float> d_E) {
    for (Index i = 0; i < N * M; ++i) kernel::add(H, b.data + i * H, d_E.row(X[std::size_t(i)]));
}

/// Over `state.range(0)` classes; without gradient, the product for the logits alone.
void closed_form(benchmark::State& state, bool gradient) {
    const Index C = state.range(0), n = M * H;
    ConcatenatedSoftmax<float> model({.vocabulary = V, .width = H, .words = M, .classes = C, .batch = N});
    const auto all = model.parameters();
    std::vector<Token> X, y;
    const Random random(1, 1);
    for (Index i = 0; i < N * M; ++i) X.push_back(static_cast<Token>(random.below(i, V)));
    for (Index i = 0; i < N; ++i) y.push_back(static_cast<Token>(random.below(N * M + i, C)));
    Data E(V * H), W(n * C), phi(N * n), z(N * C), b(N * n), d_E(V * H), d_W(n * C);
    const double flops = 2.0 * double(N) * double(n) * double(C) * (gradient ? 3 : 1);
    measure::against_floor(
        state, flops, double(N),
        [&] {
            if (!gradient) return static_cast<void>(model.value(X, y));
            model.value_and_gradient(X, y);
            all.clear_gradients();
        },
        [&] {
            const auto P = phi.matrix(N, n), Z = z.matrix(N, C), B = b.matrix(N, n);
            gather(E.matrix(V, H), X, P);
            gemm<float>(1.f, P, W.matrix(n, C), 0.f, Z);
            if (!gradient) return;
            gemm<float>(1.f, t(P), Z, 0.f, d_W.matrix(n, C));
            gemm<float>(1.f, Z, t(W.matrix(n, C)), 0.f, B);
            scatter(B, X, d_E.matrix(V, H));
        });
}

}  // namespace

int main(int argc, char** argv) {
    for (const bool gradient : {false, true}) {
        auto* b =
            benchmark::RegisterBenchmark(gradient ? "concatenated_softmax" : "concatenated_softmax_value",
                                         [=](benchmark::State& state) { closed_form(state, gradient); });
        b->ArgName("classes")->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(0.5);
        for (const Index classes : {100, 1000, 10000}) b->Arg(classes);
    }
    return measure::run(argc, argv);
}
