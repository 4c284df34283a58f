// The fixed rate on minibatches of networks on sparse graphs: what is averaged, and over which passes.
#include <isogloss/io.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <map>
#include <optional>

#include "io/files.hpp"
#include "networks.hpp"
#include "tolerance.hpp"

namespace {

constexpr Index T = 9, B = 3, A = 4, N = 5;

// A network that reads columns of a random text segment by segment.
template <class Number, template <class> class Node> struct Columns {
    static constexpr bool gated = !std::is_same_v<Node<double>, SparseRnn<double>>;
    Graph<Number> g{GraphOptions{.time = T, .batch = B}};
    Tokens x = g.tokens("x", A), y = g.tokens("y", A);
    Loss<Number> l;

    explicit Columns(Activation s = Activation::tanh) {
        const auto a = g.template add<Node>("net", {.units = N, .edges = 3, .activation = s}, x);
        l = g.template add<CrossEntropy>("loss", {}, g.template add<Softmax>("out", {.vocabulary = A}, a), y);
        std::uint64_t seed = 1;
        for (auto* p : g.parameters()) {
            Numbers v = numbers(p->size(), ++seed);
            for (double& w : v) w *= 0.4;
            set(g, p->name, v);
        }
    }
    // Segment k; the fourth symbol is in few of them.
    std::vector<Token> text(Index k) const {
        const Random random(3, 3);
        std::vector<Token> t;
        for (Index i = 0; i < (T + 1) * B; ++i)
            t.push_back(static_cast<Token>(random.below(100 * k + i, k % 3 == 0 ? A : A - 1)));
        return t;
    }
    void pass(Index k, bool modulus, bool begins) {
        const auto t = text(k);
        if (begins) g.reset();
        g.forward(l, {x, {t.data(), T, B}}, {y, {t.data() + B, T, B}});
        g.backward(l);
        if (modulus) g.template backward<Modulus>(l);
    }
    std::vector<Number> parameters() {
        std::vector<Number> all;
        for (const auto* p : g.parameters()) all.insert(all.end(), p->value, p->value + p->size());
        return all;
    }
};

// The arrays that an update shows.
template <class Number> struct Sums {
    std::map<std::string, Numbers> of;
    void number(const std::string&, double&) {}
    void counter(const std::string&, std::uint64_t&) {}
    void array(const std::string& name, Number* data, Index rows, Index cols) {
        of[name].assign(data, data + rows * cols);
    }
};
template <class Number> std::map<std::string, Numbers> sums(Riemannian<Number>& update) {
    Sums<Number> s;
    update.visit(s);
    return s.of;
}

// Those of one pass, by a metric that has seen no other.
template <class Number, template <class> class Node>
std::map<std::string, Numbers> once(Columns<Number, Node>& n, UnitModulus modulus, MetricForm form) {
    EdgeMetric<Number> metric(graph::Inspect::store(n.g), n.g.parameters("net.*"), edge_record(n.g), modulus,
                              form);
    StartMetric<Number> start(graph::Inspect::store(n.g), n.g.parameters("net.*"), edge_record(n.g), modulus);
    std::map<std::string, Numbers> m;
    for (Metric<Number>* one :
         {static_cast<Metric<Number>*>(&metric), static_cast<Metric<Number>*>(&start)}) {
        one->add(1 / double(T * B));
        for (const auto& s : one->sums()) m[s.name].assign(s.values->begin(), s.values->end());
    }
    return m;
}

template <class Number, template <class> class Node> void averages(UnitModulus modulus, MetricForm form) {
    const bool rbpm = modulus == UnitModulus::rbpm;
    const double tolerance = sizeof(Number) == 4 ? 1e-5 : 1e-13;
    for (const double decay : {0.0, 0.6}) {
        Columns<Number, Node> n;
        Riemannian<Number> update(
            n.g, "net.*", {.modulus = modulus, .form = form, .rate = 0.01, .decay = decay, .every = 1});
        std::map<std::string, Numbers> expected;
        bool known = false;
        for (Index k = 0; k < 7; ++k) {
            const bool begins = k == 1 || k == 5;  // not the first one
            n.pass(k, rbpm, begins);
            if (k == 0)  // as if every column went on from somewhere
                std::fill_n(graph::Inspect::store(n.g).value(edge_record(n.g).started.id, -1), B, Number(1));
            const auto fresh = once(n, modulus, form);
            const double keep = std::min(decay, double(k) / double(k + 1));
            for (const auto& [name, values] : fresh) {
                Numbers& sum = expected[name];
                sum.resize(values.size());
                const bool of_start = name == "start/net";
                if (of_start && !begins) {
                    if (keep == 0) std::fill(sum.begin(), sum.end(), 0.0);
                    continue;
                }
                const double old = of_start && !known ? 0 : keep;
                for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = old * sum[i] + (1 - old) * values[i];
            }
            known |= begins;
            update.step();
            for (const auto& [name, values] : sums(update)) {
                CAPTURE(name, k, decay);
                double scale = 0;
                for (const double v : expected.at(name)) scale = std::max(scale, std::abs(v));
                for (std::size_t i = 0; i < values.size(); ++i)
                    REQUIRE(std::abs(values[i] - expected.at(name)[i]) <= tolerance * scale);
            }
        }
        REQUIRE(sums(update).at("start/net").size() == N + 1);
    }
}

}  // namespace

TEMPLATE_TEST_CASE(
    "Metrics of networks on graphs are averages over passes, of start values over those that begin",
    "[riemannian][update]", float, double) {
    // With decay 0 what is left is the metric of the last pass alone.
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const MetricForm form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal);
    averages<TestType, Glnn>(modulus, form);
    averages<TestType, SparseRnn>(modulus, form);
}

TEST_CASE("Start values belong to the columns that begin, whichever these are", "[riemannian][update]") {
    Columns<double, Glnn> n;
    n.pass(0, false, true);
    n.g.parameters().clear_gradients();
    n.g.states().reset(1);  // the others go on
    n.pass(1, false, false);
    const auto& record = edge_record(n.g);
    auto& store = graph::Inspect::store(n.g);
    StartMetric<double> metric(store, n.g.parameters("net.*"), record, UnitModulus::ruop);
    metric.add(1);
    const double *V = store.value(record.potential.id, -1),
                 *flow = store.adjoint(record.potential.id, false, -1);
    const Numbers G = gradient(n.g, "net.start");
    for (Index j = 0; j < N; ++j) {
        const auto k = std::size_t(j);
        CHECK(V[N + j] == n.g.parameter("net.start").value[j]);
        CHECK(V[j] != V[N + j]);
        CHECK(G[k] == Approx(flow[N + j]).epsilon(1e-13));
        CHECK(metric.sums[k] == Approx(flow[N + j] * flow[N + j]).epsilon(1e-13));
    }
}

TEST_CASE("No pass that begins a sequence is left out of the metric", "[riemannian][update]") {
    Columns<double, Glnn> n;
    Riemannian<double> update(n.g, "net.*",
                              {.modulus = UnitModulus::rbpm, .rate = 0.01, .decay = 0, .every = 100});
    std::vector<bool> wanted;
    for (Index k = 0; k < 6; ++k) {
        const bool begins = k == 0 || k == 4;
        n.pass(k, true, begins);
        wanted.push_back(update.wants_modulus());
        update.step();
    }
    REQUIRE(wanted == std::vector<bool>{true, false, false, false, true, false});
}

TEMPLATE_TEST_CASE("Minibatch training of a network on a graph goes on from a file with the same bits",
                   "[riemannian][update]", float, double) {
    const RiemannianOptions o{.modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm),
                              .form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal),
                              .rate = 0.02,
                              .decay = 0.7};
    struct Training : Columns<TestType, Glnn> {
        Riemannian<TestType> net, head;
        Index at = 0;
        explicit Training(const RiemannianOptions& r) : net(this->g, "net.*", r), head(this->g, "out.*", r) {}
        void train(int segments) {
            for (int k = 0; k < segments; ++k, ++at) {
                this->pass(at, true, at % 6 == 0);
                net.step(), head.step();
            }
        }
        io::Checkpoint checkpoint() {
            io::Checkpoint c;
            return c.model(this->g).state("net", net).state("head", head);
        }
    };
    const TemporaryDirectory folder;
    Training whole(o), first(o), second(o);
    for (auto* t : {&whole, &first}) t->net.rate(0.5 * t->net.rate());  // the second has it from the file
    whole.train(17);
    first.train(8);  // between two refreshments, in the midst of a text
    first.checkpoint().save(folder / "training.safetensors");
    second.train(3);
    second.checkpoint().load(io::Safetensors::open(folder / "training.safetensors"));
    second.at = 8;
    second.train(9);
    REQUIRE(second.parameters() == whole.parameters());
    REQUIRE(second.parameters() != first.parameters());
}

TEST_CASE("Where no form is asked for, networks on graphs of few edges take the full one",
          "[riemannian][update]") {
    const auto squares = [](Index edges, std::optional<MetricForm> form) {
        Graph<double> g({.time = T, .batch = B});
        const auto x = g.tokens("x", A);
        g.add<Glnn>("net", {.units = 20, .edges = edges}, x);
        RiemannianOptions options;
        if (form) options.form = *form;
        Riemannian<double> update(g, "net.*", options);
        return sums(update).at("square/net").size();
    };
    for (const Index edges : {1, 5}) REQUIRE(squares(edges, {}) == squares(edges, MetricForm::full));
    REQUIRE(squares(5, {}) > squares(5, MetricForm::quasi_diagonal));
    REQUIRE(squares(6, {}) == squares(6, MetricForm::quasi_diagonal));
}

TEMPLATE_TEST_CASE("A step on a minibatch is that of the averaged sums", "[riemannian][update]", float,
                   double) {
    const MetricForm form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal);
    constexpr double rate = 0.05, damping = 0.02, floor = 1e-4, d = T * B;
    Columns<TestType, Glnn> n;
    Riemannian<TestType> update(
        n.g, "net.*",
        {.form = form, .rate = rate, .damping = damping, .floor = floor, .decay = 0.6, .every = 1});
    for (Index k = 0; k < 4; ++k) {
        n.pass(k, false, k % 2 == 0);
        if (k == 3) break;
        update.step();
    }
    const auto before = n.parameters();
    const Numbers G = gradient(n.g, "net.tau");
    update.step();
    const auto M = sums(update);
    const auto& e = edge_record(n.g).edges;
    const TestType* tau = n.g.parameter("net.tau").value;
    for (Index x = 0; x < A; ++x)
        for (Index j = 0, at = 0; j < N; ++j) {
            // the always-on unit, then the edges into j
            const Index first = e.first[j], m = e.first[j + 1] - first, row = x * (N + e.count());
            const auto order = std::size_t(m + 1);
            Numbers matrix(order * order), r(order);
            matrix[0] = M.at("m00/net")[std::size_t(x * N + j)];
            r[0] = G[std::size_t(row + j)] / d;
            const std::size_t squares = M.at("square/net").size() / A;
            for (std::size_t k = 1; k < order; ++k) {
                r[k] = G[std::size_t(row + N + first) + k - 1] / d;
                matrix[k] = matrix[k * order] = M.at("cross/net")[std::size_t(x * e.count() + first) + k - 1];
                const double* square = M.at("square/net").data() + std::size_t(x) * squares + at;
                if (form == MetricForm::full)
                    for (std::size_t i = 1; i <= k; ++i)
                        matrix[k * order + i] = matrix[i * order + k] =
                            square[(k - 1) * std::size_t(m) + i - 1];
                else matrix[k * order + k] = square[k - 1];
            }
            at += form == MetricForm::full ? m * m : m;
            double trace = 0;
            for (std::size_t k = 0; k < order; ++k) trace += matrix[k * order + k];
            for (std::size_t k = 0; k < order; ++k)
                matrix[k * order + k] += damping * trace / double(order) + floor;
            Numbers step = r;
            if (form == MetricForm::full) {
                detail::solve_symmetric<double>(m + 1, matrix.data(), step.data());
            } else {
                step[0] = r[0] / matrix[0];
                for (std::size_t k = 1; k < order; ++k) {
                    const double slope = matrix[k] / matrix[0];
                    step[k] = (r[k] - slope * r[0]) / (matrix[k * order + k] - slope * matrix[k]);
                    step[0] -= slope * step[k];
                }
            }
            // parameters() lists net.tau first
            const auto moved = [&](Index place) {
                return double(tau[place]) - double(before[std::size_t(place)]);
            };
            const double tolerance = sizeof(TestType) == 4 ? 2e-3 : 1e-10;
            const double scale = *std::max_element(
                step.begin(), step.end(), [](double u, double v) { return std::abs(u) < std::abs(v); });
            REQUIRE(std::abs(moved(row + j) + rate * step[0]) <= tolerance * (rate * std::abs(scale) + 1e-4));
            for (std::size_t k = 1; k < order; ++k)
                REQUIRE(std::abs(moved(row + N + first + Index(k) - 1) + rate * step[k]) <=
                        tolerance * (rate * std::abs(scale) + 1e-4));
        }
}

TEMPLATE_TEST_CASE("Minibatch steps do not depend on how activities are represented", "[riemannian][update]",
                   Net<Glnn>, Net<Gnn>, Net<LeakyRnn>, Net<SparseRnn>) {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const MetricForm form = GENERATE(MetricForm::full, MetricForm::quasi_diagonal, MetricForm::diagonal);
    CAPTURE(int(modulus), int(form));
    const auto trajectory = [&](TestType& n) {
        // Without damping; RUOP moves start values by 1/B, which rounding decides where B has vanished.
        const RiemannianOptions o{.modulus = modulus,
                                  .form = form,
                                  .rate = 0.002,
                                  .damping = 1e-300,
                                  .floor = 0,
                                  .decay = 0.9,
                                  .every = 2};
        Riemannian<double> net(n.g, "net.*", o),
            head(n.g, "out.*", {.rate = 0.02, .damping = 1e-300, .floor = 0});
        const Numbers start = flat(n.g.value(n.g.weight("net.start")));
        Numbers losses;
        n.g.reset();
        for (Index k = 0; k < 40; ++k) {  // segments of 20 of each column, carried on
            const Index from = k % 10 * 20 * 4;
            if (from == 0) n.g.reset();
            losses.push_back(
                n.g.forward(n.l, {n.x, {n.text.data() + from, 20, 4}}, {n.y, {n.next.data() + from, 20, 4}}));
            n.g.backward(n.l);
            if (net.wants_modulus()) n.g.template backward<Modulus>(n.l);
            net.step(), head.step();
            if (modulus == UnitModulus::ruop) set(n.g, "net.start", start);
        }
        return losses;
    };
    TestType tanh(200, Activation::tanh, 5, 3, 4, 4), logistic(200, Activation::logistic, 5, 3, 4, 4);
    map_to_logistic(tanh, logistic);
    const Numbers a = trajectory(tanh), b = trajectory(logistic);
    double worst = 0;
    for (std::size_t k = 0; k < a.size(); ++k) worst = worse(worst, std::abs(a[k] - b[k]) / a[k]);
    REQUIRE(std::abs(a[0] - a[30]) > 0.5);  // the same segment; something has happened
    if (form == MetricForm::diagonal) REQUIRE(worst > 1e-5);
    else REQUIRE(worst < 1e-8);
}
