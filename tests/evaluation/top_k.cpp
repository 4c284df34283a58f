#include <algorithm>
#include <cmath>
#include <isogloss/isogloss.hpp>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE(
    "The k most probable words are those of all probabilities, in each column of the last step",
    "[graph][top_k]", float, double) {
    using T = TestType;
    constexpr Index V = 11, B = 3;
    Graph<T> g({.time = 2, .batch = B, .gradients = false});
    const auto u = g.input("u", 4);
    const auto o = g.template add<Softmax>("o", {.vocabulary = V, .init = uniform(1)}, u);
    const Numbers in = numbers(2 * B * 4, 3);
    const std::vector<T> values(in.begin(), in.end());
    g.forward(o, {u, values.data(), 2, B});
    const auto p = g.head(o).probabilities();
    const Index k = GENERATE(1, 4, 11);
    const auto best = top_k(g, o, k);
    REQUIRE(best.size() == B);
    for (std::size_t b = 0; b < B; ++b) {
        REQUIRE(std::ssize(best[b]) == k);
        const auto one =
            top_k(g, o, k, static_cast<Index>(b));  // a product of one row, in sums of another order
        REQUIRE(one.size() == best[b].size());
        for (std::size_t i = 0; i < one.size(); ++i) {
            CHECK(one[i].word == best[b][i].word);
            CHECK(one[i].log_probability == Approx(best[b][i].log_probability).epsilon(1e-5));
        }
        std::vector<T> row(&p(B + b, 0), &p(B + b, 0) + V);  // of the second step
        for (const Candidate& c : best[b])
            CHECK(std::exp(c.log_probability) ==
                  Approx(row[std::size_t(c.word)]).epsilon(sizeof(T) == 4 ? 1e-5 : 1e-12));
        std::vector<T> found;
        for (const Candidate& c : best[b]) found.push_back(row[std::size_t(c.word)]);
        std::sort(row.rbegin(), row.rend());
        row.resize(found.size());
        CHECK(found == row);
    }
}

TEST_CASE("Of equal words the first comes first, and improbable ones keep their logarithm",
          "[graph][top_k]") {
    const std::vector<double> log_p = {-3, -1, -2000, -1, -1};
    const std::vector<Candidate> expected = {{1, -1}, {3, -1}, {4, -1}, {0, -3}, {2, -2000}};
    CHECK(top_k(5, log_p.data(), 5) == expected);
    CHECK(top_k(5, log_p.data(), 2) == std::vector<Candidate>{{1, -1}, {3, -1}});
}

TEST_CASE("top_k refuses numbers of words and columns that there are not", "[graph][top_k][errors]") {
    Graph<float> g({.time = 1, .batch = 3});
    const auto u = g.input("u", 1);
    const auto o = g.add<Softmax>("o", {.vocabulary = 4}, u);
    REQUIRE_THROWS_AS(top_k(g, o, 1), UsageError);
    REQUIRE_THROWS_AS(top_k(g, o, 1, 0), UsageError);
    REQUIRE_THROWS_AS(top_k(g, Logits<float>(), 1), UsageError);
    REQUIRE_THROWS_AS(top_k(g, Logits<float>(), 1, 0), UsageError);
    const std::vector<float> values = {1, 2};
    g.forward(o, {u, values.data(), 1, 2});
    REQUIRE_THROWS_AS(top_k(g, o, 0), UsageError);
    REQUIRE_THROWS_AS(top_k(g, o, 5, 1), UsageError);
    REQUIRE_THROWS_AS(top_k(g, o, 1, 2), UsageError);
    REQUIRE_THROWS_MATCHES(top_k(g, o, 1, -1), UsageError, says("column = -1"));
    // Logits beyond the range of the type, of finite inputs and weights: what to do is said.
    g.parameter("o.W").value[0] = 3e38f;
    const std::vector<float> large = {10, 10};
    g.forward(o, {u, large.data(), 1, 2});
    REQUIRE_THROWS_AS(top_k(g, o, 1), NumericError);
}
