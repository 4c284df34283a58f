/// @file measure.hpp  Shared by the benchmarks: timing of work and floor in turn, context, random data.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <isogloss/isogloss.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "allocations.hpp"
#include "machine.hpp"
#include "word_frequencies.hpp"

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
            using isogloss::kernel::fused_lanes;
            for (long k = 0; k < inner; ++k)
                for (auto& s : sums) s = fused_lanes(s, a, b);
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

/// How the products of a row are computed; `suffix` is the end of its name.
struct Variant {
    const char* suffix;
    isogloss::Precision precision;
    double epsilon;
};

/// Whether rows with products in bfloat16 are run on a processor that emulates them (`--bf16`), and whether any
/// were left out.
struct Bf16Rows {
    bool asked = false, left_out = false;
};
inline Bf16Rows& bf16_rows() {
    static Bf16Rows rows;
    return rows;
}

/// Products in float, in bfloat16, with entries of dl/dz below 1/256 sampled, and fast: both, in bfloat16 if it is
/// faster here. The floor is that of all products in float in every case. For the function `add_rows` of run().
inline std::vector<Variant> variants() {
    using isogloss::Precision;
    std::vector<Variant> all{{"", Precision::full, 0}};
    if (bf16_rows().asked || isogloss::kernel::bf16_micro_name() != std::string_view("plain"))
        all.push_back({"/bf16", Precision::bf16, 0});
    else bf16_rows().left_out = true;
    all.push_back({"/epsilon", Precision::full, 0x1p-8});
    all.push_back({"/fast", Precision::automatic, 0x1p-8});
    return all;
}

/// Range of the uniform numbers of a tied table from which two LSTM layers predict as unevenly as a trained model,
/// which determines how many entries of dl/dz are sampled.
inline double uneven_table(Index width) { return 3.6 * std::pow(200.0 / double(width), 0.8); }
/// Root mean square of the states that these layers compute from it, measured at 200 and 650 units: logits of
/// standard deviation 3.3 and 3.8.
inline double uneven_states(Index width) { return 0.112 * std::pow(double(width) / 200, 0.43); }

/// The share of the entries of p that sampling of p keeps on average: close to that of dl/dz = p - 1_y of
/// cross-entropy.
template <class Probabilities> double kept(const Probabilities& probabilities, double epsilon) {
    double sum = 0, entries = 0;
    for (const float p : probabilities) sum += std::min(1.0, double(p) / epsilon), ++entries;
    return sum / entries;
}

/// Times `work`, `floor` and what stands `beside` them in turn in every iteration, and returns the medians in this
/// order. Reported is the work: its time; `floor/time`, the share of the floor in it; `peak`, the share of the
/// multiply-add peak; `allocations`, their number per round.
template <class Work, class Floor, class... Beside>
std::array<double, 2 + sizeof...(Beside)> against_floor(benchmark::State& state, double flops, double tokens,
                                                        Work&& work, Floor&& floor, Beside&&... beside) {
    static const double peak = peak_flops();
    const isogloss::BlasOnOneThread blas;
    work();
    floor();
    (beside(), ...);
    std::vector<double> of_work, of_floor, of_beside[sizeof...(Beside) + 1];
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
        [[maybe_unused]] std::size_t i = 0;
        ((start = std::chrono::steady_clock::now(), beside(), of_beside[i++].push_back(seconds(start))), ...);
    }
    const double time = median(of_work), least = median(of_floor);
    state.counters["floor/time"] = least / time;
    state.counters["ms"] = 1e3 * time;
    state.counters["floor_ms"] = 1e3 * least;
    state.counters["GFLOP/s"] = flops / time / 1e9;
    state.counters["peak"] = flops / time / (peak * isogloss::threads());
    state.counters["tokens/s"] = tokens / time;
    state.counters["allocations"] = static_cast<double>(allocated) / static_cast<double>(of_work.size());
    std::array<double, 2 + sizeof...(Beside)> medians{time, least};
    for (std::size_t i = 0; i < sizeof...(Beside); ++i) medians[2 + i] = median(of_beside[i]);
    return medians;
}

/// main() of every benchmark: `--threads=n` is for the library, `--bf16` for variants(), the rest for
/// google-benchmark. `add_rows` registers rows that depend on these.
inline int run(
    int argc, char** argv, void (*add_rows)() = [] {}) {
    std::vector<char*> arguments;
    for (int i = 0; i < argc; ++i) {
        const std::string_view a = argv[i];
        if (a.starts_with("--threads=")) {
            const char *const end = a.data() + a.size(), *const begin = a.data() + 10;
            int n = 0;
            if (const auto read = std::from_chars(begin, end, n);
                read.ec != std::errc() || read.ptr != end || n < 1 || n > 1024) {
                std::cerr << "isogloss benchmarks: found " << a << ", expected a whole number of 1 to 1024"
                          << std::endl;
                return 1;
            }
            isogloss::threads(n);
        } else if (a == "--bf16") bf16_rows().asked = true;
        else arguments.push_back(argv[i]);
    }
    add_rows();
    if (bf16_rows().left_out)
        std::cerr
            << "isogloss benchmarks: the rows /bf16 are left out: products in bfloat16 are emulated here, "
               "without the instructions of AVX-512-BF16 or AMX, and take many times as long; --bf16 runs "
               "them."
            << std::endl;
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
