#include <cmath>
#include <isogloss/isogloss.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "reference/torch_values.hpp"

using namespace isogloss;

namespace {

/// One weight whose gradient the test writes itself.
template <class T> struct Bare {
    Graph<T> g{GraphOptions{.time = 1, .batch = 4}};
    Weight<T> w = g.weight("w", 2, 3, constant(1));
    void gradient(std::vector<T> values) {
        auto view = g.gradient(w);
        std::copy(values.begin(), values.end(), view.begin());
    }
    std::vector<T> value() {
        auto view = g.value(w);
        return {view.begin(), view.end()};
    }
};

}  // namespace

TEMPLATE_TEST_CASE("Sgd divides, decays, clips, moves and clears", "[update][sgd]", float, double) {
    using T = TestType;
    Bare<T> b;
    Sgd<T> sgd(b.g.parameters(), {.rate = 0.5, .clip = 2, .weight_decay = 0.25});
    b.g.parameters().summed_over(4, 0);
    b.gradient({8, 0, 0, 0, 0, 12});  // / 4 = (2, 0, 0, 0, 0, 3); + 0.25 · 1 each
    const double norm = std::sqrt(2.25 * 2.25 + 4 * 0.0625 + 3.25 * 3.25), factor = 0.5 * 2 / norm;
    CHECK(sgd.step() == Approx(norm));
    const auto w = b.value();
    CHECK(w[0] == Approx(1 - factor * 2.25));
    CHECK(w[1] == Approx(1 - factor * 0.25));
    CHECK(w[5] == Approx(1 - factor * 3.25));
    for (const T v : b.g.gradient(b.w)) CHECK(v == 0);
}

TEST_CASE("The divisor is none, the batch columns or the predicted positions", "[update][sgd]") {
    for (const auto& [divisor, expected] :
         {std::pair{Divisor::none, 8.0}, {Divisor::batch, 2.0}, {Divisor::tokens, 0.8}}) {
        Bare<double> b;
        b.g.parameters().summed_over(4, 10);
        Sgd<double> sgd(b.g.parameters(), {.rate = 1, .divisor = divisor});
        b.gradient({8, 0, 0, 0, 0, 0});
        sgd.step();
        CHECK(b.value()[0] == Approx(1 - expected));
    }
}

TEMPLATE_TEST_CASE("Momentum is that of PyTorch, with decay and a rate that changes", "[update][sgd]", float,
                   double) {
    using T = TestType;
    namespace torch = reference::torch;
    Graph<T> g({});
    const auto w = g.weight("w", 1, 3, constant(0));
    const double start[] = {1, -2, 0.5};
    for (std::size_t i = 0; i < 3; ++i) g.value(w)(0, i) = static_cast<T>(start[i]);
    Sgd<T> sgd(g.parameters(),
               {.rate = 0.1, .weight_decay = 0.01, .momentum = 0.9, .divisor = Divisor::none});
    for (std::size_t step = 0; step < 4; ++step) {
        if (step == 2) sgd.rate(0.05);
        for (std::size_t i = 0; i < 3; ++i)
            g.gradient(w)(0, i) = static_cast<T>(torch::sgd_gradients[3 * step + i]);
        sgd.step();
        for (std::size_t i = 0; i < 3; ++i)
            CHECK(g.value(w)(0, i) ==
                  Approx(torch::sgd_path[3 * step + i]).epsilon(sizeof(T) == 4 ? 1e-5 : 1e-13));
    }
}

TEMPLATE_TEST_CASE("Momentum is of the clipped direction, and moves rows that were not looked up",
                   "[update][sgd]", float, double) {
    using T = TestType;
    Graph<T> g({});
    const auto E = g.weight("E", 3, 2, constant(1));
    g.template add<Embedding>("e", {}, g.tokens("x", 3), E);
    Sgd<T> sgd(g.parameters(), {.rate = 0.5, .clip = 5, .momentum = 0.5, .divisor = Divisor::none});
    const auto touch = [&](Index row, double a, double b) {
        T* to = g.parameter("E").gradient_row(row);
        to[0] = static_cast<T>(a), to[1] = static_cast<T>(b);
    };
    touch(1, 6, 8);  // of norm 10: (3, 4)
    CHECK(sgd.step() == 10);
    CHECK(g.value(E)(1, 0) == 1 - T(1.5));
    CHECK(g.value(E)(1, 1) == 1 - T(2));
    touch(2, 3, 4);  // of norm 5
    sgd.step();
    CHECK(g.value(E)(1, 0) == 1 - T(1.5) - T(0.75));
    CHECK(g.value(E)(2, 1) == 1 - T(2));
    CHECK(g.value(E)(0, 0) == 1);
    touch(1, std::numeric_limits<double>::infinity(), 0);
    REQUIRE_THROWS_AS(sgd.step(), NumericError);
    CHECK(g.value(E)(1, 0) == 1 - T(1.5) - T(0.75));
    g.parameters().clear_gradients();
    g.parameter("E").dense_gradient();  // of zeros
    sgd.step();                         // as if it had not been
    CHECK(g.value(E)(1, 0) == 1 - T(1.5) - T(0.75) - T(0.375));
    REQUIRE_THROWS_MATCHES(Sgd<T>(g.parameters(), {.momentum = -0.5}), UsageError,
                           says("sgd", "momentum = -0.5"));
    REQUIRE_THROWS_MATCHES(Sgd<T>(g.parameters(), {.momentum = 1 - 1e-17}), UsageError, says("momentum = 1"));
}

TEST_CASE("A gradient of touched rows moves as the dense one does", "[update][sgd]") {
    const auto trained = [](bool dense) {
        Graph<double> g({.time = 2, .batch = 2});
        const auto x = g.tokens("x", 6), y = g.tokens("y", 6);
        const auto E = g.weight("E", 6, 3, uniform(0.5));
        const auto h = g.add<Rnn>("h", {.units = 3}, g.add<Embedding>("e", {}, x, E));
        const auto l = g.add<CrossEntropy>("l", {}, g.add<Softmax>("o", {.vocabulary = 6}, h), y);
        Sgd<double> sgd(g.parameters(), {.rate = 1, .clip = 0.5});
        for (const std::vector<Token>& t : {std::vector<Token>{0, 1, 1, 3}, {5, 5, 5, 5}, {2, 0, 4, 1}}) {
            g.forward(l, {x, TokenBlock{t.data(), 2, 2}}, {y, TokenBlock{t.data(), 2, 2}});
            g.backward(l);
            REQUIRE(g.parameter("E").condition == Parameter<double>::Condition::rows);
            if (dense) g.gradient(E);
            sgd.step();
        }
        const auto view = g.value(E);
        return std::vector<double>(view.begin(), view.end());
    };
    CHECK(trained(false) == trained(true));
}

TEST_CASE("Rows held at norm 1 stay there, touched or dense", "[update][sgd]") {
    for (const bool tied : {false, true}) {
        Graph<double> g({.time = 2, .batch = 2});
        const auto x = g.tokens("x", 6), y = g.tokens("y", 6);
        const auto E = g.weight("E", 6, 3, uniform(0.5), {.unit_rows = true});
        const auto h = g.add<Rnn>("h", {.units = 3}, g.add<Embedding>("e", {}, x, E));
        const auto o = tied ? g.add<TiedSoftmax>("o", {}, h, E) : g.add<Softmax>("o", {.vocabulary = 6}, h);
        const auto l = g.add<CrossEntropy>("l", {}, o, y);
        Sgd<double> sgd(g.parameters(), {.rate = 2});
        const std::vector<Token> t = {0, 1, 1, 3};
        const auto before = std::vector<double>(g.value(E).begin(), g.value(E).end());
        for (int k = 0; k < 3; ++k) {
            g.forward(l, {x, TokenBlock{t.data(), 2, 2}}, {y, TokenBlock{t.data(), 2, 2}});
            g.backward(l);
            sgd.step();
        }
        const auto view = g.value(E);
        for (std::size_t i = 0; i < 6; ++i)
            CHECK(view(i, 0) * view(i, 0) + view(i, 1) * view(i, 1) + view(i, 2) * view(i, 2) ==
                  Approx(1).epsilon(1e-12));
        CHECK(view(0, 0) != before[0]);
        CHECK((view(5, 0) == before[15]) == !tied);
    }
}

TEST_CASE("An update refuses a gradient that is not finite and changes nothing", "[update][sgd][errors]") {
    Bare<float> b;
    Sgd<float> sgd(b.g.parameters(), {.rate = 1});
    b.gradient({1, 2, 3, 4, std::numeric_limits<float>::quiet_NaN(), 6});
    REQUIRE_THROWS_MATCHES(sgd.step(), NumericError, says("'w'", "not finite", "nothing was changed"));
    CHECK(b.value() == std::vector<float>(6, 1));
    REQUIRE_THROWS_MATCHES(Sgd<float>(b.g.parameters(), {.rate = -1}), UsageError, says("rate = -1"));
    REQUIRE_THROWS_MATCHES(Sgd<float>(b.g.parameters(), {.clip = -1}), UsageError, says("clip = -1"));
    REQUIRE_THROWS_MATCHES(sgd.rate(std::numeric_limits<double>::infinity()), UsageError, says("rate"));
    REQUIRE_THROWS_MATCHES((AveragedSgd<float>(b.g.parameters(), {.window = 0})), UsageError,
                           says("window = 0"));
}

TEST_CASE("Averaging is triggered when validation stops improving, and averages what follows",
          "[update][asgd]") {
    Bare<double> b;
    AveragedSgd<double> asgd(b.g.parameters(), {.sgd = {.rate = 1}, .window = 2});
    const auto step = [&](double g) {
        b.gradient({g, 0, 0, 0, 0, 0});
        asgd.step();
    };
    step(1);                                                                   // w = 0
    for (const double v : {5.0, 4.0, 3.0, 4.5}) CHECK_FALSE(asgd.observe(v));  // 4.5 < 5
    CHECK_FALSE(asgd.triggered());
    CHECK(asgd.observe(4.2));  // 4.2 > min(5, 4)
    CHECK(asgd.triggered());
    asgd.swap();
    CHECK(b.value()[0] == 0);  // nothing averaged yet: no effect
    step(1);                   // w = -1
    step(1);                   // w = -2
    step(1);                   // w = -3
    asgd.swap();
    CHECK(b.value()[0] == Approx(-2));
    REQUIRE_THROWS_MATCHES(asgd.step(), UsageError,
                           says("averaged sgd", "first end its scope, swap() or restore()"));
    asgd.swap();
    CHECK(b.value()[0] == Approx(-3));
    REQUIRE_THROWS_AS(asgd.observe(std::numeric_limits<double>::quiet_NaN()), NumericError);
}
