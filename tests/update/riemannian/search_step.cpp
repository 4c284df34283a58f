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
    const MetricForm form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal);
    Recurrent<TestType> n;
    SearchStep<double> cell(n.g, "cell.*", {.modulus = modulus, .form = form, .floor = 0.01});
    SoftmaxStep<double> softmax(n.g, "out", n.y);
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
    const MetricForm form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal, MetricForm::diagonal);
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
    TransitionStep<double> step(n.g, "net", {.form = form, .floor = 0.3});
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
    const std::vector<std::string> names = {"net.tau", "net.start", "net.rho"};
    for (std::size_t k = 0; k < same.group().size(); ++k) {
        const auto member = std::find(names.begin(), names.end(), same.group()[k].name) - names.begin();
        REQUIRE(apart(same.direction(k), step.direction(std::size_t(member))) < 1e-9);
    }

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

TEMPLATE_TEST_CASE("A metric refuses activities and derivatives of different passes", "[riemannian][errors]",
                   float, double) {
    using T = TestType;
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const bool rbpm = modulus == UnitModulus::rbpm;
    Recurrent<Lstm<T>> n;
    SearchStep<T> step(n.g, "cell.*", {.modulus = modulus});
    Riemannian<T> update(n.g, "cell.*", {.modulus = modulus, .every = 1});
    const char* wanted = rbpm ? "no backward<Modulus>(loss) since" : "no backward(loss) since";
    const auto refused = [&] {
        const Numbers before = n.values();
        REQUIRE_THROWS_MATCHES(step.add(1), UsageError, says(wanted));
        REQUIRE_THROWS_MATCHES(update.step(), UsageError, says(wanted));
        REQUIRE(n.values() == before);
        n.g.parameters().clear_gradients();
    };
    refused();  // no pass at all
    n.backward(rbpm);
    step.add(1), update.step();
    n.backward(rbpm);
    const auto f = n.feeds();
    n.g.forward(n.l, std::span<const Feed<T>>(f));  // as an evaluation in between
    refused();
    if (rbpm) {
        n.backward(false);  // the modulus is that of the pass before
        refused();
    }
    n.backward(rbpm);
    step.add(1), update.step();
}

TEMPLATE_TEST_CASE("Positions without a target are left out of a head's metric by a search too",
                   "[riemannian]", float, double) {
    Recurrent<Lstm<TestType>> n;
    for (std::size_t r = 10; r < 20; ++r) n.next[r] = not_predicted;
    Riemannian<TestType> update(
        n.g, "out.*", {.rate = 0, .damping = 0.1, .floor = 0.2, .divisor = Divisor::none, .targets = n.y});
    SearchStep<TestType> step(n.g, "out.*", {.damping = 0.1, .floor = 0.2, .targets = n.y}),
        all(n.g, "out.*", {.damping = 0.1, .floor = 0.2});
    n.backward(false);
    step.add(1), all.add(1);
    step.solve(), all.solve(), update.step();
    for (std::size_t k = 0; k < 2; ++k) {
        REQUIRE(apart(step.direction(k), update.direction(k)) < (sizeof(TestType) == 4 ? 1e-4 : 1e-12));
        REQUIRE(apart(step.direction(k), all.direction(k)) > 1e-3);
    }
}

TEMPLATE_TEST_CASE("A search refuses rows held at norm 1, which it would leave at others",
                   "[riemannian][errors]", float, double) {
    using T = TestType;
    Graph<T> g({.time = 2, .batch = 1});
    const auto E = g.weight("E", 4, 3, uniform(0.5), {.unit_rows = true});
    const auto h = g.template add<Linear>("map", {.units = 3}, g.input("u", 2));
    const auto y = g.tokens("y", 4);
    g.template add<CrossEntropy>("loss", {}, g.template add<TiedSoftmax>("out", {.bias = true}, h, E), y);
    const auto refused = says("'E'", "norm 1", "exclude it");
    REQUIRE_THROWS_MATCHES(SearchStep<T>(g, "*", {}), UsageError, refused);
    REQUIRE_THROWS_MATCHES(GradientStep<T>(g.parameters()), UsageError, refused);
    REQUIRE_THROWS_MATCHES(SoftmaxStep<T>(g, "out", y), UsageError, refused);
    const auto before = flat(g.value(E));
    REQUIRE_THROWS_MATCHES(start_at_frequencies(g, "out", {1, 2, 3, 4}), UsageError,
                           says("start_at_frequencies", "'E'", "norm 1"));
    REQUIRE(flat(g.value(E)) == before);
    const SearchStep<T> others(g, "!E, !out.b", {});
}

TEST_CASE("Search steps refuse what they cannot work on", "[riemannian]") {
    Recurrent<Lstm<double>> n;
    REQUIRE_THROWS_MATCHES(SearchStep<double>(n.g, "E", {}), UsageError, says("'E' belongs to no units"));
    REQUIRE_THROWS_MATCHES(SearchStep<double>(n.g, "cell.*", {.damping = 0}), UsageError,
                           says("damping = 0"));
    REQUIRE_THROWS_MATCHES(SearchStep<double>(n.g, "cell.*", {.floor = -1}), UsageError, says("floor = -1"));
    SearchStep<double> step(n.g, "cell.*", {.modulus = UnitModulus::rbpm});
    n.backward(false);
    REQUIRE_THROWS_MATCHES(step.add(1), UsageError, says("backward<Modulus>"));
    const SearchStep<double> of_group(n.g, n.g.parameters("cell.*"), {});
    REQUIRE_THROWS_MATCHES(SearchStep<double>(n.g, n.g.parameters("E"), {}), UsageError,
                           says("'E' belongs to no units"));

    Net<Glnn> sparse(10);
    REQUIRE_THROWS_MATCHES(SearchStep<double>(sparse.g, "net.tau", {}), UsageError,
                           says("'net'", "include them all"));
}

TEST_CASE("A direction is neither made nor taken on temporary weights", "[riemannian][errors]") {
    Recurrent<Rnn<double>> n;
    SearchStep<double> step(n.g, "cell.*", {.floor = 0.01});
    n.backward(false);
    step.clear();
    step.add(1);
    step.solve();
    n.g.parameters().clear_gradients();
    const Numbers before = n.values();
    WeightDrop<double> drop(n.g.parameters("cell.U"), {.keep = 0.5});
    {
        const WeightDrop<double>::Dropped dropped(drop);
        REQUIRE_THROWS_MATCHES(step.solve(), UsageError, says("riemannian", "solve()"));
        REQUIRE_THROWS_MATCHES(step.move(0.1), UsageError, says("riemannian", "move()"));
        REQUIRE_THROWS_MATCHES(step.cancel(), UsageError, says("riemannian", "cancel()"));
    }
    step.move(0.1);
    REQUIRE(n.values() != before);
    step.cancel();
    REQUIRE(n.values() == before);
}
