#include <algorithm>
#include <cmath>
#include <isogloss/lds/text_filter.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"
#include "reference/lds_exact.hpp"
#include "tolerance.hpp"

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
    const auto exact = reference::exact_smoother<TestType>(s, text);
    const TextFilter<TestType> filter(s, steady_state(s));
    const auto filtered = filter.filter(text), smoothed = filter.smooth(text);
    double most = 0;
    for (std::size_t t = 60; t < 240; ++t)
        for (std::size_t j = 0; j < 2; ++j) {
            most = worse(most, std::abs(double(filtered(t, j)) - exact.filtered(t, j)));
            most = worse(most, std::abs(double(smoothed(t, j)) - exact.smoothed(t, j)));
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

TEMPLATE_TEST_CASE("Likelihood and next-word predictions are those of dense matrices, token by token",
                   "[lds][filter]", float, double) {
    using T = TestType;
    const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-11;
    const auto s = texts::recorded<T>();
    const SteadyState steady = steady_state(s);
    const TextFilter<T> filter(s, steady);
    const auto text = long_text();
    const auto &mu = s.whitening.mu, &m = s.whitening.m, &w = s.whitening.w;
    // S + m mᵀ is invertible, with the quadratic form and the determinant of S on the space orthogonal to m.
    SmallMatrix S = lds::identity(6);
    const SmallMatrix more = steady.predicted - s.M;
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < 6; ++j)
            for (std::size_t a = 0; a < 2; ++a)
                for (std::size_t b = 0; b < 2; ++b)
                    S(i, j) += double(s.C(i, a)) * more(a, b) * double(s.C(j, b));
    double squares = 0, nats = 0;
    std::vector<T> state(2, T(0));
    for (const Token token : text) {
        SmallMatrix e = zeros<double>(6, 1);
        double p[6], all = 0;
        for (std::size_t i = 0; i < 6; ++i) {
            double ahead = 0;
            for (std::size_t a = 0; a < 2; ++a)
                for (std::size_t b = 0; b < 2; ++b) ahead += double(s.C(i, a)) * s.A(a, b) * double(state[b]);
            const auto k = static_cast<Index>(i);
            e(i, 0) = (k == token) * w[k] - m[k] - ahead;
            p[i] = std::max(0.01 * mu[k], mu[k] + m[k] * ahead);
            all += p[i];
        }
        squares += inner(e, solve(S, e, "test"));
        nats -= std::log(p[token] / all);
        filter.step(token, state);
    }
    const double n = static_cast<double>(text.size());
    CHECK(filter.log_likelihood(text) ==
          Approx(gaussian_log_likelihood(5, steady.log_det_S, squares / n)).epsilon(tolerance));
    CHECK(filter.cross_entropy(text) == Approx(nats / n).epsilon(tolerance));

    // A boundary: each part as if it were alone.
    const auto end = std::find(text.begin(), text.end(), 2) + 1;
    const std::vector<Token> left(text.begin(), end), right(end, text.end());
    std::vector<Token> marked(left);  // 2 stands at its end alone
    for (const Token t : right) marked.push_back(t == 2 ? 3 : t);
    const std::vector<Token> rest(marked.begin() + std::ssize(left), marked.end());
    const auto apart = [&](auto&& of) {
        return (of(left) * double(left.size()) + of(rest) * double(rest.size())) / n;
    };
    CHECK(filter.cross_entropy(marked, {.boundary = 2}) ==
          Approx(apart([&](auto& t) { return filter.cross_entropy(t); })));
    CHECK(filter.log_likelihood(marked, {.boundary = 2}) ==
          Approx(apart([&](auto& t) { return filter.log_likelihood(t); })));

    // A token cannot be taken for the floor, nor the other way round.
    constexpr bool takes_token = requires { filter.cross_entropy(text, Token{2}); };
    constexpr bool takes_floor = requires { filter.log_likelihood(text, 0.01); };
    STATIC_REQUIRE_FALSE(takes_token);
    STATIC_REQUIRE_FALSE(takes_floor);

    // What is ahead of the first word is μ.
    const std::vector<Token> one = {text[0]};
    CHECK(filter.cross_entropy(one) == Approx(-std::log(mu[text[0]])));
    REQUIRE_THROWS_MATCHES(filter.cross_entropy(text, {.floor = 0}), UsageError, says("floor = 0"));
    for (const Token boundary : {-7, 99999}) {
        const auto refused =
            says("TextFilter: found boundary = " + std::to_string(boundary), "expected -1 to ");
        REQUIRE_THROWS_MATCHES(filter.cross_entropy(text, {.boundary = boundary}), UsageError, refused);
        REQUIRE_THROWS_MATCHES(filter.log_likelihood(text, {.boundary = boundary}), UsageError, refused);
    }
    REQUIRE_THROWS_MATCHES(filter.cross_entropy(std::vector<Token>{}), DataError, says("without tokens"));
}

TEST_CASE("A boundary resets the state wherever it stands", "[lds][filter]") {
    const auto s = texts::recorded<double>();
    const TextFilter<double> filter(s, steady_state(s));
    for (const std::ptrdiff_t end : {1, 255, 256, 257}) {  // a text is worked on in parts of 256
        auto text = long_text();
        std::replace(text.begin(), text.end(), 2, 3);
        text[std::size_t(end) - 1] = 2;
        const std::vector<Token> left(text.begin(), text.begin() + end),
            right(text.begin() + end, text.end());
        CHECK(filter.cross_entropy(text, {.boundary = 2}) * double(text.size()) ==
              Approx(filter.cross_entropy(left) * double(left.size()) +
                     filter.cross_entropy(right) * double(right.size()))
                  .epsilon(1e-12));
    }
}

TEST_CASE("Without dynamics a text of the model's frequencies has the likelihood of the model",
          "[lds][filter]") {
    const auto whitening = Whitening::of_frequencies({0.5, 0.25, 0.25, 0}, 4);
    CHECK(static_log_likelihood(whitening, std::vector<Token>{0, 1, 0, 2}) ==
          Approx(static_log_likelihood(3)));
    CHECK(static_log_likelihood(whitening, std::vector<Token>{1, 1}) ==
          Approx(static_log_likelihood(3) - 0.5 * (3 - 2)));  // 1/μ - 1 = 3, in place of V - 1 = 2
    for (const Token bad : {3, 4, -1})
        REQUIRE_THROWS_MATCHES(static_log_likelihood(whitening, std::vector<Token>{bad}), DataError,
                               says(message("token ", bad)));
    REQUIRE_THROWS_MATCHES(static_log_likelihood(whitening, std::vector<Token>{}), DataError,
                           says("without tokens"));
}

TEST_CASE("The filter refuses tokens and states that are none of its own", "[lds][filter]") {
    const auto s = texts::recorded<double>();
    const TextFilter<double> filter(s, steady_state(s));
    std::vector<double> state(3);
    REQUIRE_THROWS_MATCHES(filter.step(0, state), UsageError, says("numbers of the state = 3", "expected 2"));
    const std::vector<Token> outside = {0, 6};
    REQUIRE_THROWS_MATCHES(filter.filter(outside), DataError, says("token = 6"));
    REQUIRE_THROWS_MATCHES(filter.smooth(outside), DataError, says("token = 6"));
    REQUIRE_THROWS_MATCHES(filter.log_likelihood(std::vector<Token>{}), DataError, says("without tokens"));
    CHECK(filter.filter(std::vector<Token>{}).size() == 0);
    auto one = s;
    one.A = one.M = dense::identity(1) * 0.5;
    one.C = zeros<double>(6, 1);
    REQUIRE_THROWS_MATCHES(TextFilter<double>(s, steady_state(one)), UsageError,
                           says("TextFilter", "a steady state [1, 1]", "expected [2, 2]"));
}
