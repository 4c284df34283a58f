// Graphs on the weights of another, and graphs for evaluation alone.
#include <filesystem>
#include <isogloss/io/checkpoint.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/update/dynamic.hpp>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

constexpr Index V = 7, T0 = 5, B = 2;

/// A model with every kind of memory that only training needs: masks of three schemes, moduli, staged gradients.
template <class T> struct Net {
    Graph<T> g;
    Tokens x, y;
    Weight<T> E;
    Seq<T> h;
    Logits<T> o;
    Loss<T> l;

    template <class... Weights> explicit Net(GraphOptions options, const Weights&... weights)
        : g(options, weights...),
          x(g.tokens("x", V)),
          y(g.tokens("y", V)),
          E(g.weight("E", V, 4, uniform(0.5))),
          h(g.template add<Embedding>("embed", {.keep = 0.7, .keep_words = 0.8}, x, E)) {
        h = g.template add<Lstm>("lstm", {.units = 4, .keep = 0.7}, h);
        h = g.template add<Gru>("gru", {.units = 4, .keep = 0.7, .scheme = DropoutScheme::gal}, h);
        h = g.template add<Dropout>("between", {.keep = 0.7}, h);
        h = g.template add<Rhn>("rhn", {.units = 4, .depth = 2, .keep = 0.7}, h);
        h = g.template add<Qrnn>("qrnn", {.units = 4, .keep = 0.7}, h);
        o = g.template add<TiedSoftmax>("softmax", {.bias = true}, h, E);
        l = g.template add<AugmentedLoss>("loss", {.gamma = 0.65}, o, y, E);
    }
    std::vector<T> pass() {
        const std::vector<Token> words = {0, 1, 2, 3, 4, 5, 6, 0, 1, 3},
                                 next = {2, 3, 4, -1, 6, 0, 1, 2, 0, 5};
        g.reset();
        const double nats =
            g.forward(l, {x, TokenBlock{words.data(), T0, B}}, {y, TokenBlock{next.data(), T0, B}});
        const auto p = g.head(o).log_probabilities();
        std::vector<T> all(p.begin(), p.end());
        all.push_back(static_cast<T>(nats));
        return all;
    }
    std::vector<T> evaluated() {
        g.training(false);
        return pass();
    }
};

constexpr GraphOptions sizes{.time = T0, .batch = B, .seed = 5};

template <class G> std::vector<double> states(G& g) {
    std::vector<double> all;
    for (const auto& one : g.states().saved().values) all.insert(all.end(), one.begin(), one.end());
    return all;
}

}  // namespace

TEMPLATE_TEST_CASE("A graph on shared weights computes the bits of their owner, also after a step of it",
                   "[graph][inference]", float, double) {
    Net<TestType> owner(sizes);
    Net<TestType> other({.time = T0, .batch = B, .seed = 99}, owner.g.shared_weights());
    Net<TestType> third(sizes, other.g.shared_weights());  // shares what the other one shares
    CHECK(other.g.options().seed == 5);
    CHECK(&other.g.value(other.E)(0, 0) == &owner.g.value(owner.E)(0, 0));
    CHECK(other.g.memory() < owner.g.memory());

    const auto before = owner.evaluated();
    CHECK(other.pass() == before);
    CHECK(third.pass() == before);
    owner.g.training(true);
    Sgd<TestType> sgd(owner.g.parameters(), {.rate = 0.5});
    owner.pass();
    owner.g.backward(owner.l);
    sgd.step();
    const auto after = owner.evaluated();
    CHECK(after != before);
    CHECK(other.pass() == after);
    CHECK(graph::Inspect::store(other.g).arena.guards_intact());
}

TEST_CASE("Graphs on the same weights have states of their own, and any size", "[graph][inference]") {
    Net<double> owner(sizes);
    owner.evaluated();
    const auto before = states(owner.g);
    Net<double> one({.time = 1, .batch = 1}, owner.g.shared_weights());
    const auto whole = owner.g.head(owner.o).log_probabilities();
    for (const Token word : {0, 2, 4, 6, 1}) one.g.forward(one.o, {one.x, std::vector<Token>{word}});
    const auto last = one.g.head(one.o).log_probabilities();
    for (std::size_t v = 0; v < V; ++v) CHECK(last(0, v) == Approx(whole(8, v)).epsilon(1e-12));
    CHECK(states(owner.g) == before);
    CHECK(states(one.g).size() == before.size() / 2);
}

TEST_CASE("Shared weights outlive the graph that had them", "[graph][inference]") {
    std::optional<Net<float>> owner;
    owner.emplace(sizes);
    const auto expected = owner->evaluated();
    std::optional<SharedWeights<float>> weights = owner->g.shared_weights();
    Net<float> before(sizes, *weights);
    owner.reset();
    Net<float> after(sizes, *weights);
    weights.reset();
    CHECK(before.pass() == expected);
    CHECK(after.pass() == expected);
}

TEST_CASE("Weights that are temporary are so in every graph on them", "[graph][inference][errors]") {
    std::optional<Net<double>> owner;
    owner.emplace(sizes);
    Net<double> other(sizes, owner->g.shared_weights());
    Net<double> third(sizes, other.g.packed_weights());
    WeightAverage<double> average(owner->g.parameters());
    const std::string file = "shared_weights.temporary.safetensors";
    const auto refused = [&](const std::string& whose) {
        for (auto* g : {&other.g, &third.g})
            REQUIRE_THROWS_MATCHES(io::Checkpoint().model(*g).save(file), UsageError, says(whose));
        REQUIRE_THROWS_MATCHES(average.add(), UsageError, says(whose));
        for (auto* g : {&owner->g, &other.g, &third.g})
            REQUIRE_THROWS_MATCHES(g->packed_weights(), UsageError, says(whose));
        CHECK_FALSE(std::filesystem::exists(file));
    };
    WeightDrop<double> drop(owner->g.parameters("lstm.U"), {.keep = 0.5});
    {
        const WeightDrop<double>::Dropped dropped(drop);
        refused("'lstm.U'");
    }
    average.add();
    {
        DynamicUpdate<double> update(owner->g.parameters("gru.*"),
                                     {.rule = DynamicRule::sgd, .rate = 0.1, .decay = 0});
        owner->pass();
        owner->g.backward(owner->l);
        update.step();
        refused("'gru.");
        update.restore();
    }
    average.add();
    CHECK(other.g.packed_weights().packed_bytes() > 0);
    owner.reset();  // who marks them no more
    average.add();
}

TEST_CASE("What does not fit the shared weights is said, and leaves the graph as it was",
          "[graph][inference][errors]") {
    Graph<float> owner({.time = 2, .batch = 1});
    owner.weight("E", 5, 3, uniform(0.1));
    owner.add<Lstm>("lstm", {.units = 2}, owner.input("u", 3));
    const auto weights = owner.shared_weights();

    Graph<float> g({.time = 2, .batch = 1}, weights);
    const auto u = g.input("u", 3), wide = g.input("wide", 4);
    const std::size_t memory = g.memory();
    REQUIRE_THROWS_AS(g.weight("E", 5, 4, uniform(0.1)), UsageError);
    REQUIRE_THROWS_AS(g.weight("F", 5, 3, uniform(0.1)), UsageError);
    REQUIRE_THROWS_MATCHES(g.add<Lstm>("lstm", {.units = 2}, wide), UsageError, says("'lstm.W'"));
    REQUIRE_THROWS_AS(g.weight("E", 5, 3, uniform(0.1), {.unit_rows = true}), UsageError);
    CHECK(g.memory() == memory);
    CHECK(graph::Inspect::store(g).parameters.empty());
    g.add<Lstm>("lstm", {.units = 2}, u);
    g.weight("E", 5, 3, uniform(0.1));

    Graph<float> normed({.time = 1, .batch = 1});
    normed.weight("E", 2, 3, uniform(0.1), {.unit_rows = true});
    Graph<float> follows({.time = 1, .batch = 1}, normed.shared_weights());
    follows.weight("E", 2, 3, uniform(0.1), {.unit_rows = true});
}

TEMPLATE_TEST_CASE("A graph without gradients evaluates to the bits of one with them", "[graph][inference]",
                   float, double) {
    Net<TestType> trained(sizes);
    GraphOptions options = sizes;
    options.gradients = false;
    options.precision = Precision::bf16;  // of training alone, and so no matter in double either
    Net<TestType> net(options);
    CHECK_FALSE(net.g.options().gradients);
    CHECK_FALSE(net.g.training());
    CHECK(net.g.options().precision == Precision::full);
    CHECK(net.pass() == trained.evaluated());
    CHECK(net.pass() == trained.evaluated());
    CHECK(net.g.training_step() == 0);
    CHECK(graph::Inspect::store(net.g).arena.guards_intact());
}

TEST_CASE("A graph without gradients refuses what needs them", "[graph][inference][errors]") {
    Net<float> net({.time = T0, .batch = B, .gradients = false});
    net.pass();
    REQUIRE_THROWS_AS(net.g.training(true), UsageError);
    REQUIRE_THROWS_AS(net.g.backward(net.l), UsageError);
    REQUIRE_THROWS_AS(net.g.gradient(net.E), UsageError);
    REQUIRE_THROWS_AS(Sgd<float>(net.g.parameters(), {}), UsageError);
}
