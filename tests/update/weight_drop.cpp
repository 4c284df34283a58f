#include <cmath>
#include <isogloss/io/checkpoint.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/update/dynamic.hpp>
#include <isogloss/threads.hpp>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

// A recurrent layer whose output is weighed by the input w: the loss hangs on U smoothly.
template <class T> struct Layer {
    using Dropped = typename WeightDrop<T>::Dropped;

    Graph<T> g{GraphOptions{.time = 3, .batch = 2}};
    Seq<T> x = g.input("x", 2), w = g.input("w", 4);
    Loss<T> l =
        g.template add<Dot>("dot", {}, w, g.template add<Lstm>("lstm", {.units = 4, .init = uniform(1)}, x));
    std::vector<T> in, weights;

    Layer() {
        for (const double v : numbers(12, 1)) in.push_back(static_cast<T>(v));
        for (const double v : numbers(24, 2)) weights.push_back(static_cast<T>(v));
    }
    double forward() {
        g.reset();
        return g.forward(l, {x, in.data(), 3, 2}, {w, weights.data(), 3, 2});
    }
    Numbers U() { return flat(g.value(g.weight("lstm.U"))); }
    WeightDrop<T> drop(double keep, std::uint64_t seed = 1) {
        return {g.parameters("lstm.U"), {.keep = keep, .seed = seed}};
    }
};

}  // namespace

TEMPLATE_TEST_CASE("For one pass entries are 0 or divided by keep, then the weights are back",
                   "[update][weight_drop]", float, double) {
    Layer<TestType> m;
    const Numbers before = m.U();
    auto drop = m.drop(0.25);
    Numbers mean(before.size(), 0);
    Index kept = 0, changed = 0;
    constexpr int passes = 400;
    Numbers last;
    for (int i = 0; i < passes; ++i) {
        const typename Layer<TestType>::Dropped dropped(drop);
        const Numbers now = m.U();
        changed += now != last;
        last = now;
        for (std::size_t k = 0; k < now.size(); ++k) {
            if (now[k] != 0) REQUIRE(now[k] == 4 * before[k]);
            kept += now[k] != 0;
            mean[k] += now[k] / passes;
        }
    }
    CHECK(m.U() == before);
    CHECK(changed == passes);
    const double n = passes * static_cast<double>(before.size());  // kept: binomial
    CHECK(std::abs(static_cast<double>(kept) - 0.25 * n) < 4 * std::sqrt(n * 0.25 * 0.75));
    for (std::size_t k = 0; k < before.size(); ++k)  // standard error |u| √(3 / passes)
        CHECK(std::abs(mean[k] - before[k]) < 5 * std::abs(before[k]) * std::sqrt(3. / passes));
}

TEST_CASE("Its gradient is that of the loss with these entries left out", "[update][weight_drop]") {
    Layer<double> m;
    auto drop = m.drop(0.5);
    Numbers factors;  // m / keep
    const Numbers before = m.U();
    {
        const WeightDrop<double>::Dropped dropped(drop);
        const Numbers now = m.U();
        for (std::size_t k = 0; k < now.size(); ++k) factors.push_back(now[k] / before[k]);
        m.forward();
        m.g.backward(m.l);
    }
    const Numbers found = gradient(m.g, "lstm.U");
    Numbers expected;
    const auto loss = [&](std::size_t at, double offset) {
        Numbers changed = before;
        changed[at] += offset;
        for (std::size_t k = 0; k < changed.size(); ++k) changed[k] *= factors[k];
        set(m.g, "lstm.U", changed);
        return m.forward();
    };
    for (std::size_t k = 0; k < before.size(); ++k)
        expected.push_back((loss(k, 1e-5) - loss(k, -1e-5)) / 2e-5);
    CHECK(apart(found, expected) < 1e-9);
    CHECK(std::count(factors.begin(), factors.end(), 0.) > 10);
    CHECK(std::count(found.begin(), found.end(), 0.) == std::count(factors.begin(), factors.end(), 0.));
}

TEST_CASE("Masks go on where a checkpoint was written, for any number of threads", "[update][weight_drop]") {
    const auto draws = [](WeightDrop<float>& drop, Graph<float>& g, int n) {
        std::vector<Numbers> all;
        for (int i = 0; i < n; ++i) {
            const WeightDrop<float>::Dropped dropped(drop);
            all.push_back(flat(g.value(g.weight("u"))));
        }
        return all;
    };
    const auto model = [](Graph<float>& g) {
        g.weight("u", 300, 301, constant(1));
    };  // large enough to be shared
    Graph<float> g({}), other({});
    model(g), model(other);
    WeightDrop<float> drop(g.parameters(), {.keep = 0.5, .seed = 7});
    threads(2);
    const auto first = draws(drop, g, 2);
    threads(1);
    const auto bytes = [&] {
        io::Checkpoint c;
        c.model(g).state("drop", drop);
        return c;
    };
    const std::string file = Catch::getResultCapture().getCurrentTestName() + ".safetensors";
    bytes().save(file);
    const auto next = draws(drop, g, 1);

    WeightDrop<float> resumed(other.parameters(), {.keep = 0.5, .seed = 7});
    io::Checkpoint c;
    c.model(other).state("drop", resumed);
    c.load(io::Safetensors::open(file));
    CHECK(draws(resumed, other, 1) == next);
    std::remove(file.c_str());

    WeightDrop<float> again(other.parameters(), {.keep = 0.5, .seed = 7});
    CHECK(draws(again, other, 2) == first);
    WeightDrop<float> another(other.parameters(), {.keep = 0.5, .seed = 8});
    CHECK(draws(another, other, 1)[0] != first[0]);
}

TEST_CASE("Weight drop says what is wrong", "[update][weight_drop]") {
    Layer<float> m;
    REQUIRE_THROWS_MATCHES(m.drop(0), UsageError, says("weight drop", "keep = 0", "to 1"));
    REQUIRE_THROWS_MATCHES(m.drop(1.5), UsageError, says("keep = 1.5", "to 1"));
    REQUIRE_THROWS_MATCHES(m.drop(std::nan("")), UsageError, says("keep"));
    auto drop = m.drop(0.5);
    {
        const WeightDrop<float>::Dropped dropped(drop);
        REQUIRE_THROWS_MATCHES(WeightDrop<float>::Dropped(drop), UsageError, says("lent to the weight drop"));
        m.forward();
        m.g.backward(m.l);
    }
    REQUIRE_THROWS_MATCHES(WeightDrop<float>::Dropped(drop), UsageError,
                           says("weight drop", "'lstm.U'", "would be lost"));

    Graph<float> g({});
    g.weight("E", 3, 2, uniform(1), {.unit_rows = true});
    REQUIRE_THROWS_MATCHES((WeightDrop<float>(g.parameters(), {})), UsageError,
                           says("'E'", "norm 1", "exclude it"));
}

TEST_CASE("While entries are dropped nothing else writes the weights", "[update][weight_drop][errors]") {
    Layer<double> m;
    auto drop = m.drop(0.5), other = m.drop(0.5, 2);
    Sgd<double> sgd(m.g.parameters(), {.rate = 1});
    Adam<double> adam(m.g.parameters(), {.rate = 1});
    WeightAverage<double> average(m.g.parameters());
    DynamicUpdate<double> dynamic(m.g.parameters("lstm.U"), {.rule = DynamicRule::sgd, .rate = 1});
    average.add();
    const Numbers before = m.U();
    {
        const WeightDrop<double>::Dropped dropped(drop);
        const auto refused = [](const char* who) { return says(who, "'lstm.U'", "lent to the weight drop"); };
        CHECK_THROWS_MATCHES(WeightDrop<double>::Dropped(other), UsageError, refused("weight drop"));
        m.forward();
        m.g.backward(m.l);
        CHECK_THROWS_MATCHES(sgd.step(), UsageError, refused("sgd"));
        CHECK_THROWS_MATCHES(adam.step(), UsageError, refused("adam"));
        CHECK_THROWS_MATCHES(dynamic.step(), UsageError, refused("dynamic update"));
        CHECK_THROWS_MATCHES(average.add(), UsageError, refused("weight average"));
        CHECK_THROWS_MATCHES(average.swap(), UsageError, refused("weight average"));
    }
    CHECK(m.U() == before);
    sgd.step();
    CHECK(m.U() != before);
}
