// What may run side by side: graphs in threads of their own, one graph on the library's threads, passes over
// one corpus. The preset tsan builds this folder alone; there the thread sanitizer reports every race.
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "threads.hpp"

using namespace isogloss;

namespace {

constexpr Index V = 600, T = 6, B = 8;

// Three steps of training, and a forward pass for the probabilities; every number that came out.
std::vector<double> trained(std::uint64_t seed) {
    Graph<float> g({.time = T, .batch = B, .seed = seed});
    auto x = g.tokens("x", V), y = g.tokens("y", V);
    auto E = g.weight("E", V, 48, uniform(0.1));
    auto h = g.add<Embedding>("embed", {.keep = 0.8}, x, E);
    h = g.add<Lstm>("lstm", {.units = 48, .keep = 0.8}, h);
    h = g.add<Gru>("gru", {.units = 48}, h);
    auto o = g.add<TiedSoftmax>("softmax", {}, h, E);
    auto l = g.add<AugmentedLoss>("loss", {.gamma = 0.65, .temperature = 20}, o, y, E);
    Adam<float> update(g.parameters(), {.rate = 0.01, .clip = 5});
    std::vector<Token> words(T * B + 1);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<Token>((i * i + seed) % V);
    std::vector<double> out;
    for (int step = 0; step < 3; ++step) {
        out.push_back(g.forward(l, {x, {words.data(), T, B}}, {y, {words.data() + 1, T, B}}));
        g.backward(l);
        out.push_back(update.step());
    }
    const auto p = g.head(o).probabilities();
    out.insert(out.end(), p.begin(), p.end());
    return out;
}

}  // namespace

TEST_CASE("Graphs in threads of their own compute what each computes alone", "[races]") {
    const Threads restored(1);
    const int count = GENERATE(1, 2);
    threads(count);
    const std::vector<double> alone[] = {trained(1), trained(2)};
    std::vector<double> beside[2];
    std::thread other([&] { beside[1] = trained(2); });
    beside[0] = trained(1);
    other.join();
    CHECK(beside[0] == alone[0]);
    CHECK(beside[1] == alone[1]);
}

TEST_CASE("A graph on the library's threads computes the same bits each time", "[races]") {
    const Threads restored(1);
    threads(4);
    const auto once = trained(3);
    CHECK(trained(3) == once);
}

TEST_CASE("Two passes over one corpus do not disturb each other", "[races]") {
    std::vector<Token> tokens(1000);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(i % V);
    const auto corpus = text::Corpus::from_tokens(tokens, V);
    const auto sum = [&corpus] {
        double total = 0;
        for (const text::Batch& batch : corpus.batches({.time = 7, .batch = 3}))
            for (Index i = 0; i < batch.input.time * 3; ++i)
                total += batch.input.data[i] * double(batch.target.data[i]);
        return total;
    };
    double beside = 0;
    std::thread other([&] { beside = sum(); });
    const double here = sum();
    other.join();
    CHECK(here == beside);
    CHECK(here > 0);
}
