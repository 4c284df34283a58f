// Linear dynamical systems for text: counting compared with reading the tokens, an iteration of EM with its
// products.
//
//     lds --threads=2

#include <isogloss/lds.hpp>

#include "measure.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;

namespace {

constexpr Index T = 1000000, V = 10000, lags = 7;

std::vector<Token> text() {
    std::vector<Token> words;
    measure::append_text(V, 0, T, words);
    return words;
}

void count(benchmark::State& state) {
    const auto words = text();
    measure::against_floor(
        state, 0, double(T),
        [&] {
            LagCounts counts(V, {.lags = lags});
            counts.add(words);
            benchmark::DoNotOptimize(counts.tokens());
        },
        [&] {
            Index sum = 0;
            for (const Token w : words) sum += w;
            benchmark::DoNotOptimize(sum);
        });
}

void em(benchmark::State& state) {
    const Index h = state.range(0);
    LagCounts counts(V, {.lags = lags});
    counts.add(text());
    const LagMoments<float> psi(counts);
    const auto start =
        subspace_identification(psi, {.states = h, .lags = 2, .svd = {.power_iterations = 1}}).system;
    TallMatrix<float> out = zeros<float>(V, h), sum = out;
    const Tensor<float, 2> small = zeros<float>(h, h);
    double pairs = 0;
    for (Index k = 1; k <= lags; ++k) pairs += double(psi.pairs(k));
    measure::against_floor(
        state, 2.0 * double(h) * (2 * pairs + 3.0 * double(lags) * double(V * h)), double(T),
        [&] {
            auto s = start;
            maximise(asos_statistics(s, steady_state(s), psi, lags), s);
            benchmark::DoNotOptimize(s.C.data());
        },
        [&] {
            for (Index k = 1; k <= lags; ++k) {
                psi.apply(k, ref(start.C), ref(out));
                psi.apply_transposed(k, ref(start.C), ref(out));
                for (int i = 0; i < 3; ++i) gemm<float>(1, ref(out), ref(small), 1, ref(sum));
            }
            benchmark::DoNotOptimize(sum.data());
        });
}

void smooth(benchmark::State& state) {
    const Index h = state.range(0), rows = 25600;
    auto words = text();
    words.resize(std::size_t(rows));
    Lds<float> s;
    s.whitening = Whitening::of_frequencies(std::vector<double>(std::size_t(V), 1.0 / double(V)), double(T));
    s.A = 0.5 * identity(h);
    s.C = zeros<float>(V, h);
    s.M = identity(h);
    const TextFilter<float> filter(s, steady_state(s));
    std::vector<std::span<const Token>> sentences;
    for (Index i = 0; i < rows; i += 25)
        sentences.push_back(std::span<const Token>(words).subspan(std::size_t(i), 25));
    TallMatrix<float> x = zeros<float>(256, h), y = x;
    const Tensor<float, 2> small = zeros<float>(h, h);
    measure::against_floor(
        state, 6.0 * double(rows * h * h), double(rows),
        [&] {
            benchmark::DoNotOptimize(
                filter.smooth(std::span<const std::span<const Token>>(sentences)).data());
        },
        [&] {
            for (Index i = 0; i < 3 * rows; i += 256) gemm<float>(1, ref(x), ref(small), 0, ref(y));
            benchmark::DoNotOptimize(y.data());
        });
}

}  // namespace

BENCHMARK(count)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(10);
BENCHMARK(em)->Arg(50)->Arg(200)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(5);
BENCHMARK(smooth)->Arg(50)->Arg(200)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(10);

int main(int argc, char** argv) { return measure::run(argc, argv); }
