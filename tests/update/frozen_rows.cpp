// A table of which some rows are trained: the others keep their bits, and everything else goes as if they were held.
#include <isogloss/isogloss.hpp>
#include <isogloss/update/dynamic.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/riemannian/search_step.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

constexpr Index V = 9, n = 4, T0 = 4, B = 2;
const std::vector<Index> known = {1, 2, 5, 8};

template <class T> struct Model {
    Graph<T> g{{.time = T0, .batch = B, .seed = 5}};
    Tokens x = g.tokens("x", V), y = g.tokens("y", V);
    Weight<T> E;
    Loss<T> l;

    explicit Model(bool tied, bool frozen = true) : E(g.weight("E", V, n, uniform(0.5))) {
        const auto h = g.template add<Rnn>("rnn", {.units = n}, g.template add<Embedding>("embed", {}, x, E));
        const auto o = tied ? g.template add<TiedSoftmax>("softmax", {.bias = true}, h, E)
                            : g.template add<Softmax>("softmax", {.vocabulary = V}, h);
        l = g.template add<CrossEntropy>("loss", {}, o, y);
        if (frozen) g.parameter("E").freeze_rows(known);
    }
    void pass() {
        static const std::vector<Token> in = {0, 1, 2, 3, 5, 5, 0, 7}, next = {2, 3, 5, 5, 0, 7, 1, 1};
        g.reset();
        g.forward(l, {x, {in.data(), T0, B}}, {y, {next.data(), T0, B}});
        g.backward(l);
    }
    Numbers row(Index i) {
        return Numbers(g.parameter("E").value + i * n, g.parameter("E").value + (i + 1) * n);
    }
    Numbers all(const char* name) { return flat(g.value(g.weight(name))); }
};

bool is_known(Index row) { return std::ranges::find(known, row) != known.end(); }

}  // namespace

TEMPLATE_TEST_CASE("Frozen rows keep their bits, the others take the step they would take",
                   "[update][frozen_rows]", float, double) {
    const bool tied = GENERATE(false, true);
    CAPTURE(tied);
    const auto check = [&](auto make, bool every_row) {  // `every_row`: also those whose gradient is 0 move
        Model<TestType> some(tied), whole(tied, false);
        auto update = make(some.g), of_whole = make(whole.g);
        for (int step = 0; step < 3; ++step) {
            const Numbers before = some.all("E"), others = some.all("rnn.U");
            for (Index i = 0; i < whole.g.parameter("E").size();
                 ++i)  // before each step the models are the same
                whole.g.parameter("E").value[i] = some.g.parameter("E").value[i];
            some.pass(), whole.pass();
            const Numbers gradient = flat(some.g.gradient(some.E));
            update.step(), of_whole.step();
            for (Index i = 0; i < V; ++i) {
                const bool moved =
                    some.row(i) != Numbers(before.begin() + i * n, before.begin() + (i + 1) * n);
                CAPTURE(step, i);
                if (is_known(i)) {
                    CHECK(!moved);
                    CHECK(Numbers(gradient.begin() + i * n, gradient.begin() + (i + 1) * n) == Numbers(n));
                } else {
                    CHECK(some.row(i) == whole.row(i));
                    if (every_row) CHECK(moved);
                }
            }
            CHECK(some.all("rnn.U") == whole.all("rnn.U"));
            CHECK(some.all("rnn.U") != others);
        }
    };
    using T = TestType;
    check([](auto& g) { return Sgd<T>(g.parameters(), {.rate = 0.1}); }, false);
    check([](auto& g) { return Sgd<T>(g.parameters(), {.rate = 0.1, .weight_decay = 0.01}); }, true);
    check(
        [](auto& g) { return Sgd<T>(g.parameters(), {.rate = 0.1, .weight_decay = 0.01, .momentum = 0.9}); },
        true);
    check([](auto& g) { return Adam<T>(g.parameters(), {.rate = 0.01, .weight_decay = 0.01}); }, true);
    check(
        [](auto& g) { return AveragedSgd<T>(g.parameters(), {.sgd = {.rate = 0.1, .weight_decay = 0.01}}); },
        true);
}

TEST_CASE("Frozen rows do not count in the norm that clips", "[update][frozen_rows]") {
    const bool tied = GENERATE(false, true);
    Model<double> m(tied);
    m.pass();
    double squares = 0;
    for (const auto* p : m.g.parameters())
        for (const double d : gradient(m.g, p->name)) squares += d * d;
    CHECK(clip_gradients(m.g.parameters(), 0.1) == Approx(std::sqrt(squares) / B));
    const double *E = m.g.parameter("E").value, decay = 0.3;
    squares = 0;
    for (const auto* p : m.g.parameters()) {
        const Numbers d = gradient(m.g, p->name);
        for (Index i = 0; i < p->size(); ++i)
            if (p->value != E || !is_known(i / n))
                squares += std::pow(d[std::size_t(i)] / B + decay * p->value[i], 2);
    }
    Sgd<double> sgd(m.g.parameters(), {.rate = 0.1, .clip = 0.05, .weight_decay = decay});
    CHECK(sgd.step() == Approx(std::sqrt(squares)));
}

TEST_CASE("Averages, dynamic evaluation and steps of a metric leave frozen rows as they are",
          "[update][frozen_rows]") {
    Model<double> m(true);
    const Numbers before = m.all("E");
    const auto check = [&] {
        for (const Index i : known)
            CHECK(m.row(i) == Numbers(before.begin() + i * n, before.begin() + (i + 1) * n));
        CHECK(m.all("E") != before);
    };
    WeightAverage<double> average(m.g.parameters(), {.decay = 0.5});
    Sgd<double> sgd(m.g.parameters(), {.rate = 0.5, .momentum = 0.5});
    for (int i = 0; i < 4; ++i) m.pass(), sgd.step(), average.add();
    check();
    average.swap();
    check();
    average.swap();
    {
        DynamicUpdate<double> dynamic(m.g.parameters(),
                                      {.rule = DynamicRule::sgd, .rate = 0.1, .decay = 0.1});
        m.pass(), dynamic.step();
        check();
    }
    Model<double> alone(false);  // a head that is no table: its rows have a metric beside their bias
    alone.g.parameter("softmax.W").freeze_rows(known);
    const Numbers W = alone.all("softmax.W"), b = alone.all("softmax.b");
    Riemannian<double> riemannian(alone.g, "softmax.*", {.rate = 0.1});
    SearchStep<double> search(alone.g, alone.g.parameters("softmax.*"), {});
    for (const bool by_search : {false, true}) {
        const Numbers now = alone.all("softmax.W");
        alone.g.parameters().clear_gradients();
        alone.pass();
        if (by_search) search.add(1), search.solve(), search.move(0.1), search.accept();
        else riemannian.step();
        const Numbers after = alone.all("softmax.W");
        for (Index i = 0; i < V * n; ++i)
            CHECK((after[std::size_t(i)] != now[std::size_t(i)]) == !is_known(i / n));
        for (Index i = 0; i < V * n; ++i)
            if (is_known(i / n)) CHECK(after[std::size_t(i)] == W[std::size_t(i)]);
    }
    CHECK(alone.all("softmax.b") != b);
}

TEST_CASE("A bias beside rows that are all frozen steps as if it were alone", "[update][frozen_rows]") {
    const bool head = GENERATE(true, false);
    const std::string name = head ? "softmax" : "rnn";
    const auto step = [&](MetricForm form, bool frozen) {
        Model<double> m(false, false);
        auto& W = m.g.parameter(name + ".W");
        std::vector<Index> all;
        for (Index i = 0; i < W.rows; ++i) all.push_back(i);
        if (frozen) W.freeze_rows(all);
        Riemannian<double> update(m.g, name + ".W, " + name + ".b", {.form = form, .rate = 0.1});
        m.pass();
        update.step();
        return m.all((name + ".b").c_str());
    };
    const Numbers alone = step(MetricForm::diagonal, true);
    CHECK(step(MetricForm::quasi_diagonal, true) == alone);
    CHECK(step(MetricForm::quasi_diagonal, false) != alone);
}

TEST_CASE("Which rows are frozen may change, and must be there", "[update][frozen_rows]") {
    Model<double> m(true);
    auto& E = m.g.parameter("E");
    m.pass();
    CHECK(m.g.gradient(m.E)(1, 0) == 0);
    CHECK(m.g.gradient(m.E)(0, 0) != 0);
    E.freeze_rows(std::vector<Index>{0});  // and the gradient that counts is forgotten
    CHECK(m.g.gradient(m.E)(0, 0) == 0);
    E.clear_gradient();
    m.pass();
    CHECK((m.g.gradient(m.E)(0, 0) == 0 && m.g.gradient(m.E)(1, 0) != 0));
    E.freeze_rows({});
    E.clear_gradient();
    m.pass();
    CHECK((m.g.gradient(m.E)(0, 0) != 0 && m.g.gradient(m.E)(1, 0) != 0));
    for (const Index wrong : {Index{-1}, V})
        CHECK_THROWS_MATCHES(E.freeze_rows(std::vector<Index>{2, wrong}), UsageError,
                             says("'E'", message(wrong)));
    CHECK(!E.is_frozen(2));
}
