#include <isogloss/loss/augmented.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/loss/total.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/node/sum.hpp>
#include <isogloss/update/sgd.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
#include "threads.hpp"

using namespace isogloss;

namespace {

constexpr Index T = 4, B = 3, V = 11, n = 5;

enum class Kind { cross_entropy, constant_target, differentiated, own_table };

// A model with a bias, so that a loss writes two or three weights, one of them also looked up; tied, or with the
// soft target from a table that is not the head's.
struct Tied {
    Graph<double> g;
    Tokens x, y;
    Loss<double> l;
    std::vector<Token> in, out;

    explicit Tied(Kind kind, Index budget = Index{32} << 20, Index words = V, Index time = T)
        : g({.time = time, .batch = B, .budget = budget}) {
        x = g.tokens("x", words);
        y = g.tokens("y", words);
        const Index width = kind == Kind::own_table ? n + 2 : n;
        const auto E = g.weight("E", words, width, uniform(1));
        const auto h = g.add<Linear>("map", {.units = n, .init = uniform(1)},
                                     g.add<Embedding>("embed", {.keep = 0.6}, x, E));
        const auto o = kind == Kind::own_table
                           ? g.add<Softmax>("head", {.vocabulary = words, .init = uniform(1)}, h)
                           : g.add<TiedSoftmax>("head", {.bias = true}, h, E);
        if (kind == Kind::cross_entropy) l = g.add<CrossEntropy>("loss", {}, o, y);
        else
            l = g.add<AugmentedLoss>(
                "loss", {.temperature = 2, .differentiate_target = kind != Kind::constant_target}, o, y, E);
        const Random random(3, 1);
        for (Index i = 0; i < time * B; ++i) {
            in.push_back(static_cast<Token>(random.below(2 * i, words)));
            out.push_back(i % 5 == 3 ? not_predicted : static_cast<Token>(random.below(2 * i + 1, words)));
        }
    }
    double forward() {
        const Index time = std::ssize(in) / B;
        return g.forward(l, {x, {in.data(), time, B}}, {y, {out.data(), time, B}});
    }
    // The loss and all gradients of one pass with the masks of step 1.
    Numbers results() {
        g.parameters().clear_gradients();
        g.training_step(0);
        Numbers r = {forward()};
        g.backward(l);
        append(r);
        return r;
    }
    void append(Numbers& r) {
        for (const auto& w : graph::Inspect::store(g).parameters)
            for (const double v : gradient(g, w.name)) r.push_back(v);
    }
};

// [V] arrays per row of a block.
Index arrays_of(Kind kind) {
    switch (kind) {
        case Kind::cross_entropy:
            return 1;
        case Kind::constant_target:
            return 2;
        case Kind::own_table:
            return 3;
        default:
            return 4;
    }
}

}  // namespace

TEST_CASE("A budget for less than one row gives what a large budget gives", "[loss][fused_softmax]") {
    const Kind kind =
        GENERATE(Kind::cross_entropy, Kind::constant_target, Kind::differentiated, Kind::own_table);
    const Index rows = GENERATE(0, 1, 4, 7);
    const Index arrays = arrays_of(kind);
    CAPTURE(static_cast<int>(kind), rows);
    Tied large(kind), small(kind, std::max<Index>(1, rows * arrays * V * Index{sizeof(double)}));
    REQUIRE(apart(small.results(), large.results()) < 1e-14);
    small.g.training(false);
    large.g.training(false);
    REQUIRE(apart(small.results(), large.results()) < 1e-14);
    REQUIRE(small.g.memory() <= large.g.memory());
    REQUIRE(graph::Inspect::store(small.g).arena.guards_intact());
}

TEST_CASE("Blocks of several rows, the last of them smaller, give what one block gives",
          "[loss][fused_softmax]") {
    constexpr Index words = 300, time = 19, targets = 46;
    const Kind kind =
        GENERATE(Kind::cross_entropy, Kind::constant_target, Kind::differentiated, Kind::own_table);
    const Index rows = GENERATE(5, 17, 30);
    const Index arrays = arrays_of(kind);
    CAPTURE(static_cast<int>(kind), rows);
    const auto budget = [&](Index of) { return 20'000 + of * arrays * words * Index{sizeof(double)}; };
    Tied whole(kind, budget(2 * targets), words, time), parts(kind, budget(rows), words, time),
        single(kind, 1, words, time);
    REQUIRE(std::ranges::count_if(whole.out, [](Token y) { return y != not_predicted; }) == targets);
    // The blocks have more rows than one and fewer than all.
    REQUIRE(single.g.memory() < parts.g.memory());
    REQUIRE(parts.g.memory() < whole.g.memory());
    for (const bool training : {true, false}) {
        for (auto* m : {&whole, &parts}) m->g.training(training);
        REQUIRE(apart(parts.results(), whole.results()) < 1e-13);
    }
    REQUIRE(graph::Inspect::store(parts.g).arena.guards_intact());
}

TEST_CASE("The gradient staged by forward is the one that backward computes", "[loss][fused_softmax]") {
    const Kind kind =
        GENERATE(Kind::cross_entropy, Kind::constant_target, Kind::differentiated, Kind::own_table);
    CAPTURE(static_cast<int>(kind));
    Tied m(kind);
    const Numbers staged = m.results();
    // A gradient that counts already keeps forward from staging one, so that backward computes it anew.
    m.g.training_step(0);
    m.forward();
    m.g.backward(m.l);
    Numbers twice = {staged[0]};
    m.append(twice);
    for (std::size_t i = 1; i < twice.size(); ++i) twice[i] /= 2;
    REQUIRE(apart(twice, staged) < 1e-14);
    // Several backward passes after one forward pass add up too.
    m.g.backward(m.l);
    Numbers thrice = {staged[0]};
    m.append(thrice);
    for (std::size_t i = 1; i < thrice.size(); ++i) thrice[i] /= 3;
    REQUIRE(apart(thrice, staged) < 1e-14);
}

TEST_CASE("A training pass stages the gradient wherever nothing counts in it yet", "[loss][fused_softmax]") {
    using Condition = Parameter<double>::Condition;
    const Kind kind =
        GENERATE(Kind::cross_entropy, Kind::constant_target, Kind::differentiated, Kind::own_table);
    CAPTURE(static_cast<int>(kind));
    Tied m(kind);
    const auto after_forward = [&] {
        m.forward();
        return m.g.parameter("E").condition;
    };
    REQUIRE(after_forward() == Condition::staged);
    REQUIRE(after_forward() == Condition::staged);  // not committed, it is discarded and staged again
    const auto& b = m.g.parameter("head.b");
    const Numbers staged(b.gradient, b.gradient + V);
    m.g.backward(m.l);
    REQUIRE(gradient(m.g, "head.b") == staged);
    REQUIRE(m.g.parameter("E").condition == Condition::dense);
    REQUIRE(after_forward() == Condition::dense);
    m.g.parameters().clear_gradients();
    m.g.training(false);
    REQUIRE(after_forward() == Condition::empty);
}

TEST_CASE("Gradients that count stay, whichever of a loss's weights they belong to",
          "[loss][fused_softmax]") {
    // An update of one group clears the gradients of its own weights and leaves the others'.
    const bool differentiate = GENERATE(false, true);
    const unsigned cleared = GENERATE(range(0u, 8u));
    CAPTURE(differentiate, cleared);
    const std::vector<std::string> names = {"E", "head.W", "head.b"};
    Graph<double> g({.time = 2, .batch = 1});
    const auto y = g.tokens("y", 6);
    const auto h = g.input("h", n);
    const auto E = g.weight("E", 6, n, uniform(1));
    const auto o = g.add<Softmax>("head", {.vocabulary = 6, .init = uniform(1)}, h);
    const auto l =
        g.add<AugmentedLoss>("loss", {.temperature = 2, .differentiate_target = differentiate}, o, y, E);
    const Numbers in = numbers(2 * n, 1);
    const Token target[] = {4, 1};
    const auto pass = [&] {
        g.forward(l, {h, in.data(), 2, 1}, {y, {target, 2, 1}});
        g.backward(l);
    };
    pass();
    std::vector<Numbers> once;
    for (const auto& name : names) once.push_back(gradient(g, name));
    for (std::size_t i = 0; i < names.size(); ++i)
        if (cleared >> i & 1) g.parameter(names[i]).clear_gradient();
    pass();
    for (std::size_t i = 0; i < names.size(); ++i) {
        Numbers expected = once[i];
        if (!(cleared >> i & 1))
            for (double& v : expected) v *= 2;
        REQUIRE(apart(gradient(g, names[i]), expected) < 1e-14);
    }
}

TEST_CASE("A staged gradient that no backward pass commits counts for nothing", "[loss][fused_softmax]") {
    const Kind kind =
        GENERATE(Kind::cross_entropy, Kind::constant_target, Kind::differentiated, Kind::own_table);
    CAPTURE(static_cast<int>(kind));
    Tied m(kind), same(kind);
    m.forward();
    m.forward();
    Sgd<double> sgd(m.g.parameters(), {.rate = 1});
    const Numbers before = flat(m.g.value(m.g.weight("E")));
    REQUIRE_THROWS_AS(sgd.step(), UsageError);  // no backward pass
    REQUIRE(flat(m.g.value(m.g.weight("E"))) == before);
    REQUIRE(apart(m.results(), same.results()) < 1e-15);

    // looked at or cleared between the two passes
    m.g.parameters().clear_gradients();
    m.g.training_step(0);
    Numbers again = {m.forward()};
    REQUIRE(gradient(m.g, "E") == Numbers(before.size()));
    m.g.parameters().clear_gradients();
    m.g.backward(m.l);
    m.append(again);
    REQUIRE(apart(again, same.results()) < 1e-14);
}

TEST_CASE("What forward put into an adjoint counts once, and not where somebody else was there first",
          "[loss][fused_softmax]") {
    // The hidden states go to two heads and to a second node, which sends its own gradient back.
    const int order = GENERATE(0, 1);
    const Kind kind = GENERATE(Kind::cross_entropy, Kind::constant_target);
    const auto run = [&](bool stage) {
        Graph<double> g({.time = 2, .batch = 1});
        const auto y = g.tokens("y", V);
        const auto E = g.weight("E", V, n, uniform(1)), F = g.weight("F", V, n, uniform(1));
        const auto h = g.input("h", n);
        g.add<Embedding>("looks", {}, y, E);
        const auto o = g.add<TiedSoftmax>("head1", {}, h, E);
        const auto q = g.add<Softmax>("head2", {.vocabulary = V}, g.add<Linear>("map", {.units = n}, h));
        Loss<double> one, two;
        const auto add_one = [&] {
            one = kind == Kind::cross_entropy ? g.add<CrossEntropy>("one", {}, o, y)
                                              : g.add<AugmentedLoss>("one", {.temperature = 2}, o, y, E);
        };
        if (order == 0) add_one();
        two = g.add<CrossEntropy>("two", {}, q, y);
        if (order == 1) add_one();
        const auto three = g.add<CrossEntropy>("three", {}, g.add<TiedSoftmax>("head3", {}, h, F), y);
        const auto total =
            g.add<TotalLoss>("total", {}, g.add<TotalLoss>("sum", {.weights = {2, 1}}, one, two), three);
        g.training(stage);  // evaluation stages nothing, and no node here behaves otherwise in it
        const Numbers in = numbers(2 * n, 1);
        const Token target[] = {4, 1};
        Numbers all;
        for (int pass = 0; pass < 2; ++pass) {
            g.parameters().clear_gradients();
            g.forward(total, {h, in.data(), 2, 1}, {y, {target, 2, 1}});
            g.backward(total);
            for (const auto& name : {"E", "F", "map.W", "head2.W"})
                for (const double v : gradient(g, name)) all.push_back(v);
            for (const double v : flat(g.adjoint(h))) all.push_back(v);
        }
        return all;
    };
    REQUIRE(apart(run(true), run(false)) < 1e-14);
}

TEST_CASE("Positions without a target cost nothing and send nothing back", "[loss][fused_softmax]") {
    const Kind kind =
        GENERATE(Kind::cross_entropy, Kind::constant_target, Kind::differentiated, Kind::own_table);
    const bool training = GENERATE(true, false);
    CAPTURE(static_cast<int>(kind), training);
    Tied m(kind);
    m.g.training(training);
    m.g.shard(0, B);  // backward refuses a whole batch without targets
    m.out.assign(m.out.size(), not_predicted);
    for (const double v : m.results()) REQUIRE(v == 0);
    REQUIRE(m.g.result(m.l).predicted() == 0);
    REQUIRE(flat(m.g.result(m.l).by_token()) == Numbers(T * B));
}

TEST_CASE("Two threads give what one gives, to rounding", "[loss][fused_softmax][threads]") {
    const Kind kind =
        GENERATE(Kind::cross_entropy, Kind::constant_target, Kind::differentiated, Kind::own_table);
    const int while_built = GENERATE(1, 2);
    CAPTURE(static_cast<int>(kind), while_built);
    const Threads restored(1);
    Tied one(kind);
    threads(while_built);
    Tied two(kind);
    threads(1);
    const Numbers expected = one.results();
    threads(2);
    const Numbers got = two.results();
    REQUIRE(apart(got, expected) < 1e-14);
    REQUIRE(two.results() == got);
}

TEST_CASE("Threads share the words of a large vocabulary", "[loss][fused_softmax][threads]") {
    const Kind kind =
        GENERATE(Kind::cross_entropy, Kind::constant_target, Kind::differentiated, Kind::own_table);
    CAPTURE(static_cast<int>(kind));
    const Threads restored(1);
    Tied m(kind, Index{32} << 20, 900);  // more words than a piece of the sum of dl/dh has
    const Numbers expected = m.results();
    for (const int count : {2, 3}) {
        threads(count);
        REQUIRE(apart(m.results(), expected) < 1e-13);
    }
}

namespace {

// A loss that asks its head for something wrong in setup.
template <class T> struct Asking {
    struct Options {
        HeadNeeds needs = {};
        bool two_weights = false, undeclared = false;
        Weight<T> words = {};
    };
    Options options;
    FusedSoftmax<T> head;
    Loss<T> l;
    Weight<T> other;

    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y, Weight<T> one, Weight<T> two) {
        other = two;
        head.setup(s, o, y, options.needs, options.words);
        head.also_writes(s, one);
        if (options.two_weights) head.also_writes(s, two);
        return l = s.loss();
    }
    void forward(Forward<T>& p) {
        if (options.undeclared) head.forward(p, l, [&](LogitBlock<T>&) { head.weight_gradient(p, other); });
        if (options.needs.word_logits) {
            head.forward(p, l, [](LogitBlock<T>& block) {
                std::fill_n(block.z.data, block.z.rows * block.z.cols, T(0));
                std::fill_n(block.s.data, block.s.rows * block.s.cols, T(1));
                block.word_gradient = true;
            });
        }
        p.set(l, 0, 0);
    }
    template <class Quantity> void backward(Backward<T, Quantity>&) {}
};

}  // namespace

TEST_CASE("A loss says how many arrays it needs and which weight it writes",
          "[loss][fused_softmax][errors]") {
    const auto asks = [](Asking<double>::Options options, Index rows = 0, bool frozen = false) {
        Graph<double> g({.time = 1, .batch = 1});
        const auto y = g.tokens("y", V);
        const auto E = g.weight("E", V, n, uniform(1)), U = g.weight("U", V, n, uniform(1));
        if (rows > 0) options.words = g.weight("words", rows, 3, uniform(1));
        const auto o = g.add<TiedSoftmax>("head", {}, g.input("h", n), E);
        const auto l = g.add<Asking>("loss", options, o, y, E, U);
        if (frozen) g.parameters("E").trained(false);
        const Token target = 1;
        const Numbers h(n, 1);
        g.forward(l, {y, {&target, 1, 1}}, {g.sequence("h"), h.data(), 1, 1});
    };
    const HeadNeeds words{.arrays = 2, .word_logits = true, .word_gradient = true};
    REQUIRE_NOTHROW(asks({.needs = words}));
    REQUIRE_NOTHROW(asks({.needs = words}, 0, true));
    REQUIRE_THROWS_MATCHES(asks({.needs = {.arrays = 0}}), UsageError, says("arrays = 0", "at least 1"));
    REQUIRE_THROWS_MATCHES(asks({.needs = {.word_logits = true}}), UsageError,
                           says("arrays = 1", "at least 2", "word_logits"));
    REQUIRE_THROWS_MATCHES(asks({.needs = {.arrays = 2, .word_logits = true}}), UsageError,
                           says("node 'loss'", "gradient of a block's words", "word_gradient"));
    REQUIRE_THROWS_MATCHES(asks({.needs = words}, V - 1), UsageError,
                           says("table 'words' has 10 rows", "one per word: 11"));
    REQUIRE_THROWS_MATCHES(asks({.needs = words}, V), UsageError, says("'words' and 'E'", "one at most"));
    REQUIRE_THROWS_MATCHES(asks({.two_weights = true}), UsageError, says("'E' and 'U'", "one at most"));
    REQUIRE_THROWS_MATCHES(asks({.undeclared = true}), UsageError, says("gradient of 'U'", "also_writes"));
}

TEST_CASE("Several losses on one table add up their gradients", "[loss][fused_softmax]") {
    constexpr Index words = 6;
    const Numbers first = numbers(2 * n, 1), second = numbers(2 * n, 2);
    const Token y[] = {4, 1};
    const auto run = [&](double a, double b) {
        Graph<double> g({.time = 2, .batch = 1});
        const auto target = g.tokens("y", words);
        const auto E = g.weight("E", words, n, uniform(1));
        const auto h = g.input("h", n), k = g.input("k", n);
        const auto o = g.add<TiedSoftmax>("head1", {}, h, E), q = g.add<TiedSoftmax>("head2", {}, k, E);
        const auto one = g.add<CrossEntropy>("one", {}, o, target);
        const auto two =
            g.add<AugmentedLoss>("two", {.temperature = 2, .differentiate_target = true}, q, target, E);
        const auto three =
            g.add<CrossEntropy>("three", {}, o, target);  // and a second one on the same logits
        const auto total = g.add<TotalLoss>("total", {.weights = {1, a}},
                                            g.add<TotalLoss>("sum", {.weights = {b, 2}}, one, two), three);
        g.forward(total, {target, {y, 2, 1}}, {h, first.data(), 2, 1}, {k, second.data(), 2, 1});
        g.backward(total);
        Numbers all = gradient(g, "E");
        for (const double v : flat(g.adjoint(h))) all.push_back(v);
        return all;
    };
    // one and three are the same loss: only the sum of their weights counts, whoever stages what
    const Numbers together = run(0.5, 0.5);
    REQUIRE(apart(run(1, 0), together) < 1e-14);
    REQUIRE(apart(run(0, 1), together) < 1e-14);
    REQUIRE(apart(run(-2, 3), together) < 1e-14);
}

namespace {

// A loss of one's own on lazy logits: half the squared distance of the logits to a one-hot vector.
template <class Scalar> struct SquaredError {
    struct Options {};
    Options options;
    FusedSoftmax<Scalar> head;
    Loss<Scalar> l;

    Loss<Scalar> setup(Setup<Scalar>& s, Logits<Scalar> o, Tokens y) {
        head.setup(s, o, y);
        return l = s.loss();
    }
    void forward(Forward<Scalar>& p) {
        std::fill_n(p.by_token(l), p.rows(), 0.0);
        const Index count = head.forward(p, l, [&](LogitBlock<Scalar>& block) { rows(p, block); });
        double total = 0;
        for (Index r = 0; r < p.rows(); ++r) total += p.by_token(l)[r];
        p.set(l, total, count);
    }
    void backward(Backward<Scalar>& p) {
        head.backward(p, l, [&](LogitBlock<Scalar>& block) { rows(p, block); });
    }

private:
    void rows(const Pass<Scalar>& p, LogitBlock<Scalar>& block) const {
        for (Index r = 0; r < block.z.rows; ++r) {
            Scalar* z = block.z.row(r);
            z[block.target[r]] -= Scalar(1);
            double loss = 0;
            for (Index v = 0; v < block.z.cols; ++v) {
                loss += 0.5 * double(z[v]) * double(z[v]);
                if (block.gradient) z[v] *= static_cast<Scalar>(p.upstream(l));
            }
            p.by_token(l)[block.position[r]] = loss;
        }
    }
};

}  // namespace

TEST_CASE("A loss of one's own on lazy logits obeys the laws of a node", "[loss][fused_softmax]") {
    REQUIRE(laws([](auto& g) {
                const auto o = g.template add<Softmax>("head", {.vocabulary = 6}, g.input("h", 3));
                return g.template add<SquaredError>("loss", {}, o, g.tokens("y", 6));
            }) == "");
}

TEST_CASE("A loss without a modulus is refused by name when one is asked for",
          "[loss][fused_softmax][modulus]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto h = g.input("h", 3);
    const auto y = g.tokens("y", 6);
    const auto l = g.add<SquaredError>("squares", {}, g.add<Softmax>("head", {.vocabulary = 6}, h), y);
    const Numbers in = {1, 2, 3};
    const Token target = 2;
    g.forward(l, {h, in.data(), 1, 1}, {y, {&target, 1, 1}});
    g.backward(l);
    REQUIRE_THROWS_MATCHES(g.backward<Modulus>(l), UsageError, says("node 'squares' carries no modulus"));
}
