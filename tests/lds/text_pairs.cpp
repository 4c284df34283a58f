// Products that read the text, against those with its counts.
#include <isogloss/lds/text_pairs.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;
using texts::difference;

namespace {

template <class T> TallMatrix<T> random_block(Index rows, Index cols) {
    auto m = zeros<T>(rows, cols);
    const Random random(4, 9);
    for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] = static_cast<T>(random.normal(Index(i)));
    return m;
}

// Sentences of 1 to 12 words, each ended by token 0, two ends in a row among them.
std::vector<Token> sentences(Index tokens, Index V) {
    const Random random(2, 6);
    std::vector<Token> text = texts::markov(tokens, V);
    for (Index t = 0; t < tokens; t += 1 + random.below(t, 12)) text[std::size_t(t)] = 0;
    return text;
}

}  // namespace

TEMPLATE_TEST_CASE("Moments read off a text are those of its counts", "[lds][text_pairs]", float, double) {
    using T = TestType;
    const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
    const Index V = 15, columns = GENERATE(1, 64, 70);  // worked on 64 at a time
    const Token boundary = GENERATE(-1, 0);
    const auto tokens = sentences(3000, V);
    const CountOptions options{.lags = 5, .boundary = boundary};
    LagCounts counts(V, options);
    counts.add(tokens);
    const TextPairs text(tokens, V, options);
    REQUIRE(text.occurrences() == counts.occurrences());
    const LagMoments<T> stored(counts), read(text);
    REQUIRE(read.whitening().mu == stored.whitening().mu);
    REQUIRE(read.made_with().boundary == boundary);
    REQUIRE(read.pairs(1) == 0);
    const TallMatrix<T> x = random_block<T>(V, columns);
    for (Index k = 0; k <= 5; ++k) {
        TallMatrix<T> expected = zeros<T>(V, columns), found = expected, on_three = expected;
        stored.apply(k, ref(x), ref(expected));
        read.apply(k, ref(x), ref(found));
        CHECK(difference(found, expected) < tolerance);
        stored.apply_transposed(k, ref(x), ref(expected));
        read.apply_transposed(k, ref(x), ref(found));
        CHECK(difference(found, expected) < tolerance);
        threads(3);
        read.apply_transposed(k, ref(x), ref(on_three));
        threads(1);
        CHECK(std::equal(found.data(), found.data() + found.size(), on_three.data()));
    }
}

TEST_CASE("Sums over a text do not stop growing where floats would", "[lds][text_pairs]") {
    const std::vector<Token> tokens((std::size_t{1} << 25) + 1, 0);  // in float 2^24 + 1 is 2^24
    const TextPairs text(tokens, 1, {.lags = 1});
    const float one = 1;
    float sum = 0;
    text.product<false, float>(1, {&one, 1, 1}, 0, 1, {&sum, 1, 1});
    REQUIRE(sum == static_cast<float>(1 << 25));
}

TEST_CASE("Texts that have no pairs, or words outside the vocabulary, are refused", "[lds][text_pairs]") {
    const std::vector<Token> tokens = {1, 2, 0, 1, 0, 3, 2, 1, 0};
    REQUIRE_THROWS_MATCHES(TextPairs(tokens, 3), DataError, says("token 5 is 3", "3 words"));
    REQUIRE_THROWS_MATCHES(TextPairs(tokens, 4, {.lags = 0}), UsageError, says("lags = 0"));
    const TextPairs text(tokens, 4, {.lags = 7, .boundary = 0});
    REQUIRE(text.has_pairs(3));
    REQUIRE_FALSE(text.has_pairs(4));
    const LagMoments<double> psi(text);
    REQUIRE_NOTHROW(psi.require_pairs(3, "test"));
    REQUIRE_THROWS_MATCHES(psi.require_pairs(4, "test"), DataError, says("are 4 apart"));
    SmallMatrix x = zeros<double>(4, 2), y = x;
    REQUIRE_THROWS_MATCHES(psi.apply(8, ref(x), ref(y)), UsageError, says("lag = 8", "1 to 7"));
    const std::vector<Token> none;
    const TextPairs empty(none, 4);
    REQUIRE_THROWS_MATCHES(LagMoments<double>(empty), DataError, says("no tokens"));
}
