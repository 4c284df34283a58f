#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/node/sum.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
#include "reference/values.hpp"

using namespace isogloss;

TEST_CASE("CrossEntropy obeys the laws of a node", "[loss][cross_entropy]") {
    const bool tied = GENERATE(false, true);
    const Index V = GENERATE(2, 40);
    CAPTURE(tied, V);
    REQUIRE(laws([=](auto& g) {
                const auto E = g.weight("E", V, 4, uniform(0.8));
                const auto h = g.template add<Embedding>("embed", {}, g.tokens("x", V), E);
                const auto o = tied ? g.template add<TiedSoftmax>("head", {.bias = true}, h, E)
                                    : g.template add<Softmax>("head", {.vocabulary = V}, h);
                return g.template add<CrossEntropy>("loss", {}, o, g.tokens("y", V));
            }) == "");
}

namespace {

// Hidden states h as they are given, under a head of its own.
template <class T> struct Head {
    Graph<T> g;
    Seq<T> h;
    Tokens y;
    Logits<T> o;
    Loss<T> l;
    Head(Index time, Index batch, Index width, Index V)
        : g({.time = time, .batch = batch}), h(g.input("h", width)), y(g.tokens("y", V)) {
        o = g.template add<Softmax>("head", {.vocabulary = V}, h);
        l = g.template add<CrossEntropy>("loss", {}, o, y);
    }
};

}  // namespace

TEST_CASE("CrossEntropy agrees with PyTorch", "[loss][cross_entropy][reference]") {
    namespace ref = reference::head;
    const bool tied = GENERATE(true, false), training = GENERATE(true, false);
    CAPTURE(tied, training);
    Graph<double> g({.time = 3, .batch = 2});
    g.training(training);  // the gradient is staged in the forward pass, or computed in the backward pass
    const auto x = g.tokens("x", 7), y = g.tokens("y", 7);
    const auto h = g.input("h", 4);
    const auto E = g.weight("E", 7, 4, constant(0));
    const auto sum = g.add<Sum>("sum", {}, g.add<Embedding>("embed", {}, x, E), h);
    const auto o = tied ? g.add<TiedSoftmax>("head", {.bias = true}, sum, E)
                        : g.add<Softmax>("head", {.vocabulary = 7}, sum);
    const auto l = g.add<CrossEntropy>("loss", {}, o, y);
    set(g, "E", ref::E);
    set(g, "head.b", ref::b);
    if (!tied) set(g, "head.W", ref::W);
    g.forward(l, {x, {ref::x, 3, 2}}, {y, {ref::y, 3, 2}}, {h, ref::h, 3, 2});
    g.backward(l);
    const auto agrees = [&](const auto& by_token, const auto& d_h, const auto& d_E, const auto& d_b) {
        REQUIRE(apart(flat(g.result(l).by_token()), by_token) < 1e-14);
        REQUIRE(apart(flat(g.adjoint(h)), d_h) < 1e-14);
        REQUIRE(apart(gradient(g, "E"), d_E) < 1e-14);
        REQUIRE(apart(gradient(g, "head.b"), d_b) < 1e-14);
    };
    if (tied) {
        namespace r = reference::cross_entropy_tied;
        agrees(r::by_token, r::d_h, r::d_E, r::d_b);
    } else {
        namespace r = reference::cross_entropy_free;
        agrees(r::by_token, r::d_h, r::d_E, r::d_b);
        REQUIRE(apart(gradient(g, "head.W"), r::d_W) < 1e-14);
    }
}

TEST_CASE("CrossEntropy is right where exp overflows", "[loss][cross_entropy]") {
    Head<float> m(1, 2, 1, 3);
    set(m.g, "head.W", {1, -1, 0});
    const float in[] = {1e30f, 200};
    const Token y[] = {0, 1};
    REQUIRE(m.g.forward(m.l, {m.h, in, 1, 2}, {m.y, {y, 1, 2}}) == Approx(400));
    REQUIRE(m.g.result(m.l).by_token()(0, 0) == 0);
    m.g.backward(m.l);
    REQUIRE(flat(m.g.adjoint(m.h)) == Numbers{0, 2});  // W of the certain word minus W of the target
}

TEST_CASE("CrossEntropy of float is accurate to rounding over a large vocabulary", "[loss][cross_entropy]") {
    constexpr Index V = 100003;
    Head<float> m(1, 1, 1, V);
    Head<double> exact(1, 1, 1, V);
    for (Index i = 0; i < V; ++i)
        exact.g.parameter("head.W").value[i] = m.g.parameter("head.W").value[i] =
            static_cast<float>(1e-4 * double(i % 50000));
    const float in = 1;
    const double in_double = 1;
    const Token y[] = {77777};
    const double loss = m.g.forward(m.l, {m.h, &in, 1, 1}, {m.y, {y, 1, 1}});
    REQUIRE(
        loss ==
        Approx(exact.g.forward(exact.l, {exact.h, &in_double, 1, 1}, {exact.y, {y, 1, 1}})).epsilon(1e-7));
}
