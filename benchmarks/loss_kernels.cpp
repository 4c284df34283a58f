// The output head: product, softmax, loss and both gradients, compared with its matrix products alone.
//
//     loss_kernels --threads=1 --benchmark_out=loss.json --benchmark_out_format=json

#include <optional>

#include "measure.hpp"

using namespace isogloss;
using measure::Data;

namespace {

// With the target held constant, or with the gradient through it, and then also with a table of its own.
enum class Kind { cross_entropy, held, augmented, untied };
enum class Targets { uniform, as_in_text };

/// How a head is run, and on what.
struct Setting {
    bool backward = true;
    Targets targets = Targets::uniform;
    std::optional<Index> budget = Index{32} << 20;
    bool uneven = false;  ///< predictions as uneven as those of a trained model
    measure::Variant variant = {"", Precision::full, 0};
};

struct Sizes {
    Index rows, width, vocabulary;
};

/// A head over given hidden states, tied or, for Kind::untied, beside the embedding table of the targets.
struct Head {
    Graph<float> g;
    Seq<float> h;
    Tokens y;
    Weight<float> E;
    Logits<float> o;
    Loss<float> l;
    std::optional<Parameters<float>> all;  // looking them up in a pass would allocate
    std::vector<Token> targets;
    std::vector<float> hidden;
    Index distinct = 0;
    std::size_t extra_bytes = 0;

    Head(Kind kind, Sizes sizes, const Setting& how)
        : g({.time = sizes.rows,
             .batch = 1,
             .budget = how.budget,
             .precision = how.variant.precision,
             .epsilon = how.variant.epsilon}),
          h(g.input("h", sizes.width)),
          y(g.tokens("y", sizes.vocabulary)),
          E(g.weight("E", sizes.vocabulary, sizes.width, start(sizes, how))) {
        const auto [rows, width, vocabulary] = sizes;
        const auto x = g.tokens("x", vocabulary);
        g.add<Embedding>("embed", {}, x, E);  // makes E an embedding table; never run
        o = kind == Kind::untied
                ? g.add<Softmax>("softmax",
                                 {.vocabulary = vocabulary, .bias = false, .init = start(sizes, how)}, h)
                : g.add<TiedSoftmax>("softmax", {}, h, E);
        const std::size_t before = g.memory();
        l = kind == Kind::cross_entropy
                ? g.add<CrossEntropy>("loss", {}, o, y)
                : g.add<AugmentedLoss>("loss", {.differentiate_target = kind != Kind::held}, o, y, E);
        extra_bytes = g.memory() - before;
        all.emplace(g.parameters());
        const Random random(5, 0);
        std::vector<bool> seen(static_cast<std::size_t>(vocabulary), false);
        for (Index i = 0; i < rows; ++i) {
            targets.push_back(how.targets == Targets::uniform
                                  ? static_cast<Token>(random.below(i, vocabulary))
                                  : measure::word_of_text(vocabulary, random.uniform(i)));
            if (!seen[static_cast<std::size_t>(targets.back())]) ++distinct;
            seen[static_cast<std::size_t>(targets.back())] = true;
        }
        const double size = how.uneven ? measure::uneven_states(width) : 1;
        for (Index i = 0; i < rows * width; ++i)
            hidden.push_back(static_cast<float>(size * random.normal(i)));
        g.training(how.backward);
    }
    static Init start(Sizes sizes, const Setting& how) {
        return uniform(how.uneven ? measure::uneven_table(sizes.width) : 0.1);
    }
    double forward() {
        const Index rows = std::ssize(targets);
        return g.forward(l, {h, hidden.data(), rows, 1}, {y, TokenBlock{targets.data(), rows, 1}});
    }
    void pass() {
        benchmark::DoNotOptimize(forward());
        if (!g.training()) return;
        g.backward(l);
        all->clear_gradients();
    }
};

/// A row of an augmented loss also times cross-entropy with the same options.
void head(benchmark::State& state, Kind kind, Sizes sizes, const Setting& how) {
    const Index rows = sizes.rows, width = sizes.width, vocabulary = sizes.vocabulary;
    const bool backward = how.backward;
    Head model(kind, sizes, how);
    if (how.variant.epsilon > 0) {
        model.forward();
        state.counters["kept"] = measure::kept(model.g.head(model.o).probabilities(), how.variant.epsilon);
    }
    const Index most = 2 * rows;
    Data logits(most * vocabulary), hidden(most * width), table(vocabulary * width), dh(most * width),
        dE(vocabulary * width);
    const auto Z = logits.matrix(most, vocabulary), H = hidden.matrix(most, width),
               E = table.matrix(vocabulary, width);
    // Products for the positions: logits and, with the gradient, those of both factors; with the augmented
    // loss also logits for the distinct targets and, with the gradient through them, those of both factors.
    const Index targets = kind == Kind::cross_entropy ? 0 : model.distinct,
                through = backward && kind != Kind::held ? targets : 0;
    const double product = 2.0 * double(width) * double(vocabulary);
    const double flops = product * (double(rows) * (backward ? 3 : 1) + double(targets + 2 * through));
    const auto work = [&model] { model.pass(); };
    const auto floor = [&, back = rows + through] {
        measure::product(H.rows_from(0, rows + targets), t(E), 0.f, Z.rows_from(0, rows + targets));
        if (!backward) return;
        measure::product(Z.rows_from(0, back), E, 0.f, dh.matrix(back, width));
        measure::product(t(Z.rows_from(0, back)), H.rows_from(0, back), 0.f, dE.matrix(vocabulary, width));
    };
    if (kind == Kind::cross_entropy) {
        measure::against_floor(state, flops, double(rows), work, floor);
    } else {
        Head other(Kind::cross_entropy, sizes, how);
        const auto medians =
            measure::against_floor(state, flops, double(rows), work, floor, [&other] { other.pass(); });
        state.counters["time/cross_entropy"] = medians[0] / medians[2];
    }
    state.counters["extra_MiB"] = double(model.extra_bytes) / double(1 << 20);
    state.counters["torch_form_MiB"] =
        double(rows * vocabulary) * 4 * (kind == Kind::cross_entropy ? 2 : 6) / double(1 << 20);
}

void head(benchmark::State& state, Kind kind, const Setting& how) {
    head(state, kind, {state.range(0), state.range(1), state.range(2)}, how);
}

void shapes(benchmark::internal::Benchmark* b) {
    b->ArgNames({"N", "width", "V"})->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(1.0);
    for (const Index vocabulary : {10000, 33278})
        for (const Index width : {200, 650, 1500}) b->Args({700, width, vocabulary});
    b->Args({128, 200, 200000});
}

BENCHMARK_CAPTURE(head, cross_entropy_forward, Kind::cross_entropy, {.backward = false})->Apply(shapes);
BENCHMARK_CAPTURE(head, cross_entropy, Kind::cross_entropy, {})->Apply(shapes)->Args({5600, 650, 33278});
BENCHMARK_CAPTURE(head, augmented_forward, Kind::augmented, {.backward = false})->Apply(shapes);
BENCHMARK_CAPTURE(head, augmented, Kind::augmented, {})->Apply(shapes)->Args({5600, 650, 33278});
BENCHMARK_CAPTURE(head, augmented_held, Kind::held, {})->Apply(shapes)->Args({5600, 650, 33278});

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
BENCHMARK_CAPTURE(head, cross_entropy_rows, Kind::cross_entropy, {})->Apply(lengths);
BENCHMARK_CAPTURE(head, augmented_rows, Kind::augmented, {})->Apply(lengths);
BENCHMARK_CAPTURE(head, augmented_text, Kind::augmented, {.targets = Targets::as_in_text})
    ->Apply(text_shapes);
BENCHMARK_CAPTURE(head, augmented_held_text, Kind::held, {.targets = Targets::as_in_text})
    ->Apply(text_shapes);
BENCHMARK_CAPTURE(head, cross_entropy_16_MiB, Kind::cross_entropy, {.budget = Index{16} << 20})
    ->Apply(large_shapes);
BENCHMARK_CAPTURE(head, augmented_16_MiB, Kind::augmented, {.budget = Index{16} << 20})->Apply(large_shapes);

// Predictions as uneven as those of a trained model, targets as in a text, the default budget.
void add_rows() {
    for (const auto& [name, kind] :
         {std::pair{"cross_entropy", Kind::cross_entropy}, std::pair{"augmented", Kind::augmented},
          std::pair{"augmented_untied", Kind::untied}})
        for (const Sizes sizes : {Sizes{700, 200, 10000}, Sizes{700, 650, 10000}, Sizes{700, 200, 33278},
                                  Sizes{128, 200, 200000}})
            for (const measure::Variant& variant : measure::variants())
                benchmark::RegisterBenchmark(message("head/", name, "_uneven/N:", sizes.rows, "/width:",
                                                     sizes.width, "/V:", sizes.vocabulary, variant.suffix)
                                                 .c_str(),
                                             [=, kind = kind](benchmark::State& state) {
                                                 head(state, kind, sizes,
                                                      {.targets = Targets::as_in_text,
                                                       .budget = {},
                                                       .uneven = true,
                                                       .variant = variant});
                                             })
                    ->UseManualTime()
                    ->Unit(benchmark::kMillisecond)
                    ->MinTime(1.0);
}

}  // namespace

int main(int argc, char** argv) { return measure::run(argc, argv, add_rows); }
