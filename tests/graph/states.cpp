// The states that a graph carries from one pass to the next.
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/gru.hpp>
#include <isogloss/node/lstm.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

template <class T> std::vector<T> fed(Index n, std::uint64_t seed) {
    const Numbers v = numbers(n, seed);
    return {v.begin(), v.end()};
}

enum class Way { none, forward, backward };

/// Passes its input on, or throws.
template <class T> struct Fails {
    struct Options {
        const Way* now = nullptr;
    };
    Options options;
    Seq<T> x, y;
    Seq<T> setup(Setup<T>& s, Seq<T> in) {
        x = in;
        return y = s.sequence("y", x.width);
    }
    void forward(Forward<T>& p) {
        if (*options.now == Way::forward) throw DataError("failed on the way forward");
        noalias(p.at(y)) = p.at(x);
    }
    void backward(Backward<T, Gradient>& p) {
        if (*options.now == Way::backward) throw DataError("failed on the way back");
        noalias(p.adjoint(x)) += p.adjoint(y);
    }
};

/// Two layers with masks, and between them a node that may fail.
template <class T> struct TwoLayers {
    Way fail = Way::none;
    Graph<T> g{GraphOptions{.time = 3, .batch = 2, .seed = 5}};
    Seq<T> x = g.input("x", 2), w = g.input("w", 3),
           low = g.template add<Lstm>("low", {.units = 3, .keep = 0.6, .init = uniform(1)}, x),
           between = g.template add<Fails>("between", {&fail}, low),
           high = g.template add<Gru>("high", {.units = 3, .keep = 0.6, .init = uniform(1)}, between);
    Loss<T> l = g.template add<Dot>("loss", {}, w, high);

    double pass(std::uint64_t seed) {
        const auto in = fed<T>(12, seed), weights = fed<T>(18, seed + 1);
        return g.forward(l, {x, in.data(), 3, 2}, {w, weights.data(), 3, 2});
    }
    Numbers gradients() {
        Numbers all;
        for (const auto* p : g.parameters())
            for (const double v : gradient(g, p->name)) all.push_back(v);
        return all;
    }
};

}  // namespace

TEMPLATE_TEST_CASE("States are read, written and copied by name and by column", "[graph][carry]", float,
                   double) {
    Graph<TestType> g({.time = 2, .batch = 3});
    const auto x = g.input("x", 2);
    const auto h = g.template add<Lstm>("lstm", {.units = 2, .init = uniform(1)}, x);
    const auto in = fed<TestType>(12, 5), one = fed<TestType>(6, 6);
    const auto step = [&] {
        g.forward(h, {x, one.data(), 1, 3});
        return flat(g.value(h));
    };
    CHECK(g.states().names() == std::vector<std::string>{"lstm.h", "lstm.c"});
    g.forward(h, {x, in.data(), 2, 3});
    const Numbers states = flat(g.value(h));
    CHECK(flat(g.states().at("lstm.h")) == Numbers(states.end() - 6, states.end()));
    const auto before = g.states().saved();
    const Numbers all = step();

    g.states().restore(before);
    g.states().reset(1);
    CHECK(g.states().at("lstm.c")(1, 0) == 0);
    const Numbers reset = step();
    CHECK(Numbers(reset.begin(), reset.begin() + 2) == Numbers(all.begin(), all.begin() + 2));
    CHECK(Numbers(reset.begin() + 4, reset.end()) == Numbers(all.begin() + 4, all.end()));
    CHECK(Numbers(reset.begin() + 2, reset.begin() + 4) != Numbers(all.begin() + 2, all.begin() + 4));

    g.states().restore(before);
    g.states().copy(std::vector<Index>{2, 1});
    for (const char* name : {"lstm.h", "lstm.c"})
        CHECK(g.states().at(name)(0, 1) == g.states().at(name)(2, 1));
    CHECK(step() != all);

    g.states().restore(before);
    g.states().at("lstm.c")(0, 0) = 7;  // written by hand: what the next pass starts from
    const Numbers written = step();
    CHECK(written[0] != all[0]);
    CHECK(Numbers(written.begin() + 2, written.end()) == Numbers(all.begin() + 2, all.end()));

    REQUIRE_THROWS_MATCHES(g.states().reset(3), UsageError, says("column = 3"));
    REQUIRE_THROWS_MATCHES(g.states().at("lstm.z"), UsageError, says("'lstm.z'"));
}

TEMPLATE_TEST_CASE("Columns go on from the states of others, all at once", "[graph][carry]", float, double) {
    Graph<TestType> g({.time = 2, .batch = 3});
    const auto x = g.input("x", 2);
    g.template add<Gru>("above", {.units = 3},
                        g.template add<Lstm>("lstm", {.units = 2, .init = uniform(1)}, x));
    const auto in = fed<TestType>(12, 5);
    g.forward(g.sequence("above.h"), {x, in.data(), 2, 3});
    const auto before = g.states().saved();
    const std::vector<Index> from = {2, 0, 2};  // in place 0 would be lost before column 1 has read it
    g.states().copy(from);
    const auto after = g.states().saved();
    const std::vector<Index> widths = {2, 2, 3};
    REQUIRE(after.values.size() == 3);
    for (std::size_t s = 0; s < 3; ++s)
        for (Index b = 0; b < 3; ++b)
            for (Index i = 0; i < widths[s]; ++i)
                CHECK(after.values[s][std::size_t(b * widths[s] + i)] ==
                      before.values[s][std::size_t(from[std::size_t(b)] * widths[s] + i)]);
    g.states().restore(before);
    g.states().copy(std::vector<Index>{1});  // the others stay
    CHECK(g.states().at("lstm.c")(0, 1) == before.values[1][3]);
    CHECK(g.states().at("lstm.c")(1, 1) == before.values[1][3]);
    CHECK(g.states().at("lstm.c")(2, 0) == before.values[1][4]);
    g.states().restore(before);
    REQUIRE_THROWS_MATCHES(g.states().copy(std::vector<Index>{0, 3}), UsageError, says("column = 3"));
    REQUIRE_THROWS_AS(g.states().copy(std::vector<Index>{0, 0, 0, 0}), UsageError);
    CHECK(g.states().saved() == before);
    auto other = before;  // of a model with a wider layer
    other.values[2].push_back(0);
    other.values[0][0] += 1;
    REQUIRE_THROWS_AS(g.states().restore(other), UsageError);
    CHECK(g.states().saved() == before);
}

TEMPLATE_TEST_CASE("A forward pass that fails can be made again as if it had never begun",
                   "[graph][carry][errors]", float, double) {
    const bool checking = GENERATE(false, true), training = GENERATE(false, true);
    CAPTURE(checking, training);
    TwoLayers<TestType> m, fresh;
    for (auto* of : {&m, &fresh}) {
        of->g.checking(checking);
        of->g.training(training);
        of->pass(3);
    }
    const auto before = m.g.states().saved();
    const auto step = m.g.training_step();
    const auto unchanged = [&] {
        CHECK(m.g.states().saved() == before);
        CHECK(m.g.training_step() == step);
    };
    m.fail = Way::forward;
    REQUIRE_THROWS_AS(m.pass(7), DataError);
    unchanged();
    m.fail = Way::none;
    TestType& weight = m.g.parameter("high.Wq").value[0];
    const TestType good = std::exchange(weight, std::numeric_limits<TestType>::quiet_NaN());
    REQUIRE_THROWS_MATCHES(m.pass(7), NumericError, says(message("training step ", step + training)));
    unchanged();
    weight = good;
    CHECK(m.pass(7) == fresh.pass(7));  // with the same masks, from the same states
    CHECK(m.g.states().saved() == fresh.g.states().saved());
    CHECK(m.g.training_step() == fresh.g.training_step());
    CHECK_FALSE(m.g.states().saved() == before);
}

TEMPLATE_TEST_CASE("A backward pass that fails leaves no part of a gradient for the next step",
                   "[graph][carry][errors]", float, double) {
    const bool checking = GENERATE(false, true);
    CAPTURE(checking);
    TwoLayers<TestType> m, fresh;
    m.pass(3), fresh.pass(3);
    m.g.backward(m.l);
    m.pass(5), fresh.pass(5);
    if (checking) {  // h is finite, the derivative of its sums is not
        m.g.checking(true);
        m.g.parameter("low.b").value[0] = TestType(1e30);
        m.g.parameter("high.Wq").value[0] = std::numeric_limits<TestType>::infinity();
        REQUIRE_THROWS_AS(m.g.backward(m.l), NumericError);
        m.g.parameter("high.Wq").value[0] = fresh.g.parameter("high.Wq").value[0];
        m.g.parameter("low.b").value[0] = fresh.g.parameter("low.b").value[0];
    } else {
        m.fail = Way::backward;
        REQUIRE_THROWS_AS(m.g.backward(m.l), DataError);
        m.fail = Way::none;
    }
    for (const auto* p : m.g.parameters()) CHECK_FALSE(p->counts());
    REQUIRE_THROWS_AS(m.g.backward(m.l), UsageError);
    CHECK(std::isfinite(m.g.result(m.l).nats()));  // what the forward pass computed can still be looked at
    CHECK(m.pass(7) == fresh.pass(7));
    m.g.backward(m.l), fresh.g.backward(fresh.l);
    CHECK(m.g.parameters().divisor(Divisor::batch) == 2);
    CHECK(m.gradients() == fresh.gradients());
}
