#include <cmath>
#include <isogloss/evaluation.hpp>
#include <isogloss/evaluation/score_hypotheses.hpp>
#include <isogloss/isogloss.hpp>
#include <vector>

#include "catch.hpp"
#include "tolerance.hpp"

using namespace isogloss;

namespace {

using Text = std::vector<Token>;
constexpr Index V = 6;

template <class T> struct Net {
    Graph<T> g;
    Tokens x;
    Logits<T> o;
    Net(Index time, Index batch) : g({.time = time, .batch = batch, .seed = 4}), x(g.tokens("x", V)) {
        const auto E = g.weight("E", V, 5, uniform(1));
        auto h = g.template add<Embedding>("embed", {.keep = 0.5}, x, E);
        h = g.template add<Lstm>("lstm", {.units = 5, .keep = 0.5, .init = uniform(1)}, h);
        o = g.template add<TiedSoftmax>("softmax", {},
                                        g.template add<Gru>("gru", {.units = 5, .init = uniform(1)}, h), E);
    }
    // One token at a time.
    double alone(const Text& text) {
        g.training(false);
        g.reset();
        double sum = 0;
        for (std::size_t t = 0; t + 1 < text.size(); ++t) {
            g.forward(o, {x, std::span(text).subspan(t, 1)});
            sum += static_cast<double>(g.head(o).log_probabilities()(0, std::size_t(text[t + 1])));
        }
        return sum;
    }
};

// Texts of up to 12 tokens of which many begin alike, some end within others, and some are the same.
std::vector<Text> some_texts(std::uint64_t seed, std::size_t count) {
    const Random random(seed, 1);
    std::vector<Text> texts = {{0}, {0, 1}, {0, 1}, {3}};
    Index place = 0;
    while (texts.size() < count) {
        Text text = texts[std::size_t(random.below(place++, std::ssize(texts)))];
        text.resize(1 + std::size_t(random.below(place++, std::ssize(text))));
        for (Index more = random.below(place++, 6); more > 0 && text.size() < 12; --more)
            text.push_back(static_cast<Token>(random.below(place++, V)));
        texts.push_back(text);
    }
    return texts;
}

}  // namespace

TEMPLATE_TEST_CASE("Texts scored together have the probabilities they have one by one",
                   "[metric][hypotheses]", float, double) {
    const Index time = GENERATE(1, 3, 20), batch = GENERATE(1, 4, 50);
    const std::uint64_t seed = GENERATE(1u, 2u, 3u);
    Net<TestType> net(time, batch);
    const auto texts = some_texts(seed, 30);
    const auto scores = score_hypotheses(net.g, net.x, net.o, std::span<const Text>(texts));
    REQUIRE(scores.log_probability.size() == texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
        CAPTURE(time, batch, seed, i);
        CHECK(scores.log_probability[i] == to_rounding<TestType>(net.alone(texts[i]), 1e-4, 1e-12));
    }
}

TEST_CASE("What texts have in common is read once", "[metric][hypotheses]") {
    Net<double> net(20, 8);
    const auto positions = [&](const std::vector<Text>& texts) {
        return score_hypotheses(net.g, net.x, net.o, std::span<const Text>(texts)).positions;
    };
    CHECK(positions({{0, 1, 2, 3, 4}}) == 4);
    CHECK(positions({{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}) == 4);
    CHECK(positions({{0, 1, 2, 3, 4}, {0, 1, 2}}) == 4);
    CHECK(positions({{0, 1, 2, 3, 4, 5}, {0, 1, 2, 4, 4, 5}}) == 3 + 2 * 2);  // 0 1 2, then 3 4 and 4 4
    CHECK(positions({{0, 1, 2, 3}, {0, 1, 2, 4}}) == 3);                      // both from the row after 2
    CHECK(positions({{0, 1, 2, 3}, {5, 1, 2, 4}}) == 2 * 3);
    // One of four ends after a step; the others go on in three columns. Of five, the two that have ended are not a quarter
    // before the second does.
    CHECK(positions({{0, 1}, {1, 1, 2}, {2, 1, 2}, {3, 1, 2}}) == 2 * 4);
    CHECK(positions({{0, 1}, {1, 1}, {2, 1, 2}, {3, 1, 2}, {4, 1, 2}}) == 5 + 3);
    CHECK(positions({{0}, {1}}) == 0);
    CHECK(positions({}) == 0);
}

TEST_CASE("Mode and states of the graph are as before", "[metric][hypotheses]") {
    Net<double> net(3, 2);
    const Text words = {1, 2, 3, 4};
    net.g.forward(net.o, {net.x, TokenBlock{words.data(), 2, 2}});
    const auto before = net.g.states().saved();
    const auto texts = some_texts(1, 10);
    score_hypotheses(net.g, net.x, net.o, std::span<const Text>(texts));
    CHECK(net.g.training());
    CHECK(net.g.states().saved() == before);
}

TEST_CASE("Texts that cannot be scored are refused before anything runs", "[metric][hypotheses][errors]") {
    Net<float> net(3, 2);
    const auto score = [&](const std::vector<Text>& texts) {
        return score_hypotheses(net.g, net.x, net.o, std::span<const Text>(texts));
    };
    REQUIRE_THROWS_AS(score({{0, 1}, {}}), DataError);
    REQUIRE_THROWS_AS(score({{0, 1, 6}}), DataError);
    REQUIRE_THROWS_AS(score({{-1}}), DataError);
}
