// A student under the predictions of a teacher.
#include <isogloss/loss/distillation.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/update/sgd.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
#include "tolerance.hpp"

using namespace isogloss;

TEST_CASE("Distillation obeys the laws of a node, the teacher held", "[loss][distillation]") {
    const double share = GENERATE(0., 0.3, 1.);
    const bool tied = GENERATE(false, true);
    CAPTURE(share, tied);
    REQUIRE(laws(
                [=](auto& g) {
                    const auto x = g.tokens("x", 9);
                    const auto E = g.weight("E", 9, 4, uniform(0.8));
                    const auto h = g.template add<Embedding>("embed", {}, x, E);
                    const auto o = tied ? g.template add<TiedSoftmax>("head", {.bias = true}, h, E)
                                        : g.template add<Softmax>("head", {.vocabulary = 9}, h);
                    const auto e = g.template add<Embedding>("teacher_embed", {}, x,
                                                             g.weight("teacher_E", 9, 3, normal(1)));
                    const auto teacher = g.template add<Softmax>("teacher", {.vocabulary = 9}, e);
                    return g.template add<Distillation>("loss", {.share = share, .temperature = 3}, o,
                                                        g.tokens("y", 9), teacher);
                },
                {.hold = "teacher*"}) == "");
}

TEMPLATE_TEST_CASE("Distillation agrees with its definition in Python", "[loss][distillation][reference]",
                   float, double) {
    Graph<TestType> g({.time = 2, .batch = 1});
    const auto h = g.input("h", 2), k = g.input("k", 1);
    const auto y = g.tokens("y", 3);
    const auto o = g.template add<Softmax>("student", {.vocabulary = 3, .bias = false}, h);
    const auto teacher = g.template add<Softmax>("teacher", {.vocabulary = 3}, k);
    const auto l = g.template add<Distillation>("loss", {.share = 0.3, .temperature = 2}, o, y, teacher);
    set(g, "student.W", {0.1, -0.4, 0.7, 0.2, -0.3, 0.5});
    set(g, "teacher.W", {0.9, -0.6, 0.3});
    set(g, "teacher.b", {0.2, -0.1, 0.4});
    const std::vector<TestType> states = {1, 2, -1, TestType(0.5)}, of_teacher = {TestType(1.5), -2};
    const std::vector<Token> next = {2, 0};
    const double value =
        g.forward(l, {h, states.data(), 2, 1}, {k, of_teacher.data(), 2, 1}, {y, {next.data(), 2, 1}});
    g.backward(l);
    // from math import exp, log
    // W = [[.1, -.4], [.7, .2], [-.3, .5]]; h = [[1, 2], [-1, .5]]; y = [2, 0]; s, T = .3, 2
    // t = [[.9 * k + .2, -.6 * k - .1, .3 * k + .4] for k in (1.5, -2)]; z = [[sum(a * b for a, b in zip(w, x)) for w in W] for x in h]
    // p = lambda row, T=1: [exp(a / T) / sum(exp(b / T) for b in row) for a in row]
    // cross = sum(-log(p(r)[i]) for r, i in zip(z, y))
    // value = (1 - s) * cross + s * T * T * sum(q * log(q / f) for a, b in zip(t, z) for q, f in zip(p(a, T), p(b, T)))
    // G = [[(1 - s) * (p(r)[v] - (v == i)) + s * T * (p(r, T)[v] - p(a, T)[v]) for v in range(3)] for r, i, a in zip(z, y, t)]
    // gradient = [sum(G[r][v] * h[r][i] for r in range(2)) for v in range(3) for i in range(2)]
    const double tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-10;
    CHECK(value == Approx(2.351610694160).epsilon(tolerance));
    CHECK(apart(gradient(g, "student.W"), Numbers{0.309052911468, -0.478885734698, 0.623893344578,
                                                  1.104225877465, -0.932946256046, -0.625340142767}) <
          tolerance);
    CHECK(g.result(l).cross_entropy() == Approx(2.413592688813).epsilon(tolerance));
}

TEST_CASE("A student learns a teacher's predictions, which stay", "[loss][distillation]") {
    constexpr Index V = 6;
    Graph<float> g({.time = 4, .batch = 1});
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    const auto e = g.add<Embedding>("teacher_embed", {}, x, g.weight("teacher_E", V, 5, normal(1)));
    const auto teacher = g.add<Softmax>("teacher", {.vocabulary = V, .init = normal(1)}, e);
    const auto o = g.add<Softmax>("student", {.vocabulary = V},
                                  g.add<Embedding>("embed", {}, x, g.weight("E", V, 5, uniform(0.1))));
    const auto l = g.add<Distillation>("loss", {.share = 1, .temperature = 1}, o, y, teacher);
    g.parameters("teacher*").trained(false);
    Sgd<float> sgd(g.parameters(), {.rate = 1});
    const std::vector<Token> in = {0, 3, 1, 5}, next = {0, 0, 0, 0};  // which do not count
    const auto before = flat(g.value(g.weight("teacher.W")));
    double value = 1;
    for (int k = 0; k < 300; ++k) {
        value = g.forward(l, {x, {in.data(), 4, 1}}, {y, {next.data(), 4, 1}});
        g.backward(l);
        sgd.step();
    }
    REQUIRE(value < 0.02);
    g.forward(l, {x, {in.data(), 4, 1}}, {y, {next.data(), 4, 1}});
    const auto p = flat(g.head(o).probabilities()), q = flat(g.head(teacher).probabilities());
    CHECK(apart(p, q) < 0.05);
    CHECK(flat(g.value(g.weight("teacher.W"))) == before);
}

TEST_CASE("Distillation refuses other vocabularies and options out of range",
          "[loss][distillation][errors]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto h = g.input("h", 2);
    const auto y = g.tokens("y", 3);
    const auto o = g.add<Softmax>("o", {.vocabulary = 3}, h),
               other = g.add<Softmax>("other", {.vocabulary = 4}, h);
    CHECK_THROWS_AS(g.add<Distillation>("a", {}, o, y, other), UsageError);
    CHECK_THROWS_AS(g.add<Distillation>("b", {.share = 1.1}, o, y, o), UsageError);
    CHECK_THROWS_AS(g.add<Distillation>("c", {.temperature = 0}, o, y, o), UsageError);
}
