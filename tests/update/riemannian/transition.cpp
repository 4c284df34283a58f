// RUOP and RBPM steps of networks on sparse graphs: against the definition, and their invariance.
#include "networks.hpp"
#include "tolerance.hpp"

namespace {

// What unit j gets at each position as (signals, B, Φ): the definition, from the values of the graph alone.
// Signals: gated, per symbol: 1, then a over the edges into j; not gated: a over the edges, then 1[x = s] for
// all s.
template <class N> struct Unit {
    std::vector<Numbers> M;
    std::vector<Numbers> G;
    std::size_t order;

    Unit(N& n, Index j, bool rbpm, double damping) {
        auto& store = graph::Inspect::store(n.g);
        const auto& record = edge_record(n.g);
        const auto& e = record.edges;
        const auto first = e.first[j], end = e.first[j + 1];
        const auto A = static_cast<std::size_t>(n.x.vocabulary), m = static_cast<std::size_t>(end - first);
        order = N::gated ? m + 1 : m + A;
        M.assign(N::gated ? A : 1, Numbers(order * order, 0));
        G.assign(M.size(), Numbers(order, 0));
        for (auto& matrix : M)
            for (std::size_t i = 0; i < order; ++i) matrix[i * order + i] = damping;
        for (Index t = 0; t < std::ssize(n.text); ++t) {
            const auto symbol = static_cast<std::size_t>(n.text[std::size_t(t)]);
            const double* before = store.value(record.activity.id, t - 1);
            const double B = store.adjoint(record.potential.id, 0, t)[j],
                         phi = rbpm ? store.adjoint(record.potential.id, 1, t)[j] : B * B;
            Numbers z;
            if (N::gated) z.push_back(1);
            for (Index k = first; k < end; ++k) z.push_back(before[e.from[k]]);
            if (!N::gated)
                for (std::size_t s = 0; s < A; ++s) z.push_back(s == symbol);
            const std::size_t which = N::gated ? symbol : 0;
            for (std::size_t i = 0; i < order; ++i) {
                G[which][i] += z[i] * B;
                for (std::size_t k = 0; k < order; ++k) M[which][i * order + k] += phi * z[i] * z[k];
            }
        }
    }
};

// Where the signals of unit j, as above, have their weights: (member of the step, place). Members are [rho,] tau, start.
template <class N> constexpr std::size_t tau_of = N::gated ? 0 : 1;
template <class N> std::vector<std::pair<std::size_t, std::size_t>> places(N& n, Index j, Index symbol) {
    const auto& e = edge_record(n.g).edges;
    std::vector<std::pair<std::size_t, std::size_t>> p;
    const Index row = N::gated ? symbol * (e.units + e.count()) : 0, bias = N::gated ? e.units : 0;
    if (N::gated) p.emplace_back(tau_of<N>, row + j);
    for (Index k = e.first[j]; k < e.first[j + 1]; ++k) p.emplace_back(tau_of<N>, row + bias + k);
    if (!N::gated)
        for (Index s = 0; s < n.x.vocabulary; ++s) p.emplace_back(0, s * e.units + j);
    return p;
}

Numbers solve(Numbers M, Numbers r) {  // Gauss, as another way than the library's
    const std::size_t n = r.size();
    for (std::size_t k = 0; k < n; ++k)
        for (std::size_t i = k + 1; i < n; ++i) {
            const double f = M[i * n + k] / M[k * n + k];
            for (std::size_t j = k; j < n; ++j) M[i * n + j] -= f * M[k * n + j];
            r[i] -= f * r[k];
        }
    for (std::size_t k = n; k-- > 0;) {
        for (std::size_t j = k + 1; j < n; ++j) r[k] -= M[k * n + j] * r[j];
        r[k] /= M[k * n + k];
    }
    return r;
}

}  // namespace

TEMPLATE_TEST_CASE("Steps of transition weights follow from the definition", "[riemannian]", Net<Glnn>,
                   Net<Gnn>, Net<LeakyRnn>, Net<SparseRnn>) {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const MetricForm form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal, MetricForm::diagonal);
    const double damping = 0.3;
    TestType n(60);
    auto step = transition_step(n.g, modulus, form, damping);
    n.backward(step);
    step.solve();
    for (Index j = 0; j < 5; ++j) {
        const Unit<TestType> unit(n, j, modulus == UnitModulus::rbpm, damping);
        for (std::size_t s = 0; s < unit.M.size(); ++s) {
            Numbers M = unit.M[s];
            const std::size_t order = unit.order;
            const auto is_bias = [&](std::size_t i) { return TestType::gated ? i == 0 : i + 4 >= order; };
            if (form != MetricForm::full)
                for (std::size_t i = 0; i < order; ++i)
                    for (std::size_t k = 0; k < order; ++k)
                        if (i != k && (form == MetricForm::diagonal || is_bias(i) == is_bias(k)))
                            M[i * order + k] = 0;
            Numbers expected;
            const Numbers& G = unit.G[s];
            if (form == MetricForm::quasi_diagonal) {
                // each input with the biases alone, then the biases given the inputs
                expected.assign(order, 0);
                for (std::size_t i = 0; i < order; ++i) {
                    if (is_bias(i)) continue;
                    double g = G[i], left = M[i * order + i];
                    for (std::size_t b = 0; b < order; ++b)
                        if (is_bias(b)) {
                            g -= M[i * order + b] / M[b * order + b] * G[b];
                            left -= M[i * order + b] * M[i * order + b] / M[b * order + b];
                        }
                    expected[i] = g / left;
                }
                for (std::size_t b = 0; b < order; ++b) {
                    if (!is_bias(b)) continue;
                    expected[b] = G[b] / M[b * order + b];
                    for (std::size_t i = 0; i < order; ++i)
                        if (!is_bias(i)) expected[b] -= M[i * order + b] / M[b * order + b] * expected[i];
                }
            } else {
                expected = solve(M, G);
            }
            const auto at = places(n, j, static_cast<Index>(s));
            for (std::size_t i = 0; i < order; ++i) {
                CAPTURE(j, s, i);
                REQUIRE(step.direction(at[i].first)[at[i].second] ==
                        Approx(-expected[i]).epsilon(1e-8).margin(1e-11));
            }
        }
        const double B = graph::Inspect::store(n.g).adjoint(edge_record(n.g).potential.id, 0, -1)[j];
        const double phi = modulus == UnitModulus::ruop
                               ? B * B
                               : graph::Inspect::store(n.g).adjoint(edge_record(n.g).potential.id, 1, -1)[j];
        REQUIRE(step.direction(tau_of<TestType> + 1)[std::size_t(j)] ==
                Approx(-B / (phi + damping)).margin(1e-15));
    }
}

TEMPLATE_TEST_CASE("Training does not depend on how activities are represented, with a metric",
                   "[riemannian]", Net<Glnn>, Net<Gnn>, Net<SparseRnn>) {
    // a tanh network and its logistic image, 50 steps: the same losses
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const MetricForm form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal, MetricForm::diagonal);
    const bool conjugate = GENERATE(false, true);
    CAPTURE(int(modulus), int(form), conjugate);
    TestType tanh(800), logistic(800, Activation::logistic);
    map_to_logistic(tanh, logistic);
    double worst = 0, fall = 0;
    const auto trajectory = [&](TestType& n) {
        // Without damping RUOP moves start values by 1/B, where B has vanished through time but for rounding.
        if (modulus == UnitModulus::ruop) n.g.parameters("net.start").trained(false);
        const Numbers start = flat(n.g.value(n.g.weight("net.start")));
        auto softmax = softmax_step(n.g, n.y, 0);
        auto transition = transition_step(n.g, modulus, form, 0);
        softmax.conjugate(conjugate), transition.conjugate(conjugate);
        Numbers losses;
        for (int k = 0; k < 25; ++k) {
            losses.push_back(n.move(softmax, 0.05));
            losses.push_back(n.move(transition, 0.002));
        }
        REQUIRE((flat(n.g.value(n.g.weight("net.start"))) == start) == (modulus == UnitModulus::ruop));
        return losses;
    };
    const Numbers a = trajectory(tanh), b = trajectory(logistic);
    for (std::size_t k = 0; k < a.size(); ++k) worst = worse(worst, std::abs(a[k] - b[k]) / a[k]);
    fall = a.front() - a.back();
    REQUIRE(fall > 1);  // something has happened
    if (form == MetricForm::diagonal) REQUIRE(worst > 1e-4);
    else REQUIRE(worst < 1e-8);
}

TEST_CASE("Training by plain gradient depends on how activities are represented", "[riemannian]") {
    Net<Glnn> tanh(120), logistic(120, Activation::logistic);
    map_to_logistic(tanh, logistic);
    REQUIRE(tanh.forward() == Approx(logistic.forward()).epsilon(1e-12));
    SearchStep<double> a(tanh.g.parameters()), b(logistic.g.parameters());
    for (int k = 0; k < 10; ++k) tanh.move(a, 1e-3), logistic.move(b, 1e-3);
    REQUIRE(std::abs(tanh.forward() - logistic.forward()) > 1e-2);
}

TEST_CASE("Silent units, symbols never seen and single symbols leave steps finite", "[riemannian]") {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const MetricForm form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal, MetricForm::diagonal);
    const double damping = GENERATE(0.0, 1.0);
    Net<Glnn> n(30);
    for (auto& s : n.text) s = s == 3 ? 2 : s;  // symbol 3 is never read
    auto& W = n.g.parameter("out.W");
    for (Index v = 0; v < 4; ++v) W.value[v * 5 + 1] = 0;  // unit 1 is not heard by the head
    auto step = transition_step(n.g, modulus, form, damping);
    for (int k = 0; k < 3; ++k) n.move(step, 0.01);
    for (std::size_t e = 3 * 20; e < 4 * 20; ++e) REQUIRE(step.direction(0)[e] == 0);
    REQUIRE(std::isfinite(n.forward()));

    Net<Glnn> single(1), one_symbol(7, Activation::tanh, 3, 2, 1);
    auto a = transition_step(single.g, modulus, form, damping),
         b = transition_step(one_symbol.g, modulus, form, damping);
    single.move(a, 0.01);
    REQUIRE(std::isfinite(single.forward()));
    one_symbol.move(b, 0.01);
    REQUIRE(one_symbol.forward() == Approx(0).margin(1e-15));  // a single symbol is no surprise
}
