// The option `adversarial` of the softmax losses; threads, blocks and sampling are in fused_softmax.cpp and
// sparse_gradient.cpp.
#include <isogloss/loss/augmented.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/node/sum.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
#include "reference/adversarial_values.hpp"
#include "reference/values.hpp"
#include "tolerance.hpp"

using namespace isogloss;

namespace {

enum class Top { tied, projected, own };

// E[x] + h under a head with a bias.
template <class T> struct Model {
    Tokens x, y;
    Seq<T> h;
    Loss<T> l;
    Model(Graph<T>& g, Top top, bool augmented, double epsilon, Index V = 7)
        : x(g.tokens("x", V)), y(g.tokens("y", V)), h(g.input("h", 4)) {
        const auto E = g.weight("E", V, 4, uniform(0.9));
        const auto sum = g.template add<Sum>("sum", {}, g.template add<Embedding>("embed", {}, x, E), h);
        const auto o =
            top == Top::own
                ? g.template add<Softmax>("head", {.vocabulary = V}, sum)
                : g.template add<TiedSoftmax>(
                      "head", {.bias = true, .projection = top == Top::projected, .init = uniform(0.7)}, sum,
                      E);
        if (augmented)
            l = g.template add<AugmentedLoss>(
                "loss", {.alpha = 1.75, .temperature = 2.5, .adversarial = epsilon}, o, y, E);
        else l = g.template add<CrossEntropy>("loss", {.adversarial = epsilon}, o, y);
    }
};

// The loss and all gradients of a pass over many words.
template <class T> Numbers pass(double epsilon, bool training, Precision precision = Precision::full) {
    constexpr Index V = 300, time = 8, batch = 4;
    Graph<T> g({.time = time, .batch = batch, .precision = precision});
    const Model<T> m(g, Top::tied, false, epsilon, V);
    g.training(training);
    std::vector<Token> x, y;
    std::vector<T> h;
    for (Index i = 0; i < time * batch; ++i) {
        x.push_back(static_cast<Token>(i * i % V)), y.push_back(static_cast<Token>(7 * i % 30));
        for (Index k = 0; k < 4; ++k) h.push_back(static_cast<T>(std::sin(double(4 * i + k))));
    }
    Numbers all = {g.forward(m.l, {m.x, {x.data(), time, batch}}, {m.y, {y.data(), time, batch}},
                             {m.h, h.data(), time, batch})};
    g.backward(m.l);
    for (const auto& p : graph::Inspect::store(g).parameters)
        for (const double v : gradient(g, p.name)) all.push_back(v);
    return all;
}

}  // namespace

TEST_CASE("Losses with an adversary obey the laws of a node", "[loss][adversarial]") {
    const Top top = GENERATE(Top::tied, Top::projected, Top::own);
    const bool augmented = GENERATE(false, true);
    CAPTURE(static_cast<int>(top), augmented);
    REQUIRE(laws([=]<class T>(Graph<T>& g) { return Model<T>(g, top, augmented, 0.3).l; }) == "");
}

TEST_CASE("Losses with an adversary agree with numpy", "[loss][adversarial][reference]") {
    namespace ref = reference::head;
    const bool tied = GENERATE(true, false);
    Graph<double> g({.time = 3, .batch = 2});
    const Model<double> m(g, tied ? Top::tied : Top::own, !tied, reference::adversarial);
    set(g, "E", ref::E);
    set(g, "head.b", ref::b);
    if (!tied) set(g, "head.W", ref::W);
    const auto run = [&] {
        g.parameters().clear_gradients();
        g.forward(m.l, {m.x, {ref::x, 3, 2}}, {m.y, {ref::y, 3, 2}}, {m.h, ref::h, 3, 2});
        g.backward(m.l);
    };
    const auto agrees = [&](const auto& by_token, const auto& d_h, const auto& d_E, const auto& d_b) {
        CHECK(apart(flat(g.result(m.l).by_token()), by_token) < 1e-14);
        CHECK(apart(flat(g.adjoint(m.h)), d_h) < 1e-14);
        CHECK(apart(gradient(g, "E"), d_E) < 1e-14);
        CHECK(apart(gradient(g, "head.b"), d_b) < 1e-14);
    };
    run();
    if (tied) {
        namespace r = reference::adversarial_tied;
        agrees(r::by_token, r::d_h, r::d_E, r::d_b);
        g.training(false);  // there the plain loss
        run();
        namespace plain = reference::cross_entropy_tied;
        agrees(plain::by_token, plain::d_h, plain::d_E, plain::d_b);
    } else {
        namespace r = reference::adversarial_free;
        agrees(r::by_token, r::d_h, r::d_E, r::d_b);
        CHECK(apart(gradient(g, "head.W"), r::d_W) < 1e-14);
    }
}

TEMPLATE_TEST_CASE("Of two words, the target's vector is moved against the state by a share of its length",
                   "[loss][adversarial]", float, double) {
    Graph<TestType> g({.time = 1, .batch = 1});
    const auto y = g.tokens("y", 2);
    const auto h = g.input("h", 2);
    const auto o = g.template add<Softmax>("head", {.vocabulary = 2, .bias = false}, h);
    const auto l = g.template add<CrossEntropy>("loss", {.adversarial = 0.1}, o, y);
    set(g, "head.W", {3, 4, 0, 2});
    const TestType in[] = {TestType(0.8), TestType(-0.6)};
    const Token target[] = {0};
    // <e, h> = 0, |e| = 5, |h| = 1; the other logit is -1.2
    const double lowered = -0.5, p = 1 / (1 + std::exp(-1.2 - lowered)), g_y = p - 1;
    const double loss = g.forward(l, {h, in, 1, 1}, {y, {target, 1, 1}});
    CHECK(loss == to_rounding<TestType>(-std::log(p), 1e-6, 1e-15));
    CHECK(g.result(l).cross_entropy() == loss);
    g.backward(l);
    // e - 0.1 · 5 h and its like for e: h - 0.1 · 1 e / 5
    CHECK(apart(flat(g.adjoint(h)), Numbers{g_y * (3 - 0.4), g_y * (4 + 0.3) - 2 * g_y}) < 1e-6);
    CHECK(apart(gradient(g, "head.W"),
                Numbers{g_y * (0.8 - 0.06), g_y * (-0.6 - 0.08), -g_y * 0.8, g_y * 0.6}) < 1e-6);
}

TEMPLATE_TEST_CASE("A vector or a state of length 0 is not moved", "[loss][adversarial]", float, double) {
    const bool state = GENERATE(false, true);
    Numbers all[2];
    for (const double epsilon : {0., 0.5}) {
        Graph<TestType> g({.time = 1, .batch = 1});
        const auto y = g.tokens("y", 3);
        const auto h = g.input("h", 2);
        const auto o = g.template add<Softmax>("head", {.vocabulary = 3}, h);
        const auto l = g.template add<CrossEntropy>("loss", {.adversarial = epsilon}, o, y);
        if (!state) std::fill_n(g.parameter("head.W").value + 2, 2, TestType(0));
        const TestType in[] = {TestType(state ? 0 : 0.4), TestType(state ? 0 : -2)};
        const Token target[] = {1};
        Numbers& found = all[epsilon > 0];
        found = {g.forward(l, {h, in, 1, 1}, {y, {target, 1, 1}})};
        g.backward(l);
        for (const double v : flat(g.adjoint(h))) found.push_back(v);
        for (const double v : gradient(g, "head.W")) found.push_back(v);
    }
    CHECK(all[1] == all[0]);
}

TEST_CASE("In bfloat16 an adversary is that of double but for the rounding of the factors",
          "[loss][adversarial]") {
    const Numbers exact = pass<double>(0.3, true), plain = pass<double>(0, true);
    CHECK(apart(pass<float>(0.3, true), exact) < 1e-5);
    CHECK(apart(pass<float>(0.3, true, Precision::bf16), exact) < 2e-2);
    CHECK(apart(plain, exact) > 0.1);
    CHECK(pass<double>(0.3, false) == pass<double>(0, false));
}

TEST_CASE("An adversary as strong as the vectors is refused", "[loss][adversarial]") {
    const bool augmented = GENERATE(false, true);
    for (const double epsilon : {-0.1, 1., std::nan("")}) {
        Graph<float> g({.time = 1, .batch = 1});
        REQUIRE_THROWS_MATCHES(Model<float>(g, Top::tied, augmented, epsilon), UsageError,
                               says("'loss'", "adversarial", "below 1"));
    }
}
