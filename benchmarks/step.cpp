// The whole training step of the two-layer tied LSTM model, compared with its matrix products alone; and with a metric
// on all weights, compared with that by SGD.
//
//     step --threads=2 --benchmark_filter=al

#include <isogloss/update/riemannian/riemannian.hpp>

#include "measure.hpp"

using namespace isogloss;
using measure::Data;

namespace {

constexpr Index T = 35, B = 20, V = 10000, rows = T * B;

// The augmented loss with the target held constant, or with the gradient through it.
enum class Kind { ce, held, al };

// The model with a batch of text.
struct Model {
    Graph<float> g;
    Tokens x = g.tokens("x", V), y = g.tokens("y", V);
    Logits<float> o;
    Loss<float> l;
    std::vector<Token> words;
    Index distinct = 0;  // targets

    Model(Kind kind, Index n, Precision precision = Precision::full, double epsilon = 0)
        : g({.time = T, .batch = B, .precision = precision, .epsilon = epsilon}) {
        const auto E = g.weight("E", V, n, uniform(measure::uneven_table(n)));
        auto h = g.add<Embedding>("embed", {.keep = 0.7}, x, E);
        h = g.add<Lstm>("lstm1", {.units = n, .keep = 0.7}, h);
        h = g.add<Lstm>("lstm2", {.units = n, .keep = 0.7}, h);
        o = g.add<TiedSoftmax>("softmax", {}, h, E);
        l = kind == Kind::ce ? g.add<CrossEntropy>("loss", {}, o, y)
                             : g.add<AugmentedLoss>(
                                   "loss", {.gamma = 0.65, .differentiate_target = kind == Kind::al}, o, y);
        std::vector<bool> seen(static_cast<std::size_t>(V), false);
        const Random random(3, 3);
        for (Index i = 0; i < 2 * rows; ++i) {
            words.push_back(measure::word_of_text(V, random.uniform(i)));
            if (i >= rows && !seen[static_cast<std::size_t>(words.back())]) ++distinct;
            if (i >= rows) seen[static_cast<std::size_t>(words.back())] = true;
        }
    }
    void forward() {
        g.forward(l, {x, TokenBlock{words.data(), T, B}}, {y, TokenBlock{words.data() + rows, T, B}});
    }
    void pass() {
        forward();
        g.backward(l);
    }
};

void step(benchmark::State& state, Kind kind, Index n, Precision precision, double epsilon) {
    Model model(kind, n, precision, epsilon);
    Sgd<float> sgd(model.g.parameters(), {.rate = 1e-6, .clip = 5});  // the predictions stay uneven
    // Rows of the three products of the head: positions, and distinct targets if they take part.
    const Index distinct = kind == Kind::ce ? 0 : model.distinct, forward = rows + distinct,
                backward = rows + (kind == Kind::al ? distinct : 0);
    if (epsilon > 0) {
        model.forward();
        state.counters["kept"] = measure::kept(model.g.head(model.o).probabilities(), epsilon);
    }
    Data z(rows * 4 * n), u(n * 4 * n), a(forward * n), logits(forward * V), table(V * n), dtable(V * n),
        du(n * 4 * n);
    const double flops = 2.0 * double(rows * n) * 2 * 3 * 8 * double(n) +
                         2.0 * double((forward + 2 * backward) * n) * double(V);
    measure::against_floor(
        state, flops, double(rows),
        [&] {
            model.pass();
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

// Ten steps of all weights by a metric that is refreshed in one of them, compared with ten of SGD.
void metric_step(benchmark::State& state, Kind kind, Index n, UnitModulus modulus, Precision precision,
                 double epsilon) {
    Model model(kind, n, precision, epsilon), plain(kind, n, precision, epsilon);
    Riemannian<float> update(model.g, "*",
                             {.modulus = modulus, .rate = 1e-9, .decay = 0.5, .every = 10, .clip = 5});
    Sgd<float> sgd(plain.g.parameters(), {.rate = 1e-9, .clip = 5});
    const auto ten = [&] {
        for (int k = 0; k < 10; ++k) {
            model.pass();
            if (update.wants_modulus()) model.g.backward<Modulus>(model.l);
            update.step();
        }
    };
    ten();  // those in which the average is a plain mean
    measure::against_floor(state, 0, double(10 * rows), ten, [&] {
        for (int k = 0; k < 10; ++k) {
            plain.pass();
            sgd.step();
        }
    });
}

void add_rows() {
    for (const auto& [name, modulus] :
         {std::pair{"ruop", UnitModulus::ruop}, std::pair{"rbpm", UnitModulus::rbpm}})
        for (const auto& [loss, kind] : {std::pair{"ce", Kind::ce}, std::pair{"al", Kind::al}})
            for (const auto& [suffix, precision, epsilon] : measure::variants())
                if (modulus == UnitModulus::rbpm || epsilon == 0)  // RUOP refuses sampled gradients
                    benchmark::RegisterBenchmark(
                        message("step/", name, "/", loss, "/width:200", suffix).c_str(),
                        [kind = kind, modulus = modulus, precision = precision,
                         epsilon = epsilon](benchmark::State& state) {
                            metric_step(state, kind, 200, modulus, precision, epsilon);
                        })
                        ->UseManualTime()
                        ->Unit(benchmark::kMillisecond)
                        ->MinTime(1.0);

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
