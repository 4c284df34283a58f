/// @file measure.hpp  Shared by the benchmarks: timing of work and floor in turn, context, random data.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <isogloss/isogloss.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allocations.hpp"
#include "machine.hpp"

namespace measure {

using isogloss::Index;
using isogloss::MatrixRef;

inline double seconds(const std::chrono::steady_clock::time_point& from) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

inline double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
    return v[v.size() / 2];
}

/// Multiply-adds per second of one core working in registers only, times two: an upper bound for any BLAS.
inline double peak_flops() {
    using L = isogloss::kernel::Lanes<float>;
    // Enough to hide the latency of a fused multiply-add, and with both factors within 16 registers.
    constexpr int chains = 12;
    constexpr long rounds = 20000, inner = 100;  // long enough in registers to make the rest negligible
    double best = 0;
    for (int attempt = 0; attempt < 5; ++attempt) {
        L sums[chains];
        for (int i = 0; i < chains; ++i) sums[i] = L(static_cast<float>(i));
        L a(0.999f), b(0.001f);
        const auto start = std::chrono::steady_clock::now();
        for (long r = 0; r < rounds; ++r) {
            using isogloss::kernel::fma_lanes;
            for (long k = 0; k < inner; ++k)
                for (auto& s : sums) s = fma_lanes(s, a, b);
            benchmark::DoNotOptimize(sums);
        }
        const double flops =
            2.0 * chains * static_cast<double>(isogloss::kernel::lane_count<L> * rounds * inner);
        best = std::max(best, flops / seconds(start));
    }
    return best;
}

/// Random numbers in persistent buffers: new ones would cost page faults in every round.
class Data {
public:
    explicit Data(Index n, double scale = 0.1) : values_(static_cast<std::size_t>(n)) {
        const isogloss::Random random(1, static_cast<std::uint32_t>(n));
        for (std::size_t i = 0; i < values_.size(); ++i)
            values_[i] = static_cast<float>(scale * (2 * random.uniform(static_cast<Index>(i)) - 1));
    }
    MatrixRef<float> matrix(Index rows, Index cols) { return {values_.data(), rows, cols}; }
    float* data() { return values_.data(); }

private:
    std::vector<float> values_;
};

/// C = A B + beta C through BLAS alone, split over threads as the library does: the basis of the floors.
inline void product(MatrixRef<const float> a, MatrixRef<const float> b, float beta, MatrixRef<float> c) {
    isogloss::detail::cut<float>(a, b, c, [beta](auto left, auto right, auto part, Index) {
        isogloss::detail::gemm_serial<float>(1.f, left, right, beta, part);
    });
}

/// Times `work` and `floor` in turn in every iteration and reports the medians: the time shown is that of the
/// work; `floor/time` is the share of the floor in it; `peak` the share of the multiply-add peak;
/// `allocations` the number of allocations per round of the work.
template <class Work, class Floor>
void against_floor(benchmark::State& state, double flops, double tokens, Work&& work, Floor&& floor) {
    static const double peak = peak_flops();
    const isogloss::BlasOnOneThread blas;
    work();
    floor();
    std::vector<double> of_work, of_floor;
    std::size_t allocated = 0;
    for (auto _ : state) {
        const std::size_t before = allocations();
        auto start = std::chrono::steady_clock::now();
        work();
        const double taken = seconds(start);
        allocated += allocations() - before;
        of_work.push_back(taken);
        state.SetIterationTime(of_work.back());
        start = std::chrono::steady_clock::now();
        floor();
        of_floor.push_back(seconds(start));
    }
    const double time = median(of_work), least = median(of_floor);
    state.counters["floor/time"] = least / time;
    state.counters["ms"] = 1e3 * time;
    state.counters["floor_ms"] = 1e3 * least;
    state.counters["GFLOP/s"] = flops / time / 1e9;
    state.counters["peak"] = flops / time / (peak * isogloss::threads());
    state.counters["tokens/s"] = tokens / time;
    state.counters["allocations"] = static_cast<double>(allocated) / static_cast<double>(of_work.size());
}

/// main() of every benchmark: `--threads=n` is for the library, the rest for google-benchmark.
inline int run(int argc, char** argv) {
    std::vector<char*> arguments;
    for (int i = 0; i < argc; ++i) {
        const std::string_view a = argv[i];
        if (a.starts_with("--threads=")) isogloss::threads(std::atoi(argv[i] + 10));
        else arguments.push_back(argv[i]);
    }
    int count = static_cast<int>(arguments.size());
    for (const auto& [name, value] : machine::context()) benchmark::AddCustomContext(name, value);
    if (const std::string sentence = machine::warning(); !sentence.empty())
        std::cerr << sentence << std::endl;
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}

}  // namespace measure
