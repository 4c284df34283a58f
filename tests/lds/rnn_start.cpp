#include <cmath>
#include <isogloss/isogloss.hpp>
#include <isogloss/lds/rnn_start.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using namespace isogloss::lds;

namespace {

template <class T> struct Network {
    explicit Network(Index V, Index h, WeightOptions options = {}, auto... shared_weights)
        : g({.time = 30, .batch = 1}, shared_weights...),
          x(g.tokens("x", V)),
          E(g.weight("E", V, h, uniform(0.1), options)),
          hidden(g.template add<Rnn>("rnn", {.units = h}, g.template add<Embedding>("embed", {}, x, E))),
          logits(g.template add<Softmax>("softmax", {.vocabulary = V}, hidden)) {
        g.training(false);
    }
    Graph<T> g;
    Tokens x;
    Weight<T> E;
    Seq<T> hidden;
    Logits<T> logits;
};

}  // namespace

TEMPLATE_TEST_CASE("A network started small predicts what the system predicts", "[lds][rnn]", float, double) {
    using T = TestType;
    auto s = texts::recorded<T>();
    s.C *= T(0.05);  // small states, where softmax is linear
    const auto k = steady_state(s);
    const SmallMatrix xx = k.predicted;  // some covariance above the filtered one
    Network<T> n(6, 2);
    const auto text = texts::markov(30, 6);
    start_rnn(n.g, s, k, xx, {.rms = 1e-2});
    n.g.forward(n.logits, {n.x, std::span<const Token>(text)});
    const auto p = n.g.head(n.logits).probabilities();
    const auto states = TextFilter<T>(s, k).filter(text);
    double most = 0, moved = 0;
    for (std::size_t t = 0; t < 30; ++t)
        for (std::size_t i = 0; i < 6; ++i) {
            double ahead = 0;  // (C A x̂)_i
            for (std::size_t a = 0; a < 2; ++a)
                for (std::size_t b = 0; b < 2; ++b)
                    ahead += double(s.C(i, a)) * s.A(a, b) * double(states(t, b));
            const double change = s.whitening.m[i] * ahead;
            most = worse(most, std::abs(double(p(t, i)) - s.whitening.mu[i] - change));
            moved = std::max(moved, std::abs(change));
        }
    CHECK(moved > 1e-4);
    CHECK(most < 0.05 * moved);
}

TEMPLATE_TEST_CASE("Tied heads and logistic units started small predict what the system predicts",
                   "[lds][rnn]", float, double) {
    using T = TestType;
    const bool tied = GENERATE(false, true);
    const auto activation = GENERATE(Activation::tanh, Activation::logistic, Activation::identity);
    CAPTURE(tied, static_cast<int>(activation));
    auto s = texts::recorded<T>();
    s.C *= T(0.05);
    const auto k = steady_state(s);
    Graph<T> g({.time = 30, .batch = 1});
    const auto x = g.tokens("x", 6);
    const auto E = g.weight("E", 6, 2, uniform(0.1));
    const auto hidden = g.template add<Rnn>("rnn", {.units = 2, .activation = activation},
                                            g.template add<Embedding>("embed", {}, x, E));
    const auto logits = tied ? g.template add<TiedSoftmax>("softmax", {.bias = true}, hidden, E)
                             : g.template add<Softmax>("softmax", {.vocabulary = 6}, hidden);
    const auto text = texts::markov(30, 6);
    const RnnStart names{.output = tied ? "E" : "softmax.W", .rms = 1e-2, .activation = activation};
    start_rnn(g, s, k, k.predicted, names);
    // what is ½ for a state of 0 has been 0 before the first word
    g.forward(logits, {x, std::span<const Token>(text)});
    const auto p = g.head(logits).probabilities();
    const auto states = TextFilter<T>(s, k).filter(text);
    double most = 0, moved = 0;
    for (std::size_t t = activation == Activation::logistic ? 20 : 0; t < 30; ++t)
        for (std::size_t i = 0; i < 6; ++i) {
            double ahead = 0;  // (C A x̂)_i
            for (std::size_t a = 0; a < 2; ++a)
                for (std::size_t b = 0; b < 2; ++b)
                    ahead += double(s.C(i, a)) * s.A(a, b) * double(states(t, b));
            const double change = s.whitening.m[i] * ahead;
            most = worse(most, std::abs(double(p(t, i)) - s.whitening.mu[i] - change));
            moved = std::max(moved, std::abs(change));
        }
    CHECK(moved > 1e-4);
    CHECK(most < 0.05 * moved);
}

TEST_CASE("With less whitening a tied table has the right directions, and lengths that are right in the mean",
          "[lds][rnn]") {
    const auto s = texts::recorded<double>();
    const auto k = steady_state(s);
    const auto what = [&](double power) {  // E W of every word
        Graph<double> g({.time = 1, .batch = 1});
        const auto x = g.tokens("x", 6);
        const auto E = g.weight("E", 6, 2, uniform(0.1));
        const auto h = g.add<Rnn>("rnn", {.units = 2}, g.add<Embedding>("embed", {}, x, E));
        g.add<TiedSoftmax>("softmax", {.bias = true}, h, E);
        start_rnn(g, s, k, k.predicted, {.output = "E", .gain = 0.3, .power = power});
        return product(texts::tensor<double>(g.parameter("E").value, 6, 2),
                       texts::tensor<double>(g.parameter("rnn.W").value, 2, 2));
    };
    const auto exact = what(1), short_ones = what(0);
    double projection = 0, squares = 0;
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(exact(i, 0) * short_ones(i, 1) == Approx(exact(i, 1) * short_ones(i, 0)));
        for (std::size_t j = 0; j < 2; ++j) {
            projection += s.whitening.mu[i] * short_ones(i, j) * exact(i, j);
            squares += s.whitening.mu[i] * short_ones(i, j) * short_ones(i, j);
        }
    }
    CHECK(projection == Approx(squares));  // the residual of least squares is orthogonal
    CHECK(short_ones(5, 0) / exact(5, 0) <
          0.9 * short_ones(0, 0) / exact(0, 0));  // μ is least for the last word
}

TEST_CASE("Parameters that are not there or do not fit are refused before anything is written",
          "[lds][rnn]") {
    const auto s = texts::recorded<double>();
    const auto k = steady_state(s);
    Network<double> wide(6, 3), right(6, 2);
    const double before = wide.g.parameter("E").value[0];
    REQUIRE_THROWS_MATCHES(start_rnn(wide.g, s, k, k.predicted), UsageError, says("'E' [6, 3]", "[6, 2]"));
    CHECK(wide.g.parameter("E").value[0] == before);
    REQUIRE_THROWS_AS(start_rnn(right.g, s, k, k.predicted, {.table = "F"}), UsageError);
    REQUIRE_THROWS_MATCHES(start_rnn(right.g, s, k, k.predicted, {.rms = 0}), UsageError, says("rms = 0"));
    REQUIRE_THROWS_MATCHES(start_rnn(right.g, s, k, k.predicted, {.power = 2}), UsageError,
                           says("power = 2", "0 to 1"));
    REQUIRE_THROWS_MATCHES(start_rnn(right.g, s, k, k.predicted, {.input = "lstm.W"}), UsageError,
                           says("'lstm.W'"));
    REQUIRE_THROWS_MATCHES(start_rnn(right.g, s, k, k.predicted, {.output = "E", .gain = 0}), UsageError,
                           says("gain, of a tied head = 0"));
    REQUIRE_THROWS_MATCHES(start_rnn(right.g, s, k, k.predicted, {.recurrent = "rnn.W"}), UsageError,
                           says("two parameters named 'rnn.W'"));
    REQUIRE_THROWS_MATCHES(start_rnn(right.g, s, k, k.predicted, {.activation = Activation::relu}),
                           UsageError, says("relu"));
    Network<float> narrow(6, 2);
    const float held = narrow.g.parameter("E").value[0];
    REQUIRE_THROWS_MATCHES(start_rnn(narrow.g, s, k, k.predicted, {.rms = 1e300}), NumericError,
                           says("start_rnn: found", "inf in 'E'"));
    CHECK(narrow.g.parameter("E").value[0] == held);
    start_rnn(right.g, s, k, k.predicted);
    const double full = right.g.parameter("softmax.W").value[5];
    start_rnn(right.g, s, k, k.predicted, {.gain = 0.5, .power = 0});
    CHECK(right.g.parameter("softmax.W").value[5] == Approx(0.5 * full * std::sqrt(s.whitening.mu[2])));
    start_rnn(right.g, s, k, k.predicted, {.bias = ""});
    CHECK(right.g.parameter("softmax.b").value[0] == Approx(std::log(0.3)));
}

TEMPLATE_TEST_CASE(
    "Weights held at norm 1 or owned by another graph are not written, and no gradient is left", "[lds][rnn]",
    float, double) {
    using T = TestType;
    const auto s = texts::recorded<T>();
    const auto k = steady_state(s);
    const auto numbers = [](Network<T>& n) {
        std::vector<T> all;
        for (const auto* p : n.g.parameters()) all.insert(all.end(), p->value, p->value + p->size());
        return all;
    };
    Network<T> unit(6, 2, {.unit_rows = true});
    auto before = numbers(unit);
    REQUIRE_THROWS_MATCHES(start_rnn(unit.g, s, k, k.predicted), UsageError,
                           says("'E' [6, 2]", "without unit_rows"));
    CHECK(numbers(unit) == before);
    Network<T> owner(6, 2), reader(6, 2, {}, owner.g.shared_weights());
    before = numbers(owner);
    REQUIRE_THROWS_MATCHES(start_rnn(reader.g, s, k, k.predicted), UsageError,
                           says("start_rnn: the graph is on shared weights"));
    CHECK(numbers(owner) == before);
    for (auto* p : owner.g.parameters()) p->dense_gradient();
    start_rnn(owner.g, s, k, k.predicted, {.bias = ""});
    for (const auto* p : owner.g.parameters())
        CHECK((p->condition == Parameter<T>::Condition::empty) == (p->name != "rnn.b"));
    const SteadyState one = steady_state({{0.5}}, {{0.1}}, {{1.0}});
    REQUIRE_THROWS_MATCHES(start_rnn(owner.g, s, one, k.predicted), UsageError,
                           says("start_rnn", "a steady state [1, 1]", "[2, 2]"));
}

TEST_CASE("A cell that takes no transition keeps its own parameters", "[lds][rnn]") {
    const auto s = texts::recorded<double>();
    const auto k = steady_state(s);
    Network<double> whole(6, 2), part(6, 2);
    const double W = part.g.parameter("rnn.W").value[1], U = part.g.parameter("rnn.U").value[1];
    start_rnn(whole.g, s, k, k.predicted);
    start_rnn(part.g, s, k, k.predicted, {.input = "", .recurrent = "", .bias = ""});
    CHECK(part.g.parameter("rnn.W").value[1] == W);
    CHECK(part.g.parameter("rnn.U").value[1] == U);
    CHECK(whole.g.parameter("rnn.W").value[1] == 0);
    CHECK(whole.g.parameter("rnn.U").value[1] != U);
    for (const char* name : {"E", "softmax.W"})
        CHECK(part.g.parameter(name).value[3] == whole.g.parameter(name).value[3]);
}
