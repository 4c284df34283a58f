// Networks on graphs that read a sequence: their transition weights, or without gates their biases, are a layer of units
// of it.
#include <isogloss/update/riemannian/riemannian.hpp>

#include "networks.hpp"
#include "tolerance.hpp"

namespace {

constexpr Index T = 30, B = 2, M = 3, N = 5, A = 4;

// A leaky network on two columns of a sequence of M numbers; `scale` and `shift`: of the numbers, the function being the
// same.
template <class Number, template <class> class Node = Glnn> struct Gated {
    Graph<Number> g{GraphOptions{.time = T, .batch = B}};
    Seq<Number> u;
    Tokens y;
    Loss<Number> l;
    std::vector<Number> in;
    std::vector<Token> next;

    explicit Gated(double scale = 1, double shift = 0, Activation s = Activation::tanh)
        : u(g.input("u", M)), y(g.tokens("y", A)) {
        const auto a = g.template add<Node>("net", {.units = N, .edges = 3, .activation = s}, u);
        l = g.template add<CrossEntropy>("loss", {}, g.template add<Softmax>("out", {.vocabulary = A}, a), y);
        std::uint64_t seed = 1;
        for (auto* p : g.parameters()) {
            Numbers v = numbers(p->size(), ++seed);
            for (double& w : v) w *= 0.3;
            set(g, p->name, v);
        }
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
    double pass(bool modulus = true) {
        g.reset();
        const double loss = g.forward(l, {u, in.data(), T, B}, {y, {next.data(), T, B}});
        g.backward(l);
        if (modulus) g.template backward<Modulus>(l);
        return loss;
    }
};

}  // namespace

TEST_CASE("The step of weights gated by a sequence is that of units on its numbers", "[riemannian]") {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    Gated<double> n;
    SearchStep<double> step(n.g, "net.*",
                            {.modulus = modulus, .form = MetricForm::diagonal, .damping = 0, .floor = 0.2});
    n.pass();
    step.add(1);
    step.solve();
    // V_j = … + Σ_k Σ_i P_k,ij u_k a_i: the weight of edge e from i into j has the signal u_k, and the unit, the weight
    // of the transition, the derivative a_i B_j.
    const auto& record = edge_record(n.g);
    auto& store = graph::Inspect::store(n.g);
    const double *B_j = store.adjoint(record.potential.id, modulus == UnitModulus::rbpm),
                 *before = store.value(record.activity.id, -1);
    const Index E = record.edges.count(), width = N + E;
    const auto& P = n.g.parameter("net.P");
    for (Index k = 0; k < M; ++k)
        record.edges.for_each([&](Index e, Index i, Index j) {
            double G = 0, square = 0;
            for (Index r = 0; r < T * B; ++r) {
                const double a = before[r * N + i], flow = B_j[r * N + j], u_k = n.in[std::size_t(r * M + k)];
                const double gradient = store.adjoint(record.potential.id, 0)[r * N + j];
                G += u_k * a * gradient;
                square += u_k * u_k * a * a * (modulus == UnitModulus::rbpm ? flow : flow * flow);
            }
            const auto place = std::size_t(k * width + N + e);
            REQUIRE(P.gradient[place] == Approx(G).epsilon(1e-9).margin(1e-12));
            REQUIRE(step.direction(0)[place] == Approx(-G / (square + 0.2)).epsilon(1e-9).margin(1e-12));
        });
}

TEST_CASE("Gated by a sequence, the step is invariant under affine changes of the inputs", "[riemannian]") {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const auto form = GENERATE(MetricForm::quasi_diagonal, MetricForm::diagonal);
    Gated<double> one, other(20, 7);
    double worst = 0;
    auto step = transition_step(one.g, modulus, form, 0), image = transition_step(other.g, modulus, form, 0);
    for (int k = 0; k < 20; ++k) {
        worst = worse(worst, std::abs(one.pass() - other.pass()));
        const Numbers starts[] = {flat(one.g.value(one.g.weight("net.start"))),
                                  flat(other.g.value(other.g.weight("net.start")))};
        for (auto* s : {&step, &image}) {
            s->clear(), s->add(1), s->solve(), s->move(0.002), s->accept();
        }
        set(one.g, "net.start", starts[0]), set(other.g, "net.start", starts[1]);  // 1/B of a vanished B
        one.g.parameters().clear_gradients(), other.g.parameters().clear_gradients();
    }
    if (form == MetricForm::quasi_diagonal) REQUIRE(worst < 1e-7);
    else REQUIRE(worst > 1e-4);
}

TEMPLATE_TEST_CASE("A network behind a layer trains by its metric", "[riemannian][update]", Gated<float>,
                   Gated<double>, (Gated<float, LeakyRnn>), (Gated<double, LeakyRnn>),
                   (Gated<double, SparseRnn>)) {
    using Number = std::remove_const_t<typename decltype(TestType::in)::value_type>;
    TestType n;
    Riemannian<Number> net(n.g, "net.*", {.modulus = UnitModulus::rbpm, .rate = 0.02}),
        out(n.g, "out.*", {.rate = 0.05});
    const double before = n.pass();
    double after = before;
    for (int k = 0; k < 60; ++k) net.step(), out.step(), after = n.pass();
    REQUIRE(after < 0.8 * before);
}

namespace {

// The image of a tanh network without gates under a = 2 a' - 1, V = V' / 2.
template <class G> void map_to_logistic_by_sequence(G& from, G& to) {
    const auto& e = edge_record(from.g).edges;
    const auto value = [](G& n, const char* name) { return n.g.parameter(name).value; };
    for (Index k = 0; k < M * N; ++k) value(to, "net.P")[k] = 2 * value(from, "net.P")[k];
    for (Index j = 0; j < N; ++j) {
        value(to, "net.start")[j] = 2 * value(from, "net.start")[j];
        value(to, "net.b")[j] = 2 * value(from, "net.b")[j];
    }
    e.for_each([&](Index k, Index, Index j) {
        value(to, "net.tau")[k] = 4 * value(from, "net.tau")[k];
        value(to, "net.b")[j] -= 2 * value(from, "net.tau")[k];
    });
    for (Index v = 0; v < A; ++v) {
        double b = value(from, "out.b")[v];
        for (Index i = 0; i < N; ++i) {
            value(to, "out.W")[v * N + i] = 2 * value(from, "out.W")[v * N + i];
            b -= value(from, "out.W")[v * N + i];
        }
        value(to, "out.b")[v] = b;
    }
}

}  // namespace

TEMPLATE_TEST_CASE(
    "Without gates the step beside a sequence does not depend on how its numbers and the activities are "
    "represented",
    "[riemannian]", (Gated<double, LeakyRnn>), (Gated<double, SparseRnn>)) {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const auto form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal, MetricForm::diagonal);
    TestType one, of_other_numbers(20, 7), logistic(1, 0, Activation::logistic);
    map_to_logistic_by_sequence(one, logistic);
    const auto losses = [&](TestType& n) {
        n.g.parameters("net.start").trained(false);  // 1/B of a vanished B
        auto step = transition_step(n.g, modulus, form, 0);
        Numbers all;
        for (int k = 0; k < 20; ++k) {
            all.push_back(n.pass());
            step.clear(), step.add(1), step.solve(), step.move(0.002), step.accept();
            n.g.parameters().clear_gradients();
        }
        return all;
    };
    const Numbers a = losses(one), b = losses(of_other_numbers), c = losses(logistic);
    REQUIRE(a.front() - a.back() > 0.1);
    if (form == MetricForm::diagonal) REQUIRE((apart(a, b) > 1e-4 && apart(a, c) > 1e-4));
    else REQUIRE((apart(a, b) < 1e-7 && apart(a, c) < 1e-7));
}
