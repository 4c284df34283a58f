#include <cmath>
#include <isogloss/isogloss.hpp>
#include <isogloss/update/dynamic.hpp>
#include <limits>
#include <memory>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

// A table [5, 2] of which rows are looked up, and a matrix [1, 2]; all weights are 1.
template <class T> struct Group {
    Graph<T> g{GraphOptions{}};
    Group() {
        const auto x = g.tokens("x", 5);
        g.template add<Embedding>("embed", {}, x, g.weight("E", 5, 2, constant(1)));
        g.weight("W", 1, 2, constant(1));
    }
    Parameter<T>& E() { return g.parameter("E"); }
    Parameter<T>& W() { return g.parameter("W"); }
    // 3 in W, 4 in row 3 of the table: together of length 5.
    void fill() {
        W().dense_gradient().data[0] += 3;
        E().gradient_row(3)[1] += 4;
    }
};

}  // namespace

TEMPLATE_TEST_CASE("The ranges of a gradient are all of it, its touched rows, or none", "[update][gradients]",
                   float, double) {
    using Condition = typename Parameter<TestType>::Condition;
    Group<TestType> m;
    const auto ranges = [&](Parameter<TestType>& p) {
        std::vector<std::pair<Index, Index>> of;  // begin and length
        for_each_range(p, [&](TestType* w, TestType* g, Index n, Index piece) {
            CHECK(w - p.value == g - p.gradient);
            CHECK(piece == 0);
            of.push_back({w - p.value, n});
        });
        return of;
    };
    using Ranges = std::vector<std::pair<Index, Index>>;
    CHECK(ranges(m.E()) == Ranges{});
    m.E().gradient_row(3);
    m.E().gradient_row(0);
    CHECK(ranges(m.E()) == Ranges{{6, 2}, {0, 2}});
    m.E().dense_gradient();
    CHECK(ranges(m.E()) == Ranges{{0, 10}});
    m.E().clear_gradient();
    m.E().condition = Condition::staged;
    CHECK(ranges(m.E()) == Ranges{});
}

TEST_CASE("A gradient is a sum over the passes that count in it", "[update][gradients]") {
    Group<double> m;
    auto& E = m.E();
    E.add_pass({4, 10, 1, 1});  // which added nothing
    E.add_pass({4, 8, 1, 2});
    E.gradient_row(1);
    CHECK((E.provenance.columns == 4 && E.provenance.predicted == 8 && E.provenance.passes == 1));
    E.add_pass({2, 3, 1, 3});
    CHECK((E.provenance.predicted == 11 && E.provenance.passes == 2 && E.provenance.last_pass == 3));
    auto& W = m.W();  // cleared at another time: what counts is the member with most
    W.add_pass({2, 3, 1, 3});
    W.dense_gradient();
    const auto group = m.g.parameters();
    CHECK((group.divisor(Divisor::batch) == 6 && group.divisor(Divisor::tokens) == 11));
    W.add_pass({5, 9, 1, 4});
    CHECK((group.divisor(Divisor::batch) == 7 && group.divisor(Divisor::tokens) == 12));
    E.clear_gradient();
    CHECK((E.provenance.columns == 0 && E.provenance.passes == 0));
    constexpr Index most = std::numeric_limits<Index>::max();
    m.g.parameters().summed_over(most, most);
    W.add_pass({1, 1, 1, 5});
    CHECK(group.divisor(Divisor::tokens) >= static_cast<double>(most));
}

TEST_CASE("A step without a backward pass is refused, with one that added nothing it is not",
          "[update][gradients]") {
    Graph<double> g({.time = 1, .batch = 1}), other({});
    const auto x = g.tokens("x", 3), y = g.tokens("y", 3);
    const auto h = g.add<Embedding>("embed", {}, x, g.weight("E", 3, 2, constant(1)));
    const auto l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("out", {.vocabulary = 3}, h), y);
    other.weight("E", 3, 2, constant(1));
    Sgd<double> all(g.parameters(), {.rate = 1, .weight_decay = 0.5}), foreign(other.parameters(), {});
    Adam<double> some(g.parameters("E, out.b"), {});
    const auto pass = [&](Token target) {
        const Token input = 1;
        g.forward(l, {x, {&input, 1, 1}}, {y, {&target, 1, 1}});
        g.backward(l);
    };
    const auto refused = says("no backward pass has reached 'E'", "call backward(loss)");
    CHECK_THROWS_MATCHES(all.step(), UsageError, refused);  // nor does it decay
    pass(2);
    CHECK_THROWS_MATCHES(foreign.step(), UsageError, refused);
    g.parameters("E").trained(false);  // a group of which one member has a gradient
    const double frozen = g.value(g.weight("E"))(0, 0);
    some.step();
    g.parameters("E").trained(true);
    CHECK(g.value(g.weight("E"))(0, 0) == frozen);
    g.parameters().clear_gradients();
    g.shard(0, 1);  // a part of a batch may have nothing to predict
    pass(not_predicted);
    all.step();  // by the decay alone
    CHECK(g.value(g.weight("E"))(0, 0) == 0.5);
    CHECK_THROWS_MATCHES(all.step(), UsageError, refused);
}

TEMPLATE_TEST_CASE("A step to infinite weights is refused", "[update][gradients][errors]", float, double) {
    using T = TestType;
    const double most = static_cast<double>(std::numeric_limits<T>::max());
    const auto refuses = [](Graph<T>& g, auto& update) {
        Parameter<T>& w = g.parameter("w");
        for (int k = 0; k < 8; ++k) {
            const T before = w.value[0];
            w.dense_gradient().data[0] = 3;
            try {
                update.step();
                REQUIRE(std::isfinite(w.value[0]));
            } catch (const NumericError&) {
                return w.value[0] == before && w.counts();
            }
        }
        return false;
    };
    const auto group = [](Graph<T>& g) { return g.weight("w", 1, 1, constant(1)), g.parameters(); };
    Graph<T> a({}), b({}), c({}), d({});
    Sgd<T> sgd(group(a), {.rate = most, .clip = 1}), momentum(group(b), {.rate = most, .momentum = 0.5});
    Adam<T> adam(group(c), {.rate = most});
    DynamicUpdate<T> dynamic(group(d), {.rule = DynamicRule::sgd, .rate = most});
    CHECK(refuses(a, sgd));
    CHECK(refuses(b, momentum));
    CHECK(refuses(c, adam));
    CHECK(refuses(d, dynamic));
}

TEMPLATE_TEST_CASE("The length of a direction is that of g / d + decay w over the group",
                   "[update][gradients]", float, double) {
    using Condition = typename Parameter<TestType>::Condition;
    Group<TestType> m;
    CHECK(direction_norm(m.g.parameters(), 2, 0) == 0);
    m.fill();
    CHECK(direction_norm(m.g.parameters(), 1, 0) == 5);
    CHECK(direction_norm(m.g.parameters(), 2, 0) == 2.5);
    CHECK(m.E().condition == Condition::rows);  // without decay no other row is looked at
    // With d = 2 and decay 1/2 every weight counts as 1 more in its gradient: (4, 1), 5 in the table, nine times 1.
    CHECK(direction_norm(m.g.parameters(), 2, 0.5) == Approx(std::sqrt(16 + 25 + 10.) / 2));
    CHECK(m.W().gradient[0] == 3);  // the decay is the step's to add
    CHECK(m.W().gradient[1] == 0);
    CHECK(m.E().condition == Condition::dense);
    CHECK(m.E().gradient[7] == 4);
    CHECK(m.E().gradient[0] == 0);
}

TEMPLATE_TEST_CASE("A gradient that is not finite is named, and stays as it was",
                   "[update][gradients][errors]", float, double) {
    for (const TestType bad :
         {std::numeric_limits<TestType>::quiet_NaN(), std::numeric_limits<TestType>::infinity()}) {
        Group<TestType> m;
        m.fill();
        m.E().gradient_row(3)[0] = bad;
        REQUIRE_THROWS_MATCHES(direction_norm(m.g.parameters(), 1, 0), NumericError,
                               says("the gradient of 'E'", "not finite", "nothing was changed"));
        CHECK(m.W().gradient[0] == 3);
        CHECK(m.W().value[0] == 1);
    }
}

TEMPLATE_TEST_CASE("A finished step brings the rows that moved to norm 1 and clears the gradient",
                   "[update][gradients]", float, double) {
    using Condition = typename Parameter<TestType>::Condition;
    Group<TestType> m;
    Parameter<TestType>& E = m.E();
    const auto move = [&] {
        for (Index i = 0; i < E.size(); ++i) E.value[i] = i % 2 == 0 ? 3 : 4;
    };
    const auto rows_of_norm_1 = [&] {
        std::vector<Index> rows;
        for (Index i = 0; i < E.rows; ++i)
            if (E.value[2 * i] == Approx(0.6) && E.value[2 * i + 1] == Approx(0.8)) rows.push_back(i);
        return rows;
    };
    move();
    E.gradient_row(3);
    finish_step(E);  // a table whose rows may have any norm
    CHECK(rows_of_norm_1().empty());
    CHECK(E.condition == Condition::empty);
    E.unit_rows = true;
    E.gradient_row(3);
    E.gradient_row(1);
    finish_step(E);
    CHECK(rows_of_norm_1() == std::vector<Index>{1, 3});
    CHECK(E.touched.empty());
    move();
    E.dense_gradient();
    finish_step(E);
    CHECK(rows_of_norm_1() == std::vector<Index>{0, 1, 2, 3, 4});
    CHECK(E.condition == Condition::empty);
}

TEMPLATE_TEST_CASE("Gradients of a group are clipped by their common length", "[update][gradients]", float,
                   double) {
    using Condition = typename Parameter<TestType>::Condition;
    Group<TestType> m;
    m.fill();
    CHECK(clip_gradients(m.g.parameters(), 2.5, Divisor::none) == 5);
    CHECK((m.W().gradient[0] == 1.5 && m.E().gradient[7] == 2));
    CHECK(m.E().condition == Condition::rows);  // the other rows were not looked at
    CHECK(clip_gradients(m.g.parameters(), 2.5, Divisor::none) == 2.5);
    CHECK(clip_gradients(m.g.parameters(), 0, Divisor::none) == 2.5);
    CHECK((m.W().gradient[0] == 1.5 && m.E().gradient[7] == 2));

    // Two updates of one rate after it are one update that clips.
    Group<TestType> one, two;
    one.fill(), two.fill();
    Sgd<TestType> all(one.g.parameters(), {.rate = 0.5, .clip = 2.5, .divisor = Divisor::none});
    Sgd<TestType> table(two.g.parameters("E"), {.rate = 0.5, .divisor = Divisor::none}),
        rest(two.g.parameters("!E"), {.rate = 0.5, .divisor = Divisor::none});
    CHECK(clip_gradients(two.g.parameters(), 2.5, Divisor::none) == all.step());
    table.step(), rest.step();
    CHECK((one.W().value[0] == two.W().value[0] && one.E().value[7] == two.E().value[7] &&
           one.E().value[7] == 0));

    one.fill();
    CHECK_THROWS_MATCHES(clip_gradients(one.g.parameters(), -1), UsageError,
                         says("clip_gradients", "clip = -1"));
    one.W().gradient[1] = std::numeric_limits<TestType>::infinity();
    CHECK_THROWS_MATCHES(clip_gradients(one.g.parameters(), 1, Divisor::none), NumericError, says("'W'"));
    CHECK(one.E().gradient[7] == 4);
}

TEMPLATE_TEST_CASE("Updates outlive their graph, whose weights they keep", "[update][gradients]", float,
                   double) {
    using T = TestType;
    auto m = std::make_unique<Group<T>>();
    Adam<T> adam(m->g.parameters(), {});
    WeightAverage<T> average(m->g.parameters());
    DynamicUpdate<T> dynamic(m->g.parameters(), {.rule = DynamicRule::sgd});
    const auto group = m->g.parameters();
    m.reset();
    group[1].dense_gradient().data[0] = 3;
    adam.step();
    average.add();
    group[1].dense_gradient().data[0] = 3;
    dynamic.step();
    CHECK(group[1].value[0] < 1 - T(0.0009));
}
