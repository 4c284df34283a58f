// Counting a text within given memory against counting it in memory: time per token and peak memory.
//
//     counting TOKENS [MEMORY]     MEMORY in MiB; without it, in memory
//
// One program counts once, since the peak memory of a process never falls. The text is generated while it is
// counted: word frequencies as in a text (rank r with probability about 1 / (r + 10)), each word drawn near
// the previous one half of the time, so that pairs repeat.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <isogloss/counts/lag_counts.hpp>
#include <isogloss/counts/spilled_counts.hpp>
#include <vector>

#include "word_frequencies.hpp"

using namespace isogloss;
using namespace isogloss::counts;

namespace {

constexpr Index V = 100000, lags = 7, piece = Index{1} << 16;

double seconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

double cpu() {
    rusage use = {};
    getrusage(RUSAGE_SELF, &use);
    return double(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * double(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

void report(const char* what, Index tokens, double wall, double busy, std::int64_t pairs) {
    rusage use = {};
    getrusage(RUSAGE_SELF, &use);
    std::printf(
        "%s: %td tokens, %.1f million pairs, %.0f ns of processor and %.0f ns of time a token, peak %.0f "
        "MiB\n",
        what, tokens, 1e-6 * double(pairs), 1e9 * busy / double(tokens), 1e9 * wall / double(tokens),
        double(use.ru_maxrss) / 1024);
}

void in_memory(Index tokens) {
    std::vector<Token> text;
    text.reserve(std::size_t(tokens));
    measure::append_text(V, 0, tokens, text);
    const double wall = seconds(), busy = cpu();
    LagCounts counts(V, {.lags = lags});
    counts.add(text);
    std::int64_t pairs = 0;
    for (Index k = 1; k <= lags; ++k) pairs += counts.lag(k).pairs();
    report("in memory", tokens, seconds() - wall, cpu() - busy, pairs);
}

void within(Index tokens, Index mib) {
    if (std::filesystem::exists("counting.spill")) SpilledCounts::remove("counting.spill");
    SpilledCounts counts(V, "counting.spill", {.lags = lags, .memory = mib << 20});
    double wall = 0, busy = 0;
    std::vector<Token> some;
    for (Index first = 0; first < tokens; first += piece) {
        some.clear();
        measure::append_text(V, first, std::min(piece, tokens - first), some);
        const double w = seconds(), b = cpu();
        counts.add(some);
        wall += seconds() - w;
        busy += cpu() - b;
    }
    const double w = seconds(), b = cpu();
    const Index files = counts.files();
    const SortedFile& all = counts.finish();
    std::int64_t pairs = 0;
    for (Index k = 1; k <= lags; ++k) pairs += all.section(k).pairs;
    std::printf(
        "%td tokens a block, %td files, %.1f bytes a pair; of the time in finish(), the last block and the "
        "merge, %.0f %%\n",
        counts.block(), files, double(all.bytes()) / double(pairs), 100 * (cpu() - b) / (busy + cpu() - b));
    report("within memory", tokens, wall + seconds() - w, busy + cpu() - b, pairs);
    counts.clear();
}

}  // namespace

int main(int argc, char** argv) {
    const Index tokens = argc > 1 ? std::atoll(argv[1]) : 0, mib = argc > 2 ? std::atoll(argv[2]) : 0;
    if (tokens < 1 || argc > 3 || (argc == 3 && mib < 1)) {
        std::fprintf(stderr, "usage: counting TOKENS [MEMORY in MiB]\n");
        return 1;
    }
    if (mib > 0) within(tokens, mib);
    else in_memory(tokens);
    return 0;
}
