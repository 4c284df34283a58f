// Sums of the metric of sparse networks: against their definition, position by position.
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/leaky_rnn.hpp>
#include <isogloss/node/sparse_rnn.hpp>
#include <isogloss/update/riemannian/edge_metric.hpp>
#include <isogloss/update/riemannian/start_metric.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

// A trained pass: several columns, more positions of a symbol than a block holds, one symbol that never
// occurs.
template <class T, template <class> class Node> struct Passed {
    static constexpr Index time = 300, batch = 2, units = 19, symbols = 4;
    Graph<T> g{GraphOptions{.time = time, .batch = batch}};
    Tokens x = g.tokens("x", symbols), y = g.tokens("y", symbols);
    std::vector<Token> text, next;

    Passed() {
        const auto a = g.template add<Node>("net", {.units = units, .edges = 4, .longest = 50}, x);
        const auto l = g.template add<CrossEntropy>(
            "loss", {}, g.template add<Softmax>("out", {.vocabulary = symbols}, a), y);
        const Random random(3, 3);
        for (Index i = 0; i < time * batch; ++i) {
            text.push_back(random.uniform(2 * i) < 0.9 ? 0 : static_cast<Token>(1 + random.below(4 * i, 2)));
            next.push_back(static_cast<Token>(random.below(2 * i + 1, symbols)));
        }
        g.reset();
        g.forward(l, {x, {text.data(), time, batch}}, {y, {next.data(), time, batch}});
        g.backward(l);
        g.template backward<Modulus>(l);
    }
};

template <class T, template <class> class Node> void agrees(bool full, bool rbpm) {
    Passed<T, Node> n;
    auto& store = graph::Inspect::store(n.g);
    const auto& record = edge_record(n.g);
    const auto& e = record.edges;
    const bool gated = record.rho.id < 0;
    EdgeMetric<T> metric(store, n.g.parameters("net.*"), record, rbpm ? UnitModulus::rbpm : UnitModulus::ruop,
                         full ? MetricForm::full : MetricForm::quasi_diagonal);
    StartMetric<T> starts(store, n.g.parameters("net.*"), record,
                          rbpm ? UnitModulus::rbpm : UnitModulus::ruop);
    for (Metric<T>* one : {static_cast<Metric<T>*>(&metric), static_cast<Metric<T>*>(&starts)}) {
        one->add(1);
        one->clear(0);
        one->add(0.75);
        one->add(0.25);
    }
    const auto close = [](T found, double expected, double scale) {
        return std::abs(double(found) - expected) <=
               (sizeof(T) == 4 ? 2e-5 : 1e-13) * (std::abs(expected) + scale);
    };
    for (Index x = 0; x < (gated ? n.symbols : 1); ++x)
        for (Index j = 0; j < n.units; ++j) {
            const Index first = e.first[j], m = metric.inputs(j);
            Numbers M(std::size_t(m * m), 0), cross(std::size_t(n.symbols * m), 0), M00(n.symbols, 0);
            for (Index r = 0; r < n.time * n.batch; ++r) {
                const Token symbol = n.text[std::size_t(r)];
                if (gated && symbol != x) continue;
                const T* before = store.value(record.activity.id, -1) + r * n.units;
                const double B = store.adjoint(record.potential.id, rbpm, 0)[r * n.units + j],
                             phi = rbpm ? B : B * B;
                const auto input = [&](Index k) { return double(before[e.from[first + k]]); };
                M00[std::size_t(symbol)] += phi;
                for (Index k = 0; k < m; ++k) {
                    cross[std::size_t(symbol * m + k)] += phi * input(k);
                    for (Index l = 0; l < m; ++l) M[std::size_t(k * m + l)] += phi * input(k) * input(l);
                }
            }
            double scale = 0;
            for (const double v : M00) scale += v;
            bool right = true;
            for (Index s = gated ? x : 0; s < (gated ? x + 1 : n.symbols); ++s) {
                right &= close(metric.m00[std::size_t(s * n.units + j)], M00[std::size_t(s)], scale);
                for (Index k = 0; k < m; ++k)
                    right &= close(metric.cross[std::size_t(s * e.count() + first + k)],
                                   cross[std::size_t(s * m + k)], scale);
            }
            const T* found = metric.squares(x, j);
            for (Index k = 0; k < m; ++k)
                for (Index l = full ? 0 : k; l <= k; ++l)
                    right &= close(found[full ? k * m + l : k], M[std::size_t(k * m + l)], scale);
            CAPTURE(x, j, full, rbpm);
            REQUIRE(right);
        }
    for (Index j = 0; j < n.units; ++j) {
        double sum = 0;
        for (Index b = 0; b < n.batch; ++b) {
            const double B = store.adjoint(record.potential.id, rbpm, -1)[b * n.units + j];
            sum += rbpm ? B : B * B;
        }
        REQUIRE(close(starts.sums[std::size_t(j)], sum, sum));
    }
    REQUIRE(metric.m00[std::size_t(3 * n.units)] == T(0));  // never seen
}

}  // namespace

TEMPLATE_TEST_CASE("Sums of the metric of sparse networks follow from the definition", "[riemannian]", float,
                   double) {
    const bool full = GENERATE(false, true), rbpm = GENERATE(false, true);
    agrees<TestType, Glnn>(full, rbpm);
    agrees<TestType, LeakyRnn>(full, rbpm);
    agrees<TestType, SparseRnn>(full, rbpm);
}
