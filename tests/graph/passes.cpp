// What lies between a forward pass and what depends on it: refusals, and weights frozen or thawed.
#include <isogloss/check.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/graph/runner.hpp>
#include <isogloss/loss/activation_penalty.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/dropout.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/update/adam.hpp>
#include <isogloss/update/sgd.hpp>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

const std::vector<Token> a = {1, 2}, b = {3, 4};

struct Small {
    Graph<double> g{GraphOptions{.time = 2, .batch = 3}};
    Tokens x = g.tokens("x", 5), y = g.tokens("y", 5);
    Weight<double> E = g.weight("E", 5, 4, uniform(1));
    Seq<double> h = g.add<Embedding>("embed", {}, x, E),
                d = g.add<Dropout>("drop", {.keep = 0.5, .variational = true}, h);
    Logits<double> o = g.add<TiedSoftmax>("head", {}, d, E);
    Loss<double> l = g.add<CrossEntropy>("loss", {}, o, y);

    double forward() { return g.forward(l, {x, a}, {y, b}); }
    std::vector<double> gradient() {
        g.backward(l);
        const auto d_E = g.gradient(E);
        const std::vector<double> copy(d_E.begin(), d_E.end());
        g.parameters().clear_gradients();
        return copy;
    }
};

}  // namespace

TEST_CASE("A pass that is refused before it begins leaves the last one as it was", "[graph][errors]") {
    Small m;
    Graph<double> other({.time = 2, .batch = 3});
    const auto foreign = other.input("u", 3);
    m.forward();
    const auto expected = m.gradient();
    m.g.training_step(0);
    m.forward();
    REQUIRE_THROWS_AS(m.g.forward(foreign, {m.x, a}), UsageError);
    REQUIRE_THROWS_AS(m.g.forward(Logits<double>{}, {m.x, a}), UsageError);
    CHECK(m.gradient() == expected);
}

TEST_CASE("A pass that fails leaves no numbers of an earlier one to be read", "[graph][errors]") {
    Small m;
    m.forward();
    CHECK(m.g.mask("drop.mask").shape(0) == 1);
    CHECK(m.g.result(m.l).by_token()(0, 0) > 0);
    CHECK(m.g.result(m.l).cross_entropy() > 0);
    const std::vector<Token> wrong = {1, 9};
    REQUIRE_THROWS_AS(m.g.forward(m.l, {m.x, wrong}, {m.y, b}), DataError);
    REQUIRE_THROWS_MATCHES(m.g.mask("drop.mask"), UsageError, says("'drop'"));
    REQUIRE_THROWS_MATCHES(m.g.result(m.l), UsageError, says("'loss'"));
    REQUIRE_THROWS_MATCHES(m.g.head(m.o).probabilities(), UsageError, says("'head'"));
    m.g.forward(m.d, {m.x, a});
    CHECK(m.g.mask("drop.mask").shape(0) == 1);
    REQUIRE_THROWS_AS(m.g.result(m.l), UsageError);
}

TEST_CASE("A weight frozen or thawed between the passes takes part as it then is", "[graph][trained]") {
    Small m;
    m.forward();
    const auto whole = m.gradient();
    m.g.parameters("E").trained(false);
    m.g.training_step(0);
    m.forward();
    m.g.parameters("E").trained(true);
    CHECK(m.gradient() == whole);
}

TEST_CASE("What is run again is the same training step, with the same masks", "[graph]") {
    Small m;
    const double loss = m.forward();
    const auto expected = m.gradient();
    CHECK(m.g.forward_again(m.l, m.h) == loss);
    CHECK(m.g.training_step() == 1);
    CHECK(m.gradient() == expected);
    m.g.training(false);
    CHECK_THROWS_AS(m.g.forward_again(m.l, m.h), UsageError);
    m.g.training(true);
    CHECK(m.g.forward_again(m.l, m.h) == loss);
}

namespace {

// Forgets to declare its lookup.
template <class T> struct ByRows {
    struct Options {};
    Options options;
    Tokens x;
    Weight<T> E;
    Seq<T> y;
    Seq<T> setup(Setup<T>& s, Tokens in, Weight<T> table) {
        x = in, E = table;
        return y = s.sequence("y", E.cols);
    }
    void forward(Forward<T>& p) {
        for (Index r = 0; r < p.rows(); ++r)
            std::copy_n(p.values(E).row(p.data(x)[r]), E.cols, p.data(y) + r * E.cols);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        if constexpr (Backward<T, Quantity>::is_gradient)
            for (Index r = 0; r < p.rows(); ++r)
                kernel::add(E.cols, p.adjoint_data(y) + r * E.cols, p.gradient_row(E, p.data(x)[r]));
    }
};

// Carries no modulus.
template <class T> struct Plain {
    struct Options {};
    Options options;
    Seq<T> x, y;
    Seq<T> setup(Setup<T>& s, Seq<T> in) {
        x = in;
        return y = s.sequence("y", x.width);
    }
    void forward(Forward<T>& p) { noalias(p.at(y)) = p.at(x); }
    void backward(Backward<T, Gradient>& p) { noalias(p.adjoint(x)) += p.adjoint(y); }
};

// Leaves out sums of its units.
template <class T> struct LeavesOut {
    struct Options {
        bool sums = false, steps = false;
    };
    Options options;
    Units<T> z;
    Seq<T> h;
    Seq<T> setup(Setup<T>& s, Seq<T> x) {
        h = s.recurrent("h", 2);
        z = s.units("z", 2).from("W", x);
        if (options.steps) s.units("v", 2).from("U", s.previous(h));
        return h;
    }
    void forward(Forward<T>& p) {
        if (!options.sums) p.affine(z);
        if (options.steps) p.affine(Units<T>{z.id + 1, h});
    }
    void backward(Backward<T, Gradient>&) {}
};

}  // namespace

TEST_CASE("A forward pass that leaves out sums of units is refused", "[graph][errors]") {
    const auto run = [](LeavesOut<double>::Options o) {
        Graph<double> g({.time = 2, .batch = 1});
        const auto x = g.input("x", 3);
        const auto h = g.add<LeavesOut>("cell", o, x);
        const std::vector<double> in(6, 1);
        g.forward(h, {x, in.data(), 2, 1});
    };
    run({});
    REQUIRE_THROWS_AS(run({.sums = true}), UsageError);
    REQUIRE_THROWS_AS(run({.steps = true}), UsageError);
}

TEST_CASE("A gradient by rows is dense where no lookup was declared", "[graph]") {
    Graph<double> g({.time = 2, .batch = 1});
    const auto y = g.tokens("y", 5);
    const auto x = g.tokens("x", 5);
    const auto h = g.add<ByRows>("rows", {}, x, g.weight("E", 5, 4, uniform(1)));
    const auto l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("head", {.vocabulary = 5}, h), y);
    g.forward(l, {x, a}, {y, b});
    g.backward(l);
    CHECK(g.parameter("E").condition == Parameter<double>::Condition::dense);
    const auto dE = g.gradient(g.weight("E"));
    const auto dh = g.adjoint(h);
    CHECK((xt::row(dE, 1) == xt::row(dh, 0) && xt::row(dE, 2) == xt::row(dh, 1) && dE(0, 0) == 0));
}

TEST_CASE("Moduli are computed down to a sequence whatever the nodes before it can do", "[graph]") {
    Graph<double> g({.time = 2, .batch = 1});
    const auto x = g.input("x", 3);
    const auto y = g.tokens("y", 5);
    const auto h = g.add<Lstm>("lstm", {.units = 4}, g.add<Plain>("plain", {}, x));
    const auto l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("head", {.vocabulary = 5}, h), y);
    const std::vector<double> in(6, 1);
    g.forward(l, {x, in.data(), 2, 1}, {y, b});
    g.backward<Modulus>(l, h);
    CHECK(g.modulus(h)(0, 0) > 0);
    REQUIRE_THROWS_MATCHES(g.backward<Modulus>(l), UsageError, says("node 'plain'"));
}

namespace {

/// A batch of three columns, or some of them; its columns have 4, 1 and 2 targets.
template <class T> struct Parts {
    Graph<T> g{GraphOptions{.time = 4, .batch = 3}};
    Tokens x = g.tokens("x", 5), y = g.tokens("y", 5);
    Weight<T> E = g.weight("E", 5, 4, uniform(1));
    Seq<T> h = g.template add<Lstm>("lstm", {.units = 4, .keep = 0.6, .init = uniform(1)},
                                    g.template add<Embedding>("embed", {}, x, E));
    Loss<T> l =
        g.template add<CrossEntropy>("loss", {}, g.template add<Softmax>("head", {.vocabulary = 5}, h), y);

    void pass(Index first, Index last, std::uint64_t step = 0) {
        const std::vector<Token> words = {1, 2, 3, 0, 4, 2, 3, 3, 1, 2, 0, 4};
        const std::vector<Token> targets = {2, 4, 1, 3, -1, 0, 1, -1, -1, 0, -1, -1};
        std::vector<Token> in, out;
        for (Index t = 0; t < 4; ++t)
            for (Index c = first; c < last; ++c) {
                in.push_back(words[std::size_t(t * 3 + c)]);
                out.push_back(targets[std::size_t(t * 3 + c)]);
            }
        g.reset();
        g.training_step(step);
        g.shard(first, 3);
        g.forward(l, {x, TokenBlock{in.data(), 4, last - first}},
                  {y, TokenBlock{out.data(), 4, last - first}});
        g.backward(l);
    }
    Numbers values() {
        Numbers all;
        for (const auto* p : g.parameters()) all.insert(all.end(), p->value, p->value + p->size());
        return all;
    }
};

}  // namespace

TEMPLATE_TEST_CASE("Passes over the parts of a batch give the step of the whole", "[graph][divisor]", float,
                   double) {
    const Divisor divisor = GENERATE(Divisor::none, Divisor::batch, Divisor::tokens);
    const bool adam = GENERATE(false, true);
    CAPTURE(divisor, adam);
    Parts<TestType> whole, parts;
    const auto step = [&](auto& of) {
        if (adam)
            Adam<TestType>(of.g.parameters(), {.epsilon = 0.1, .clip = 0.01, .divisor = divisor}).step();
        else Sgd<TestType>(of.g.parameters(), {.rate = 0.3, .clip = 5, .divisor = divisor}).step();
        return of.values();
    };
    for (const std::uint64_t pass : {0, 1}) {
        whole.pass(0, 3, pass);
        parts.pass(0, 2, pass), parts.pass(2, 3, pass);  // 5 targets and 2
        REQUIRE(parts.g.parameters().divisor(Divisor::tokens) == 7);
        REQUIRE(parts.g.parameters().divisor(Divisor::batch) == 3);
        REQUIRE(apart(step(parts), step(whole)) < (std::is_same_v<TestType, float> ? 1e-5 : 1e-13));
    }
}

TEST_CASE("A backward pass counts for the weights that it reaches", "[graph][divisor]") {
    for (const bool a_first : {true, false}) {
        Graph<double> g({.time = 1, .batch = 2});
        const auto x = g.input("x", 2);
        const auto of_a = check::probe(g, g.add<Linear>("a", {.units = 2}, x));
        const auto of_b = g.add<check::Probe>("of.b", {}, g.add<Linear>("b", {.units = 2}, x));
        const double values[] = {1, 2, 3, 4};
        for (const auto l : {a_first ? of_a : of_b, a_first ? of_b : of_a}) {
            g.forward(l, {x, values, 1, 2});
            g.backward(l);
        }
        for (const char* group : {"a.*", "b.*", "*"}) CHECK(g.parameters(group).divisor(Divisor::batch) == 2);
        g.forward(of_a, {x, values, 1, 2});
        g.backward(of_a);
        CHECK(g.parameters("a.*").divisor(Divisor::batch) == 4);
        CHECK(g.parameters("b.*").divisor(Divisor::batch) == 2);
    }
}

TEST_CASE("backward is refused after a pass to a sequence of the node of its loss", "[graph][errors]") {
    Graph<double> g({.time = 2, .batch = 1});
    const auto x = g.input("x", 2);
    const auto l = g.add<ActivationPenalty>("penalty", {.change = 1}, g.add<Linear>("a", {.units = 2}, x));
    const double values[] = {1, 2, 3, 4};
    g.forward(g.sequence("penalty.kept"), {x, values, 2, 1});
    REQUIRE_THROWS_AS(g.backward(l), UsageError);
}

TEST_CASE("A gradient that no update clears does not count for others", "[graph][divisor]") {
    Parts<double> m;
    Sgd<double> sgd(m.g.parameters("lstm.*"), {});
    const auto over = [&](const char* name, Divisor d) { return m.g.parameters(name).divisor(d); };
    for (Index pass = 1; pass <= 3; ++pass) {
        m.pass(0, 3);
        m.g.backward<Modulus>(m.l);  // adds to no gradient
        CHECK(over("lstm.*", Divisor::batch) == 3);
        CHECK(over("lstm.*", Divisor::tokens) == 7);
        CHECK(over("head.W", Divisor::batch) == 3. * double(pass));
        CHECK(over("*", Divisor::tokens) == 7. * double(pass));
        sgd.step();
        CHECK(over("lstm.*", Divisor::tokens) == 1);  // no gradient counts
    }
    m.g.parameters().clear_gradients();
    m.pass(0, 3);
    m.g.parameters().summed_over(3, 9);
    m.pass(2, 3);
    CHECK(over("*", Divisor::batch) == 4);
    CHECK(over("*", Divisor::tokens) == 11);
    m.g.parameters().clear_gradients();
    m.g.gradient(m.E)(0, 0) = 1;  // by hand
    CHECK(over("*", Divisor::tokens) == 1);
}
