// Counting a text in memory: time per token and peak memory.
//
//     counting TOKENS
//
// The text is generated: word frequencies as in a text (rank r with probability about 1 / (r + 10)), each word drawn near
// the previous one half of the time, so that pairs repeat.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <isogloss/counts/lag_counts.hpp>
#include <vector>

#include "word_frequencies.hpp"

using namespace isogloss;
using namespace isogloss::counts;

namespace {

constexpr Index V = 100000, lags = 7;

double seconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

rusage usage() {
    rusage use = {};
    getrusage(RUSAGE_SELF, &use);
    return use;
}

double cpu() {
    const rusage use = usage();
    return double(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * double(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

}  // namespace

int main(int argc, char** argv) {
    const Index tokens = argc == 2 ? std::atoll(argv[1]) : 0;
    if (tokens < 1) {
        std::fprintf(stderr, "usage: counting TOKENS\n");
        return 1;
    }
    std::vector<Token> text;
    text.reserve(std::size_t(tokens));
    measure::append_text(V, 0, tokens, text);
    const double wall = seconds(), busy = cpu();
    LagCounts counts(V, {.lags = lags});
    counts.add(text);
    std::int64_t pairs = 0;
    for (Index k = 1; k <= lags; ++k) pairs += counts.lag(k).pairs();
    std::printf(
        "%td tokens, %.1f million pairs, %.0f ns of processor and %.0f ns of time a token, peak %.0f MiB\n",
        tokens, 1e-6 * double(pairs), 1e9 * (cpu() - busy) / double(tokens),
        1e9 * (seconds() - wall) / double(tokens), double(usage().ru_maxrss) / 1024);
    return 0;
}
