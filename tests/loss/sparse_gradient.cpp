#include <cmath>
#include <isogloss/isogloss.hpp>
#include <limits>

#include "allocations.hpp"
#include "catch.hpp"
#include "graphs.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr Index T = 6, B = 5, V = 230, n = 19;

enum class Kind { cross_entropy, adversarial, constant_target, differentiated, own_table, flat_head };

// A language model without dropout, whose predictions are as uneven as a trained one's, but for a flat head's. Where
// the soft target is of a table that is not the head's, that one is wider.
template <class Number> struct Net {
    Graph<Number> g;
    Tokens x, y;
    Loss<Number> l;
    std::vector<Token> words;

    Net(Kind kind, double epsilon, Index budget = Index{32} << 20)
        : g({.time = T, .batch = B, .budget = budget, .epsilon = epsilon}),
          x(g.tokens("x", V)),
          y(g.tokens("y", V)) {
        const bool own = kind == Kind::own_table || kind == Kind::flat_head;
        const auto E = g.weight("E", V, own ? n + 4 : n, uniform(1.2));
        const auto h = g.template add<Linear>("map", {.units = n, .init = uniform(0.6)},
                                              g.template add<Embedding>("embed", {}, x, E));
        const auto o =
            own ? g.template add<Softmax>(
                      "head", {.vocabulary = V, .init = uniform(kind == Kind::flat_head ? 0.01 : 1.2)}, h)
                : g.template add<TiedSoftmax>("head", {.bias = true}, h, E);
        const typename AugmentedLoss<Number>::Options options{
            .temperature = 3, .differentiate_target = kind != Kind::constant_target};
        if (kind == Kind::cross_entropy) l = g.template add<CrossEntropy>("loss", {}, o, y);
        else if (kind == Kind::adversarial)
            l = g.template add<CrossEntropy>("loss", {.adversarial = 0.2}, o, y);
        else if (own) l = g.template add<AugmentedLoss>("loss", options, o, y, E);
        else l = g.template add<AugmentedLoss>("loss", options, o, y);
        const Random random(3, 1);
        for (Index i = 0; i < 2 * T * B; ++i)  // some words several times, some positions without a target
            words.push_back(i >= T * B && i % 9 == 4 ? not_predicted
                                                     : static_cast<Token>(random.below(i, i % 2 ? 5 : V)));
    }
    double forward() {
        return g.forward(l, {x, TokenBlock{words.data(), T, B}}, {y, TokenBlock{words.data() + T * B, T, B}});
    }
    // The gradients of all parameters with the random numbers of a step.
    Numbers gradient(std::uint64_t step, bool twice = false) {
        g.reset();
        g.training_step(step);
        g.parameters().clear_gradients();
        forward();
        if (twice) {  // the second time nothing is staged: backward computes it
            g.backward(l);
            g.training_step(step);
            forward();
        }
        g.backward(l);
        Numbers all;
        for (auto& p : graph::Inspect::store(g).parameters)
            for (const double v : flat(matrix_view(p.dense_gradient().data, p.rows, p.cols)))
                all.push_back(twice ? v / 2 : v);
        return all;
    }
};

// Whether the gradient differs from another one.
bool differ(const Numbers& a, const Numbers& b) { return apart(a, b) > 1e-6; }

// Checks that the mean of sampled gradients is the exact one, of which at least a share varies.
template <class Number> void check_mean(Net<Number>& exact, Net<Number>& sampled, double varying) {
    constexpr int draws = 1200;
    const Numbers expected = exact.gradient(0);
    Numbers mean(expected.size(), 0.0), square = mean;
    for (int d = 0; d < draws; ++d) {
        const Numbers drawn = sampled.gradient(std::uint64_t(d));
        REQUIRE(drawn.size() == expected.size());
        for (std::size_t i = 0; i < mean.size(); ++i) {
            mean[i] += drawn[i] / draws;
            square[i] += std::pow(drawn[i] - expected[i], 2) / draws;
        }
    }
    // In units of the standard error: thousands of numbers, so that the largest is 4 or 5, and their mean square 1.
    double worst = 0, total = 0, varied = 0;
    for (std::size_t i = 0; i < mean.size(); ++i) {
        const double apart = mean[i] - expected[i], error = std::sqrt(square[i] / draws);
        if (error < 1e-5) {  // rounding, where nothing is drawn
            REQUIRE(std::abs(apart) < 1e-4);
            continue;
        }
        varied += 1;
        worst = worse(worst, std::abs(apart) / error);
        total += apart * apart / (error * error);
    }
    CHECK(varied > varying * double(mean.size()));
    CHECK(worst < 7);
    CHECK(total / varied == Approx(1).margin(0.25));
    CHECK(graph::Inspect::store(sampled.g).arena.guards_intact());
}

}  // namespace

TEMPLATE_TEST_CASE("The mean of sampled gradients is the gradient", "[loss][sparse_gradient]", float,
                   double) {
    const Kind kind = GENERATE(Kind::cross_entropy, Kind::adversarial, Kind::constant_target,
                               Kind::differentiated, Kind::own_table);
    CAPTURE(static_cast<int>(kind));
    Net<TestType> exact(kind, 0), sampled(kind, 0.2);
    check_mean(exact, sampled, 0.5);
}

TEST_CASE("Beside a flat prediction, whose gradient is taken whole, that through the target is sampled",
          "[loss][sparse_gradient]") {
    Net<double> exact(Kind::flat_head, 0), sampled(Kind::flat_head, 0.03);
    const auto of_head = [](Net<double>& net) {
        net.gradient(1);
        return gradient(net.g, "head.W");
    };
    CHECK(of_head(sampled) == of_head(exact));
    CHECK(differ(gradient(sampled.g, "E"), gradient(exact.g, "E")));
    check_mean(exact, sampled, 0.2);
}

TEMPLATE_TEST_CASE("The loss stays exact, and so does all of evaluation", "[loss][sparse_gradient]", float,
                   double) {
    const Kind kind = GENERATE(Kind::cross_entropy, Kind::adversarial, Kind::differentiated, Kind::own_table);
    Net<TestType> exact(kind, 0), sampled(kind, 0.2);
    CHECK(sampled.forward() == exact.forward());
    CHECK(differ(sampled.gradient(0), exact.gradient(0)));
    exact.g.training(false);
    sampled.g.training(false);
    CHECK(sampled.gradient(0) == exact.gradient(0));
}

TEST_CASE("A draw is a function of the step alone: for any blocks, threads, and computed when it may be",
          "[loss][sparse_gradient][threads]") {
    const Kind kind = GENERATE(Kind::cross_entropy, Kind::adversarial, Kind::constant_target,
                               Kind::differentiated, Kind::own_table);
    Net<double> net(kind, 0.2), small(kind, 0.2, 60'000);
    const Numbers once = net.gradient(7);
    CHECK(net.gradient(7) == once);
    CHECK(differ(net.gradient(8), once));
    CHECK(apart(net.gradient(7, true), once) < 1e-14);
    CHECK(small.g.memory() < net.g.memory());
    if (kind < Kind::differentiated)  // rows of words depend on the block
        CHECK(apart(small.gradient(7), once) < 1e-14);
    for (const int some : {2, 3}) {
        threads(some);
        CHECK(apart(net.gradient(7), once) < 1e-14);
    }
    threads(1);
}

TEST_CASE("A word of many blocks is drawn anew in each", "[loss][sparse_gradient]") {
    // All positions have one target, whose row of dl/ds comes in as many blocks as there are rows, or in one. Were it
    // drawn alike in all, their errors would add up.
    const auto variance = [](Kind kind) {
        Net<double> exact(kind, 0, 1), sampled(kind, 0.3, 1);
        for (auto* net : {&exact, &sampled}) std::fill_n(net->words.begin() + T * B, T * B, Token{3});
        const Numbers expected = exact.gradient(0);
        double sum = 0;
        for (std::uint64_t step = 0; step < 200; ++step) {
            const Numbers drawn = sampled.gradient(step);
            for (std::size_t i = 0; i < drawn.size(); ++i) sum += std::pow(drawn[i] - expected[i], 2) / 200;
        }
        return sum;
    };
    const double positions = variance(Kind::constant_target), both = variance(Kind::differentiated);
    CAPTURE(positions, both);
    CHECK(both < 1.3 * positions);
}

TEST_CASE("Where few entries are below the threshold the dense gradient is taken, to the bit",
          "[loss][sparse_gradient]") {
    const Kind kind = GENERATE(Kind::cross_entropy, Kind::adversarial, Kind::differentiated, Kind::own_table);
    Net<float> exact(kind, 0), sampled(kind, 1e-6);
    CHECK(sampled.gradient(3) == exact.gradient(3));
}

TEST_CASE("Sampled steps allocate nothing and learn as exact ones do", "[loss][sparse_gradient]") {
    const Kind kind = GENERATE(Kind::differentiated, Kind::own_table);
    const auto learn = [kind](double epsilon) {
        Net<float> net(kind, epsilon);
        Sgd<float> sgd(net.g.parameters(), {.rate = 0.3, .clip = 5});
        double loss = 0;
        std::size_t before = 0;
        for (int k = 0; k < 80; ++k) {
            if (k == 1) before = allocations();
            loss = net.forward();
            net.g.backward(net.l);
            sgd.step();
        }
        CHECK(allocations() == before);
        return loss;
    };
    const double exact = learn(0), sampled = learn(0.1);
    CHECK(sampled != exact);
    CHECK(sampled < 0.4 * double(T * B) * std::log(double(V)));
    CHECK(sampled < 1.5 * exact);
}
