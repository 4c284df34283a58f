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

enum class Kind { cross_entropy, adversarial, constant_target, differentiated, own_table };

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
        else if (kind == Kind::adversarial) l = g.add<CrossEntropy>("loss", {.adversarial = 0.2}, o, y);
        else
            l = g.add<AugmentedLoss>("loss",
                                     {.temperature = 2,
                                      .differentiate_target = kind != Kind::constant_target,
                                      .adversarial = kind == Kind::own_table ? 0.2 : 0},
                                     o, y, E);
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
        case Kind::adversarial:
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
    const Kind kind = GENERATE(Kind::cross_entropy, Kind::adversarial, Kind::constant_target,
                               Kind::differentiated, Kind::own_table);
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
    const Kind kind = GENERATE(Kind::cross_entropy, Kind::adversarial, Kind::constant_target,
                               Kind::differentiated, Kind::own_table);
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
    const Kind kind = GENERATE(Kind::cross_entropy, Kind::adversarial, Kind::constant_target,
                               Kind::differentiated, Kind::own_table);
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
    const Kind kind = GENERATE(Kind::cross_entropy, Kind::adversarial, Kind::constant_target,
                               Kind::differentiated, Kind::own_table);
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

TEST_CASE("Threads change the rounding of sums alone, and those while a model is built change nothing",
          "[loss][fused_softmax][threads]") {
    const Kind kind = GENERATE(Kind::cross_entropy, Kind::adversarial, Kind::constant_target,
                               Kind::differentiated, Kind::own_table);
    const Index budget = GENERATE(Index{100'000}, Index{32} << 20);
    CAPTURE(static_cast<int>(kind), budget);
    const Threads restored(1);
    Tied one(kind, budget, 900);  // more words than a piece of the sum of dl/dh has
    threads(16);
    Tied many(kind, budget, 900);
    REQUIRE(many.g.memory() == one.g.memory());
    threads(1);
    const Numbers expected = one.results();
    REQUIRE(many.results() == expected);
    for (const int count : {2, 3}) {
        threads(count);
        const Numbers got = one.results();
        REQUIRE(apart(got, expected) < 1e-13);
        REQUIRE(one.results() == got);
    }
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

// A loss of one's own by blocks: half the squared distance of the logits to a one-hot vector.
template <class Scalar> struct SquaredDistance : SoftmaxLoss<Scalar, SquaredDistance> {
    struct Options {};
    Options options;

    void rows(const Pass<Scalar>& p, LogitBlock<Scalar>& block) const {
        for (Index r = 0; r < block.z.rows; ++r) {
            Scalar* z = block.z.row(r);
            z[block.target[r]] -= Scalar(1);
            double loss = 0;
            for (Index v = 0; v < block.z.cols; ++v) {
                loss += 0.5 * double(z[v]) * double(z[v]);
                if (block.gradient) z[v] *= static_cast<Scalar>(p.upstream(this->l));
            }
            p.by_token(this->l)[block.position[r]] = loss;
        }
    }
};

}  // namespace

TEST_CASE("A loss of one's own on lazy logits obeys the laws of a node", "[loss][fused_softmax]") {
    REQUIRE(laws([](auto& g) {
                const auto o = g.template add<Softmax>("head", {.vocabulary = 6}, g.input("h", 3));
                return g.template add<SquaredDistance>("loss", {}, o, g.tokens("y", 6));
            }) == "");
}
