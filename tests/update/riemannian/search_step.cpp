// The line search over the metrics of any node's units, and the fixed rate over those of sparse networks.
#include <isogloss/update/riemannian/alternating.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/weight_drop.hpp>

#include "networks.hpp"

namespace {

// A cell under a softmax head: the next token is the sum of the last two.
template <class Cell> struct Recurrent;
template <template <class> class Cell, class T> struct Recurrent<Cell<T>> {
    static constexpr Index steps = 12, B = 3;
    Graph<T> g{GraphOptions{.time = steps, .batch = B}};
    Tokens x = g.tokens("x", 4), y = g.tokens("y", 4);
    Loss<T> l;
    std::vector<Token> in, next;

    Recurrent() {
        const auto e = g.template add<Embedding>("embed", {}, x, g.weight("E", 4, 3, normal(1)));
        const auto h = g.template add<Cell>("cell", {.units = 5}, e);
        l = g.template add<CrossEntropy>("loss", {}, g.template add<Softmax>("out", {.vocabulary = 4}, h), y);
        const Random random(7, 7);
        for (Index r = 0; r < steps * B; ++r) in.push_back(static_cast<Token>(random.below(r, 4)));
        for (Index r = 0; r < steps * B; ++r)
            next.push_back(static_cast<Token>(r < B ? 0 : (in[std::size_t(r)] + in[std::size_t(r - B)]) % 4));
    }
    std::vector<Feed<T>> feeds() { return {{x, {in.data(), steps, B}}, {y, {next.data(), steps, B}}}; }
    void backward(bool modulus) {
        const auto f = feeds();
        g.reset();
        g.forward(l, std::span<const Feed<T>>(f));
        g.backward(l);
        if (modulus) g.template backward<Modulus>(l);
    }
    Numbers values() {
        Numbers all;
        for (auto* p : g.parameters()) all.insert(all.end(), p->value, p->value + p->size());
        return all;
    }
};

}  // namespace

TEMPLATE_TEST_CASE("A line search over the metric of units never leaves a worse loss", "[riemannian]",
                   Rnn<double>, Lstm<double>) {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    Recurrent<TestType> n;
    SearchStep<double> cell(n.g, "cell.*", {.modulus = modulus, .floor = 0.01});
    auto softmax = softmax_step(n.g, n.y);
    AlternatingTraining<double> training(n.g, n.l);
    training.add(softmax, {.rate = 0.5});
    training.add(cell, {.rate = 100});  // too much: has to find its way down
    training.data({n.feeds()});
    const double start = training.value();
    double before = start;
    for (int k = 0; k < 60; ++k) {
        const double now = training.round();
        REQUIRE(now <= before);
        before = now;
    }
    REQUIRE(before < 0.5 * start);
    REQUIRE(training.accepted(1) > 50);
    REQUIRE(training.cancelled(1) > 0);
}

TEMPLATE_TEST_CASE("A cancelled step of units leaves the bits that it found", "[riemannian]", Rnn<double>,
                   Lstm<double>) {
    Recurrent<TestType> n;
    SearchStep<double> step(n.g, "cell.*", {.modulus = UnitModulus::rbpm});
    const Numbers before = n.values();
    n.backward(step.wants_modulus());
    step.add(1);
    step.solve();
    step.move(1.0 / 3);
    const Numbers moved = n.values();
    REQUIRE(apart(moved, before) > 1e-3);
    step.move(1e6);
    step.move(1.0 / 3);
    REQUIRE(n.values() == moved);  // a rate is from where it began, not from the last trial
    step.cancel();
    REQUIRE(n.values() == before);
}

TEMPLATE_TEST_CASE("The line search and the fixed rate have one direction", "[riemannian][update]", float,
                   double) {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const MetricForm form = GENERATE(MetricForm::quasi_diagonal, MetricForm::diagonal);
    const std::string pattern = GENERATE("cell.*", "out.*");
    Recurrent<Lstm<TestType>> n;
    Riemannian<TestType> update(n.g, n.g.parameters(pattern),
                                {.modulus = modulus,
                                 .form = form,
                                 .rate = 0,
                                 .damping = 0.1,
                                 .floor = 0.2,
                                 .divisor = Divisor::none});
    SearchStep<TestType> step(n.g, pattern, {.modulus = modulus, .form = form, .damping = 0.1, .floor = 0.2});
    n.backward(true);
    step.add(1);
    step.clear();  // what was added before does not count
    step.add(0.25);
    step.add(0.75);
    step.solve();
    update.step();
    for (std::size_t k = 0; k < update.group().size(); ++k) {
        REQUIRE(apart(step.direction(k), Numbers(step.direction(k).size(), 0)) > 1e-3);
        REQUIRE(apart(step.direction(k), update.direction(k)) < (sizeof(TestType) == 4 ? 1e-4 : 1e-12));
    }
}

TEMPLATE_TEST_CASE("The fixed rate runs over the metric of sparse networks", "[riemannian][update]",
                   Net<Glnn>, Net<SparseRnn>) {
    const MetricForm form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal, MetricForm::diagonal);
    TestType n(60);
    auto step = transition_step(n.g, UnitModulus::rbpm, form, 0.3);
    n.backward(step);
    step.solve();
    Riemannian<double> same(n.g, "net.*",
                            {.modulus = UnitModulus::rbpm,
                             .form = form,
                             .rate = 0,
                             .damping = 1e-14,
                             .floor = 0.3,
                             .divisor = Divisor::none});
    n.forward();
    n.g.backward(n.l), n.g.template backward<Modulus>(n.l);
    same.step();
    for (std::size_t k = 0; k < same.group().size(); ++k)
        REQUIRE(apart(same.direction(k), step.direction(k)) < 1e-9);

    n.g.parameters().clear_gradients();  // those of the head, which no step has used
    Riemannian<double> update(n.g, "*", {.modulus = UnitModulus::rbpm, .form = form, .rate = 0.1});
    const double first = n.forward();
    for (int k = 0; k < 30; ++k) {
        n.forward();
        n.g.backward(n.l);
        if (update.wants_modulus()) n.g.template backward<Modulus>(n.l);
        update.step();
    }
    REQUIRE(n.forward() < 0.9 * first);
}

TEST_CASE("Search steps refuse what they cannot work on", "[riemannian]") {
    Recurrent<Lstm<double>> n;
    REQUIRE_THROWS_MATCHES(SearchStep<double>(n.g, "cell.*", {.damping = -1}), UsageError,
                           says("damping = -1"));
    REQUIRE_THROWS_MATCHES(SearchStep<double>(n.g, "cell.*", {.floor = -1}), UsageError, says("floor = -1"));
    SearchStep<double> step(n.g, "cell.*", {.modulus = UnitModulus::rbpm});
    n.backward(false);
    REQUIRE_THROWS_MATCHES(step.add(1), UsageError, says("backward<Modulus>"));
    n.g.parameter("cell.U").unit_rows = true;  // which a straight line leaves
    REQUIRE_THROWS_MATCHES(SearchStep<double>(n.g, "cell.*", {}), UsageError, says("'cell.U'", "norm 1"));

    Net<SparseRnn> sparse(10);
    REQUIRE_THROWS_MATCHES(SearchStep<double>(sparse.g, "net.tau", {}), UsageError,
                           says("'net'", "include them"));
}

TEST_CASE("While a direction is tried its weights are lent", "[riemannian][errors]") {
    Recurrent<Rnn<double>> n;
    SearchStep<double> step(n.g, "cell.*", {.floor = 0.01});
    WeightDrop<double> drop(n.g.parameters("cell.U"), {.keep = 0.5});
    Sgd<double> sgd(n.g.parameters(), {});
    n.backward(false);
    step.add(1);
    step.solve();
    const Numbers before = n.values();
    {
        n.g.parameters().clear_gradients();
        const WeightDrop<double>::Dropped dropped(drop);
        REQUIRE_THROWS_MATCHES(step.move(0.1), UsageError, says("'cell.U'", "weight drop"));
    }
    step.move(0.1);
    REQUIRE(n.values() != before);
    n.backward(false);
    REQUIRE_THROWS_MATCHES(sgd.step(), UsageError, says("sgd", "search step"));
    step.cancel();
    REQUIRE(n.values() == before);
    step.move(0.1);
    step.accept();
    sgd.step();
}
