// The metric of a word table: in a softmax head, looked up, or tied.
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/riemannian/search_step.hpp>
#include <isogloss/update/riemannian/start_at_frequencies.hpp>
#include <isogloss/update/riemannian/table_metric.hpp>

#include "allocations.hpp"
#include "networks.hpp"

TEST_CASE("The metric of a head is the Hessian of the loss, on the entries it keeps", "[riemannian]") {
    Net<Glnn> n(40);
    auto& W = n.g.parameter("out.W");
    auto& b = n.g.parameter("out.b");
    const auto group = n.g.parameters("out.*");
    using Metric = TableMetric<double>;
    Metric metric(graph::Inspect::store(n.g), group, n.g.weight("out.W"),
                  {.budget = GENERATE(Index{1}, Index{1} << 20)});
    n.forward();
    metric.add(1);
    const auto second = [&](double& p, double& q) {  // ∂²l/∂p∂q by differences
        const double h = 1e-4, p0 = p, q0 = q;
        const auto at = [&](double dp, double dq) {
            p = p0, q = q0;
            p += dp, q += dq;
            const double l = n.forward();
            p = p0, q = q0;
            return l;
        };
        return (at(h, h) - at(h, -h) - at(-h, h) + at(-h, -h)) / (4 * h * h);
    };
    for (Index v = 0; v < 4; ++v) {
        REQUIRE(std::abs(second(b.value[v], b.value[v]) - metric.m00[std::size_t(v)]) < 1e-5);
        for (Index i = 0; i < 5; ++i) {
            REQUIRE(std::abs(second(W.value[v * 5 + i], W.value[v * 5 + i]) -
                             metric.square[std::size_t(v * 5 + i)]) < 1e-5);
            REQUIRE(std::abs(second(W.value[v * 5 + i], b.value[v]) - metric.cross[std::size_t(v * 5 + i)]) <
                    1e-5);
        }
    }
    metric.clear(0.5);
    metric.add(0.25);
    Metric once(graph::Inspect::store(n.g), group, n.g.weight("out.W"), {});
    once.add(0.75);
    REQUIRE(apart(metric.square, once.square) < 1e-13);
    REQUIRE(apart(metric.cross, once.cross) < 1e-13);
    REQUIRE(apart(metric.m00, once.m00) < 1e-13);
}

TEMPLATE_TEST_CASE("The step of a head is that of each weight with its bias", "[riemannian]", float, double) {
    Net<Glnn, TestType> n(40);
    const double tolerance = sizeof(TestType) == 4 ? 1e-4 : 1e-10;
    const std::vector<double> f = {0.1, 0.2, 0.3, 0.4};
    auto step = softmax_step(n.g, n.y, 1, f);
    n.forward();
    n.g.backward(n.l);
    const Numbers G = gradient(n.g, "out.W"), G0 = gradient(n.g, "out.b");
    step.add(1);
    step.solve();
    TableMetric<TestType> m(graph::Inspect::store(n.g), n.g.parameters("out.*"), n.g.weight("out.W"), {});
    m.add(1);
    for (std::size_t v = 0; v < 4; ++v) {
        const double H00 = m.m00[v] + f[v];
        double bias = -G0[v] / H00;
        for (std::size_t i = 0; i < 5; ++i) {
            const double H = m.square[5 * v + i] + f[v], H0 = m.cross[5 * v + i];
            const double expected = -(G[5 * v + i] - G0[v] * H0 / H00) / (H - H0 * H0 / H00);
            REQUIRE(step.direction(0)[5 * v + i] == Approx(expected).epsilon(tolerance));
            bias -= H0 / H00 * expected;
        }
        REQUIRE(step.direction(1)[v] == Approx(bias).epsilon(tolerance));
    }
}

TEMPLATE_TEST_CASE("A head starts at the frequencies", "[riemannian]", float, double) {
    Net<Glnn, TestType> n(40);
    start_at_frequencies(n.g, "out", {1, 2, 5, 0});
    double expected = 0;
    for (auto& y : n.next) {
        if (y == 3) y = 2;
        if (y >= 0) expected -= std::log((y == 0 ? 1 : y == 1 ? 2 : 5) / 8.0);
    }
    REQUIRE(n.forward() == Approx(expected).epsilon(sizeof(TestType) == 4 ? 1e-6 : 1e-10));
    REQUIRE(n.g.parameter("out.b").value[3] == Approx(std::log(1e-12)));  // a word that is never a target
    Graph<TestType> shared({.time = 1, .batch = 1}, n.g.shared_weights());
    shared.template add<Softmax>("out", {.vocabulary = 4}, shared.input("u", 5));
    REQUIRE_THROWS_MATCHES(start_at_frequencies(shared, "out", {1, 2, 5, 0}), UsageError,
                           says("start_at_frequencies", "on shared weights"));
    REQUIRE_THROWS_MATCHES(start_at_frequencies(n.g, "out", {1, 2}), UsageError,
                           says("2 counts", "expected 4"));
    REQUIRE_THROWS_MATCHES(start_at_frequencies(n.g, "net", {1}), UsageError,
                           says("'net' is no softmax head"));
    REQUIRE_THROWS_MATCHES(softmax_step(n.g, n.y, 1, {1, 2}), UsageError, says("2 frequencies", "4 words"));
    const auto bias = [&] { return flat(n.g.value(n.g.weight("out.b"))); };
    const Numbers before = bias();
    for (const double wrong : {-1., std::numeric_limits<double>::quiet_NaN()}) {
        REQUIRE_THROWS_MATCHES(start_at_frequencies(n.g, "out", {1, wrong, 5, 0}), UsageError,
                               says("counts", "at least 0"));
        REQUIRE_THROWS_MATCHES(softmax_step(n.g, n.y, 1, {1, 2, wrong, 1}), UsageError,
                               says("frequency = ", "at least 0"));
    }
    CHECK(bias() == before);
}

namespace {

// A tied model of seven words and four units on a text with gaps, under a loss that its caller adds.
template <class T> struct Tied {
    static constexpr Index V = 7, n = 4, time = 5, batch = 3, rows = time * batch;
    Graph<T> g{GraphOptions{.time = time, .batch = batch}};
    Tokens x = g.tokens("x", V), y = g.tokens("y", V);
    Weight<T> E = g.weight("E", V, n, normal(1));
    Seq<T> e, h;
    Logits<T> o;
    Loss<T> l;
    std::vector<Token> in, next;

    explicit Tied(double keep = 0.8) {
        e = g.template add<Embedding>("embed", {.keep = keep}, x, E);
        h = g.template add<Rnn>("rnn", {.units = n}, e);
        o = g.template add<TiedSoftmax>("out", {.bias = true}, h, E);
        for (Index r = 0; r < rows; ++r) {
            in.push_back(static_cast<Token>(r * r % V));
            next.push_back(r == 4 ? not_predicted : static_cast<Token>((r * r + 3 * r) % V));
        }
    }
    double forward() {
        g.reset();
        return g.forward(l, {x, {in.data(), time, batch}}, {y, {next.data(), time, batch}});
    }
    TableMetric<T> metric(UnitModulus modulus = UnitModulus::ruop) {
        return {graph::Inspect::store(g), g.parameters(), E, {.modulus = modulus}};
    }
};

}  // namespace

TEMPLATE_TEST_CASE("The metric of a tied table is that of its head and of its lookups together",
                   "[riemannian]", float, double) {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    Tied<TestType> m;
    m.l = m.g.template add<AugmentedLoss>("loss", {.gamma = 0.5, .temperature = 3}, m.o, m.y);
    m.forward();
    m.g.backward(m.l);
    if (modulus == UnitModulus::rbpm) m.g.template backward<Modulus>(m.l);
    auto metric = m.metric(modulus);
    metric.add(2);
    metric.clear(0.5);
    metric.clear(0.5);
    metric.add(0.5);  // 2 / 4 + 1/2: the sums over one pass

    constexpr auto V = std::size_t(Tied<TestType>::V), n = std::size_t(Tied<TestType>::n);
    const auto& store = graph::Inspect::store(m.g);
    const Numbers h = flat(m.g.value(m.h)), drawn = mask(m.g, "embed.mask");
    const TestType* flow = graph::Inspect::store(m.g).adjoint(m.e.id, modulus == UnitModulus::rbpm);
    const auto z = m.g.head(m.o).logits();
    Numbers square(V * n), cross(V * n), whole(V);
    for (std::size_t r = 0; r < std::size_t(store.rows()); ++r) {
        for (std::size_t j = 0; j < n; ++j) {
            const double factor = drawn.at(r % 3 * n + j), phi = flow[r * n + j];
            square[std::size_t(m.in[r]) * n + j] +=
                factor * factor * (modulus == UnitModulus::rbpm ? phi : phi * phi);
        }
        if (m.next[r] < 0) continue;
        Numbers q(V);
        for (const auto& [weight, inverse] : {std::pair{1., 1.}, {0.5 * 3 / 9., 1 / 3.}}) {
            double sum = 0;
            for (std::size_t v = 0; v < V; ++v) sum += std::exp(inverse * double(z(r, v)));
            for (std::size_t v = 0; v < V; ++v) {
                const double p = std::exp(inverse * double(z(r, v))) / sum;
                q[v] += weight * p * (1 - p);
            }
        }
        for (std::size_t v = 0; v < V; ++v) {
            whole[v] += q[v];
            for (std::size_t i = 0; i < n; ++i) {
                cross[v * n + i] += q[v] * h[r * n + i];
                square[v * n + i] += q[v] * h[r * n + i] * h[r * n + i];
            }
        }
    }
    const double tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-12;
    CHECK(apart(metric.square, square) < tolerance);
    CHECK(apart(metric.cross, cross) < tolerance);
    CHECK(apart(metric.m00, whole) < tolerance);
}

TEST_CASE("The metric of the augmented loss is its Hessian, with the target held fixed", "[riemannian]") {
    Graph<double> g({.time = 3, .batch = 1});
    const auto x = g.tokens("x", 4), y = g.tokens("y", 4);
    const auto E = g.weight("E", 4, 3, normal(1));
    const auto h = g.add<Embedding>("embed", {}, x, E);
    const auto o = g.add<Softmax>("out", {.vocabulary = 4, .init = normal(1)}, h);
    const auto l = g.add<AugmentedLoss>("loss", {.gamma = 0.7, .temperature = 2}, o, y, E);
    const std::vector<Token> in = {0, 3, 1}, next = {2, 1, 1};
    const auto forward = [&] { return g.forward(l, {x, {in.data(), 3, 1}}, {y, {next.data(), 3, 1}}); };
    forward();
    TableMetric<double> metric(graph::Inspect::store(g), g.parameters("out.*"), g.weight("out.W"), {});
    metric.add(1);
    auto& W = g.parameter("out.W");
    for (Index i = 0; i < W.size(); ++i) {
        const double step = 1e-3, before = W.value[i], middle = forward();
        W.value[i] = before + step;
        const double above = forward();
        W.value[i] = before - step;
        const double below = forward();
        W.value[i] = before;
        REQUIRE(metric.square[std::size_t(i)] ==
                Approx((above - 2 * middle + below) / (step * step)).epsilon(1e-4));
    }
}

TEMPLATE_TEST_CASE("A table that is only looked up steps as a layer of units on one-hot inputs",
                   "[riemannian]", float, double) {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    constexpr Index V = 5, n = 3, T = 4, B = 2;
    Graph<TestType> g({.time = T, .batch = B});
    const auto x = g.tokens("x", V);
    const auto u = g.input("u", V), w = g.input("w", n);
    const auto E = g.weight("E", V, n, normal(1)), W = g.weight("W", V, n, normal(1));
    const auto a = g.template add<Dot>("a", {}, w, g.template add<Embedding>("embed", {}, x, E));
    Seq<TestType> z = g.template add<Linear>("map", {.units = n, .bias = false}, u);
    const auto b = g.template add<Dot>("b", {}, w, z);
    static_cast<void>(W);
    std::vector<Token> in;
    std::vector<TestType> hot(V * T * B), weights;
    for (Index r = 0; r < T * B; ++r) {
        in.push_back(static_cast<Token>(r * r % V));
        hot[std::size_t(r * V + in.back())] = 1;
    }
    for (const double v : numbers(n * T * B, 2)) weights.push_back(static_cast<TestType>(v));
    const RiemannianOptions options{.modulus = modulus, .rate = 0.1, .damping = 1e-300, .floor = 0.01};
    Riemannian<TestType> table(g, "E", options), layer(g, "map.*", options);
    const auto step = [&](Loss<TestType> l, auto& update, const std::string& name) {
        const Numbers before = flat(g.value(g.weight(name)));
        g.forward(l, {x, {in.data(), T, B}}, {u, hot.data(), T, B}, {w, weights.data(), T, B});
        g.backward(l);
        if (update.wants_modulus()) g.template backward<Modulus>(l);
        update.step();
        Numbers moved = flat(g.value(g.weight(name)));
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= before[i];
        return moved;
    };
    for (int k = 0; k < 3; ++k)
        REQUIRE(apart(step(a, table, "E"), step(b, layer, "map.W")) < (sizeof(TestType) == 4 ? 1e-5 : 1e-12));
}

TEST_CASE("The step of a tied table does not depend on the order of words and of units", "[riemannian]") {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const auto steps = [&](bool relabelled) {
        Tied<double> m(1);
        m.l = m.g.add<AugmentedLoss>("loss", {}, m.o, m.y);
        constexpr Index V = Tied<double>::V, n = Tied<double>::n;
        const auto word = [&](Index v) { return relabelled ? (3 * v + 2) % V : v; };
        const auto unit = [&](Index i) { return relabelled ? (i + 1) % n : i; };
        const auto move = [&](const std::string& name, auto row, auto column) {
            auto& p = m.g.parameter(name);
            const std::vector<double> old(p.value, p.value + p.size());
            for (Index i = 0; i < p.rows; ++i)
                for (Index j = 0; j < p.cols; ++j)
                    p.value[row(i) * p.cols + column(j)] = old[std::size_t(i * p.cols + j)];
        };
        const auto same = [](Index i) { return i; };
        move("E", word, unit);
        for (const Parameter<double>* p : m.g.parameters("rnn.*")) {
            if (p->rows == n) move(p->name, unit, unit);
            else move(p->name, same, unit);
        }
        for (auto* tokens : {&m.in, &m.next})
            for (Token& token : *tokens)
                if (token >= 0) token = static_cast<Token>(word(token));
        Riemannian<double> update(m.g, "*",
                                  {.modulus = modulus, .rate = 0.05, .damping = 0.1, .floor = 1e-3});
        Numbers losses;
        for (int k = 0; k < 5; ++k) {
            losses.push_back(m.forward());
            m.g.backward(m.l);
            if (update.wants_modulus()) m.g.backward<Modulus>(m.l);
            update.step();
        }
        return losses;
    };
    const Numbers plain = steps(false);
    REQUIRE(std::abs(plain.front() - plain.back()) > 0.1);
    REQUIRE(apart(steps(true), plain) < 1e-9);
}

TEST_CASE("The step of a tied table does not depend on where its states have their origin", "[riemannian]") {
    constexpr Index V = 5, n = 3, T = 6;
    const MetricForm form = GENERATE(MetricForm::quasi_diagonal, MetricForm::diagonal);
    const auto steps = [&](double shift) {  // of the states, made up for by the bias
        Graph<double> g({.time = T, .batch = 1});
        const auto x = g.tokens("x", V), y = g.tokens("y", V);
        const auto h = g.input("h", n), w = g.input("w", n);
        const auto E = g.weight("E", V, n, normal(1));
        const auto looked_up = g.add<Dot>("dot", {}, w, g.add<Embedding>("embed", {}, x, E));
        const auto l = g.add<TotalLoss>(
            "loss", {}, g.add<CrossEntropy>("head", {}, g.add<TiedSoftmax>("out", {.bias = true}, h, E), y),
            looked_up);
        auto& b = g.parameter("out.b");
        for (Index v = 0; v < V; ++v)
            for (Index i = 0; i < n; ++i) b.value[v] -= shift * g.parameter("E").value[v * n + i];
        Numbers states = numbers(T * n, 1);
        for (double& state : states) state += shift;
        const Numbers weights = numbers(T * n, 2);
        const std::vector<Token> in = {0, 3, 1, 4, 2, 0}, next = {3, 1, 4, 2, 0, 0};
        Riemannian<double> update(g, "*", {.form = form, .rate = 0.1, .damping = 1e-300, .floor = 0});
        for (int k = 0; k < 4; ++k) {
            g.forward(l, {x, {in.data(), T, 1}}, {y, {next.data(), T, 1}}, {h, states.data(), T, 1},
                      {w, weights.data(), T, 1});
            g.backward(l);
            update.step();
        }
        return flat(g.value(E));
    };
    if (form == MetricForm::diagonal) REQUIRE(apart(steps(2), steps(0)) > 1e-4);
    else REQUIRE(apart(steps(2), steps(0)) < 1e-9);
}

TEST_CASE("A table with a use that has no metric is trained by another update", "[riemannian][errors]") {
    Graph<double> g({.time = 2, .batch = 1});
    const auto E = g.weight("E", 4, 3, normal(1));
    g.add<Embedding>("embed", {}, g.tokens("x", 4), E);
    for (const char* head : {"left", "right"})
        g.add<TiedSoftmax>(head, {}, g.input(head + std::string("_h"), 3), E);
    REQUIRE_THROWS_MATCHES(Riemannian<double>(g, "E", {}), UsageError,
                           says("3 uses of 'E'", "at most one head"));
}

TEST_CASE("Passes of a line search begin at the words if a tied table is in its group", "[riemannian]") {
    Tied<double> m(1);
    m.l = m.g.add<CrossEntropy>("loss", {}, m.o, m.y);
    SearchStep<double> step(m.g, "E,out.*", {.damping = 0.1, .floor = 0.1});
    REQUIRE(step.behind().id < 0);
    const double before = m.forward();
    m.g.backward(m.l);
    step.add(1);
    step.solve();
    step.move(0.05);
    REQUIRE(m.forward() < before);
    step.cancel();
    REQUIRE(m.forward() == before);
}

TEST_CASE("A refreshed metric asks for no memory", "[riemannian]") {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    Tied<float> m;
    m.l = m.g.template add<AugmentedLoss>("loss", {}, m.o, m.y);
    Riemannian<float> update(m.g, "*", {.modulus = modulus, .every = 1});
    for (int k = 0; k < 3; ++k) {
        m.forward();
        m.g.backward(m.l);
        if (update.wants_modulus()) m.g.template backward<Modulus>(m.l);
        const auto before = allocations();
        update.step();
        CHECK(allocations() == before);
    }
}
