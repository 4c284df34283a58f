// Steps of Baum-Welch for benchmarks/peers/hmm.py:
//
//     peer_hmm STATES SYMBOLS START TEXTS ROUNDS
//
// START holds initial, transition and emission as doubles, TEXTS the length of the sequences and then all symbols, as
// 32-bit integers. Waits for a line before each step, which starts from START, and prints processor seconds
// and the log-likelihood before the step.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <isogloss/hmm/hmm.hpp>
#include <isogloss/threads.hpp>
#include <string>
#include <vector>

namespace {

using namespace isogloss;

template <class T> std::vector<T> numbers(const char* path) {
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    std::vector<T> all(static_cast<std::size_t>(in.tellg()) / sizeof(T));
    in.seekg(0);
    in.read(reinterpret_cast<char*>(all.data()), std::ssize(all) * std::ptrdiff_t{sizeof(T)});
    if (!in) throw DataError("cannot read '", path, "'");
    return all;
}

int work(char** argv) {
    threads(1);
    const Index N = std::atoll(argv[1]), A = std::atoll(argv[2]);
    const auto start = numbers<double>(argv[3]);
    const auto symbols = numbers<std::int32_t>(argv[4]);
    if (std::ssize(start) != N * (1 + N + A))
        throw DataError("'", argv[3], "' has ", start.size(), " numbers");
    std::vector<std::vector<Token>> texts;
    for (auto at = symbols.begin() + 1; at < symbols.end(); at += symbols[0])
        texts.emplace_back(at, at + symbols[0]);
    hmm::Hmm model({.states = N, .symbols = A});
    for (int round = std::atoi(argv[5]); round > 0 && std::getchar() == '\n'; --round) {
        const auto transition = start.begin() + N, emission = transition + N * N;
        model.set({start.begin(), transition}, {transition, emission}, {emission, start.end()});
        const std::clock_t begin = std::clock();
        const double likelihood = model.step(texts);
        std::printf("%.6f %.12g\n", double(std::clock() - begin) / CLOCKS_PER_SEC, likelihood);
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: peer_hmm STATES SYMBOLS START TEXTS ROUNDS\n");
        return 1;
    }
    try {
        return work(argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
