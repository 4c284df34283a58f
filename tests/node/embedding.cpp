#include <isogloss/loss/augmented.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/softmax.hpp>
#include <set>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

namespace {

// Two columns in which words come more than once: 2 1 / 0 1 / 2 3 / 2 1
constexpr Index T = 4, B = 2, V = 6, n = 3;
const std::vector<Token> words = {2, 1, 0, 1, 2, 3, 2, 1};

struct Lookup {
    Graph<double> g{{.time = T, .batch = B, .seed = 4}};
    Tokens x = g.tokens("x", V);
    Weight<double> E = g.weight("E", V, n, uniform(1));
    Seq<double> w = g.input("w", n), y;
    Loss<double> l;

    explicit Lookup(Embedding<double>::Options options) {
        y = g.add<Embedding>("embed", options, x, E);
        l = g.add<Dot>("loss", {}, w, y);
    }
    double at(Index t, Index b, Index j) { return g.value(y)(std::size_t(t * B + b), std::size_t(j)); }
    double entry(Token word, Index j) { return g.value(E)(std::size_t(word), std::size_t(j)); }
    void forward() { g.forward(y, {x, {words.data(), T, B}}); }
    // What each entry of the output has been multiplied with.
    Numbers factors() {
        Numbers f;
        for (Index i = 0; i < T * B * n; ++i)
            f.push_back(at(i / n / B, i / n % B, i % n) / entry(words[std::size_t(i / n)], i % n));
        return f;
    }
};

}  // namespace

TEST_CASE("Embedding obeys the laws of a node", "[node][embedding]") {
    const double keep = GENERATE(1., 0.6), keep_words = GENERATE(1., 0.5);
    CAPTURE(keep, keep_words);
    REQUIRE(laws([=](auto& g) {
                const auto x = g.tokens("x", V);
                const auto E = g.weight("E", V, n, uniform(1));
                return check::probe(
                    g, g.template add<Embedding>("embed", {.keep = keep, .keep_words = keep_words}, x, E));
            }) == "");
}

TEST_CASE("Embedding hands out rows of its table", "[node][embedding]") {
    Lookup m({});
    m.forward();
    for (Index r = 0; r < T * B; ++r)
        for (Index j = 0; j < n; ++j) REQUIRE(m.at(r / B, r % B, j) == m.entry(words[std::size_t(r)], j));
}

TEST_CASE("Embedding touches the gradient of the rows it looked up and of no other", "[node][embedding]") {
    Lookup m({});
    const Numbers w = numbers(T * B * n, 8);
    m.g.forward(m.l, {m.x, {words.data(), T, B}}, {m.w, w.data(), T, B});
    m.g.backward(m.l);
    const auto& p = m.g.parameter("E");
    REQUIRE(p.condition == Parameter<double>::Condition::rows);
    REQUIRE(std::set<Index>(p.touched.begin(), p.touched.end()) == std::set<Index>{0, 1, 2, 3});

    Numbers expected(V * n);
    for (std::size_t i = 0; i < w.size(); ++i) expected[std::size_t(words[i / n] * n) + i % n] += w[i];
    REQUIRE(apart(gradient(m.g, "E"), expected) < 1e-15);
}

TEST_CASE("Embedding keeps one mask over all steps of a pass", "[node][embedding]") {
    Lookup m({.keep = 0.5});
    std::set<Numbers> masks;
    for (int pass = 0; pass < 5; ++pass) {
        m.forward();
        const Numbers f = m.factors();
        for (std::size_t i = 0; i < f.size(); ++i) {
            REQUIRE((f[i] == 0 || f[i] == Approx(2)));
            REQUIRE(f[i] == Approx(f[i % std::size_t(B * n)]));
        }
        masks.insert(Numbers(f.begin(), f.begin() + B * n));
    }
    REQUIRE(masks.size() > 2);  // other passes, other masks
}

TEST_CASE("Embedding drops a word everywhere in a column or nowhere", "[node][embedding]") {
    Lookup m({.keep_words = 0.5});
    std::set<Numbers> drawn;
    bool columns_differ = false;
    for (int pass = 0; pass < 20; ++pass) {
        m.forward();
        const Numbers f = m.factors();
        Numbers of_word(B * V, -1);
        for (std::size_t i = 0; i < f.size(); ++i) {
            REQUIRE((f[i] == 0 || f[i] == Approx(2)));
            double& first = of_word[i / n % B * V + std::size_t(words[i / n])];
            if (first < 0) first = f[i];
            REQUIRE(f[i] == Approx(first));
        }
        drawn.insert(of_word);
        // a token that occurs in both columns is drawn for each
        m.g.forward(m.y, {m.x, {std::vector<Token>{5, 5}.data(), 1, 2}});
        columns_differ = columns_differ || (m.at(0, 0, 0) == 0) != (m.at(0, 1, 0) == 0);
    }
    REQUIRE(drawn.size() > 10);
    REQUIRE(columns_differ);
}

TEST_CASE("Embedding has the right mean in training and drops nothing in evaluation", "[node][embedding]") {
    Lookup m({.keep = 0.7, .keep_words = 0.8});
    constexpr int passes = 4000;
    Numbers mean(T * B * n);
    for (int pass = 0; pass < passes; ++pass) {
        m.forward();
        const Numbers f = m.factors();
        for (std::size_t i = 0; i < f.size(); ++i) mean[i] += f[i] / passes;
    }
    // variance of a factor: 1 / (0.7 · 0.8) - 1
    for (const double f : mean) REQUIRE(f == Approx(1).margin(5 * std::sqrt(0.79 / passes)));
    m.g.training(false);
    m.forward();
    for (const double f : m.factors()) REQUIRE(f == 1);
}

TEST_CASE("Embedding refuses what does not fit and leaves the graph as it was", "[node][embedding]") {
    Graph<double> g({.time = 2, .batch = 2});
    const auto x = g.tokens("x", 6), y = g.tokens("y", 5);
    const auto E = g.weight("E", 5, 3, uniform(1));
    REQUIRE_THROWS_MATCHES(g.add<Embedding>("embed", {}, x, E), UsageError, says("node 'embed'"));

    // y still may hold positions without a target, and E still is no embedding table
    const auto h = g.input("h", 3);
    const auto o = g.add<TiedSoftmax>("softmax", {}, h, E);
    REQUIRE_THROWS_AS(g.add<AugmentedLoss>("loss", {}, o, y), UsageError);
    const auto l = g.add<CrossEntropy>("loss", {}, o, y);
    const Numbers in(3);
    REQUIRE(g.forward(l, {h, in.data(), 1, 1}, {y, {std::vector<Token>{not_predicted}.data(), 1, 1}}) == 0);
    // and the name is free
    g.forward(g.add<Embedding>("embed", {}, y, E), {y, {std::vector<Token>{4}.data(), 1, 1}});
}
