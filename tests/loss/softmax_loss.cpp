#include <isogloss/loss/augmented.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/loss/softmax_loss.hpp>
#include <isogloss/loss/total.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/softmax.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
#include "threads.hpp"

using namespace isogloss;

namespace {

// l = Σ_t w(y_t) · -log softmax(o_t)[y_t]
template <class T> struct Weighted : SoftmaxLoss<T, Weighted> {
    struct Options {
        std::vector<double> weights;
    };
    Options options;
    double row(const LogitRow<T>& r) const {
        const double w = options.weights[std::size_t(r.target)];
        return w * kernel::cross_entropy(r.vocabulary, r.z, r.target, w * r.upstream, r.gradient);
    }
};

// The same with a modulus, with all weights alike.
template <class T> struct Scaled : SoftmaxLoss<T, Scaled> {
    struct Options {
        double scale = 1;
    };
    Options options;
    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y) {
        if (!(options.scale >= 0)) s.fail(message("found scale = ", options.scale, ", expected at least 0"));
        return SoftmaxLoss<T, Scaled>::setup(s, o, y);
    }
    double row(const LogitRow<T>& r) const {
        return options.scale *
               kernel::cross_entropy(r.vocabulary, r.z, r.target, options.scale * r.upstream, r.gradient);
    }
    std::array<FisherTerm, 1> fisher() const { return {FisherTerm{options.scale, 1}}; }
};

// l = Σ_t (position + 1) o_t[y_t], which shows which row is which.
template <class T> struct Places : SoftmaxLoss<T, Places> {
    struct Options {};
    Options options;
    double row(const LogitRow<T>& r) const {
        const double c = double(r.position + 1), value = c * double(r.z[r.target]);
        std::fill_n(r.z, r.vocabulary, T(0));
        r.z[r.target] = static_cast<T>(c * r.upstream);
        return value;
    }
};

constexpr Index V = 7, n = 4, T = 3, B = 2;
const std::vector<Token> in = {1, 4, 0, 6, 2, 2}, out = {5, 0, not_predicted, 3, 5, 6};

template <template <class> class Own> struct Trained {
    Graph<double> g{{.time = T, .batch = B}};
    Tokens x = g.tokens("x", V), y = g.tokens("y", V);
    Weight<double> E = g.weight("E", V, n, uniform(1));
    Seq<double> h = g.add<Embedding>("embed", {}, x, E);
    Logits<double> o = g.add<TiedSoftmax>("head", {.bias = true}, h, E);
    Loss<double> l;
    explicit Trained(typename Own<double>::Options options) : l(g.template add<Own>("loss", options, o, y)) {}
    // Value, losses by position and gradients.
    Numbers results() {
        g.parameters().clear_gradients();
        Numbers r = {g.forward(l, {x, {in.data(), T, B}}, {y, {out.data(), T, B}})};
        g.backward(l);
        for (const double v : flat(g.result(l).by_token())) r.push_back(v);
        for (const auto& name : {"E", "head.b"})
            for (const double v : gradient(g, name)) r.push_back(v);
        return r;
    }
};

}  // namespace

TEST_CASE("A loss of ten lines obeys the laws of a node", "[loss][softmax_loss]") {
    const bool tied = GENERATE(false, true);
    REQUIRE(laws([=](auto& g) {
                const auto E = g.weight("E", 5, 4, uniform(0.8));
                const auto h = g.template add<Embedding>("embed", {}, g.tokens("x", 5), E);
                const auto o = tied ? g.template add<TiedSoftmax>("head", {.bias = true}, h, E)
                                    : g.template add<Softmax>("head", {.vocabulary = 5}, h);
                return g.template add<Weighted>("loss", {.weights = {1, 0.5, 2, 0, 1}}, o, g.tokens("y", 5));
            }) == "");
}

TEST_CASE("A loss with a modulus obeys the laws too", "[loss][softmax_loss][modulus]") {
    REQUIRE(laws([](auto& g) {
                const auto o = g.template add<Softmax>("head", {.vocabulary = 5}, g.input("h", 3));
                return g.template add<Scaled>("loss", {.scale = 0.5}, o, g.tokens("y", 5));
            }) == "");
}

TEST_CASE("With weights of 1 a weighted cross-entropy is the cross-entropy, to the bit",
          "[loss][softmax_loss]") {
    const bool training = GENERATE(true, false);
    Trained<Weighted> weighted({.weights = Numbers(V, 1)});
    Trained<CrossEntropy> plain({});
    weighted.g.training(training), plain.g.training(training);
    REQUIRE(weighted.results() == plain.results());
    REQUIRE(weighted.g.result(weighted.l).predicted() == 5);
    REQUIRE_THROWS_MATCHES(weighted.g.result(weighted.l).cross_entropy(), UsageError, says("'loss'"));
}

TEST_CASE("A row knows its position, its target and what it is multiplied with", "[loss][softmax_loss]") {
    Trained<Places> m({});
    m.results();
    const auto E = flat(m.g.value(m.E));
    for (std::size_t i = 0; i < out.size(); ++i) {
        double o = 0;
        for (std::size_t j = 0; j < n; ++j)
            if (out[i] >= 0) o += E[std::size_t(in[i]) * n + j] * E[std::size_t(out[i]) * n + j];
        REQUIRE(m.g.result(m.l).by_token()(i / B, i % B) == Approx(double(i + 1) * o).margin(1e-14));
    }
    const Numbers b = gradient(m.g, "head.b");
    REQUIRE(b == Numbers{2, 0, 0, 4, 0, 1 + 5, 6});  // Σ (position + 1) over the positions of a target

    Graph<double> g({.time = 1, .batch = 1});  // as a part of a sum
    const auto y = g.tokens("y", 2);
    const auto h = g.input("h", 1);
    const auto o = g.add<Softmax>("head", {.vocabulary = 2}, h);
    const auto l = g.add<TotalLoss>("total", {.weights = {0.25, 0}}, g.add<Places>("places", {}, o, y),
                                    g.add<CrossEntropy>("ce", {}, o, y));
    const double one = 1;
    const Token target = 1;
    g.forward(l, {h, &one, 1, 1}, {y, {&target, 1, 1}});
    g.backward(l);
    REQUIRE(gradient(g, "head.b") == Numbers{0, 0.25});
}

TEST_CASE("The modulus of a loss is what its terms say", "[loss][softmax_loss][modulus]") {
    const auto modulus = [](auto& m) {
        m.results();
        m.g.template backward<Modulus>(m.l);
        return flat(m.g.modulus(m.h));
    };
    Trained<CrossEntropy> plain({});
    Trained<Scaled> scaled({.scale = 0.5});
    Numbers expected = modulus(plain);
    for (double& v : expected) v /= 2;
    REQUIRE(apart(modulus(scaled), expected) < 1e-15);

    // Σ_v p_v E_vi² - (Σ_v p_v E_vi)² by hand
    const auto p = plain.g.head(plain.o).probabilities();
    const auto E = plain.g.value(plain.E);
    const auto phi = modulus(plain);
    for (std::size_t r = 0; r < out.size(); ++r)
        for (std::size_t i = 0; i < n; ++i) {
            double mean = 0, square = 0;
            for (std::size_t v = 0; v < V; ++v) {
                mean += p(r, v) * E(v, i);
                square += p(r, v) * E(v, i) * E(v, i);
            }
            REQUIRE(phi[r * n + i] == Approx(out[r] < 0 ? 0 : square - mean * mean).margin(1e-14));
        }
}

TEST_CASE("Threads share the rows of a loss and change no bit of them", "[loss][softmax_loss][threads]") {
    const Threads restored(1);
    const auto losses = [](int count) {
        threads(count);
        Graph<double> g({.time = 40, .batch = 1});
        const auto y = g.tokens("y", V);
        const auto h = g.input("h", n);
        const auto o = g.add<Softmax>("head", {.vocabulary = V}, h);
        const auto l = g.add<Weighted>("loss", {.weights = {1, 2, 3, 4, 5, 6, 7}}, o, y);
        const Numbers states = numbers(40 * n, 1);
        std::vector<Token> target;
        for (Token i = 0; i < 40; ++i) target.push_back(i * 3 % 8 - 1);
        g.forward(l, {h, states.data(), 40, 1}, {y, {target.data(), 40, 1}});
        return flat(g.result(l).by_token());
    };
    REQUIRE(losses(3) == losses(1));
}
