// Graphs on the weights of another, packed for their products.
#include <algorithm>
#include <cmath>
#include <isogloss/graph/packed_matrix.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <limits>
#include <memory>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"
#include "threads.hpp"
#include "tolerance.hpp"

using namespace isogloss;

namespace {

constexpr Index V = 40;

/// Every cell, an affine layer, a head with a bias that shares its table, and one of its own.
template <class T> struct Net {
    Graph<T> g;
    Tokens x, y;
    Logits<T> o, other;
    Loss<T> l;

    template <class... Weights> explicit Net(GraphOptions options, const Weights&... weights)
        : g(options, weights...), x(g.tokens("x", V)), y(g.tokens("y", V)) {
        const auto E = g.weight("E", V, 12, uniform(0.5));
        auto h = g.template add<Embedding>("embed", {}, x, E);
        h = g.template add<Lstm>("lstm", {.units = 17, .init = uniform(0.5)}, h);
        h = g.template add<Gru>("gru", {.units = 9, .keep = 0.7, .init = uniform(0.5)}, h);
        h = g.template add<Rhn>("rhn", {.units = 11, .depth = 2, .init = uniform(0.5)}, h);
        h = g.template add<Qrnn>("qrnn", {.units = 10, .keep = 0.7, .init = uniform(0.5)}, h);
        h = g.template add<Rnn>("rnn", {.units = 13, .init = uniform(0.5)}, h);
        h = g.template add<Linear>("linear", {.units = 12, .init = uniform(0.5)}, h);
        o = g.template add<TiedSoftmax>("softmax", {.bias = true}, h, E);
        other = g.template add<Softmax>("free", {.vocabulary = V, .init = uniform(0.5)}, h);
        l = g.template add<AugmentedLoss>("loss", {.gamma = 0.65}, o, y, E);
    }
    /// Log-probabilities of both heads after passes of several lengths, then a loss.
    std::vector<double> passes() {
        std::vector<Token> words(3 * 7);
        for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<Token>((i * 11 + 3) % V);
        g.training(false);
        g.reset();
        std::vector<double> all;
        for (const Index time : {1, 7, 2})
            for (const auto& head : {o, other}) {
                g.forward(head, {x, TokenBlock{words.data(), time, 3}});
                for (const T p : g.head(head).log_probabilities()) all.push_back(static_cast<double>(p));
            }
        all.push_back(g.forward(l, {x, TokenBlock{words.data(), 7, 3}}, {y, TokenBlock{words.data(), 7, 3}}));
        return all;
    }
};

double distance(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = worse(most, std::abs(a[i] - b[i]));
    return most;
}

constexpr GraphOptions sizes{.time = 7, .batch = 3, .seed = 5};

// z = x W_s: a matrix for each symbol s.
template <class T> struct Chosen {
    struct Options {};
    Options options;
    Units<T> z;

    Seq<T> setup(Setup<T>& s, Seq<T> x, Tokens symbol) {
        z = s.units("z", 6).init(uniform(0.9)).from("W", x, symbol);
        return z;
    }
    void forward(Forward<T>& p) { p.affine(z); }
    void backward(Backward<T>& p) { p.affine_backward(z); }
};

// Such a layer, unless not `chosen`, under a head.
struct ChosenNet {
    Graph<float> g;
    Tokens x = g.tokens("x", 5);
    Seq<float> u = g.input("u", 3);
    Logits<float> o;

    explicit ChosenNet(bool chosen, const auto&... weights) : g({.time = 4}, weights...) {
        const auto h = chosen ? g.add<Chosen>("chosen", {}, u, x) : g.input("h", 6);
        o = g.add<Softmax>("softmax", {.vocabulary = 5}, h);
    }
    std::vector<double> last() {
        const std::vector<Token> words = {0, 3, 1, 4};
        const std::vector<float> in = {1, -1, 2, 3, 1, -2, 0.5f, 1, 1, -1, 2, 4};
        g.training(false);
        g.reset();
        g.forward(o, {x, words}, {u, in.data(), 4, 1});
        return std::vector<double>{double(g.head(o).log_probabilities()(3, 2))};
    }
};

}  // namespace

TEMPLATE_TEST_CASE("Packed weights predict what the weights do", "[graph][inference][packed]", float,
                   double) {
    Net<TestType> owner(sizes);
    const auto weights = owner.g.packed_weights();
    CHECK(weights.packed_bytes() > 0);
    CHECK(owner.g.shared_weights().packed_bytes() == 0);
    Net<TestType> packed(sizes, weights);
    const double rounding = sizeof(TestType) == 4 ? 3e-5 : 1e-12;
    const auto expected = owner.passes(), found = packed.passes();
    CHECK(distance(found, expected) < rounding);
    CHECK(packed.passes() == found);
    // By way of a graph that is on packed weights itself.
    CHECK(Net<TestType>(sizes, packed.g.shared_weights()).passes() == found);
    CHECK(Net<TestType>(sizes, packed.g.packed_weights()).passes() == found);
    CHECK(graph::Inspect::store(packed.g).arena.guards_intact());
}

TEST_CASE("Packed weights in int8 and bfloat16 predict nearly what the weights do, in fewer bytes",
          "[graph][inference][packed][int8]") {
    Net<float> owner(sizes);
    const auto expected = owner.passes();
    for (const auto& [precision, most] :
         {std::pair(Precision::bf16, 0.05), std::pair(Precision::int8, 0.1)}) {
        CAPTURE(int(precision));
        const auto weights = owner.g.packed_weights(precision);
        Net<float> packed(sizes, weights);
        const auto found = packed.passes();
        CHECK(distance(found, expected) < most);
        CHECK(distance(found, expected) > 1e-5);  // it is not the graph itself
        threads(3);
        CHECK(packed.passes() == found);
        threads(1);
    }

    Graph<float> wide({.gradients = false});
    const auto h = wide.input("h", 96);
    wide.add<Softmax>("softmax", {.vocabulary = 1000}, h);
    const auto bytes = [&](Precision p) { return double(wide.packed_weights(p).packed_bytes()); };
    CHECK(bytes(Precision::full) == Approx(96 * 1000 * 4).epsilon(0.03));
    CHECK(bytes(Precision::bf16) / bytes(Precision::full) == Approx(0.5).epsilon(0.03));
    CHECK(bytes(Precision::int8) / bytes(Precision::full) == Approx(0.26).epsilon(0.05));
}

TEST_CASE("Packed matrices are those of the moment they were last packed in, and outlive their owner",
          "[graph][inference][packed]") {
    auto owner = std::make_unique<Net<float>>(sizes);
    auto weights = std::make_unique<SharedWeights<float>>(owner->g.packed_weights(Precision::int8));
    Net<float> packed(sizes, *weights);
    const auto before = packed.passes();
    auto U = owner->g.value(owner->g.weight("lstm.U"));
    std::fill(U.begin(), U.end(), 0.f);
    CHECK(packed.passes() == before);
    Net<float> anew(sizes, owner->g.packed_weights(Precision::int8));
    CHECK(anew.passes() != before);
    weights->repack();
    CHECK(packed.passes() == anew.passes());
    U(0, 0) = std::numeric_limits<float>::infinity();
    REQUIRE_THROWS_MATCHES(weights->repack(), NumericError, says("'lstm.U' is inf at row 0, column 0"));
    U(0, 0) = 0;
    weights->repack();
    const auto now = packed.passes();
    owner.reset(), weights.reset();
    CHECK(packed.passes() == now);
}

TEST_CASE("Packed weights say what they cannot be", "[graph][inference][packed]") {
    Net<double> in_double(sizes);
    for (const Precision p : {Precision::int8, Precision::bf16})
        REQUIRE_THROWS_AS(in_double.g.packed_weights(p), UsageError);
    for (const bool gradients : {false, true})
        REQUIRE_THROWS_AS(Graph<float>({.precision = Precision::int8, .gradients = gradients}), UsageError);
    Net<float> owner(sizes);
    owner.g.value(owner.g.weight("gru.W"))(2, 1) = std::numeric_limits<float>::infinity();
    REQUIRE_THROWS_MATCHES(owner.g.packed_weights(Precision::int8), NumericError,
                           says("'gru.W' is inf at row 2, column 1"));
}

TEST_CASE("Matrices that a token chooses stay as they are on packed weights", "[graph][inference][packed]") {
    ChosenNet owner(true), packed(true, owner.g.packed_weights());
    CHECK(owner.g.packed_weights().packed_bytes() == ChosenNet(false).g.packed_weights().packed_bytes());
    const auto before = owner.last();
    CHECK(distance(packed.last(), before) < 1e-5);
    for (float& w : owner.g.value(owner.g.weight("chosen.W"))) w *= -2;
    CHECK(distance(owner.last(), before) > 0.01);
    CHECK(distance(packed.last(), owner.last()) < 1e-5);
}

TEST_CASE("A matrix of more terms than a product sums stays as it is", "[graph][inference][packed]") {
    constexpr Index most = kernel::Int8Gemm::most_terms;
    const auto bytes = [](Index inputs, Index words) {
        Graph<float> g({.gradients = false});
        g.add<Softmax>("o", {.vocabulary = words}, g.add<Linear>("map", {.units = 1}, g.input("x", inputs)));
        return g.packed_weights(Precision::int8).packed_bytes();
    };
    CHECK(bytes(most, 3) > bytes(most + 1, 3));  // of the latter the head alone is packed
    CHECK(bytes(most + 1, 3) > 0);
    CHECK(bytes(1, most + 1) > bytes(1, 3));  // a head of so many words has few terms
}
