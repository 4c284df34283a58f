#include <cmath>
#include <isogloss/counts/pair_entropy.hpp>
#include <map>

#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::counts;

namespace {

double entropy_of(const std::vector<Token>& text, Index V, Index lags, Index window = 0) {
    LagCounts counts(V, {.lags = lags});
    counts.add(text);
    return pair_entropy(counts, window);
}

}  // namespace

TEST_CASE("The entropy of pairs is that of all neighbours, listed by two loops", "[counts][pair_entropy]") {
    const auto text = texts::markov(3000, 9);
    for (const Index window : {1, 2, 5}) {
        std::map<std::pair<Token, Token>, double> n;
        double all = 0;
        for (Index t = 0; t < std::ssize(text); ++t)
            for (Index d = -window; d <= window; ++d)
                if (d != 0 && t + d >= 0 && t + d < std::ssize(text))
                    n[{text[std::size_t(t)], text[std::size_t(t + d)]}] += 1, all += 1;
        double H = 0;
        for (const auto& [pair, c] : n) H -= c / all * std::log(c / all);
        CHECK(entropy_of(text, 9, 5, window) == Approx(H).epsilon(1e-12));
        CHECK(entropy_of(text, 9, window) == Approx(H).epsilon(1e-12));
    }
}

TEST_CASE("Two words in turn have ln 2, and as many pairs alike from a window of two",
          "[counts][pair_entropy]") {
    std::vector<Token> text;
    for (int t = 0; t < 1001; ++t) text.push_back(t % 2);
    CHECK(entropy_of(text, 2, 1) == Approx(std::log(2.0)));
    CHECK(entropy_of(text, 2, 2) == Approx(std::log(4.0)).epsilon(1e-5));
    CHECK(entropy_of({0, 0, 0}, 1, 1) == 0);
}

TEST_CASE("The entropy of pairs needs a pair, and a window that was counted", "[counts][pair_entropy]") {
    LagCounts counts(3, {.lags = 2});
    REQUIRE_THROWS_MATCHES(pair_entropy(counts), DataError, says("no pair"));
    counts.add(std::vector<Token>{0, 1, 2});
    REQUIRE_THROWS_MATCHES(pair_entropy(counts, 3), UsageError, says("window = 3", "0 to 2"));
    REQUIRE_THROWS_MATCHES(pair_entropy(counts, -1), UsageError, says("window = -1"));
}
