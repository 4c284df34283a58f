#include <cmath>
#include <cstdio>
#include <isogloss/io/checkpoint.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/update/dynamic.hpp>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

// Two weights, w and v; v is not trained.
template <class T> struct Weights {
    Graph<T> g{GraphOptions{}};
    Weight<T> w = g.weight("w", 1, 2, constant(0)), v = g.weight("v", 1, 1, constant(5), {.trained = false});

    void set(double a, double b) {
        g.value(w)(0, 0) = static_cast<T>(a);
        g.value(w)(0, 1) = static_cast<T>(b);
    }
    T at(Index k) { return g.value(w)(0, static_cast<std::size_t>(k)); }
};

}  // namespace

TEMPLATE_TEST_CASE("A weight average is a plain mean that begins to decay", "[update][average]", float,
                   double) {
    using T = TestType;
    Weights<T> m;
    WeightAverage<T> average(m.g.parameters(), {.decay = 0.75});
    m.set(1, 8);
    average.swap();  // nothing was added: no effect
    CHECK(m.at(0) == 1);
    CHECK_FALSE(average.swapped());
    const std::vector<double> w = {4, 2, 6, 8, -2, 3};
    double mean = 0;
    for (std::size_t k = 0; k < w.size(); ++k) {
        m.set(w[k], -w[k]);
        average.add();
        mean += std::max(0.25, 1 / static_cast<double>(k + 1)) * (w[k] - mean);
        if (k == 3) CHECK(mean == 5);  // of 4, 2, 6 and 8
    }
    CHECK(average.count() == w.size());
    m.g.value(m.v)(0, 0) = 6;
    average.swap();
    CHECK(average.swapped());
    CHECK(m.at(0) == Approx(mean));
    CHECK(m.at(1) == Approx(-mean));
    CHECK(m.g.value(m.v)(0, 0) == 6);  // it has no average
    average.swap();
    CHECK(m.at(0) == 3);
    average.restart();
    m.set(7, 7);
    average.add();
    average.swap();
    CHECK(m.at(0) == 7);
}

TEMPLATE_TEST_CASE("A weight average goes on after a load as if there had been none", "[update][average][io]",
                   float, double) {
    using T = TestType;
    const std::string path = Catch::getResultCapture().getCurrentTestName() + ".safetensors";
    const auto run = [&](bool saved) {
        std::vector<T> seen;
        Weights<T> m;
        WeightAverage<T> average(m.g.parameters(), {.decay = 0.5});
        for (int k = 0; k < 3; ++k) m.set(k, k * k), average.add();
        if (saved) {
            io::Checkpoint from, to;
            from.model(m.g).state("average", average).save(path);
            Weights<T> other;
            WeightAverage<T> again(other.g.parameters(), {.decay = 0.5});
            to.model(other.g).state("average", again).load(io::Safetensors::open(path));
            std::remove(path.c_str());
            CHECK(again.count() == 3);
            other.set(9, 11), again.add(), again.swap();
            return std::vector<T>{other.at(0), other.at(1)};
        }
        m.set(9, 11), average.add(), average.swap();
        return std::vector<T>{m.at(0), m.at(1)};
    };
    CHECK(run(true) == run(false));
}

TEST_CASE("A weight average refuses what would lose weights", "[update][average][errors]") {
    Weights<float> m;
    for (const double decay : {-0.1, 1.1, std::nan("")})
        REQUIRE_THROWS_MATCHES(WeightAverage<float>(m.g.parameters(), {.decay = decay}), UsageError,
                               says("weight average", "decay"));
    m.g.parameters("w").trained(false);
    REQUIRE_THROWS_MATCHES(WeightAverage<float>(m.g.parameters()), UsageError,
                           says("weight average", "'w'", "frozen"));
    m.g.parameters("w").trained(true);
    WeightAverage<float> average(m.g.parameters());
    average.add();
    average.swap();
    const auto lent = says("'w'", "lent to the weight average");
    REQUIRE_THROWS_MATCHES(average.add(), UsageError, lent);
    REQUIRE_THROWS_MATCHES(average.restart(), UsageError, lent);
    Sgd<float> sgd(m.g.parameters(), {});
    m.g.gradient(m.w)(0, 0) = 1;
    REQUIRE_THROWS_MATCHES(sgd.step(), UsageError, lent);
    const float averaged = m.at(0);
    m.g.parameters().clear_gradients();
    {
        DynamicUpdate<float> dynamic(m.g.parameters("w"), {.rule = DynamicRule::sgd, .rate = 1});
        m.g.gradient(m.w)(0, 0) = 1;
        dynamic.step();  // of the averages, which it restores
        CHECK(m.at(0) != averaged);
        REQUIRE_THROWS_MATCHES(average.swap(), UsageError, says("lent to the dynamic update"));
    }
    CHECK(m.at(0) == averaged);
    m.g.gradient(m.w)(0, 0) = 1;
    REQUIRE_THROWS_MATCHES(sgd.step(), UsageError, lent);  // still
    average.swap();
    sgd.step();

    Graph<float> g(GraphOptions{});
    g.weight("E", 4, 2, uniform(1), {.unit_rows = true});
    REQUIRE_THROWS_MATCHES(WeightAverage<float>(g.parameters()), UsageError,
                           says("'E'", "norm 1", "exclude"));
}

TEMPLATE_TEST_CASE("A two-tailed average begins where validation chooses", "[update][average]", float,
                   double) {
    using T = TestType;
    Weights<T> m;
    TwoTailedAverage<T> average(m.g.parameters());
    // Validation is the distance from 10. The reference keeps all weights and the two places where the means begin.
    std::vector<double> all;
    std::size_t from_long = 0, from_short = 0, switches = 0;
    const auto mean = [&](std::size_t from) {
        double sum = 0;
        for (std::size_t k = from; k < all.size(); ++k) sum += all[k];
        return sum / static_cast<double>(all.size() - from);
    };
    const auto distance = [](double w) { return std::abs(w - 10); };
    for (int step = 1; step <= 60; ++step) {
        const double w = 10 + (step < 30 ? 30. - step : 0) + (step % 2 ? 3 : -3);
        m.set(w, 0);
        average.add();
        all.push_back(w);
        if (step % 4) continue;
        const double l = distance(mean(from_long)), s = distance(mean(from_short));
        CHECK(average.observe([&] { return distance(static_cast<double>(m.at(0))); }) ==
              Approx(std::min(l, s)).margin(1e-5));
        if (s <= l) from_long = from_short, from_short = all.size(), ++switches;
        CHECK(m.at(0) == static_cast<T>(w));
        average.swap();
        CHECK(m.at(0) == Approx(mean(from_long)));
        average.swap();
        CHECK(average.count() == all.size() - from_long);
    }
    CHECK(switches > 3);
    CHECK(from_long > 20);  // the weights on their way are forgotten
    const auto count = average.count();
    CHECK(average.observe([&] { return distance(static_cast<double>(m.at(0))); }) >= 0);
    CHECK_THROWS_AS(average.observe([]() -> double { throw std::runtime_error("stopped"); }),
                    std::runtime_error);
    CHECK(m.at(0) == static_cast<T>(all.back()));  // not lent any more
    CHECK(average.count() <= count);

    // It goes on from a checkpoint.
    Weights<T> copy;
    TwoTailedAverage<T> again(copy.g.parameters());
    io::Checkpoint saved, loaded;
    saved.model(m.g).state("average", average);
    loaded.model(copy.g).state("average", again);
    const std::string file = "two_tailed.safetensors";
    saved.save(file);
    loaded.load(io::Safetensors::open(file));
    std::remove(file.c_str());
    for (auto* a : {&average, &again}) a->add(), a->swap();
    CHECK(copy.at(0) == m.at(0));
}
