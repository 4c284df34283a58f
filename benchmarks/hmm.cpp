// A step of Baum-Welch against its three products per position: sequences in parallel, and in turn.
//
//     hmm --threads=1

#include <isogloss/hmm/hmm.hpp>

#include "measure.hpp"

using namespace isogloss;

namespace {

constexpr Index A = 10000, positions = 12800;

/// Sequences of about `length` symbols, some frequent and some rare.
std::vector<std::vector<Token>> texts(Index length) {
    const Random random(3, 3);
    std::vector<std::vector<Token>> all;
    Index place = 0;
    for (Index left = positions; left > 0;) {
        all.emplace_back();
        for (Index t = std::min(left, 1 + length / 2 + random.below(place++, length)); t > 0; --t, --left)
            all.back().push_back(static_cast<Token>(std::pow(A, random.uniform(place++))) - 1);
    }
    return all;
}

template <class Real> void step(benchmark::State& state) {
    const Index N = state.range(0), length = state.range(1), rows = std::min<Index>(128, positions / length);
    hmm::Hmm model({.states = N, .symbols = A, .prior = 0.01, .in_float = std::same_as<Real, float>});
    const auto sequences = texts(length);
    const std::vector<Real> left(std::size_t(rows * N), Real(0.5)), square(std::size_t(N * N), Real(0.5)),
        tall(std::size_t(positions * N), Real(0.5));
    std::vector<Real> out(std::size_t(rows * N)), sum(std::size_t(N * N));
    measure::against_floor(
        state, 6.0 * double(positions) * double(N * N), double(positions),
        [&] { benchmark::DoNotOptimize(model.step(sequences)); },
        [&] {
            for (Index at = 0; at < 2 * positions; at += rows)
                gemm<Real>(1, {left.data(), rows, N}, {square.data(), N, N}, 0, {out.data(), rows, N});
            gemm<Real>(1, t(MatrixRef<const Real>(tall.data(), positions, N)), {tall.data(), positions, N}, 0,
                       {sum.data(), N, N});
            benchmark::DoNotOptimize(out.data());
            benchmark::DoNotOptimize(sum.data());
        });
}

}  // namespace

BENCHMARK(step<double>)
    ->Name("step")
    ->ArgNames({"states", "length"})
    ->Args({100, 25})
    ->Args({100, positions})
    ->Args({500, 25})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);
BENCHMARK(step<float>)
    ->Name("step_in_float")
    ->ArgNames({"states", "length"})
    ->Args({500, 25})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);

int main(int argc, char** argv) { return measure::run(argc, argv); }
