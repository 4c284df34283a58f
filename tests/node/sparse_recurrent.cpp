// Networks on sparse graphs, against equations written out with dense matrices.
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/gnn.hpp>
#include <isogloss/node/leaky_rnn.hpp>
#include <isogloss/node/sparse_rnn.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

namespace {

constexpr Index N = 5, d = 3, A = 4, T = 9;
const std::vector<Token> symbols = {0, 2, 3, 1, 1, 0, 2, 3, 0};
const std::vector<Token> next = {2, not_predicted, 1, 1, 0, 2, not_predicted, 0, 3};

double slope(Activation s, double a) {
    if (s == Activation::relu) return a > 0 ? 1 : 0;
    return s == Activation::tanh ? 1 - a * a : s == Activation::logistic ? a * (1 - a) : 1;
}
double value(Activation s, double V) {
    if (s == Activation::relu) return std::max(V, 0.0);
    return s == Activation::tanh ? std::tanh(V) : s == Activation::logistic ? 1 / (1 + std::exp(-V)) : V;
}

// A network under a softmax head, with random weights; with `many` edges and steps, so that it goes through
// whole matrices.
template <template <class> class Node, bool many = false> struct Model {
    static constexpr Index units = many ? 19 : N, steps = many ? 40 : T;
    static constexpr bool leak = std::is_base_of_v<SparseRecurrent<double, true, true>, Node<double>> ||
                                 std::is_base_of_v<SparseRecurrent<double, true, false>, Node<double>>;
    static constexpr bool gated = std::is_base_of_v<SparseRecurrent<double, true, true>, Node<double>> ||
                                  std::is_base_of_v<SparseRecurrent<double, false, true>, Node<double>>;
    Activation activation;
    Graph<double> g{GraphOptions{.time = steps, .batch = 1}};
    Tokens x, y;
    Seq<double> a;
    Loss<double> l;
    std::vector<Token> read = symbols, target = next;

    explicit Model(Activation s, double bound = 0, double pull = 0)
        : activation(s), x(g.tokens("x", A)), y(g.tokens("y", A)) {
        const Random random(7, 7);
        for (Index t = std::ssize(read); t < steps; ++t) {
            read.push_back(static_cast<Token>(random.below(2 * t, A - 1)));  // one symbol is rare
            target.push_back(static_cast<Token>(random.below(2 * t + 1, A + 1)) - 1);
        }
        a = g.add<Node>("net", {.units = units, .edges = many ? 9 : d, .activation = s, .bound = bound}, x);
        l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("out", {.vocabulary = A, .init = uniform(1.5)}, a),
                                y);
        if (pull > 0) {  // what reads V itself
            const auto penalty = g.add<ActivationPenalty>("pull", {.size = pull}, g.sequence("net.V"));
            l = g.add<TotalLoss>("total", {}, l, penalty);
        }
        std::uint64_t seed = 1;
        for (auto* p : g.parameters("net.*")) {
            Numbers v = numbers(p->size(), ++seed);
            // over many steps a network must forget, or differences mean nothing
            for (double& w : v) w *= many ? 0.1 : 1;
            if (const auto& e = edge_record(g).edges; many && leak && p->name == "net.tau")
                for (Index row = gated ? units : 0; row < p->size(); row += units + e.count())
                    for (Index j = 0; j < units; ++j) v[std::size_t(row + e.first[j])] -= 0.5;
            set(g, p->name, v);
        }
    }
    double forward() {
        g.reset();
        return g.forward(l, {x, {read.data(), steps, 1}}, {y, {target.data(), steps, 1}});
    }
    // τ_ij of a step as a dense matrix [N, N] and the biases [N].
    std::pair<Numbers, Numbers> dense(Token symbol) {
        const auto& e = edge_record(g).edges;
        const double* tau = g.parameter("net.tau").value;
        const double* bias =
            gated ? tau + symbol * (units + e.count()) : g.parameter("net.rho").value + symbol * units;
        const double* weight = gated ? bias + units : tau;
        Numbers matrix(units * units);
        for (Index j = 0; j < units; ++j)
            for (Index k = e.first[j]; k < e.first[j + 1]; ++k)
                matrix[std::size_t(e.from[k] * units + j)] = weight[k];
        return {matrix, Numbers(bias, bias + units)};
    }
};

}  // namespace

TEMPLATE_TEST_CASE("A network on a sparse graph follows its equations forward and in the modulus",
                   "[node][edges]", Model<Glnn>, Model<Gnn>, Model<LeakyRnn>, Model<SparseRnn>,
                   (Model<Glnn, true>), (Model<Gnn, true>), (Model<LeakyRnn, true>),
                   (Model<SparseRnn, true>)) {
    constexpr Index units = TestType::units, steps = TestType::steps;
    const Activation s =
        GENERATE(Activation::tanh, Activation::logistic, Activation::relu, Activation::identity);
    const double bound = GENERATE(0.0, 1.0) * (TestType::steps > T ? 0.07 : 0.7);
    TestType m(s, bound);
    m.forward();
    // forward; cut[t + 1]: which of the sums V_t are cut
    std::vector<std::vector<bool>> cut(1, std::vector<bool>(units, false));
    Index times_cut = 0;
    Numbers V = flat(m.g.value(m.g.weight("net.start"))), a(units);
    std::vector<Numbers> activity;
    for (std::size_t i = 0; i < units; ++i) a[i] = value(s, V[i]);
    activity.push_back(a);
    for (const Token symbol : m.read) {
        const auto [tau, bias] = m.dense(symbol);
        for (std::size_t j = 0; j < units; ++j) {
            V[j] = (m.leak ? V[j] : 0) + bias[j];
            for (std::size_t i = 0; i < units; ++i) V[j] += tau[i * units + j] * a[i];
        }
        cut.emplace_back(units, false);
        for (std::size_t j = 0; j < units; ++j)
            if (bound > 0 && std::abs(V[j]) > bound)
                V[j] = V[j] > 0 ? bound : -bound, cut.back()[j] = true, ++times_cut;
        for (std::size_t i = 0; i < units; ++i) a[i] = value(s, V[i]);
        activity.push_back(a);
    }
    REQUIRE((bound > 0 ? times_cut > 5 && times_cut < units * steps : times_cut == 0));
    Numbers all;
    for (std::size_t t = 1; t <= steps; ++t) all.insert(all.end(), activity[t].begin(), activity[t].end());
    REQUIRE(apart(flat(m.g.value(m.a)), all) < 1e-13);

    // modulus: Φ of V by the squared Jacobian J_ij = leak 1[i = j] + s'(V_i) τ_ij, entry by entry
    m.g.template backward<Modulus>(m.l);
    const auto seen = [&](Index t) {
        const double* phi = graph::Inspect::store(m.g).adjoint(edge_record(m.g).potential.id, 1, t);
        return Numbers(phi, phi + units);
    };
    const Numbers W = flat(m.g.value(m.g.weight("out.W")));
    Numbers phi(units, 0);
    for (Index t = steps - 1; t >= -1; --t) {
        const Numbers& at = activity[std::size_t(t) + 1];
        Numbers here(units, 0);
        if (t >= 0 && m.target[std::size_t(t)] >= 0) {
            Numbers p(A);
            double sum = 0;
            for (std::size_t v = 0; v < A; ++v) {
                double z = m.g.parameter("out.b").value[v];
                for (std::size_t i = 0; i < units; ++i) z += W[v * units + i] * at[i];
                sum += p[v] = std::exp(z);
            }
            for (std::size_t i = 0; i < units; ++i) {
                double mean = 0, square = 0;
                for (std::size_t v = 0; v < A; ++v) {
                    mean += p[v] / sum * W[v * units + i];
                    square += p[v] / sum * W[v * units + i] * W[v * units + i];
                }
                here[i] = std::pow(slope(s, at[i]), 2) * (square - mean * mean);
            }
        }
        if (t + 1 < steps) {
            const auto tau = m.dense(m.read[std::size_t(t) + 1]).first;
            for (std::size_t i = 0; i < units; ++i)
                for (std::size_t j = 0; j < units; ++j)
                    here[i] +=
                        std::pow((m.leak && i == j) + slope(s, at[i]) * tau[i * units + j], 2) * phi[j];
        }
        for (std::size_t i = 0; i < units; ++i)
            if (cut[std::size_t(t) + 1][i]) here[i] = 0;
        phi = here;
        REQUIRE(apart(seen(t), phi) < 1e-12);
    }
}

TEMPLATE_TEST_CASE("Gradients of a network on a sparse graph are those of differences", "[node][edges]",
                   Model<Glnn>, Model<Gnn>, Model<LeakyRnn>, Model<SparseRnn>, (Model<Glnn, true>),
                   (Model<Gnn, true>), (Model<LeakyRnn, true>), (Model<SparseRnn, true>)) {
    TestType m(GENERATE(Activation::tanh, Activation::logistic),
               GENERATE(0.0, 1.0) * (TestType::steps > T ? 0.07 : 0.7), GENERATE(0.0, 0.2));
    const double middle = m.forward();
    m.g.backward(m.l);
    Index kinks = 0;
    for (auto* p : m.g.parameters()) {
        const Numbers gradient(p->dense_gradient().data, p->dense_gradient().data + p->size());
        for (Index i = 0; i < p->size(); ++i) {
            const double at = p->value[i], h = 1e-6;
            p->value[i] = at + h;
            const double up = m.forward();
            p->value[i] = at - h;
            const double down = m.forward();
            p->value[i] = at;
            CAPTURE(p->name, i);
            // Where some potential comes to the bound between the two, there is a kink and no derivative.
            if (std::abs(up - 2 * middle + down) > 1e-10) ++kinks;
            else REQUIRE(std::abs((up - down) / (2 * h) - gradient[std::size_t(i)]) < 1e-7);
        }
    }
    REQUIRE(kinks <= m.g.parameters().elements() / 20);
}

TEST_CASE("Networks on sparse graphs obey the laws of a node", "[node][edges]") {
    // Not relu, at whose kink all units are: V starts at 0.
    const Activation s = GENERATE(Activation::tanh, Activation::logistic, Activation::identity);
    const Index units = GENERATE(1, 5, 17);  // 17: through whole matrices
    const SparseRecurrentOptions o{
        .units = units, .edges = units > 5 ? 9 : std::min<Index>(units, 3), .activation = s, .spread = 2};
    REQUIRE(laws([=](auto& g) {
                return check::probe(g, g.template add<Glnn>("net", o, g.tokens("x", 3)));
            }) == "");
    REQUIRE(laws([=](auto& g) { return check::probe(g, g.template add<Gnn>("net", o, g.tokens("x", 3))); }) ==
            "");
    REQUIRE(laws([=](auto& g) {
                return check::probe(g, g.template add<SparseRnn>("net", o, g.tokens("x", 3)));
            }) == "");
    REQUIRE(laws([=](auto& g) {
                return check::probe(g, g.template add<LeakyRnn>("net", o, g.tokens("x", 3)));
            }) == "");
    const auto embedded = [](auto& g) {  // vector input: the factored table of a large alphabet
        return g.template add<Embedding>("embed", {}, g.tokens("x", 6), g.weight("E", 6, 2, uniform(1)));
    };
    REQUIRE(laws([=](auto& g) { return check::probe(g, g.template add<Glnn>("net", o, embedded(g))); }) ==
            "");
    REQUIRE(laws([=](auto& g) { return check::probe(g, g.template add<LeakyRnn>("net", o, embedded(g))); }) ==
            "");
    REQUIRE(laws([=](auto& g) {
                return check::probe(g, g.template add<SparseRnn>("net", o, embedded(g)));
            }) == "");
}

namespace {

template <template <class> class Node, bool many> void holds_each_weight() {
    Model<Node, many> m(Activation::tanh);
    const auto pass = [&] {
        m.g.parameters().clear_gradients();
        m.forward();
        m.g.backward(m.l);
    };
    const auto gradient = [](Parameter<double>& p) {
        return Numbers(p.dense_gradient().data, p.gradient + p.size());
    };
    pass();
    std::vector<Numbers> all;
    for (auto* p : m.g.parameters()) all.push_back(gradient(*p));
    for (auto* held : m.g.parameters("net.*")) {
        m.g.parameters(held->name).trained(false);
        pass();
        std::size_t k = 0;
        for (auto* p : m.g.parameters()) {
            CAPTURE(held->name, p->name);
            if (p == held) CHECK(p->condition == Parameter<double>::Condition::empty);
            else CHECK(gradient(*p) == all[k]);
            ++k;
        }
        m.g.parameters(held->name).trained(true);
    }
}

}  // namespace

TEST_CASE("A weight of a sparse network that is not trained leaves the others theirs",
          "[node][edges][trained]") {
    holds_each_weight<Glnn, false>();
    holds_each_weight<Glnn, true>();
    holds_each_weight<Gnn, false>();
    holds_each_weight<Gnn, true>();
    holds_each_weight<LeakyRnn, false>();
    holds_each_weight<LeakyRnn, true>();
    holds_each_weight<SparseRnn, false>();
    holds_each_weight<SparseRnn, true>();
}

namespace {

// Two networks, on symbols and on one-hot vectors, with the same weights; many: through whole matrices.
template <template <class> class Node> void agrees_with_one_hot(bool many) {
    const Index steps = many ? 40 : T;
    Graph<double> g({.time = steps, .batch = 1});
    const auto x = g.tokens("x", A);
    const auto u = g.input("u", A);
    const SparseRecurrentOptions o{.units = many ? 19 : N, .edges = many ? 9 : d};
    const auto by_symbol = g.add<Node>("symbols", o, x), by_vector = g.add<Node>("vectors", o, u);
    const bool gated = g.parameters().size() == 5;  // tau, start; P, b, start
    const std::string rows = gated ? "symbols.tau" : "symbols.rho";
    Numbers v = numbers(g.parameter(rows).size(), 5);
    for (double& w : v) w *= 0.3;
    set(g, rows, v), set(g, "vectors.P", v);
    set(g, "vectors.b", Numbers(std::size_t(g.parameter("vectors.b").size()), 0.0));
    if (!gated) {
        Numbers tau = numbers(g.parameter("symbols.tau").size(), 6);
        for (double& w : tau) w *= 0.1;
        set(g, "symbols.tau", tau), set(g, "vectors.tau", tau);
    }
    std::vector<Token> text = symbols;
    for (Index t = T; t < steps; ++t) text.push_back(static_cast<Token>(t * t % A));
    Numbers one_hot(std::size_t(steps * A), 0.0);
    for (std::size_t t = 0; t < text.size(); ++t) one_hot[t * A + std::size_t(text[t])] = 1;
    const auto sum = g.add<Sum>("sum", {}, by_symbol, by_vector);
    g.forward(sum, {x, {text.data(), steps, 1}}, {u, one_hot.data(), steps, 1});
    REQUIRE(apart(flat(g.value(by_symbol)), flat(g.value(by_vector))) < 1e-13);
}

}  // namespace

TEST_CASE("With one-hot input a network on vectors is the one on symbols", "[node][edges]") {
    const bool many = GENERATE(false, true);
    agrees_with_one_hot<Glnn>(many);
    agrees_with_one_hot<Gnn>(many);
    agrees_with_one_hot<LeakyRnn>(many);
    agrees_with_one_hot<SparseRnn>(many);
}

TEST_CASE("A leaky unit starts as an exponential window over the past", "[node][edges]") {
    // In the linear range V^t = Σ_k (1 - α)^{k-1} b_{x_{t-k}} with centred b; time scales 1 … longest.
    Graph<double> g({.time = T, .batch = 1, .seed = 3});
    const auto x = g.tokens("x", A);
    const std::vector<double> f = {1, 2, 3, 4};
    const auto a = g.add<Glnn>("net",
                               {.units = 3,
                                .edges = 2,
                                .activation = Activation::identity,
                                .longest = 9,
                                .frequencies = f,
                                .spread = 0.5},
                               x);
    const auto tau = g.value(g.weight("net.tau"));
    for (std::size_t j = 0; j < 3; ++j) {
        double mean = 0;
        for (std::size_t v = 0; v < A; ++v) mean += f[v] / 10 * tau(v, j);
        REQUIRE(std::abs(mean) < 1e-15);
    }
    g.forward(a, {x, {symbols.data(), T, 1}});
    const auto out = g.value(a);
    for (std::size_t j = 0; j < 3; ++j) {
        const double alpha = std::pow(9.0, -static_cast<double>(j) / 2);
        double window = 0;
        for (std::size_t t = 0; t < T; ++t) {
            window = (1 - alpha) * window + tau(std::size_t(symbols[t]), j);
            REQUIRE(std::abs(out(t, j) - window) < 1e-14);
        }
    }
}

TEST_CASE("A logistic network starts as the image of the tanh network", "[node][edges]") {
    Graph<double> g({.time = T, .batch = 1});
    const auto x = g.tokens("x", A);
    const auto a = g.add<Glnn>("net", {.units = N, .edges = d}, x);
    Graph<double> h({.time = T, .batch = 1});
    const auto z = h.tokens("x", A);
    const auto b = h.add<Glnn>("net", {.units = N, .edges = d, .activation = Activation::logistic}, z);
    g.forward(a, {x, {symbols.data(), T, 1}});
    h.forward(b, {z, {symbols.data(), T, 1}});
    Numbers image = flat(g.value(a));
    for (double& v : image) v = (1 + v) / 2;
    REQUIRE(apart(flat(h.value(b)), image) < 1e-14);
}

TEST_CASE("Networks on sparse graphs refuse what they cannot be", "[node][edges]") {
    Graph<double> g({.time = T, .batch = 1});
    const auto x = g.tokens("x", A);
    const auto u = g.input("u", A);
    REQUIRE_THROWS_MATCHES(g.add<Glnn>("net", {.units = 3, .edges = 4}, x), UsageError,
                           says("node 'net'", "edges = 4"));
    REQUIRE_THROWS_MATCHES(g.add<Glnn>("net", {.units = 3, .longest = 0.5}, x), UsageError,
                           says("longest = 0.5"));
    REQUIRE_THROWS_MATCHES(g.add<Glnn>("net", {.units = 3, .bound = -1}, x), UsageError, says("bound = -1"));
    REQUIRE_THROWS_AS(g.add<Gnn>("net", {.units = 3, .frequencies = {1, 2}}, x), UsageError);
    REQUIRE_THROWS_AS(g.add<Gnn>("net", {.units = 3, .frequencies = {0, 0, 0, 0}}, x), UsageError);
    REQUIRE_THROWS_AS(g.add<Gnn>("net", {.units = 3, .frequencies = {1, -1, 1, 1}}, x), UsageError);
    REQUIRE_THROWS_MATCHES(g.add<Gnn>("net", {.units = 3, .spread = -1}, x), UsageError, says("spread = -1"));
    REQUIRE_THROWS_AS(g.add<Gnn>("net", {.units = 3, .frequencies = {1, 1}}, u), UsageError);
    REQUIRE(graph::Inspect::store(g).published.empty());
    g.add<SparseRnn>("net", {.units = 3, .edges = 3}, x);  // nothing of the failed attempts is left
    REQUIRE(graph::Inspect::store(g).all<EdgeRecord<double>>().size() == 1);
}
