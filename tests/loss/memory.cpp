// What a loss over a large vocabulary holds, and that it takes nothing in a step.
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
    REQUIRE(held < 32 + 12);  // the budget, and a few arrays of the size of the hidden states
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
    REQUIRE(m.g.guards_intact());
}

TEST_CASE("The augmented loss stays within the same budget", "[loss][memory]") {
    const bool differentiate = GENERATE(false, true);
    Large m;
    m.g.add<AugmentedLoss>("loss", {.differentiate_target = differentiate}, m.o, m.y);
    const double held = double(m.g.memory() - m.without_loss) / MiB;
    CAPTURE(differentiate, held);
    REQUIRE(held < 32 + 12);
}
