#include <array>
#include <isogloss/closed_form/concatenated_softmax.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/concatenate.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/update/sgd.hpp>
#include <limits>
#include <utility>

#include "allocations.hpp"
#include "catch.hpp"
#include "graphs.hpp"
#include "reference/kronecker.hpp"
#include "threads.hpp"

using namespace isogloss;

namespace {

constexpr Index V = 9, H = 3, M = 4, C = 6, N = 11;

std::vector<Token> draw(Index n, Index below, std::uint32_t stream) {
    const Random random(3, stream);
    std::vector<Token> tokens;
    for (Index i = 0; i < n; ++i) tokens.push_back(static_cast<Token>(random.below(i, below)));
    return tokens;
}
ConcatenatedSoftmaxOptions shape() {
    return {
        .vocabulary = V, .width = H, .words = M, .classes = C, .batch = N, .init = uniform(0.8), .seed = 4};
}
template <class T> kronecker::Matrix matrix_of(const Parameter<T>& p, const T* from) {
    return kronecker::matrix(p.rows, p.cols, [&](Index i, Index j) { return double(from[i * p.cols + j]); });
}
template <class T> Numbers gradient_of(Parameter<T>& p) {
    p.dense_gradient();
    return flat(matrix_of(p, p.gradient));
}

}  // namespace

TEMPLATE_TEST_CASE("The index form equals the matrix form", "[closed_form][concatenated_softmax]", float,
                   double) {
    using T = TestType;
    // In blocks of 1, 4 and all rows of logits.
    const Index budget = GENERATE(Index{1}, Index{4 * C} * Index{sizeof(T)}, Index{1} << 20);
    const Threads shared(GENERATE(1, 3));
    CAPTURE(budget, threads());
    auto options = shape();
    options.budget = budget;
    ConcatenatedSoftmax<T> model(options);
    const auto X = draw(N * M, V, 1), y = draw(N, C, 2);
    const auto expected = kronecker::value_and_gradient(matrix_of(model.E(), model.E().value),
                                                        matrix_of(model.W(), model.W().value), X, y);
    const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
    REQUIRE(model.value(X, y) == Approx(expected.value).epsilon(tolerance));
    REQUIRE(model.value_and_gradient(X, y) == Approx(expected.value).epsilon(tolerance));
    REQUIRE(apart(gradient_of(model.E()), flat(expected.d_E)) < tolerance);
    REQUIRE(apart(gradient_of(model.W()), flat(expected.d_W)) < tolerance);
    model.value_and_gradient(X, y);  // gradients add up
    REQUIRE(apart(gradient_of(model.E()), flat(kronecker::Matrix(2 * expected.d_E))) < 2 * tolerance);
    REQUIRE(apart(gradient_of(model.W()), flat(kronecker::Matrix(2 * expected.d_W))) < 2 * tolerance);
}

TEST_CASE("The same model as a graph has the same gradients to 1e-12",
          "[closed_form][concatenated_softmax]") {
    Graph<double> g({.time = 1, .batch = N});
    std::array<Tokens, M> x;
    for (Index m = 0; m < M; ++m) x[std::size_t(m)] = g.tokens(message("x", m), V);
    const auto y = g.tokens("y", C);
    const auto E = g.weight("E", V, H, uniform(1));
    const auto word = [&](Index m) {
        return g.add<Embedding>(message("embed", m), {}, x[std::size_t(m)], E);
    };
    const auto phi = g.add<Concatenate>("phi", {}, word(0), word(1), word(2), word(3));
    const auto o = g.add<Softmax>("softmax", {.vocabulary = C, .bias = false, .init = uniform(1)}, phi);
    const auto l = g.add<CrossEntropy>("loss", {}, o, y);

    // A word may stand at several places of an example; one example does not count.
    const auto words = draw(N * M, V, 1);
    auto classes = draw(N, C, 2);
    classes[5] = not_predicted;
    std::array<std::vector<Token>, M> columns;
    for (Index i = 0; i < N * M; ++i) columns[std::size_t(i % M)].push_back(words[std::size_t(i)]);
    std::vector<Feed<double>> inputs = {Feed<double>(y, {classes.data(), 1, N})};
    for (std::size_t m = 0; m < M; ++m) inputs.emplace_back(x[m], TokenBlock{columns[m].data(), 1, N});
    const double expected = g.forward(l, inputs);
    g.backward(l);

    ConcatenatedSoftmax<double> model(shape());
    auto& W = g.parameter("softmax.W");  // [C, M H]
    std::copy_n(g.parameter("E").value, V * H, model.E().value);
    for (Index i = 0; i < M * H; ++i)
        for (Index c = 0; c < C; ++c) model.W().value[i * C + c] = W.value[c * M * H + i];
    REQUIRE(model.value_and_gradient(words, classes) == Approx(expected).epsilon(1e-13));
    REQUIRE(apart(gradient_of(model.E()), gradient(g, "E")) < 1e-12);
    const auto d_W = gradient(g, "softmax.W");
    Numbers transposed;
    for (Index i = 0; i < M * H; ++i)
        for (Index c = 0; c < C; ++c) transposed.push_back(d_W[std::size_t(c * M * H + i)]);
    REQUIRE(apart(gradient_of(model.W()), transposed) < 1e-12);
    REQUIRE(model.parameters().divisor(Divisor::tokens) == N - 1);
}

TEST_CASE("One word, one class more than it knows: the gradient by hand",
          "[closed_form][concatenated_softmax]") {
    // H = 1, E = (2), W = (0, 0): p = (1/2, 1/2), so δ = (-1/2, 1/2), ∂l/∂W = 2 δ, and W = 0 hides E.
    ConcatenatedSoftmax<double> model(
        {.vocabulary = 3, .width = 1, .words = 1, .classes = 2, .init = constant(0)});
    model.E().value[1] = 2;
    const std::vector<Token> X = {1}, y = {0};
    REQUIRE(model.value_and_gradient(X, y) == Approx(std::log(2.0)));
    REQUIRE(gradient_of(model.W()) == Numbers{-1, 1});
    REQUIRE(model.E().touched == std::vector<Index>{1});
    REQUIRE(gradient_of(model.E()) == Numbers{0, 0, 0});
    // W = (0, ln 3): p = (1/10, 9/10) at E = 2, b = δ Wᵀ = 0.9 ln 3.
    model.parameters().clear_gradients();
    model.W().value[1] = std::log(3.0);
    REQUIRE(model.value_and_gradient(X, y) == Approx(std::log(10.0)));
    REQUIRE(gradient_of(model.E())[1] == Approx(0.9 * std::log(3.0)));
}

TEST_CASE("Probabilities are those of the loss", "[closed_form][concatenated_softmax]") {
    ConcatenatedSoftmax<double> model(shape());
    const auto X = draw(N * M, V, 1), y = draw(N, C, 2);
    std::vector<double> p(N * C);
    model.probabilities(X, {p.data(), N, C});
    double nats = 0;
    for (Index n = 0; n < N; ++n) {
        double sum = 0;
        for (Index c = 0; c < C; ++c) sum += p[std::size_t(n * C + c)];
        REQUIRE(sum == Approx(1));
        nats -= std::log(p[std::size_t(n * C + y[std::size_t(n)])]);
    }
    REQUIRE(nats == Approx(model.value(X, y)));
}

TEST_CASE("It learns a function of two words, and a step allocates nothing",
          "[closed_form][concatenated_softmax]") {
    // The larger of two numbers below 8.
    ConcatenatedSoftmax<float> model(
        {.vocabulary = 8, .width = 6, .words = 2, .classes = 8, .batch = 64, .init = normal(0.3)});
    std::vector<Token> X, y;
    for (Token a = 0; a < 8; ++a)
        for (Token b = 0; b < 8; ++b) {
            X.insert(X.end(), {a, b});
            y.push_back(std::max(a, b));
        }
    Sgd sgd(model.parameters(), {.rate = 2, .divisor = Divisor::tokens});
    const double before = model.value(X, y);
    model.value_and_gradient(X, y);
    sgd.step();
    const auto allocated = allocations();
    for (int step = 0; step < 400; ++step) {
        model.value_and_gradient(X, y);
        sgd.step();
    }
    REQUIRE(allocations() == allocated);
    REQUIRE(model.value(X, y) < 0.35 * before);
}

TEMPLATE_TEST_CASE("A validation between gradient and step changes neither gradient nor divisor",
                   "[closed_form][concatenated_softmax]", float, double) {
    using T = TestType;
    const auto X = draw(N * M, V, 1), y = draw(N, C, 2);
    const auto stepped = [&](bool validated, bool broken) {
        ConcatenatedSoftmax<T> model(shape());
        Sgd<T> sgd(model.parameters(), {.rate = 1, .divisor = Divisor::tokens});
        model.value_and_gradient(X, y);
        if (validated) model.value(std::span(X).first(2 * M), std::span(y).first(2));
        T& spoilt = model.E().value[X[0] * H];
        const T good = std::exchange(spoilt, broken ? std::numeric_limits<T>::quiet_NaN() : spoilt);
        if (broken) REQUIRE_THROWS_AS(model.value(X, y), NumericError);
        spoilt = good;
        REQUIRE(model.parameters().divisor(Divisor::tokens) == N);
        sgd.step();
        return std::vector<T>(model.W().value, model.W().value + model.W().size());
    };
    const auto plain = stepped(false, false);
    REQUIRE(stepped(true, false) == plain);
    REQUIRE(stepped(false, true) == plain);
}

TEMPLATE_TEST_CASE("A frozen table or matrix gets no gradient, the other one its own",
                   "[closed_form][concatenated_softmax]", float, double) {
    using T = TestType;
    const auto X = draw(N * M, V, 1), y = draw(N, C, 2);
    ConcatenatedSoftmax<T> model(shape());
    const double nats = model.value_and_gradient(X, y);
    const Numbers of_E = gradient_of(model.E()), of_W = gradient_of(model.W());
    model.parameters().clear_gradients();

    using Condition = typename Parameter<T>::Condition;
    for (const std::size_t frozen : {std::size_t{0}, std::size_t{1}}) {
        model.parameters()[frozen].trained = false;
        REQUIRE(model.value_and_gradient(X, y) == nats);
        REQUIRE(model.parameters()[frozen].condition == Condition::empty);
        REQUIRE(gradient_of(model.parameters()[1 - frozen]) == (frozen == 0 ? of_W : of_E));
        model.parameters().trained(true);
        model.parameters().clear_gradients();  // of the one that was trained it stays
    }
}

TEST_CASE("ConcatenatedSoftmax refuses what does not fit", "[closed_form][concatenated_softmax][errors]") {
    auto options = shape();
    options.words = 0;
    REQUIRE_THROWS_MATCHES(ConcatenatedSoftmax<float>(options), UsageError, says("words = 0"));
    options = shape();
    options.budget = 1;  // a row of logits at a time
    ConcatenatedSoftmax<double> model(options);
    const auto X = draw(N * M, V, 1), y = draw(N, C, 2);
    REQUIRE_THROWS_AS(model.value(std::span(X).first(N * M - 1), y), UsageError);
    REQUIRE_THROWS_AS(model.value(draw((N + 1) * M, V, 1), draw(N + 1, C, 2)), UsageError);
    auto wrong = X;
    wrong[6] = V;
    REQUIRE_THROWS_MATCHES(model.value_and_gradient(wrong, y), DataError, says("example 1, word 2"));
    auto classes = y;
    classes[3] = -2;
    REQUIRE_THROWS_MATCHES(model.value_and_gradient(X, classes), DataError, says("example 3"));
    std::vector<double> p(N * C);
    REQUIRE_THROWS_AS(model.probabilities(X, {p.data(), C, N}), UsageError);

    // One that is not finite takes back the gradients of the blocks before it.
    model.E().value[X[8] * H] = std::numeric_limits<double>::infinity();
    REQUIRE_THROWS_AS(model.value_and_gradient(X, y), NumericError);
    REQUIRE_THROWS_AS(model.probabilities(X, {p.data(), N, C}), NumericError);
    REQUIRE(model.E().condition == Parameter<double>::Condition::empty);
    REQUIRE(model.W().condition == Parameter<double>::Condition::empty);
}
