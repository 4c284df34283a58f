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
