#include <array>
#include <cmath>
#include <isogloss/isogloss.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

/// A tied model over seven words, with two layers that can be told apart.
template <class T> struct Model {
    Graph<T> g;
    Tokens x, y;
    Weight<T> E;
    Seq<T> e, h;
    Logits<T> o;
    Loss<T> l;
    explicit Model(GraphOptions options = {.time = 4, .batch = 2}, double keep = 1)
        : g(options),
          x(g.tokens("x", 7)),
          y(g.tokens("y", 7)),
          E(g.weight("E", 7, 5, uniform(0.5))),
          e(g.template add<Embedding>("embed", {.keep = keep}, x, E)),
          h(g.template add<Lstm>("lstm", {.units = 5, .keep = keep}, e)),
          o(g.template add<TiedSoftmax>("softmax", {}, h, E)),
          l(g.template add<CrossEntropy>("loss", {}, o, y)) {}
};

const std::vector<Token> words = {0, 1, 2, 3, 4, 5, 6, 0}, next = {2, 3, 4, -1, 6, 0, 1, 2};
const TokenBlock input{words.data(), 4, 2}, target{next.data(), 4, 2};

}  // namespace

TEMPLATE_TEST_CASE("The first program: forward, backward, update, and the loss falls", "[graph]", float,
                   double) {
    Model<TestType> m({.time = 4, .batch = 2}, 0.9);
    Sgd<TestType> sgd(m.g.parameters(), {.rate = 1, .clip = 5});
    double first = 0, last = 0;
    for (int k = 0; k < 200; ++k) {
        m.g.reset();
        last = m.g.forward(m.l, {m.x, input}, {m.y, target});
        if (k == 0) first = last;
        m.g.backward(m.l);
        sgd.step();
    }
    CHECK(first == Approx(7 * std::log(7.0)).epsilon(0.1));
    CHECK(last < 0.5 * first);
    CHECK(m.g.result(m.l).predicted() == 7);
    CHECK(graph::Inspect::store(m.g).arena.guards_intact());
}

TEST_CASE("The loss by token adds up to the loss, positions without a target cost nothing", "[graph]") {
    Model<double> m;
    const double total = m.g.forward(m.l, {m.x, input}, {m.y, target});
    const auto by_token = m.g.result(m.l).by_token();
    double sum = 0;
    for (const double v : by_token) sum += v;
    CHECK(sum == Approx(total));
    CHECK(by_token(1, 1) == 0);
    const std::vector<Token> none(8, not_predicted);
    CHECK(m.g.forward(m.l, {m.x, input}, {m.y, TokenBlock{none.data(), 4, 2}}) == 0);
    CHECK(m.g.result(m.l).predicted() == 0);
    REQUIRE_THROWS_MATCHES(m.g.backward(m.l), UsageError, says("'loss'"));  // a slip
    m.g.shard(0, 3);  // nor does every part of a batch have targets
    m.g.forward(m.l, {m.x, input}, {m.y, TokenBlock{none.data(), 4, 2}});
    m.g.backward(m.l);
    for (const double v : m.g.gradient(m.E)) CHECK(v == 0);
}

TEST_CASE("State is carried between passes, put back, and forgotten by reset", "[graph]") {
    Model<double> m;
    m.g.training(false);
    const double fresh = m.g.forward(m.l, {m.x, input}, {m.y, target});
    const auto carried = m.g.states().saved();
    CHECK(carried == m.g.states().saved());
    const double later = m.g.forward(m.l, {m.x, input}, {m.y, target});
    CHECK(later != fresh);
    CHECK(!(carried == m.g.states().saved()));
    m.g.states().restore(carried);
    CHECK(m.g.forward(m.l, {m.x, input}, {m.y, target}) == later);
    m.g.reset();
    CHECK(m.g.forward(m.l, {m.x, input}, {m.y, target}) == fresh);
    REQUIRE_THROWS_AS(m.g.states().restore({}), UsageError);
}

TEST_CASE("A pass over fewer columns leaves the states of the others alone", "[graph]") {
    Model<double> m;
    m.g.training(false);
    m.g.forward(m.l, {m.x, input}, {m.y, target});
    const auto before = m.g.states().saved().values[0];
    m.g.forward(m.h, {m.x, TokenBlock{words.data(), 1, 1}});
    const auto after = m.g.states().saved().values[0];
    CHECK(std::equal(before.begin() + 5, before.end(), after.begin() + 5));
    CHECK_FALSE(std::equal(before.begin(), before.begin() + 5, after.begin()));
}

TEST_CASE("Masks depend on seed, step and node, evaluation has none", "[graph]") {
    Model<double> a({.time = 4, .batch = 2, .seed = 9}, 0.5), b({.time = 4, .batch = 2, .seed = 9}, 0.5);
    const auto run = [](Model<double>& m) {
        m.g.reset();
        return m.g.forward(m.l, {m.x, input}, {m.y, target});
    };
    const double first = run(a), second = run(a);
    CHECK(first != second);
    CHECK(run(b) == first);
    b.g.training_step(1);
    CHECK(run(b) == second);
    CHECK(b.g.training_step() == 2);
    Model<double> unmasked({.time = 4, .batch = 2, .seed = 9}, 1);
    a.g.training(false), unmasked.g.training(false);
    CHECK(run(a) == run(unmasked));
    CHECK(a.g.training_step() == 2);
}

TEST_CASE("Only what a target needs is run, and only its inputs are asked for", "[graph]") {
    Graph<double> g({.time = 2, .batch = 1});
    const auto x = g.tokens("x", 3), y = g.tokens("y", 3), z = g.tokens("z", 3);
    const auto E = g.weight("E", 3, 2, uniform(1));
    const auto e = g.add<Embedding>("embed", {}, x, E);
    const auto a = g.add<Rnn>("a", {.units = 2}, e), b = g.add<Rnn>("b", {.units = 2}, e);
    const auto la = g.add<CrossEntropy>("la", {}, g.add<TiedSoftmax>("sa", {}, a, E), y);
    const auto lb = g.add<CrossEntropy>("lb", {}, g.add<TiedSoftmax>("sb", {}, b, E), z);
    const auto both = g.add<TotalLoss>("both", {.weights = {2, 3}}, la, lb);
    const std::vector<Token> t = {0, 1};
    const TokenBlock block{t.data(), 2, 1};

    const double only_a = g.forward(la, {x, block}, {y, block});
    g.backward(la);
    CHECK(g.parameter("b.W").condition == Parameter<double>::Condition::empty);
    g.reset();
    REQUIRE_THROWS_MATCHES(g.forward(both, {x, block}, {y, block}), UsageError, says("'z'", "'lb'"));
    const double only_b = g.forward(lb, {x, block}, {z, block});
    g.reset();
    CHECK(g.forward(both, {x, block}, {y, block}, {z, block}) == Approx(2 * only_a + 3 * only_b));
}

TEST_CASE("Logits and log-probabilities are those of the head", "[graph]") {
    Model<double> m;
    m.g.training(false);
    m.g.forward(m.o, {m.x, input});
    const auto p = m.g.head(m.o).probabilities(0.5), logs = m.g.head(m.o).log_probabilities(0.5),
               z = m.g.head(m.o).logits();
    const auto h = m.g.value(m.h);
    const auto E = m.g.value(m.E);
    for (std::size_t r = 0; r < 8; ++r)
        for (std::size_t v = 0; v < 7; ++v) {
            double expected = 0;
            for (std::size_t i = 0; i < 5; ++i) expected += h(r, i) * E(v, i);
            CHECK(z(r, v) == Approx(expected).margin(1e-12));
            CHECK(std::exp(logs(r, v)) == Approx(p(r, v)));
            CHECK(logs(r, v) - logs(r, 0) == Approx(2 * (z(r, v) - z(r, 0))).margin(1e-12));
            if (v == 0) CHECK(xt::sum(xt::row(p, r))() == Approx(1));
        }
    double some[2 * 7];
    m.g.head(m.o).logits(3, {some, 2, 7});
    CHECK(some[0] == Approx(z(3, 0)));
    m.g.head(m.o).log_probabilities(3, {some, 2, 7}, 0.5);
    CHECK(some[0] == Approx(logs(3, 0)));
    REQUIRE_THROWS_AS(m.g.head(m.o).logits(7, {some, 2, 7}), UsageError);
    REQUIRE_THROWS_AS(m.g.head(m.o).log_probabilities(0.), UsageError);
}

TEST_CASE("A graph refuses what it cannot build, and stays as it was", "[graph][errors]") {
    Graph<float> g({.time = 2, .batch = 2}), other({});
    const auto x = g.tokens("x", 5), y = g.tokens("y", 6);
    const auto E = g.weight("E", 5, 3, uniform(0.1));
    REQUIRE_THROWS_MATCHES(g.tokens("x", 5), UsageError, says("'x'"));
    REQUIRE_THROWS_AS(g.weight("a b", 1, 1, constant(0)), UsageError);
    REQUIRE_THROWS_AS(g.weight("W", 0, 1, constant(0)), UsageError);
    REQUIRE_THROWS_MATCHES(Graph<float>({.time = 0}), UsageError, says("time = 0"));
    REQUIRE_THROWS_MATCHES(Graph<float>({.budget = 0}), UsageError, says("budget = 0"));
    REQUIRE_THROWS_MATCHES(other.add<Embedding>("e", {}, x, E), UsageError, says("node 'e', input 1"));
    REQUIRE_THROWS_AS(g.add<Embedding>("e", {}, Tokens{}, E), UsageError);
    REQUIRE_THROWS_MATCHES(g.add<Embedding>("e", {}, y, E), UsageError, says("node 'e'"));

    const auto e = g.add<Embedding>("e", {}, x, E);  // the name is free again
    REQUIRE_THROWS_AS(g.add<Lstm>("h", {.units = 0}, e), UsageError);
    REQUIRE_THROWS_MATCHES(g.add<Lstm>("h", {.units = 3, .keep = 0}, e), UsageError,
                           says("node 'h'", "keep = 0"));
    const auto h = g.add<Lstm>("h", {.units = 4}, e);
    REQUIRE_THROWS_MATCHES(g.add<TiedSoftmax>("s", {}, h, E), UsageError, says("node 's'"));
    REQUIRE(g.parameters().size() == 4);
    REQUIRE_THROWS_AS(g.parameters("lstm*"), UsageError);
    REQUIRE_THROWS_AS(g.parameter("h.*"), UsageError);
    CHECK(g.parameters("h.*").size() == 3);
    const auto names = [&](const char* pattern) {
        std::string all;
        for (const auto* p : g.parameters(pattern)) all += p->name + " ";
        return all;
    };
    CHECK(names("h.b, E") == "E h.b ");  // in the order of their making, each once
    CHECK(names(" !h.b , !E ") == "h.W h.U ");
    CHECK(names("*, !h.*, h.U") == "E h.U ");
    REQUIRE_THROWS_AS(g.parameters("E, h.V"), UsageError);
    REQUIRE_THROWS_AS(g.parameters(""), UsageError);
    CHECK(g.weight("h.U").rows == 4);
}

TEST_CASE("A graph refuses inputs that do not fit", "[graph][errors]") {
    Model<float> m;
    const auto forward = [&](TokenBlock in, TokenBlock out) { m.g.forward(m.l, {m.x, in}, {m.y, out}); };
    REQUIRE_THROWS_MATCHES(forward({words.data(), 8, 1}, target), UsageError, says("'x'"));
    REQUIRE_THROWS_MATCHES(forward({words.data(), 2, 2}, target), UsageError, says("'y'"));
    std::vector<Token> bad = words;
    bad[5] = 7;
    REQUIRE_THROWS_MATCHES(forward({bad.data(), 4, 2}, target), DataError, says("'x'", "step 2, column 1"));
    bad[5] = -1;  // a target may be absent, an input may not
    REQUIRE_THROWS_AS(forward({bad.data(), 4, 2}, target), DataError);
    REQUIRE_THROWS_MATCHES(m.g.forward(m.l, {m.x, input}), UsageError, says("'y'"));
    REQUIRE_THROWS_AS(m.g.backward(m.l), UsageError);
    REQUIRE_THROWS_MATCHES(forward({nullptr, 4, 2}, target), UsageError, says("'x'"));
    const float values[10] = {};
    REQUIRE_THROWS_AS(m.g.forward(m.l, {m.x, input}, {m.h, values, 4, 2}), UsageError);
    REQUIRE_THROWS_MATCHES(m.g.forward(m.l, {m.x, input}, {m.y, target}, {m.x, input}), UsageError,
                           says("'x'"));
    for (const Tokens idle : {m.g.tokens("spare", 7), Tokens{}})
        REQUIRE_THROWS_AS(m.g.forward(m.l, {m.x, input}, {m.y, target}, {idle, input}), UsageError);
    REQUIRE_THROWS_AS(m.g.forward(m.l, {m.x, input}, {m.y, target}, {Seq<float>{}, values, 4, 2}),
                      UsageError);
    REQUIRE(std::isfinite(m.g.forward(m.l, {m.x, input}, {m.y, target})));
}

TEST_CASE("What the last pass has not computed is refused", "[graph][errors]") {
    Model<double> m({.time = 4, .batch = 2, .seed = 3});
    const auto u = m.g.input("u", 3);
    const auto f = m.g.add<Linear>("f", {.units = 2}, u);
    const std::vector<double> numbers(8 * 3, 0.5);
    const auto refused = [](const auto&... looks) {
        const auto one = [](const auto& look) { CHECK_THROWS_AS(look(), UsageError); };
        (one(looks), ...);
    };
    const auto value = [&](auto of) { return [&m, of] { m.g.value(of); }; };
    const auto adjoint = [&] { m.g.adjoint(m.h); };
    const auto modulus = [&] { m.g.modulus(m.h); };
    const auto result = [&] { m.g.result(m.l); };
    refused(value(m.h), value(u), result);

    const double loss = m.g.forward(m.l, {m.x, input}, {m.y, target});
    REQUIRE(m.g.result(m.l).nats() == loss);
    REQUIRE(m.g.value(m.h).shape()[0] == 8);
    refused(value(f), adjoint);
    m.g.backward(m.l);
    REQUIRE(m.g.adjoint(m.h).shape()[0] == 8);
    refused(modulus);
    m.g.backward<Modulus>(m.l);
    REQUIRE(m.g.modulus(m.h).shape()[0] == 8);
    REQUIRE(m.g.adjoint(m.h).shape()[0] == 8);  // both belong to this pass

    m.g.backward(m.l, m.h);
    REQUIRE(m.g.adjoint(m.h).shape()[0] == 8);
    refused([&] { m.g.adjoint(m.e); }, [&] { m.g.adjoint(m.g.sequence("lstm.z")); });
    REQUIRE(m.g.modulus(m.e).shape()[0] == 8);  // of the whole pass

    m.g.forward(u, {u, numbers.data(), 4, 2});
    REQUIRE(m.g.value(u)(7, 2) == 0.5);
    m.g.forward(f, {u, numbers.data(), 4, 2});
    REQUIRE(m.g.value(u)(7, 2) == 0.5);
    refused(value(m.h), result, adjoint);

    m.g.forward(m.l, {m.x, input}, {m.y, target});
    refused(adjoint, modulus, value(u));  // what is there is of an earlier pass
    m.g.value(m.E)(0, 0) = std::numeric_limits<double>::quiet_NaN();
    REQUIRE_THROWS_AS(m.g.forward(m.l, {m.x, input}, {m.y, target}), NumericError);
    refused(value(m.h), result);
}

TEST_CASE("Columns of a larger batch are held to it, and sums to what they count", "[graph][errors]") {
    Model<float> m;
    REQUIRE_THROWS_MATCHES(m.g.shard(-1, 4), UsageError, says("first = -1"));
    REQUIRE_THROWS_AS(m.g.shard(0, Index{1} << 40), UsageError);
    m.g.shard(3, 4);  // one is left, and two come
    REQUIRE_THROWS_AS(m.g.forward(m.l, {m.x, input}, {m.y, target}), UsageError);
    m.g.shard(2, 4);
    m.g.forward(m.l, {m.x, input}, {m.y, target});
    m.g.shard(0, 0);
    m.g.forward(m.l, {m.x, input}, {m.y, target});
    m.g.backward(m.l);
    REQUIRE(m.g.parameters().divisor(Divisor::batch) == 2);
    m.g.parameters().summed_over(10, 70);
    REQUIRE(m.g.parameters().divisor(Divisor::batch) == 10);
    REQUIRE(m.g.parameters().divisor(Divisor::tokens) == 70);
    REQUIRE_THROWS_MATCHES(m.g.parameters().summed_over(-1, 0), UsageError, says("columns = -1"));
}

TEST_CASE("Numbers that are not finite are named: the loss always, any node in checking mode",
          "[graph][errors]") {
    Model<float> m;
    m.g.parameter("lstm.U").value[0] = std::numeric_limits<float>::infinity();
    REQUIRE_THROWS_MATCHES(m.g.forward(m.l, {m.x, input}, {m.y, target}), NumericError, says("'loss'"));
    m.g.checking(true);
    m.g.reset();
    // h_0 is zero, and 0 · inf is NaN: the sums of the very first step.
    REQUIRE_THROWS_MATCHES(m.g.forward(m.l, {m.x, input}, {m.y, target}), NumericError,
                           says("'lstm'", "step 0, batch row 0"));
    REQUIRE_THROWS_AS(m.g.backward(m.l), UsageError);

    Model<float> n;
    n.g.checking(true);
    const std::vector<Token> one = {3};
    n.g.value(n.E)(3, 1) = std::numeric_limits<float>::quiet_NaN();
    REQUIRE_THROWS_MATCHES(n.g.forward(n.l, {n.x, input}, {n.y, target}), NumericError,
                           says("'embed'", "step 1, batch row 1"));
}

TEST_CASE("An adjoint that is not finite is named in checking mode", "[graph][errors]") {
    Model<double> m;
    m.g.checking(true);
    m.g.forward(m.l, {m.x, input}, {m.y, target});
    m.g.parameter("lstm.U").value[0] =
        std::numeric_limits<double>::infinity();  // after forward: only backward meets it
    REQUIRE_THROWS_MATCHES(m.g.backward(m.l), NumericError, says("'lstm'"));
}

TEST_CASE("A pass may begin and end behind a sequence, where only what comes after it matters", "[graph]") {
    Graph<double> g({.time = 4, .batch = 2});
    const auto x = g.tokens("x", 7), y = g.tokens("y", 7);
    const auto h = g.add<Lstm>("lstm", {.units = 5},
                               g.add<Embedding>("embed", {}, x, g.weight("E", 7, 5, uniform(0.5))));
    const auto o = g.add<Softmax>("out", {.vocabulary = 7}, h);
    const auto l = g.add<CrossEntropy>("loss", {}, o, y);
    const auto whole = [&] {
        g.reset();
        return g.forward(l, {x, input}, {y, target});
    };
    const auto gradient = [&](const char* name) {
        auto& p = g.parameter(name);
        const auto d = p.dense_gradient();
        const std::vector<double> copy(d.data, d.data + p.size());
        return copy;
    };
    const double before = whole();
    g.backward(l);
    const auto of_head = gradient("out.W"), of_cell = gradient("lstm.U");
    g.parameters().clear_gradients();

    whole();
    g.backward(l, h);
    CHECK(gradient("out.W") == of_head);
    for (const double d : gradient("lstm.U")) CHECK(d == 0);
    g.parameters().clear_gradients();

    g.parameter("out.W").value[3] += 0.5;
    const double again = g.forward_again(l, h);
    CHECK(again != before);
    g.backward(l);
    const auto of_cell_again = gradient("lstm.U");
    g.parameters().clear_gradients();
    CHECK(whole() == again);
    g.backward(l);
    CHECK(gradient("lstm.U") == of_cell_again);
    CHECK(of_cell_again != of_cell);

    g.forward(o, {x, input});
    REQUIRE_THROWS_AS(g.forward_again(l, h), UsageError);
    Model<double> two;
    two.g.forward(two.l, {two.x, input}, {two.y, target});
    REQUIRE_THROWS_AS(two.g.forward_again(two.l, h), UsageError);
    REQUIRE_THROWS_AS(two.g.backward(two.l, h), UsageError);
}

TEMPLATE_TEST_CASE("What is run again begins with the states that the last pass began with", "[graph]", float,
                   double) {
    Model<TestType> m, fresh;
    const auto pass = [](auto& of) { return of.g.forward(of.l, {of.x, input}, {of.y, target}); };
    const auto change = [](auto& of) { of.g.parameter("lstm.U").value[3] += TestType(0.5); };
    const auto state = [](auto& of) { return flat(of.g.states().at("lstm.c")); };
    pass(m), pass(fresh);
    const auto between = state(m);
    const double before = pass(m);
    change(m), change(fresh);
    const double again = m.g.forward_again(m.l, m.e);
    CHECK(again != before);
    CHECK(again == pass(fresh));
    CHECK(state(m) == state(fresh));
    CHECK(state(m) != between);
    m.g.reset();  // for the next pass alone
    CHECK(m.g.forward_again(m.l, m.e) == again);
}
