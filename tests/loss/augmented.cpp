#include <isogloss/loss/augmented.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/loss/total.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/node/sum.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
#include "reference/values.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using Options = AugmentedLoss<double>::Options;

namespace {

AugmentedLoss<float>::Options to_float(const Options& o) {
    return {o.alpha, o.gamma, o.beta, o.temperature, o.differentiate_target};
}

// E[x] + h under a tied head (with or without projection) or one of its own, and the augmented loss on E.
enum class Top { tied, projected, own };

template <class T> Loss<T> model(Graph<T>& g, Top top, Options options, Index V = 7) {
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    const auto h = g.input("h", 4);
    const auto E = g.weight("E", V, 4, uniform(0.9));
    const auto sum = g.template add<Sum>("sum", {}, g.template add<Embedding>("embed", {}, x, E), h);
    const auto o = top == Top::own ? g.template add<Softmax>("head", {.vocabulary = V}, sum)
                                   : g.template add<TiedSoftmax>(
                                         "head", {.bias = true, .projection = top == Top::projected}, sum, E);
    typename AugmentedLoss<T>::Options as_given;
    if constexpr (std::is_same_v<T, float>) as_given = to_float(options);
    else as_given = options;
    return top == Top::own ? g.template add<AugmentedLoss>("loss", as_given, o, y, E)
                           : g.template add<AugmentedLoss>("loss", as_given, o, y);
}

}  // namespace

TEST_CASE("AugmentedLoss obeys the laws of a node", "[loss][augmented]") {
    const Top top = GENERATE(Top::tied, Top::projected, Top::own);
    const bool differentiate = GENERATE(false, true);
    const Options weight =
        GENERATE(Options{}, Options{.alpha = 2}, Options{.gamma = 1.2}, Options{.beta = 0.4});
    CAPTURE(static_cast<int>(top), differentiate, weight.alpha.value_or(-1), weight.gamma.value_or(-1),
            weight.beta.value_or(-1));
    Options options = weight;
    options.temperature = 2;
    options.differentiate_target = differentiate;
    // A constant target depends on E all the same, so that differences in E are no measure.
    REQUIRE(laws([=](auto& g) { return model(g, top, options); }, {.hold = differentiate ? "" : "E"}) == "");
}

TEST_CASE("AugmentedLoss agrees with PyTorch", "[loss][augmented][reference]") {
    namespace ref = reference::head;
    const bool tied = GENERATE(true, false), differentiated = GENERATE(false, true),
               training = GENERATE(true, false);
    CAPTURE(tied, differentiated, training);
    Graph<double> g({.time = 3, .batch = 2});
    g.training(training);
    const auto l =
        model(g, tied ? Top::tied : Top::own,
              {.alpha = ref::alpha, .temperature = ref::temperature, .differentiate_target = differentiated});
    set(g, "E", ref::E);
    set(g, "head.b", ref::b);
    if (!tied) set(g, "head.W", ref::W);
    const auto h = sequence(g, "h");
    g.forward(l, {Tokens{0, 7, graph::Inspect::store(g).serial}, {ref::x, 3, 2}},
              {Tokens{1, 7, graph::Inspect::store(g).serial}, {ref::y, 3, 2}}, {h, ref::h, 3, 2});
    g.backward(l);
    const auto agrees = [&](const auto& by_token, const auto& d_h, const auto& d_E, const auto& d_b) {
        REQUIRE(apart(flat(g.result(l).by_token()), by_token) < 1e-14);
        REQUIRE(apart(flat(g.adjoint(h)), d_h) < 1e-14);
        REQUIRE(apart(gradient(g, "E"), d_E) < 1e-14);
        REQUIRE(apart(gradient(g, "head.b"), d_b) < 1e-14);
    };
    if (tied && differentiated) {
        namespace r = reference::augmented_tied_differentiated;
        agrees(r::by_token, r::d_h, r::d_E, r::d_b);
    } else if (tied) {
        namespace r = reference::augmented_tied;
        agrees(r::by_token, r::d_h, r::d_E, r::d_b);
    } else if (differentiated) {
        namespace r = reference::augmented_free_differentiated;
        agrees(r::by_token, r::d_h, r::d_E, r::d_b);
        REQUIRE(apart(gradient(g, "head.W"), r::d_W) < 1e-14);
    } else {
        namespace r = reference::augmented_free;
        agrees(r::by_token, r::d_h, r::d_E, r::d_b);
        REQUIRE(apart(gradient(g, "head.W"), r::d_W) < 1e-14);
    }
}

TEST_CASE("Where the logits are the embedding's own, the soft term is 0", "[loss][augmented]") {
    // The hidden state is the target's embedding, so o = E e_y and both softmaxes are one.
    const bool differentiate = GENERATE(false, true);
    Graph<double> g({.time = 2, .batch = 2});
    const auto x = g.tokens("x", 9), y = g.tokens("y", 9);
    const auto E = g.weight("E", 9, 5, uniform(1));
    const auto o = g.add<TiedSoftmax>("head", {}, g.add<Embedding>("embed", {}, x, E), E);
    const auto l = g.add<AugmentedLoss>(
        "loss", {.alpha = 50, .temperature = 3, .differentiate_target = differentiate}, o, y);
    const auto hard = g.add<CrossEntropy>("hard", {}, o, y);
    const std::vector<Token> words = {3, 8, 0, 3};
    const Feed<double> in(x, {words.data(), 2, 2}), target(y, {words.data(), 2, 2});
    const double with = g.forward(l, in, target);
    g.backward(l);
    const Numbers gradient_with = gradient(g, "E");
    g.parameters().clear_gradients();
    const double without = g.forward(hard, in, target);
    g.backward(hard);
    REQUIRE(with == Approx(without).epsilon(1e-13));
    REQUIRE(apart(gradient_with, gradient(g, "E")) < 1e-13);
}

TEST_CASE("At high temperature the soft term matches centred logits, with an error of order 1 / tau",
          "[loss][augmented]") {
    // Equation (4.3), with centred o and s:  tau^2 V dKL/do = (o - s) + (q(o) - q(s)) / tau + O(1 / tau^2),
    // q(o) = (o^2 - mean o^2) / 2, from the second order of both softmaxes.
    constexpr Index V = 50, n = 6;
    const Numbers E = numbers(V * n, 1), b = numbers(V, 2), h = numbers(n, 3);
    constexpr Token target = 17;
    Numbers o = b, s(V);
    for (std::size_t v = 0; v < V; ++v)
        for (std::size_t i = 0; i < n; ++i) {
            o[v] += E[v * n + i] * h[i];
            s[v] += E[v * n + i] * E[target * n + i];
        }
    const auto centre = [](Numbers& z) {
        double mean = 0;
        for (const double v : z) mean += v / double(z.size());
        for (double& v : z) v -= mean;
    };
    centre(o);
    centre(s);
    Numbers limit, second;
    for (std::size_t v = 0; v < V; ++v) {
        limit.push_back(o[v] - s[v]);
        second.push_back((o[v] * o[v] - s[v] * s[v]) / 2);
    }
    centre(second);

    double error = 1;
    for (const double tau : {10., 100., 1000., 10000.}) {
        Graph<double> g({.time = 1, .batch = 1});
        const auto y = g.tokens("y", V);
        const auto in = g.input("h", n);
        const auto table = g.weight("E", V, n, constant(0));
        const auto logits = g.add<TiedSoftmax>("head", {.bias = true}, in, table);
        // the mixture (6.1) at beta = 1 is tau^2 V KL alone, and the bias sees dl/do
        const auto l = g.add<AugmentedLoss>("loss", {.beta = 1, .temperature = tau}, logits, y, table);
        set(g, "E", E);
        set(g, "head.b", b);
        g.forward(l, {in, h.data(), 1, 1}, {y, {&target, 1, 1}});
        g.backward(l);
        const Numbers found = gradient(g, "head.b");
        const double now = apart(found, limit);
        CAPTURE(tau, error, now);
        REQUIRE(now < 10 / tau);
        if (tau > 10) REQUIRE(now == Approx(error / 10).epsilon(10 / tau));
        error = now;
        double off = 0, largest = 0;  // from the term of order 1 / tau
        for (std::size_t v = 0; v < V; ++v) {
            off = worse(off, std::abs(tau * (found[v] - limit[v]) - second[v]));
            largest = std::max(largest, std::abs(second[v]));
        }
        REQUIRE(off < 10 / tau * largest);
    }
    REQUIRE(error < 2e-4);
}

TEST_CASE("alpha, gamma and beta weigh the two terms as documented", "[loss][augmented]") {
    const Numbers h = numbers(8, 4);
    const Token x[] = {1, 5}, y[] = {2, 6};
    double cross_entropy = 0;
    const auto value = [&](Options options) {
        options.temperature = 5;
        Graph<double> g({.time = 2, .batch = 1});
        const auto l = model(g, Top::tied, options);
        const double loss = g.forward(l, {Tokens{0, 7, graph::Inspect::store(g).serial}, {x, 2, 1}},
                                      {Tokens{1, 7, graph::Inspect::store(g).serial}, {y, 2, 1}},
                                      {sequence(g, "h"), h.data(), 2, 1});
        cross_entropy = g.result(l).cross_entropy();
        return loss;
    };
    const double hard = value({.alpha = 0}), soft = value({.beta = 1}) / (25 * 7);
    REQUIRE(soft > 1e-3);
    REQUIRE(value({.beta = 0}) == Approx(hard).epsilon(1e-13));
    REQUIRE(value({.alpha = 3}) == Approx(hard + 3 * soft).epsilon(1e-13));
    REQUIRE(value({.gamma = 0.4}) == Approx(hard + 0.4 * 5 * soft).epsilon(1e-13));
    REQUIRE(value({}) == Approx(hard + 0.65 * 5 * soft).epsilon(1e-13));
    REQUIRE(value({.beta = 0.3}) == Approx(0.7 * hard + 0.3 * 25 * 7 * soft).epsilon(1e-13));
    REQUIRE(cross_entropy == Approx(hard).epsilon(1e-13));  // whatever the weights
    value({.beta = 1});
    REQUIRE(cross_entropy == Approx(hard).epsilon(1e-13));
}

TEST_CASE("A weight multiplies the whole gradient of an AugmentedLoss, also what goes through the target",
          "[loss][augmented]") {
    const Top top = GENERATE(Top::tied, Top::own);
    const Numbers h = numbers(8, 4);
    const Token x[] = {1, 5}, y[] = {2, 6};
    const auto gradients = [&](double weight) {
        Graph<double> g({.time = 2, .batch = 1});
        const auto l = model(g, top, {.alpha = 3, .temperature = 2});
        const auto total = g.add<TotalLoss>("total", {.weights = {weight, 0}}, l, l);
        g.forward(total, {Tokens{0, 7, graph::Inspect::store(g).serial}, {x, 2, 1}},
                  {Tokens{1, 7, graph::Inspect::store(g).serial}, {y, 2, 1}},
                  {sequence(g, "h"), h.data(), 2, 1});
        g.backward(total);
        Numbers all = gradient(g, "E");
        for (const double v : gradient(g, "head.b")) all.push_back(v);
        return all;
    };
    Numbers expected = gradients(1);
    for (double& v : expected) v *= -3;
    REQUIRE(apart(gradients(-3), expected) < 1e-14);
}

TEST_CASE("The cross-entropy of an AugmentedLoss is that of the last pass alone", "[loss][augmented]") {
    const Numbers h = numbers(8, 4);
    const Token x[] = {1, 5}, y[] = {2, 6}, some[] = {2, not_predicted};
    Graph<double> g({.time = 2, .batch = 1});
    const auto l = model(g, Top::tied, {.alpha = 0});
    for (const Token* targets : {y, some})
        g.forward(l, {Tokens{0, 7, graph::Inspect::store(g).serial}, {x, 2, 1}},
                  {Tokens{1, 7, graph::Inspect::store(g).serial}, {targets, 2, 1}},
                  {sequence(g, "h"), h.data(), 2, 1});
    REQUIRE(g.result(l).cross_entropy() == Approx(g.result(l).nats()).epsilon(1e-13));
}

TEST_CASE("In float the divergence is right to rounding, small as it may be", "[loss][augmented]") {
    // At tau = 1000 it is half a millionth per token, between logarithms near log V; weighed a million times.
    const Options options{.alpha = 1, .temperature = 1000};
    const Token x[] = {1, 5, 0}, y[] = {2, 6, 6};
    const Numbers h = numbers(12, 4);
    const std::vector<float> in_float(h.begin(), h.end());
    const auto soft = [&](auto& g, const auto* in, double alpha) {
        Options o = options;
        o.alpha = alpha;
        const auto l = model(g, Top::tied, o);
        return g.forward(l, {Tokens{0, 7, graph::Inspect::store(g).serial}, {x, 3, 1}},
                         {Tokens{1, 7, graph::Inspect::store(g).serial}, {y, 3, 1}},
                         {sequence(g, "h"), in, 3, 1});
    };
    Graph<double> a({.time = 3}), b({.time = 3});
    Graph<float> c({.time = 3}), d({.time = 3});
    const double exact = soft(a, h.data(), 1e6) - soft(b, h.data(), 0);
    const double in_float_too = soft(c, in_float.data(), 1e6) - soft(d, in_float.data(), 0);
    CAPTURE(exact, in_float_too);
    REQUIRE(exact > 1);
    REQUIRE(in_float_too == Approx(exact).epsilon(1e-3));
}

TEST_CASE("In bfloat16 a table of its own gives the gradient that exact products give, packed or not",
          "[loss][augmented]") {
    constexpr Index V = 300, rows = 150;
    const auto results = [](Precision precision, std::optional<Index> budget) {
        Graph<float> g({.time = rows, .batch = 1, .budget = budget, .precision = precision});
        const auto l = model(g, Top::own, {.temperature = 2}, V);
        const Random random(7, 1);
        std::vector<Token> words;
        for (Index i = 0; i < 2 * rows; ++i) words.push_back(static_cast<Token>(random.below(i, V)));
        std::vector<float> h;
        for (const double v : numbers(4 * rows, 2)) h.push_back(static_cast<float>(v));
        g.forward(l, {Tokens{0, V, graph::Inspect::store(g).serial}, {words.data(), rows, 1}},
                  {Tokens{1, V, graph::Inspect::store(g).serial}, {words.data() + rows, rows, 1}},
                  {sequence(g, "h"), h.data(), rows, 1});
        g.backward(l);
        return std::array{flat(g.result(l).by_token()), gradient(g, "E"), gradient(g, "head.W"),
                          flat(g.adjoint(sequence(g, "h")))};
    };
    const auto exact = results(Precision::full, {}), packed = results(Precision::bf16, {}),
               by_rows = results(Precision::bf16, 1);
    for (std::size_t i = 0; i < exact.size(); ++i) {
        CAPTURE(i);
        CHECK(apart(packed[i], exact[i]) > 1e-5);  // factors of 8 bits
        CHECK(apart(packed[i], exact[i]) < 0.02);
        CHECK(apart(by_rows[i], packed[i]) < 0.02);
    }
}

TEST_CASE("AugmentedLoss refuses impossible options and leaves the graph as it was", "[loss][augmented]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto x = g.tokens("x", 9), y = g.tokens("y", 9);
    const auto E = g.weight("E", 9, 5, uniform(1)), small = g.weight("small", 8, 5, uniform(1));
    const auto h = g.add<Embedding>("embed", {}, x, E);
    const auto tied = g.add<TiedSoftmax>("tied", {}, h, E);
    const auto own = g.add<Softmax>("own", {.vocabulary = 9}, h);
    for (const Options& o :
         {Options{.temperature = 0}, Options{.temperature = INFINITY}, Options{.temperature = 1e-320},
          Options{.alpha = 1e308, .temperature = 1e-10}, Options{.alpha = 1, .gamma = 1},
          Options{.alpha = -1}, Options{.gamma = NAN}, Options{.beta = 1.5}})
        REQUIRE_THROWS_MATCHES(g.add<AugmentedLoss>("loss", o, tied, y), UsageError, says("node 'loss'"));
    REQUIRE_THROWS_AS(g.add<AugmentedLoss>("loss", {}, own, y), UsageError);
    REQUIRE_THROWS_AS(g.add<AugmentedLoss>("loss", {}, own, y, small), UsageError);
    REQUIRE_THROWS_AS(g.add<AugmentedLoss>("loss", {}, tied, g.tokens("z", 8)), UsageError);
    g.add<AugmentedLoss>("loss", {}, own, y, E);
}
