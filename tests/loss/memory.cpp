// What a loss over a large vocabulary holds, and that it takes nothing in a step.
#include <array>
#include <isogloss/loss/augmented.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/update/sgd.hpp>

#include "allocations.hpp"
#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

constexpr Index T = 35, B = 160, V = 33278, n = 200;
constexpr double MiB = 1024.0 * 1024;

struct Large {
    Graph<float> g{{.time = T, .batch = B}};
    Tokens x = g.tokens("x", V), y = g.tokens("y", V);
    Weight<float> E = g.weight("E", V, n, constant(0.01));
    Logits<float> o = g.add<TiedSoftmax>("head", {}, g.add<Embedding>("embed", {}, x, E), E);
    std::size_t without_loss = g.memory();
};

}  // namespace

TEST_CASE("A step of 5600 tokens over 33278 words holds one block of logits and allocates nothing",
          "[loss][memory]") {
    Large m;
    const auto l = m.g.add<CrossEntropy>("loss", {}, m.o, m.y);
    const double held = double(m.g.memory() - m.without_loss) / MiB,
                 logits = double(T * B * V * Index{sizeof(float)}) / MiB;
    CAPTURE(held, logits);
    REQUIRE(held <= 32);
    REQUIRE(logits > 700);

    auto& table = m.g.parameter("E");
    const Random random(1, 1);
    std::vector<Token> x, y;
    for (Index i = 0; i < T * B; ++i) {
        x.push_back(static_cast<Token>(random.below(2 * i, V)));
        y.push_back(static_cast<Token>(random.below(2 * i + 1, V)));
    }
    for (Index i = 0; i < V; ++i) table.value[i * n + i % n] = static_cast<float>(i) / V;
    Sgd<float> sgd(m.g.parameters(), {.rate = 0.1, .clip = 5});

    const std::size_t before = allocations();
    const double loss = m.g.forward(l, {m.x, {x.data(), T, B}}, {m.y, {y.data(), T, B}});
    m.g.backward(l);
    const double norm = sgd.step();
    const std::size_t taken = allocations() - before;
    REQUIRE(taken == 0);
    REQUIRE(loss / double(T * B) == Approx(std::log(double(V))).margin(0.1));
    REQUIRE((std::isfinite(norm) && norm > 0));
    REQUIRE(graph::Inspect::store(m.g).arena.guards_intact());
}

TEST_CASE("Nor with sampled gradients and a packed table, down to the last bytes", "[loss][memory]") {
    const int kind =
        GENERATE(0, 1, 2, 3);  // cross-entropy, augmented, with a table of its own, with a wide one
    for (const Precision precision : {Precision::full, Precision::bf16})
        for (const double epsilon : {1e-300, 1. / 256, 0.2})
            for (Index budget = 60'000; budget <= 400'000; budget += 9'001) {
                Graph<float> g(
                    {.time = 300, .batch = 1, .budget = budget, .precision = precision, .epsilon = epsilon});
                const auto y = g.tokens("y", 60);
                const auto E = g.weight("E", 60, 8, constant(0));
                const auto e = g.add<Embedding>("embed", {}, y, E);
                const auto wide = g.weight("wide", 60, 70, constant(0));
                const auto o = kind >= 2 ? g.add<Softmax>("head", {.vocabulary = 60}, e)
                                         : g.add<TiedSoftmax>("head", {}, e, E);
                const std::size_t before = g.memory();
                if (kind == 0) g.add<CrossEntropy>("loss", {}, o, y);
                else if (kind == 1) g.add<AugmentedLoss>("loss", {}, o, y);
                else g.add<AugmentedLoss>("loss", {}, o, y, kind == 2 ? E : wide);
                CAPTURE(kind, precision == Precision::bf16, epsilon, budget, g.memory() - before);
                REQUIRE(static_cast<Index>(g.memory() - before) <= budget);
            }
}

TEST_CASE("In bfloat16 the budget is 3/2 of a large table unless it is given", "[loss][memory]") {
    const auto held = [](Precision precision, std::optional<Index> budget, bool second = false) {
        Graph<float> g({.time = 256, .batch = 1, .budget = budget, .precision = precision});
        const auto y = g.tokens("y", 100'000);
        const auto E = g.weight("E", 100'000, 100, constant(0));
        const auto h = g.add<Embedding>("embed", {}, y, E);
        const auto o = second ? g.add<Softmax>("head", {.vocabulary = 100'000, .init = constant(0)}, h)
                              : g.add<TiedSoftmax>("head", {}, h, E);
        const std::size_t before = g.memory();
        if (second) g.add<AugmentedLoss>("loss", {}, o, y, E);
        else g.add<CrossEntropy>("loss", {}, o, y);
        return static_cast<Index>(g.memory() - before);
    };
    const Index least = Index{32} << 20, table = 100'000 * 100 * Index{sizeof(float)};
    CHECK(held(Precision::full, {}) <= least);
    CHECK(held(Precision::bf16, {}) > least);
    CHECK(held(Precision::bf16, {}) <= table / 2 * 3);
    CHECK(held(Precision::bf16, least) <= least);
    // With a second table the budget is 3/2 of both.
    CHECK(held(Precision::full, {}, true) <= least);
    CHECK(held(Precision::bf16, {}, true) > least);
    CHECK(held(Precision::bf16, {}, true) <= 3 * table);
    CHECK(held(Precision::bf16, least, true) <= least);
}

TEST_CASE("What a loss holds never exceeds the budget", "[loss][memory]") {
    const int kind = GENERATE(0, 1, 2);  // cross-entropy, augmented, with the target differentiated
    const Index budget = GENERATE(Index{2} << 20, Index{16} << 20, Index{32} << 20);
    for (const auto& [rows, words, width] : {std::array<Index, 3>{128, 200000, 20},
                                             {5600, 33278, 65},
                                             {700, 10000, 300},
                                             {20000, 500, 100},
                                             {1, 50, 7}}) {
        Graph<float> g({.time = rows, .batch = 1, .budget = budget});
        const auto y = g.tokens("y", words);
        const auto E = g.weight("E", words, width, constant(0));
        const auto o = g.add<TiedSoftmax>("head", {}, g.add<Embedding>("embed", {}, y, E), E);
        const std::size_t before = g.memory();
        if (kind == 0) g.add<CrossEntropy>("loss", {}, o, y);
        else g.add<AugmentedLoss>("loss", {.differentiate_target = kind == 2}, o, y);
        const auto held = static_cast<Index>(g.memory() - before);
        CAPTURE(kind, budget, rows, words, width, held);
        // One row of a large vocabulary may exceed a small budget: then it is that row, its arrays and little
        // else.
        const Index row = Index{sizeof(float)} * words * (kind == 0 ? 1 : kind == 1 ? 3 : 5);
        REQUIRE(held <= std::max(budget, 2 * row));
    }
}
