// The output head: product, softmax, loss and both gradients, compared with its matrix products alone.
//
//     loss_kernels --threads=1 --benchmark_out=loss.json --benchmark_out_format=json

#include "measure.hpp"

using namespace isogloss;
using measure::Data;

namespace {

// With the target held constant, or with the gradient through it.
enum class Kind { cross_entropy, held, augmented };
enum class Targets { uniform, as_in_text };

/// A tied head over given hidden states; targets uniform at random, or of rank r with probability about 1 /
/// (r + 10).
struct Head {
    Graph<float> g;
    Seq<float> h;
    Tokens y;
    Weight<float> E;
    Loss<float> l;
    std::vector<Token> targets;
    std::vector<float> hidden;
    Index distinct = 0;
    std::size_t extra_bytes = 0;

    Head(Kind kind, Index rows, Index width, Index vocabulary, Targets how, Index budget)
        : g({.time = rows, .batch = 1, .budget = budget}),
          h(g.input("h", width)),
          y(g.tokens("y", vocabulary)),
          E(g.weight("E", vocabulary, width, uniform(0.1))) {
        const auto x = g.tokens("x", vocabulary);
        g.add<Embedding>("embed", {}, x, E);  // makes E an embedding table; never run
        const auto o = g.add<TiedSoftmax>("softmax", {}, h, E);
        const std::size_t before = g.memory();
        l = kind == Kind::cross_entropy
                ? g.add<CrossEntropy>("loss", {}, o, y)
                : g.add<AugmentedLoss>("loss", {.differentiate_target = kind == Kind::augmented}, o, y);
        extra_bytes = g.memory() - before;
        const Random random(5, 0);
        std::vector<bool> seen(static_cast<std::size_t>(vocabulary), false);
        for (Index i = 0; i < rows; ++i) {
            targets.push_back(
                how == Targets::uniform
                    ? static_cast<Token>(random.below(i, vocabulary))
                    : static_cast<Token>(10 *
                                         (std::pow(double(vocabulary + 10) / 10, random.uniform(i)) - 1)));
            if (!seen[static_cast<std::size_t>(targets.back())]) ++distinct;
            seen[static_cast<std::size_t>(targets.back())] = true;
        }
        for (Index i = 0; i < rows * width; ++i) hidden.push_back(static_cast<float>(random.normal(i)));
    }
    double forward() {
        const Index rows = std::ssize(targets);
        return g.forward(l, {h, hidden.data(), rows, 1}, {y, TokenBlock{targets.data(), rows, 1}});
    }
};

void head(benchmark::State& state, Kind kind, bool backward, Targets how = Targets::uniform,
          Index budget = Index{32} << 20) {
    const Index rows = state.range(0), width = state.range(1), vocabulary = state.range(2);
    Head model(kind, rows, width, vocabulary, how, budget);
    const auto all = model.g.parameters();
    model.g.training(backward);
    const Index most = 2 * rows;
    Data logits(most * vocabulary), hidden(most * width), table(vocabulary * width), dh(most * width),
        dE(vocabulary * width);
    const auto Z = logits.matrix(most, vocabulary), H = hidden.matrix(most, width),
               E = table.matrix(vocabulary, width);
    // Products for the positions: logits and, with the gradient, those of both factors; with the augmented
    // loss also logits for the distinct targets and, with the gradient through them, those of both factors.
    const Index targets = kind == Kind::cross_entropy ? 0 : model.distinct,
                through = backward && kind == Kind::augmented ? targets : 0;
    const double product = 2.0 * double(width) * double(vocabulary);
    const double flops = product * (double(rows) * (backward ? 3 : 1) + double(targets + 2 * through));
    measure::against_floor(
        state, flops, double(rows),
        [&] {
            benchmark::DoNotOptimize(model.forward());
            if (!backward) return;
            model.g.backward(model.l);
            all.clear_gradients();
        },
        [&] {
            measure::product(H.rows_from(0, rows + targets), t(E), 0.f, Z.rows_from(0, rows + targets));
            if (!backward) return;
            const Index back = rows + through;
            measure::product(Z.rows_from(0, back), E, 0.f, dh.matrix(back, width));
            measure::product(t(Z.rows_from(0, back)), H.rows_from(0, back), 0.f,
                             dE.matrix(vocabulary, width));
        });
    state.counters["extra_MiB"] = double(model.extra_bytes) / double(1 << 20);
    state.counters["torch_form_MiB"] =
        double(rows * vocabulary) * 4 * (kind == Kind::cross_entropy ? 2 : 6) / double(1 << 20);
}

void shapes(benchmark::internal::Benchmark* b) {
    b->ArgNames({"N", "width", "V"})->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(1.0);
    for (const Index vocabulary : {10000, 33278})
        for (const Index width : {200, 650, 1500}) b->Args({700, width, vocabulary});
    b->Args({128, 200, 200000});
}

BENCHMARK_CAPTURE(head, cross_entropy_forward, Kind::cross_entropy, false)->Apply(shapes);
BENCHMARK_CAPTURE(head, cross_entropy, Kind::cross_entropy, true)->Apply(shapes)->Args({5600, 650, 33278});
BENCHMARK_CAPTURE(head, augmented_forward, Kind::augmented, false)->Apply(shapes);
BENCHMARK_CAPTURE(head, augmented, Kind::augmented, true)->Apply(shapes)->Args({5600, 650, 33278});
BENCHMARK_CAPTURE(head, augmented_held, Kind::held, true)->Apply(shapes)->Args({5600, 650, 33278});

// The savings from repeated words of a text, and the cost of half the memory.
void text_shapes(benchmark::internal::Benchmark* b) {
    b->ArgNames({"N", "width", "V"})->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(1.0);
    for (const Index width : {200, 650, 1500}) b->Args({700, width, 10000});
}
void large_shapes(benchmark::internal::Benchmark* b) {
    b->ArgNames({"N", "width", "V"})->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(1.0);
    for (const Index width : {200, 650}) b->Args({700, width, 33278});
}
// From one column of a batch to a long segment.
void lengths(benchmark::internal::Benchmark* b) {
    b->ArgNames({"N", "width", "V"})->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(0.3);
    for (const Index rows : {1, 8, 35, 140, 2800}) b->Args({rows, 200, 10000});
}
BENCHMARK_CAPTURE(head, cross_entropy_rows, Kind::cross_entropy, true)->Apply(lengths);
BENCHMARK_CAPTURE(head, augmented_rows, Kind::augmented, true)->Apply(lengths);
BENCHMARK_CAPTURE(head, augmented_text, Kind::augmented, true, Targets::as_in_text)->Apply(text_shapes);
BENCHMARK_CAPTURE(head, augmented_held_text, Kind::held, true, Targets::as_in_text)->Apply(text_shapes);
BENCHMARK_CAPTURE(head, cross_entropy_16_MiB, Kind::cross_entropy, true, Targets::uniform, Index{16} << 20)
    ->Apply(large_shapes);
BENCHMARK_CAPTURE(head, augmented_16_MiB, Kind::augmented, true, Targets::uniform, Index{16} << 20)
    ->Apply(large_shapes);

}  // namespace

int main(int argc, char** argv) { return measure::run(argc, argv); }
