// Threads on one model: graphs that are built and run side by side on the same weights.
#include <isogloss/isogloss.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "threads.hpp"

using namespace isogloss;

namespace {

constexpr Index V = 300;

struct Model {
    Graph<float> g;
    Tokens x, y;
    Logits<float> o;
    Loss<float> l;

    template <class... Weights> explicit Model(GraphOptions options, const Weights&... weights)
        : g(options, weights...), x(g.tokens("x", V)), y(g.tokens("y", V)) {
        const auto E = g.weight("E", V, 40, uniform(0.3));
        auto h = g.add<Embedding>("embed", {.keep = 0.8}, x, E);
        h = g.add<Lstm>("lstm", {.units = 40, .keep = 0.8}, h);
        h = g.add<Gru>("gru", {.units = 40}, h);
        o = g.add<TiedSoftmax>("softmax", {}, h, E);
        l = g.add<CrossEntropy>("loss", {}, o, y);
    }
    // What a request asks for: the loss of a text, and the words that may follow.
    std::vector<double> answer(Token request) {
        std::vector<Token> text;
        for (Token i = 0; i < 9; ++i) text.push_back((request * 31 + i * i) % V);
        g.reset();
        std::vector<double> out = {
            g.forward(l, {x, TokenBlock{text.data(), 4, 2}}, {y, TokenBlock{text.data() + 1, 4, 2}})};
        for (const auto& column : top_k(g, o, 3))
            for (const Candidate& c : column) out.insert(out.end(), {double(c.word), c.log_probability});
        return out;
    }
};

}  // namespace

TEST_CASE("Four threads on one set of weights give the answers of one graph", "[races]") {
    const Threads restored(1);
    threads(GENERATE(1, 2));
    constexpr GraphOptions size{.time = 4, .batch = 2};
    Model owner(size);
    const bool packed = GENERATE(false, true);
    const auto weights = packed ? owner.g.packed_weights(Precision::int8) : owner.g.shared_weights();
    constexpr Token requests = 12;
    std::vector<std::vector<double>> alone, beside(requests);
    owner.g.training(false);
    Model one(size, weights);
    for (Token r = 0; r < requests; ++r) alone.push_back((packed ? one : owner).answer(r));
    std::vector<std::thread> workers;
    for (Token w = 0; w < 4; ++w)
        workers.emplace_back([&, w] {
            Model model(size, weights);  // built beside the others
            for (Token r = w; r < requests; r += 4) beside[static_cast<std::size_t>(r)] = model.answer(r);
        });
    for (auto& worker : workers) worker.join();
    CHECK(beside == alone);
    CHECK(alone[0] != alone[1]);
}

TEST_CASE("An owner steps while the graph on its weights waits, and goes before it", "[races]") {
    auto owner = std::make_unique<Model>(GraphOptions{.time = 4, .batch = 2});
    Model other({.time = 4, .batch = 2}, owner->g.shared_weights());
    std::vector<double> before, after;
    owner->answer(0);
    owner->g.backward(owner->l);
    Sgd<float> sgd(owner->g.parameters(), {.rate = 1});
    std::thread([&] { before = other.answer(1); }).join();
    sgd.step();
    owner->g.training(false);
    const auto stepped = owner->answer(1);
    std::thread([&] {
        owner.reset();
        after = other.answer(1);
    }).join();
    CHECK(after == stepped);
    CHECK(after != before);
}
