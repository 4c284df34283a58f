#include <algorithm>
#include <cmath>
#include <isogloss/isogloss.hpp>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"

using namespace isogloss;

namespace {

constexpr Index T = 8, B = 20, V = 700, n = 48;  // enough for threads to share the batch and the head

// A tied language model of one LSTM layer with the augmented loss.
template <class Number> struct Net {
    Graph<Number> g;
    Tokens x, y;
    Weight<Number> E;
    Seq<Number> e, h;
    Loss<Number> l;
    std::vector<Token> words;

    explicit Net(Precision precision, bool augmented = true, Index budget = Index{32} << 20)
        : g({.time = T, .batch = B, .seed = 3, .budget = budget, .precision = precision}),
          x(g.tokens("x", V)),
          y(g.tokens("y", V)),
          E(g.weight("E", V, n, uniform(0.3))) {
        e = g.template add<Embedding>("embed", {}, x, E);
        h = g.template add<Lstm>("lstm", {.units = n, .keep = 0.8}, e);
        const auto o = g.template add<TiedSoftmax>("softmax", {.bias = true}, h, E);
        l = augmented ? g.template add<AugmentedLoss>("loss", {}, o, y)
                      : g.template add<CrossEntropy>("loss", {}, o, y);
        const Random random(1, 9);
        for (Index i = 0; i < 2 * T * B; ++i) words.push_back(static_cast<Token>(random.below(i, V)));
    }
    double forward() {
        return g.forward(l, {x, TokenBlock{words.data(), T, B}}, {y, TokenBlock{words.data() + T * B, T, B}});
    }
    // All gradients of one step, always the same one.
    std::vector<double> gradient() {
        g.reset();
        g.training_step(0);
        forward();
        g.backward(l);
        std::vector<double> all;
        for (auto& p : graph::Inspect::store(g).parameters) {
            for (const Number v : matrix_view(p.dense_gradient().data, p.rows, p.cols))
                all.push_back(double(v));
            p.clear_gradient();
        }
        return all;
    }
};

double norm(const std::vector<double>& a) {
    double sum = 0;
    for (const double x : a) sum += x * x;
    return std::sqrt(sum);
}
// |a - b| / |b|.
double difference(std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
    return norm(a) / norm(b);
}

}  // namespace

TEST_CASE("Gradients in bfloat16 are those in double but for the rounding of the factors",
          "[graph][precision]") {
    const bool augmented = GENERATE(true, false);
    Net<float> coarse(Precision::bf16, augmented), fine(Precision::full, augmented);
    Net<double> exact(Precision::full, augmented);
    const auto expected = exact.gradient();
    CHECK(difference(fine.gradient(), expected) < 1e-5);
    const double rounding = difference(coarse.gradient(), expected);
    CHECK(rounding < 1e-2);
    CHECK(rounding > 1e-4);  // it does round
    CHECK(graph::Inspect::store(coarse.g).arena.guards_intact());
}

TEST_CASE(
    "A step in bfloat16 is the same bits every time, and the same for any number of threads but for rounding",
    "[graph][precision][threads]") {
    Net<float> net(Precision::bf16);
    const auto one = net.gradient();
    CHECK(net.gradient() == one);
    for (const int n_threads : {2, 4}) {
        threads(n_threads);
        CHECK(difference(net.gradient(), one) < 1e-6);  // sums over the batch may be in another order
    }
    threads(1);
    CHECK(graph::Inspect::store(net.g).arena.guards_intact());
}

TEST_CASE("Evaluation is exact whatever the precision", "[graph][precision]") {
    Net<float> coarse(Precision::bf16), fine(Precision::full);
    const double in_training = coarse.forward();
    for (auto* net : {&coarse, &fine}) {
        net->g.training(false);
        net->g.reset();
    }
    const double evaluated = coarse.forward();
    CHECK(evaluated ==
          Approx(fine.forward()).epsilon(1e-8));  // its table may be packed, and summed in another order
    CHECK(evaluated != Approx(in_training).epsilon(1e-6));
}

TEST_CASE("Moduli are exact whatever the precision", "[graph][precision]") {
    // The same states in both: a forward pass in evaluation, then back to training.
    const auto moduli = [](Precision precision) {
        Net<float> net(precision);
        net.g.training(false);
        net.forward();
        net.g.training(true);
        net.g.backward<Modulus>(net.l);
        const auto view = net.g.modulus(net.e);
        return std::vector<float>(view.begin(), view.end());
    };
    const auto fine = moduli(Precision::full);
    CHECK(moduli(Precision::bf16) == fine);
    CHECK(*std::max_element(fine.begin(), fine.end()) > 0);
}

TEST_CASE("Steps in bfloat16 allocate nothing after the first and learn as exact ones do",
          "[graph][precision]") {
    const auto learn = [](Precision precision) {
        Net<float> net(precision);
        Sgd<float> sgd(net.g.parameters(), {.rate = 0.1, .clip = 5});
        double loss = 0;
        std::size_t before = 0;
        for (int k = 0; k < 60; ++k) {
            if (k == 1) before = allocations();
            net.g.reset();
            loss = net.forward();
            net.g.backward(net.l);
            sgd.step();
        }
        CHECK(allocations() == before);
        return loss;
    };
    const double fine = learn(Precision::full), coarse = learn(Precision::bf16);
    CHECK(coarse == Approx(fine).epsilon(0.02));
    CHECK(fine < 0.95 * T * B * std::log(double(V)));
}

TEST_CASE("A precision that a graph cannot have is refused, and automatic becomes one of the others",
          "[graph][precision]") {
    CHECK_THROWS_AS(Net<double>(Precision::bf16), UsageError);
    CHECK(Net<double>(Precision::automatic).g.options().precision == Precision::full);
    const Precision chosen = Net<float>(Precision::automatic).g.options().precision;
    CHECK((chosen == Precision::full || chosen == Precision::bf16));
    CHECK(Net<float>(Precision::automatic).g.options().precision == chosen);
}
