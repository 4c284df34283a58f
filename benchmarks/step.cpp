// The whole training step of the two-layer tied LSTM model, compared with its matrix products alone.
//
//     step --threads=2 --benchmark_filter=al

#include "measure.hpp"

using namespace isogloss;
using measure::Data;

namespace {

constexpr Index T = 35, B = 20, V = 10000;

// The augmented loss with the target held constant, or with the gradient through it.
enum class Kind { ce, held, al };

void step(benchmark::State& state, Kind kind, Index n, Precision precision, double epsilon) {
    const Index rows = T * B;
    Graph<float> g({.time = T, .batch = B, .precision = precision, .epsilon = epsilon});
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    const auto E = g.weight("E", V, n, uniform(measure::uneven_table(n)));
    auto h = g.add<Embedding>("embed", {.keep = 0.7}, x, E);
    h = g.add<Lstm>("lstm1", {.units = n, .keep = 0.7}, h);
    h = g.add<Lstm>("lstm2", {.units = n, .keep = 0.7}, h);
    const auto o = g.add<TiedSoftmax>("softmax", {}, h, E);
    const auto l =
        kind == Kind::ce
            ? g.add<CrossEntropy>("loss", {}, o, y)
            : g.add<AugmentedLoss>("loss", {.gamma = 0.65, .differentiate_target = kind == Kind::al}, o, y);
    Sgd<float> sgd(g.parameters(), {.rate = 1e-6, .clip = 5});  // the predictions stay uneven

    std::vector<Token> words;
    std::vector<bool> seen(static_cast<std::size_t>(V), false);
    Index distinct = 0;
    const Random random(3, 3);
    for (Index i = 0; i < 2 * rows; ++i) {
        words.push_back(measure::word_of_text(V, random.uniform(i)));
        if (i >= rows && !seen[static_cast<std::size_t>(words.back())]) ++distinct;
        if (i >= rows) seen[static_cast<std::size_t>(words.back())] = true;
    }
    if (kind == Kind::ce) distinct = 0;
    // Rows of the three products of the head: positions, and distinct targets if they take part.
    const Index forward = rows + distinct, backward = rows + (kind == Kind::al ? distinct : 0);

    if (epsilon > 0) {
        g.forward(l, {x, TokenBlock{words.data(), T, B}}, {y, TokenBlock{words.data() + rows, T, B}});
        state.counters["kept"] = measure::kept(g.head(o).probabilities(), epsilon);
    }
    Data z(rows * 4 * n), u(n * 4 * n), a(forward * n), logits(forward * V), table(V * n), dtable(V * n),
        du(n * 4 * n);
    const double flops = 2.0 * double(rows * n) * 2 * 3 * 8 * double(n) +
                         2.0 * double((forward + 2 * backward) * n) * double(V);
    measure::against_floor(
        state, flops, double(rows),
        [&] {
            g.forward(l, {x, TokenBlock{words.data(), T, B}}, {y, TokenBlock{words.data() + rows, T, B}});
            g.backward(l);
            sgd.step();
        },
        [&] {
            const auto Z = z.matrix(rows, 4 * n), U = u.matrix(n, 4 * n), A = a.matrix(rows, n);
            const auto H = a.matrix(forward, n), L = logits.matrix(forward, V), K = table.matrix(V, n);
            for (int layer = 0; layer < 2; ++layer) {
                measure::product(A, U, 0.f, Z);
                for (Index s = 0; s < T; ++s)
                    measure::product(A.rows_from(s * B, B), U, 0.f, Z.rows_from(s * B, B));
                for (Index s = 0; s < T; ++s)
                    measure::product(Z.rows_from(s * B, B), t(U), 0.f, A.rows_from(s * B, B));
                measure::product(Z, t(U), 0.f, A);
                measure::product(t(A), Z, 0.f, du.matrix(n, 4 * n));
                measure::product(t(A), Z, 0.f, du.matrix(n, 4 * n));
            }
            measure::product(H, t(K), 0.f, L);
            measure::product(L.rows_from(0, backward), K, 0.f, H.rows_from(0, backward));
            measure::product(t(L.rows_from(0, backward)), H.rows_from(0, backward), 0.f, dtable.matrix(V, n));
            kernel::scale(rows * n, 1e-3f, a.data());
        });
}

void add_rows() {
    for (const auto& [name, kind] :
         {std::pair{"ce", Kind::ce}, std::pair{"al", Kind::al}, std::pair{"al_held", Kind::held}})
        for (const Index n : {200, 650, 1500})
            for (const auto& [suffix, precision, epsilon] : measure::variants())
                benchmark::RegisterBenchmark(
                    message("step/", name, "/width:", n, suffix).c_str(),
                    [kind = kind, n, precision = precision, epsilon = epsilon](benchmark::State& state) {
                        step(state, kind, n, precision, epsilon);
                    })
                    ->UseManualTime()
                    ->Unit(benchmark::kMillisecond)
                    ->MinTime(1.0);
}

}  // namespace

int main(int argc, char** argv) { return measure::run(argc, argv, add_rows); }
