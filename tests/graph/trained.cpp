// Weights that are not trained: no gradient product, no memory, no step; and all others as if they were.
#include <isogloss/isogloss.hpp>
#include <isogloss/update/dynamic.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

namespace {

constexpr Index V = 60, n = 8, T0 = 6, B = 4;

struct Kind {
    bool tied, augmented;
    double epsilon = 0;
    Precision precision = Precision::full;
};

/// A language model of any kind of head and loss.
template <class T> struct Net {
    Graph<T> g;
    Tokens x, y;
    Weight<T> E;
    Loss<T> l;
    std::vector<Token> words, next;

    explicit Net(Kind kind, WeightOptions options = {})
        : g({.time = T0, .batch = B, .seed = 5, .precision = kind.precision, .epsilon = kind.epsilon}),
          x(g.tokens("x", V)),
          y(g.tokens("y", V)),
          E(g.weight("E", V, n, uniform(0.5), options)) {
        auto h = g.template add<Embedding>("embed", {.keep = 0.7}, x, E);
        h = g.template add<Lstm>("lstm", {.units = n, .keep = 0.7}, h);
        const auto o = kind.tied ? g.template add<TiedSoftmax>("softmax", {.bias = true}, h, E)
                                 : g.template add<Softmax>("softmax", {.vocabulary = V}, h);
        l = kind.augmented ? g.template add<AugmentedLoss>("loss", {}, o, y, E)
                           : g.template add<CrossEntropy>("loss", {}, o, y);
        const Random random(3, 1);
        for (Index i = 0; i < T0 * B; ++i) {
            words.push_back(static_cast<Token>(random.below(2 * i, V)));
            next.push_back(i % 7 == 0 ? not_predicted : static_cast<Token>(random.below(2 * i + 1, V / 4)));
        }
    }
    double pass() {
        g.reset();
        g.training_step(4);
        const double nats =
            g.forward(l, {x, TokenBlock{words.data(), T0, B}}, {y, TokenBlock{next.data(), T0, B}});
        g.backward(l);
        return nats;
    }
    std::vector<T> gradient(const std::string& of) {
        const auto m = g.gradient(g.weight(of));
        return {m.begin(), m.end()};
    }
    std::vector<T> value(const std::string& of) {
        const auto m = g.value(g.weight(of));
        return {m.begin(), m.end()};
    }
};

const std::vector<std::string> rest = {"lstm.W", "lstm.U", "lstm.b", "softmax.b"};

}  // namespace

TEMPLATE_TEST_CASE("A table that is not trained has no gradient, and all others have theirs",
                   "[graph][trained]", float, double) {
    const auto kind = GENERATE(Kind{true, false}, Kind{true, true}, Kind{false, false}, Kind{false, true},
                               Kind{true, false, 0.02}, Kind{true, true, 0.02}, Kind{false, true, 0.02});
    const bool declared = GENERATE(true, false);
    CAPTURE(kind.tied, kind.augmented, kind.epsilon, declared);
    Net<TestType> trained(kind), held(kind, {.trained = !declared});
    if (!declared) held.g.parameters("E").trained(false);
    const auto before = held.value("E");
    if (declared) CHECK(held.g.memory() + V * n * sizeof(TestType) <= trained.g.memory());

    for (const bool training : {true, false}) {
        trained.g.training(training), held.g.training(training);
        trained.g.parameters().clear_gradients(), held.g.parameters().clear_gradients();
        const double e = sizeof(TestType) == 4 ? 1e-4 : 1e-11;
        CHECK(held.pass() == Approx(trained.pass()).epsilon(e / 100));
        for (const auto& name : rest) {
            const auto expected = trained.gradient(name), found = held.gradient(name);
            for (std::size_t i = 0; i < expected.size(); ++i)
                REQUIRE(double(found[i]) == Approx(double(expected[i])).epsilon(e).margin(e / 10));
        }
        CHECK(held.g.parameter("E").condition == Parameter<TestType>::Condition::empty);
    }
    held.g.training(true);
    Sgd<TestType> sgd(held.g.parameters(), {.rate = 0.1, .clip = 1, .weight_decay = 0.1});
    held.pass();
    sgd.step();
    CHECK(held.value("E") == before);
    CHECK(graph::Inspect::store(held.g).arena.guards_intact());
}

TEST_CASE("Weights of a node are held for a while, and trained again", "[graph][trained]") {
    Net<double> net({true, true}), twin({true, true});
    net.pass();  // whose gradients are forgotten
    net.g.parameters("lstm.*, softmax.b").trained(false);
    CHECK(net.g.parameters().trained().size() == 1);
    net.g.parameters("E").clear_gradients();
    net.pass(), twin.pass();
    CHECK(net.gradient("E") == twin.gradient("E"));
    for (const auto& name : rest) {
        CHECK(net.g.parameter(name).condition == Parameter<double>::Condition::empty);
        CHECK_THROWS_AS(net.g.gradient(net.g.weight(name)), UsageError);
    }
    net.g.parameters().trained(true);
    CHECK(net.gradient("E") == twin.gradient("E"));  // of what was trained all along it stays
    net.g.parameters().clear_gradients(), twin.g.parameters().clear_gradients();
    net.pass(), twin.pass();
    for (const auto& name : rest) CHECK(net.gradient(name) == twin.gradient(name));
}

TEST_CASE("Updates leave out what is not trained", "[graph][trained][update]") {
    Net<double> net({false, false}, {.trained = false});
    auto& g = net.g;
    const auto before = net.value("E"), U = net.value("lstm.U");
    const auto moves = [&](auto& update) {
        net.pass();
        update.step();
        CHECK(net.value("E") == before);
        CHECK(net.value("lstm.U") != U);
    };
    Adam<double> adam(g.parameters(), {.weight_decay = 0.1});
    moves(adam);
    CHECK(adam.group().size() == 5);
    AveragedSgd<double> averaged(g.parameters(), {.sgd = {.rate = 0.1, .weight_decay = 0.1}});
    moves(averaged);
    {
        WeightDrop<double> drop(g.parameters("E, lstm.U"), {.keep = 0.5});
        const WeightDrop<double>::Dropped dropped(drop);
        CHECK(net.value("E") == before);
    }
    const auto at = net.value("lstm.U");
    {
        DynamicUpdate<double> dynamic(g.parameters(), {.rule = DynamicRule::sgd, .rate = 0.1, .decay = 0.1});
        moves(dynamic);
    }
    CHECK(net.value("lstm.U") == at);
    // E, which is looked up, has no metric: were it in the group, that would be refused.
    Riemannian<double> riemannian(g, "E, lstm.*", {});
    net.g.forward(net.l, {net.x, TokenBlock{net.words.data(), T0, B}},
                  {net.y, TokenBlock{net.next.data(), T0, B}});
    CHECK(riemannian.group().size() == 3);
}

TEST_CASE("Weights frozen for an epoch: gradients, norms and steps are those of the rest",
          "[graph][trained][update]") {
    const auto check = [](auto make, bool clipped_by_hand) {
        Net<double> net({true, true});
        auto update = make(net.g);
        const auto all = net.g.parameters();
        const auto step = [&] {
            net.pass();
            const double norm = direction_norm(all.trained(), all.divisor(Divisor::batch), 0);
            if (clipped_by_hand) CHECK(clip_gradients(all, 0.5) == Approx(norm));
            else CHECK(update.step() == Approx(norm));
            if (clipped_by_hand) CHECK(update.step() == Approx(std::min(norm, 0.5)));
        };
        const auto values = [&](const char* pattern) {
            std::vector<double> v;
            for (const auto* p : net.g.parameters(pattern)) v.insert(v.end(), p->value, p->value + p->size());
            return v;
        };
        step(), step();  // some momentum
        for (const char* frozen : {"softmax.*", "E", "lstm.*"}) {
            const auto before = values(frozen), rest_before = values((std::string("!") + frozen).c_str());
            net.g.parameters(frozen).trained(false);
            step(), step();
            CHECK(values(frozen) == before);
            CHECK(values((std::string("!") + frozen).c_str()) != rest_before);
            net.g.parameters(frozen).trained(true);
            step();
            CHECK(values(frozen) != before);
        }
    };
    const SgdOptions sgd{.rate = 0.1, .clip = 0.3, .momentum = 0.5};
    check([&](auto& g) { return Sgd<double>(g.parameters(), sgd); }, false);
    check([&](auto& g) { return Sgd<double>(g.parameters(), {.rate = 0.1}); }, true);
    check([&](auto& g) { return Adam<double>(g.parameters(), {.clip = 0.3, .weight_decay = 0.1}); }, false);
    check([&](auto& g) { return AveragedSgd<double>(g.parameters(), {.sgd = sgd}); }, false);
}

TEST_CASE("Averages go on with frozen weights, a metric refuses them", "[graph][trained][update]") {
    Net<double> net({false, false});
    WeightAverage<double> average(net.g.parameters(), {.decay = 0.5});
    Riemannian<double> riemannian(net.g, "softmax.*", {});
    average.add();
    net.g.parameters("softmax.*").trained(false);
    const auto W = net.value("softmax.W"), U = net.value("lstm.U");
    Sgd<double> sgd(net.g.parameters(), {.rate = 0.1});
    net.pass(), sgd.step(), average.add();
    average.swap();
    CHECK(net.value("softmax.W") == W);
    CHECK(net.value("lstm.U") != U);
    average.swap();
    net.pass();
    CHECK_THROWS_AS(riemannian.step(), UsageError);
}

TEST_CASE("Not to be trained is refused where it makes no sense", "[graph][trained]") {
    Net<float> net({true, false}, {.trained = false});
    CHECK_THROWS_AS(net.g.parameters("E").trained(true), UsageError);
    CHECK_THROWS_AS(Sgd<float>(net.g.parameters("E"), {}), UsageError);
    CHECK_THROWS_AS(WeightDrop<float>(net.g.parameters("E"), {.keep = 0.5}), UsageError);
    for (const auto& group :
         {net.g.parameters("E").trained(), Parameters<float>(graph::Inspect::store(net.g), {})})
        CHECK_THROWS_AS(Sgd<float>(group, {}), UsageError);
    CHECK_THROWS_AS(net.g.gradient(net.E), UsageError);
}

namespace {

/// y = x + w, whose backward never asks whether w is trained.
template <class T> struct Careless {
    struct Options {
        bool careful = false;
    };
    Options options;
    Seq<T> x, y;
    Weight<T> w;
    Seq<T> setup(Setup<T>& s, Seq<T> in) {
        x = in;
        w = s.weight("w", 1, in.width, uniform(1));
        return y = s.sequence("y", in.width);
    }
    void forward(Forward<T>& p) {
        for (Index i = 0; i < p.rows() * x.width; ++i)
            p.data(y)[i] = p.data(x)[i] + p.values(w).data[i % x.width];
    }
    void backward(Backward<T>& p) {
        T* dw = options.careful && !p.is_trained(w) ? nullptr : p.gradient(w).data;
        for (Index i = 0; i < p.rows() * x.width; ++i) {
            p.adjoint_data(x)[i] += p.adjoint_data(y)[i];
            if (dw) dw[i % x.width] += p.adjoint_data(y)[i];
        }
    }
};

}  // namespace

TEST_CASE("A node that does not ask refuses, by name, one that asks obeys", "[graph][trained][laws]") {
    Graph<double> g({});
    const auto x = g.input("x", 2);
    const auto l = check::probe(g, g.add<Careless>("careless", {}, x));
    g.parameters().trained(false);
    const double one[] = {1, 2};
    g.forward(l, {x, one, 1, 1});
    CHECK_THROWS_MATCHES(g.backward(l), UsageError, says("node 'careless'", "'careless.w'"));
    for (const bool careful : {false, true}) {
        const auto found = laws([=](auto& graph) {
            return check::probe(
                graph, graph.template add<Careless>("node", {.careful = careful}, graph.input("x", 3)));
        });
        CHECK((careful ? found.empty() : found.rfind("freezing: node 'node'", 0) == 0));
    }
}

TEST_CASE("The laws hold of models with weights that are not trained", "[graph][trained][laws]") {
    CHECK(laws([](auto& g) {
              const auto x = g.tokens("x", 9), y = g.tokens("y", 9);
              const auto E = g.weight("E", 9, 4, uniform(0.5), {.trained = false});
              auto h = g.template add<Embedding>("embed", {.keep = 0.7}, x, E);
              h = g.template add<Lstm>("lstm", {.units = 4, .keep = 0.7}, h);
              g.parameters("lstm.U").trained(false);
              const auto o = g.template add<TiedSoftmax>("softmax", {.bias = true}, h, E);
              return g.template add<AugmentedLoss>("loss", {}, o, y);
          }) == "");
    CHECK(laws([](auto& g) {  // nothing is trained at all
              const auto x = g.input("x", 3);
              const auto h = g.template add<Gru>("gru", {.units = 4}, x);
              g.parameters().trained(false);
              return check::probe(g, h);
          }) == "");
}
