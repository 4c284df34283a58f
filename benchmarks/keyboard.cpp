// What the engine of examples/browser costs at the size of a keyboard: 10,000 rows, 1.4 million weights, one core.
//
//     keyboard                                      milliseconds and bytes
//     bash benchmarks/keyboard.sh WORK              the same without BLAS, and the size of the program

#include "../examples/browser/keyboard.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#ifdef __linux__
#include <unistd.h>
#endif

using namespace keyboard;

namespace {

// Resident memory of this process in bytes, 0 where the system does not say.
double resident() {
#ifdef __linux__
    double pages = 0;
    std::ifstream("/proc/self/statm") >> pages >> pages;
    return pages * double(sysconf(_SC_PAGESIZE));
#else
    return 0;
#endif
}

// Median of the milliseconds that f(i) takes, i = 0 … n-1.
template <class F> double median(int n, F&& f) {
    std::vector<double> times;
    for (int i = 0; i < n; ++i) {
        const auto start = std::chrono::steady_clock::now();
        f(i);
        times.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(times.begin(), times.begin() + n / 2, times.end());
    return times[std::size_t(n / 2)];
}

// A word of the model, as often as in a text.
std::string word(const ig::Random& random, std::uint64_t i, Index words) {
    return "w" + std::to_string(Index(std::pow(double(words), random.uniform(i))) - 1);
}

}  // namespace

int main() {
    constexpr Index rows = 10000, spare = 1000, words = rows - Keyboard::first_word - spare;
    std::vector<std::string> names;
    for (Index i = 0; i < words; ++i) names.push_back("w" + std::to_string(i));
    const double before = resident();
    Keyboard keyboard(names, {.units = 128, .spare = spare, .batch = 1, .budget = Index{1} << 20});
    const ig::Random random(1, 1);
    std::vector<std::string> sentences;
    for (std::uint64_t s = 0, i = 0; s < 60; ++s) {
        std::string& sentence = sentences.emplace_back();
        for (int k = 0; k < 11; ++k) sentence += word(random, i++, words) + ' ';
        sentence += '.';
    }
    // A prediction per word typed, as a person types them.
    std::string typed;
    keyboard.predict(typed, 5);
    const double prediction = median(600, [&](int i) {
        if (i % 11 == 0) typed.clear();
        typed += word(random, 100000 + std::uint64_t(i), words) + ' ';
        keyboard.predict(typed, 5);
    });
    const double step = median(30, [&](int i) { keyboard.learn(sentences[std::size_t(i)]); });
    const double first = median(30, [&](int i) {  // the first prediction after a step packs the weights
        keyboard.learn(sentences[std::size_t(30 + i)]);
        keyboard.predict("", 5);
    });
    std::printf("%zd rows, %zd weights\n", std::ptrdiff_t(keyboard.rows()),
                std::ptrdiff_t(keyboard.weights()));
    std::printf("a prediction                              %7.3f ms   (goal 1)\n", prediction);
    std::printf("a step on a sentence of 12 units          %7.3f ms   (goal 50)\n", step);
    std::printf("the same with the first prediction after  %7.3f ms\n", first);
    std::printf("memory of the graphs                      %7.2f MB\n", double(keyboard.memory()) / 1e6);
    std::printf("resident memory, all                      %7.2f MB   (goal 16)\n",
                (resident() - before) / 1e6);
}
