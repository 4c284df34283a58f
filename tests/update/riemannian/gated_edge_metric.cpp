// The metric of networks on graphs that are gated by a sequence: against its definition, product by product; where
// it is that of a network gated by tokens; and what it is invariant under.
#include <isogloss/update/riemannian/riemannian.hpp>
#include <memory>

#include "networks.hpp"
#include "tolerance.hpp"

namespace {

constexpr Index T = 30, B = 2, M = 3, N = 5, A = 4;

// A leaky network on two columns of a sequence of M numbers; `scale` and `shift`: of the numbers, the function
// being the same.
template <class Number> struct Gated {
    Graph<Number> g{GraphOptions{.time = T, .batch = B}};
    Seq<Number> u;
    Tokens y;
    Loss<Number> l;
    std::vector<Number> in;
    std::vector<Token> next;

    explicit Gated(Activation s = Activation::tanh, double scale = 1, double shift = 0)
        : u(g.input("u", M)), y(g.tokens("y", A)) {
        const auto a = g.template add<Glnn>("net", {.units = N, .edges = 3, .activation = s}, u);
        l = g.template add<CrossEntropy>("loss", {}, g.template add<Softmax>("out", {.vocabulary = A}, a), y);
        std::uint64_t seed = 1;
        for (auto* p : g.parameters()) {
            Numbers v = numbers(p->size(), ++seed);
            for (double& w : v) w *= 0.3;
            set(g, p->name, v);
        }
        const auto& e = edge_record(g).edges;
        for (Index j = 0; j < N; ++j) g.parameter("net.b").value[N + e.first[j]] = Number(-0.6);
        if (s == Activation::logistic) to_logistic();
        const Random random(5, 5);
        for (Index i = 0; i < T * B * M; ++i)
            in.push_back(static_cast<Number>(scale * (random.uniform(i) - 0.3) + shift));
        for (Index i = 0; i < T * B; ++i) next.push_back(static_cast<Token>(random.below(7 * i, A)));
        auto &P = g.parameter("net.P"), &b = g.parameter("net.b");
        for (Index k = 0; k < M; ++k)
            for (Index c = 0; c < P.cols; ++c) {
                P.value[k * P.cols + c] /= static_cast<Number>(scale);
                b.value[c] -= static_cast<Number>(shift) * P.value[k * P.cols + c];
            }
    }
    // V' = 2V, a' = (1 + a)/2.
    void to_logistic() {
        const auto& e = edge_record(g).edges;
        auto &P = g.parameter("net.P"), &b = g.parameter("net.b");
        const auto row = [&](Number* r) {
            for (Index j = 0; j < N; ++j) {
                r[j] *= 2;
                for (Index k = e.first[j]; k < e.first[j + 1]; ++k) r[j] -= 2 * r[N + k], r[N + k] *= 4;
            }
        };
        for (Index k = 0; k < M; ++k) row(P.value + k * P.cols);
        row(b.value);
        for (Index j = 0; j < N; ++j) g.parameter("net.start").value[j] *= 2;
        auto &W = g.parameter("out.W"), &c = g.parameter("out.b");
        for (Index v = 0; v < A; ++v)
            for (Index i = 0; i < N; ++i) c.value[v] -= W.value[v * N + i], W.value[v * N + i] *= 2;
    }
    double pass(bool modulus = true) {
        g.reset();
        const double loss = g.forward(l, {u, in.data(), T, B}, {y, {next.data(), T, B}});
        g.backward(l);
        if (modulus) g.template backward<Modulus>(l);
        return loss;
    }
};

// r = M⁻¹ r by elimination.
Numbers solved(std::vector<Numbers> m, Numbers r) {
    const std::size_t n = r.size();
    for (std::size_t k = 0; k < n; ++k)
        for (std::size_t i = k + 1; i < n; ++i) {
            const double f = m[i][k] / m[k][k];
            for (std::size_t j = k; j < n; ++j) m[i][j] -= f * m[k][j];
            r[i] -= f * r[k];
        }
    for (std::size_t k = n; k-- > 0;) {
        for (std::size_t j = k + 1; j < n; ++j) r[k] -= m[k][j] * r[j];
        r[k] /= m[k][k];
    }
    return r;
}

}  // namespace

TEMPLATE_TEST_CASE("A step of weights gated by a sequence follows from the definition", "[riemannian]", float,
                   double) {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const MetricForm form = GENERATE(MetricForm::quasi_diagonal, MetricForm::diagonal);
    const double damping = 0.2, relative = GENERATE(0.0, 0.1);
    const bool rbpm = modulus == UnitModulus::rbpm;
    Gated<TestType> n;
    SearchStep<TestType> step(n.g, "net.*",
                              {.modulus = modulus, .form = form, .damping = relative, .floor = damping});
    n.pass();
    step.clear();
    step.add(1);
    step.solve();
    const auto& record = edge_record(n.g);
    const auto& e = record.edges;
    auto& store = graph::Inspect::store(n.g);
    const Index R = N + e.count();
    const Numbers GP = gradient(n.g, "net.P"), Gb = gradient(n.g, "net.b");
    for (Index j = 0; j < N; ++j) {
        struct Product {
            Index k, i, at;  // the input, 0 none; the unit by edge, 0 none; the column of a row of weights
        };
        std::vector<Product> products;
        const Index inputs = e.first[j + 1] - e.first[j];
        for (Index k = 0; k <= M; ++k)
            for (Index i = 0; i <= inputs; ++i)
                products.push_back({k, i, i == 0 ? j : N + e.first[j] + i - 1});
        const auto value = [&](const Product& p, Index r) {
            return (p.k == 0 ? 1.0 : double(n.in[std::size_t(r * M + p.k - 1)])) *
                   (p.i == 0 ? 1.0 : double(store.value(record.activity.id, -1)[r * N + e.from[p.at - N]]));
        };
        double epsilon = 0;
        const auto sum = [&](const Product& p, const Product& q) {
            double s = &p == &q ? epsilon : 0;
            for (Index r = 0; r < T * B; ++r) {
                const double b = store.adjoint(record.potential.id, rbpm, 0)[r * N + j];
                s += value(p, r) * value(q, r) * (rbpm ? b : b * b);
            }
            return s;
        };
        double trace = 0;
        for (const Product& p : products) trace += sum(p, p);
        epsilon = relative * trace / double(products.size()) + damping;
        const auto G = [&](const Product& p) {
            return p.k == 0 ? Gb[std::size_t(p.at)] : GP[std::size_t((p.k - 1) * R + p.at)];
        };
        Numbers expected(products.size(), 0);
        for (std::size_t z = 0; z < products.size(); ++z) {
            const Product& p = products[z];
            std::vector<std::size_t> before;
            if (form == MetricForm::quasi_diagonal)
                for (std::size_t q = 0; q < products.size(); ++q)
                    if (q != z && (products[q].k == 0 || products[q].k == p.k) &&
                        (products[q].i == 0 || products[q].i == p.i))
                        before.push_back(q);
            std::vector<Numbers> m;
            Numbers cross;
            for (const auto q : before) {
                m.emplace_back();
                for (const auto o : before) m.back().push_back(sum(products[q], products[o]));
                cross.push_back(sum(products[q], p));
            }
            const Numbers s = solved(m, cross);
            double g = G(p), left = sum(p, p);
            for (std::size_t q = 0; q < before.size(); ++q)
                g -= s[q] * G(products[before[q]]), left -= s[q] * cross[q];
            expected[z] -= g / left;
            for (std::size_t q = 0; q < before.size(); ++q) expected[before[q]] += s[q] * g / left;
        }
        for (std::size_t z = 0; z < products.size(); ++z) {
            const Product& p = products[z];
            const double found = p.k == 0 ? step.direction(1)[std::size_t(p.at)]
                                          : step.direction(0)[std::size_t((p.k - 1) * R + p.at)];
            CAPTURE(j, p.k, p.i);
            const bool single = sizeof(TestType) == 4;
            REQUIRE(found == Approx(expected[z]).epsilon(single ? 1e-3 : 1e-9).margin(single ? 1e-4 : 1e-12));
        }
    }
}

TEST_CASE("Gated by a sequence, the step is invariant under affine changes of activities and of inputs",
          "[riemannian]") {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const auto apart = [&](Gated<double>& one, Gated<double>& other, MetricForm form) {
        double worst = 0;
        auto step = transition_step(one.g, modulus, form, 0),
             image = transition_step(other.g, modulus, form, 0);
        for (int k = 0; k < 20; ++k) {
            worst = worse(worst, std::abs(one.pass() - other.pass()));
            const Numbers starts[] = {flat(one.g.value(one.g.weight("net.start"))),
                                      flat(other.g.value(other.g.weight("net.start")))};
            for (auto* s : {&step, &image}) {
                s->clear(), s->add(1), s->solve(), s->move(0.002);
            }
            set(one.g, "net.start", starts[0]), set(other.g, "net.start", starts[1]);  // 1/B of a vanished B
            one.g.parameters().clear_gradients(), other.g.parameters().clear_gradients();
        }
        return worst;
    };
    const auto form = GENERATE(MetricForm::quasi_diagonal, MetricForm::diagonal);
    const auto holds = [&](double difference) {
        return form == MetricForm::quasi_diagonal ? difference < 1e-7 : difference > 1e-4;
    };
    {
        Gated<double> one, other(Activation::logistic);
        REQUIRE(holds(apart(one, other, form)));
    }
    {
        Gated<double> one, other(Activation::tanh, 20, 7);
        REQUIRE(holds(apart(one, other, form)));
    }
}

TEST_CASE("A network behind a layer trains by its metric, and is asked for whole", "[riemannian][update]") {
    Gated<float> n;
    Riemannian<float> net(n.g, "net.*", {.modulus = UnitModulus::rbpm, .rate = 0.02}),
        out(n.g, "out.*", {.rate = 0.05});
    const double before = n.pass();
    double after = before;
    for (int k = 0; k < 60; ++k) net.step(), out.step(), after = n.pass();
    REQUIRE(after < 0.8 * before);
    REQUIRE_THROWS_MATCHES(Riemannian<float>(n.g, "net.P", {}), UsageError, says("P, b and start"));
    REQUIRE_THROWS_MATCHES(Riemannian<float>(n.g, "net.*", {.form = MetricForm::full}), UsageError,
                           says("gated by a sequence"));
}
