#include <isogloss/lds/exact.hpp>
#include <isogloss/lds/text_filter.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::lds;
using texts::difference;

namespace {

std::vector<Token> long_text() {
    std::vector<Token> text;
    for (const Token t : texts::markov(300, 6, 3)) text.push_back(t);
    return text;
}

}  // namespace

TEMPLATE_TEST_CASE("Far from the ends of a text, states are those of the exact filter and smoother",
                   "[lds][filter]", float, double) {
    const double tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-10;
    const auto s = texts::recorded<TestType>();
    const auto text = long_text();
    const auto exact = exact_smoother<TestType>(s, text);
    const TextFilter<TestType> filter(s, steady_state(s));
    const auto filtered = filter.filter(text), smoothed = filter.smooth(text);
    double most = 0;
    for (std::size_t t = 60; t < 240; ++t)
        for (std::size_t j = 0; j < 2; ++j) {
            most = std::max(most, std::abs(double(filtered(t, j)) - exact.filtered(t, j)));
            most = std::max(most, std::abs(double(smoothed(t, j)) - exact.smoothed(t, j)));
        }
    CHECK(most < tolerance);
    CHECK(filter.log_likelihood(text) == Approx(exact.statistics.log_likelihood).margin(1e-2));
}

TEMPLATE_TEST_CASE("Sentences side by side, one after the other, and token by token have the same states",
                   "[lds][filter]", float, double) {
    using T = TestType;
    const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
    const auto s = texts::recorded<T>();
    const TextFilter<T> filter(s, steady_state(s));
    const auto text = long_text();
    std::vector<std::span<const Token>> sentences;
    const std::size_t cuts[] = {0, 7, 7, 8, 40, 300};
    for (int i = 0; i < 5; ++i) sentences.push_back(std::span(text).subspan(cuts[i], cuts[i + 1] - cuts[i]));
    const auto filtered = filter.filter(sentences), smoothed = filter.smooth(sentences);
    REQUIRE(rows(filtered) == 300);
    std::size_t at = 0;
    for (const auto& one : sentences) {
        const auto alone = filter.smooth(one);
        std::vector<T> state(2, T(0));
        for (std::size_t t = 0; t < one.size(); ++t, ++at) {
            filter.step(one[t], state);
            for (std::size_t j = 0; j < 2; ++j) {
                CHECK(std::abs(filtered(at, j) - state[j]) <= tolerance);
                CHECK(std::abs(smoothed(at, j) - alone(t, j)) <= tolerance);
            }
        }
        if (!one.empty()) CHECK(smoothed(at - 1, 0) == filtered(at - 1, 0));
    }
}

TEST_CASE("The filter refuses tokens and states that are none of its own", "[lds][filter]") {
    const auto s = texts::recorded<double>();
    const TextFilter<double> filter(s, steady_state(s));
    std::vector<double> state(3);
    REQUIRE_THROWS_MATCHES(filter.step(0, state), UsageError, says("3 numbers", "expected 2"));
    const std::vector<Token> outside = {0, 6};
    REQUIRE_THROWS_MATCHES(filter.filter(outside), DataError, says("token 6"));
    REQUIRE_THROWS_MATCHES(filter.smooth(outside), DataError, says("token 6"));
    REQUIRE_THROWS_MATCHES(filter.log_likelihood(std::vector<Token>{}), DataError, says("without tokens"));
    CHECK(filter.filter(std::vector<Token>{}).size() == 0);
}
