// The control of learning rates.
#include <isogloss/io.hpp>
#include <isogloss/loss/activation_penalty.hpp>
#include <isogloss/update/riemannian/alternating.hpp>
#include <utility>

#include "io/files.hpp"
#include "networks.hpp"

TEST_CASE("Alternating training never leaves a worse loss than it found", "[riemannian]") {
    Net<Glnn> n(80);
    auto softmax = softmax_step(n.g, n.y);
    auto transition = transition_step(n.g, GENERATE(UnitModulus::ruop, UnitModulus::rbpm));
    AlternatingTraining<double> training(n.g, n.l);
    training.add(softmax, {.rate = 1e4});  // far too much: has to find its way down
    training.add(transition, {.rate = 1e4});
    training.data({n.feeds()});
    double before = training.value();
    const double start = before;
    for (int k = 0; k < 40; ++k) {
        const double now = training.round();
        REQUIRE(now <= before);
        REQUIRE(n.forward() == Approx(now).epsilon(1e-13));  // what it says is what is there
        before = now;
    }
    REQUIRE(before < start - 8);
    REQUIRE(training.accepted(0) == 40);
    REQUIRE(training.cancelled(0) > 5);
    REQUIRE(training.rate(1) < 1e4);
}

TEST_CASE("A rate is divided for every trial cancelled and multiplied for a step accepted", "[riemannian]") {
    Net<Glnn> n(80);
    auto softmax = softmax_step(n.g, n.y);
    AlternatingTraining<double> training(n.g, n.l);
    training.add(softmax, {.rate = 1e4, .up = 1.5, .down = 4});
    training.data({n.feeds()});
    training.round();
    REQUIRE(training.accepted(0) == 1);
    REQUIRE(training.cancelled(0) > 0);
    REQUIRE(training.rate(0) ==
            Approx(1e4 * 1.5 / std::pow(4., double(training.cancelled(0)))).epsilon(1e-14));
    REQUIRE_THROWS_MATCHES(training.add(softmax, {.rate = 1, .up = 0.9}), UsageError, says("up = 0.9"));
}

TEST_CASE("When no rate will do everything is as it was", "[riemannian]") {
    Net<Glnn> n(80);
    SearchStep<double> step(n.g.parameters());
    n.forward();
    REQUIRE_THROWS_MATCHES(step.add(1), UsageError, says("no backward pass has reached"));
    AlternatingTraining<double> training(n.g, n.l);
    training.add(step, {.rate = 1e9, .retries = 2});
    training.data({n.feeds()});
    Numbers before, after;
    for (auto* p : n.g.parameters()) before.insert(before.end(), p->value, p->value + p->size());
    const double loss = training.value();
    REQUIRE(training.round() == loss);
    for (auto* p : n.g.parameters()) after.insert(after.end(), p->value, p->value + p->size());
    REQUIRE(after == before);
    REQUIRE(training.accepted(0) == 0);
    AlternatingTraining<double> without(n.g, n.l);
    without.add(step, {.rate = 1});
    REQUIRE_THROWS_MATCHES(without.round(), UsageError, says("call add() and data()"));
}

TEST_CASE("A group without a finite metric waits, and a round in which no group has one throws",
          "[riemannian][errors]") {
    // ∂l/∂V ~ 1e30 is finite in float, its square, which is the metric of the units, is not.
    Graph<float> g({.time = 6, .batch = 1});
    const auto x = g.tokens("x", 3), y = g.tokens("y", 3);
    const auto a = g.add<SparseRnn>("net", {.units = 4, .edges = 2}, x);
    const auto l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("out", {.vocabulary = 3}, a), y);
    g.value(g.weight("out.W")) *= 1e30f;
    const auto small = flat(g.value(g.weight("net.tau")));
    const std::vector<Token> in = {0, 1, 2, 0, 1, 2}, next = {1, 2, 0, 1, 2, 0};
    auto softmax = softmax_step(g, y);
    auto transition = transition_step(g, UnitModulus::ruop);
    AlternatingTraining<float> training(g, l), alone(g, l);
    alone.add(transition, {.rate = 0.1});
    alone.data({{{x, in}, {y, next}}});
    REQUIRE(std::isfinite(alone.value()));
    REQUIRE_THROWS_MATCHES(alone.round(), NumericError, says("inf in the metric"));
    REQUIRE(alone.cancelled(0) == 1);

    training.add(transition, {.rate = 0.1});
    training.add(softmax, {.rate = 0.1});
    training.data({{{x, in}, {y, next}}});
    const double before = training.value();
    REQUIRE(training.round() <= before);
    REQUIRE((training.accepted(0) == 0 && training.cancelled(0) == 1));
    REQUIRE(training.rate(0) == 0.1);  // no rate would have helped
    REQUIRE(flat(g.value(g.weight("net.tau"))) == small);
    REQUIRE(training.accepted(1) == 1);

    g.value(g.weight("out.W")) *= 1e-30f;
    training.resume();
    training.round();
    REQUIRE(training.accepted(0) == 1);  // it goes on where its metric is finite again
    REQUIRE(flat(g.value(g.weight("net.tau"))) != small);
}

TEST_CASE("Several sequences are summed with their weights", "[riemannian]") {
    Net<Glnn> columns(20, Activation::tanh, 5, 3, 4, 2), separate(20);
    std::vector<std::vector<Token>> x(2), y(2);
    std::vector<std::vector<Feed<double>>> sequences;
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < 20; ++t)
            x[b].push_back(columns.text[2 * t + b]), y[b].push_back(columns.next[2 * t + b]);
        sequences.push_back({{separate.x, {x[b].data(), 20, 1}}, {separate.y, {y[b].data(), 20, 1}}});
    }
    auto w1 = softmax_step(columns.g, columns.y), w2 = softmax_step(separate.g, separate.y);
    auto t1 = transition_step(columns.g), t2 = transition_step(separate.g);
    AlternatingTraining<double> together(columns.g, columns.l), apart_(separate.g, separate.l);
    for (auto* training : {&together, &apart_}) {
        training->add(training == &together ? w1 : w2, {.rate = 0.1});
        training->add(training == &together ? t1 : t2, {.rate = 0.1});
    }
    together.data({columns.feeds()});
    apart_.data(sequences, {1, 1});
    for (int k = 0; k < 5; ++k) REQUIRE(together.round() == Approx(apart_.round()).epsilon(1e-9));

    AlternatingTraining<double> weighted(separate.g, separate.l);
    weighted.add(w2, {.rate = 0.1});
    weighted.data({sequences[0], sequences[1]}, {3, 0});
    separate.g.reset();
    REQUIRE(weighted.value() ==
            Approx(3 * separate.g.forward(separate.l, std::span<const Feed<double>>(sequences[0]))));
    REQUIRE_THROWS_MATCHES(weighted.data(sequences, {1}), UsageError, says("2 sequences and 1 weights"));
    REQUIRE_THROWS_MATCHES(weighted.data(sequences, {1, -1}), UsageError, says("weight = -1"));
    REQUIRE_THROWS_MATCHES(weighted.data(sequences, {0, 0}), UsageError, says("sum to 0"));
    REQUIRE_THROWS_MATCHES(weighted.add(t2, {.rate = 0}), UsageError, says("rate = 0"));
    REQUIRE_THROWS_MATCHES(weighted.add(t2, {.rate = 1, .down = 1}), UsageError, says("down = 1"));
}

TEST_CASE("Steps of a head go the same way whether the network below runs or not", "[riemannian]") {
    Net<Glnn> whole(60), part(60);
    SearchStep<double> all(whole.g.parameters("out.*")), head(part.g.parameters("out.*"), part.a);
    auto t1 = transition_step(whole.g), t2 = transition_step(part.g);
    AlternatingTraining<double> slow(whole.g, whole.l), fast(part.g, part.l);
    slow.add(all, {.rate = 100}), fast.add(head, {.rate = 100});  // some trials are not finite
    slow.add(t1, {.rate = 0.1}), fast.add(t2, {.rate = 0.1});
    slow.data({whole.feeds()}), fast.data({part.feeds()});
    for (int k = 0; k < 10; ++k) REQUIRE(slow.round() == fast.round());
    REQUIRE(fast.cancelled(0) > 0);
    REQUIRE(fast.cancelled(0) == slow.cancelled(0));
}

TEST_CASE("A trial that throws leaves the weights of before", "[riemannian][errors]") {
    Net<Glnn> n(20);
    auto step = transition_step(n.g);
    AlternatingTraining<double> training(n.g, n.l);
    training.add(step, {.rate = 0.1});
    training.data({n.feeds()});
    const auto values = [&] {
        Numbers all;
        for (const auto* p : n.g.parameters()) all.insert(all.end(), p->value, p->value + p->size());
        return all;
    };
    const Numbers before = values();
    const Token first = std::exchange(n.text[0], 99);  // read again by the trial
    REQUIRE_THROWS_MATCHES(training.round(), DataError, says("token 99"));
    REQUIRE(values() == before);
    n.text[0] = first;
    const double loss = training.value();
    REQUIRE(training.round() < loss);
    REQUIRE_THROWS_MATCHES(training.rate(1), UsageError, says("group = 1"));
}

TEST_CASE("Weights of sequences have no unit", "[riemannian]") {
    // Weights of 1/200 in place of 1 are the same loss up to a factor: the same steps, damping and all.
    const MetricForm form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal);
    Net<Glnn> one(60), other(60);
    auto w1 = softmax_step(one.g, one.y), w2 = softmax_step(other.g, other.y);
    auto t1 = transition_step(one.g, UnitModulus::rbpm, form),
         t2 = transition_step(other.g, UnitModulus::rbpm, form);
    AlternatingTraining<double> plain(one.g, one.l), weighted(other.g, other.l);
    plain.add(w1, {.rate = 0.2}), plain.add(t1, {.rate = 0.2});
    weighted.add(w2, {.rate = 0.2}), weighted.add(t2, {.rate = 0.2});
    plain.data({one.feeds(), one.feeds()}, {1, 3});
    weighted.data({other.feeds(), other.feeds()}, {1.0 / 200, 3.0 / 200});
    for (int k = 0; k < 10; ++k) REQUIRE(weighted.round() * 200 == Approx(plain.round()).epsilon(1e-9));
    REQUIRE(plain.accepted(1) == 10);
}

TEST_CASE("Full-batch training goes on from a file with the same bits", "[riemannian]") {
    struct Training : Net<Glnn> {
        SearchStep<double> softmax = softmax_step(g, y);
        SearchStep<double> transition = transition_step(g);
        AlternatingTraining<double> training{g, l};
        explicit Training(bool conjugate) : Net<Glnn>(60) {
            softmax.conjugate(conjugate), transition.conjugate(conjugate);
            training.add(softmax, {.rate = 10}), training.add(transition, {.rate = 10});
            training.data({feeds()});
        }
        io::Checkpoint checkpoint() {
            io::Checkpoint c;
            return c.model(g).state("training", training);
        }
        void train(int rounds) {
            for (int k = 0; k < rounds; ++k) training.round();
        }
    };
    const bool conjugate = GENERATE(false, true);
    const TemporaryDirectory folder;
    Training whole(conjugate), first(conjugate), second(conjugate);
    whole.train(13);
    first.train(6);
    first.checkpoint().save(folder / "training.safetensors");
    second.train(1);
    second.checkpoint().load(io::Safetensors::open(folder / "training.safetensors"));
    REQUIRE(second.training.value() == first.training.value());
    REQUIRE(second.training.accepted(1) == 6);
    second.train(7);
    REQUIRE(second.training.value() == whole.training.value());
    REQUIRE(second.training.cancelled(0) == whole.training.cancelled(0));
    for (std::size_t k : {0u, 1u}) REQUIRE(second.training.rate(k) == whole.training.rate(k));
    for (const auto* p : whole.g.parameters())
        for (Index i = 0; i < p->size(); ++i) REQUIRE(second.g.parameter(p->name).value[i] == p->value[i]);
    // Of parameters alone: the loss to improve is that of the parameters that were loaded, here a worse one.
    whole.checkpoint().load(io::Safetensors::open(folder / "training.safetensors"), io::Restore::parameters);
    whole.training.resume();
    whole.train(1);
    CHECK(whole.training.value() <= first.training.value());
    CHECK(whole.forward() == Approx(whole.training.value()).epsilon(1e-13));
    CHECK(whole.training.accepted(0) == 14);
}
