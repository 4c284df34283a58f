// The general update, on any node's declared units.
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/riemannian/search_step.hpp>

#include "by_hand.hpp"
#include "networks.hpp"

namespace {

constexpr Index T = Map<>::T, B = Map<>::B;

double length_in_metric(const Numbers& G, const Numbers& delta) {
    double sum = 0;
    for (std::size_t i = 0; i < G.size(); ++i) sum -= G[i] * delta[i];
    return std::sqrt(sum);
}

}  // namespace

TEST_CASE("The update of a linear layer follows from the definition", "[riemannian][update]") {
    const MetricForm form = GENERATE(MetricForm::quasi_diagonal, MetricForm::diagonal);
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    Map<> m;
    Riemannian<double> update(m.g, "map.*",
                              {.modulus = modulus,
                               .form = form,
                               .rate = 0.1,
                               .damping = 0.2,
                               .floor = 0.3,
                               .divisor = Divisor::none});
    REQUIRE(update.wants_modulus() == (modulus == UnitModulus::rbpm));
    m.backward(update.wants_modulus());
    const Numbers W = flat(m.g.value(m.g.weight("map.W")));
    const double length = update.step();
    Numbers all_G, all_delta;
    for (std::size_t j = 0; j < 2; ++j) {
        // inputs 0, 1, 2, then the bias; for Dot both moduli are w²
        Numbers M(16, 0), G(4, 0);
        for (std::size_t r = 0; r < T * B; ++r) {
            const Numbers z = {m.in[3 * r], m.in[3 * r + 1], m.in[3 * r + 2], 1};
            const double B_j = m.weights[2 * r + j];
            for (std::size_t i = 0; i < 4; ++i) {
                G[i] += z[i] * B_j;
                for (std::size_t k = 0; k < 4; ++k) M[4 * i + k] += B_j * B_j * z[i] * z[k];
            }
        }
        const double eps = 0.2 * (M[0] + M[5] + M[10] + M[15]) / 4 + 0.3;
        for (std::size_t i = 0; i < 4; ++i) M[5 * i] += eps;
        Numbers expected(4);
        if (form == MetricForm::diagonal) {
            for (std::size_t i = 0; i < 4; ++i) expected[i] = G[i] / M[5 * i];
        } else {
            expected[3] = G[3] / M[15];
            for (std::size_t i = 0; i < 3; ++i) {
                expected[i] =
                    (G[i] - M[4 * i + 3] / M[15] * G[3]) / (M[5 * i] - M[4 * i + 3] * M[4 * i + 3] / M[15]);
                expected[3] -= M[4 * i + 3] / M[15] * expected[i];
            }
        }
        for (std::size_t i = 0; i < 3; ++i) {
            REQUIRE(m.g.parameter("map.W").value[2 * i + j] ==
                    Approx(W[2 * i + j] - 0.1 * expected[i]).epsilon(1e-10));
            all_delta.push_back(-expected[i]);
        }
        REQUIRE(m.g.parameter("map.b").value[j] == Approx(-0.1 * expected[3]).epsilon(1e-10));
        all_delta.push_back(-expected[3]);
        all_G.insert(all_G.end(), G.begin(), G.end());
    }
    REQUIRE(length == Approx(length_in_metric(all_G, all_delta)).epsilon(1e-10));
}

TEST_CASE("The metric is a decayed average, refreshed now and then, that clips by its own length",
          "[riemannian][update]") {
    Map<> m;
    Riemannian<double> update(m.g, "map.*",
                              {.modulus = UnitModulus::rbpm,
                               .form = MetricForm::diagonal,
                               .rate = 1,
                               .damping = 1e-12,
                               .floor = 0,
                               .decay = 0.6,
                               .every = 2,
                               .divisor = Divisor::none});
    std::vector<bool> wanted;
    Numbers M;
    for (int k = 0; k < 6; ++k) {
        for (double& w : m.weights) w *= 1.3;
        wanted.push_back(update.wants_modulus());
        m.backward(update.wants_modulus());
        double fresh = 0, G = 0;
        for (std::size_t r = 0; r < T * B; ++r) {
            fresh += std::pow(m.weights[2 * r] * m.in[3 * r], 2);
            G += m.weights[2 * r] * m.in[3 * r];
        }
        if (k == 0) M.push_back(fresh);  // plain means at first, of every step: of one, of two, then 0.6
        if (k == 1) M.push_back(0.5 * M.back() + 0.5 * fresh);
        if (k == 2) M.push_back(0.6 * M.back() + 0.4 * fresh);
        if (k == 4) M.push_back(0.6 * M.back() + 0.4 * fresh);
        const double before = m.g.parameter("map.W").value[0];
        update.step();
        REQUIRE(m.g.parameter("map.W").value[0] - before == Approx(-G / M.back()));
    }
    REQUIRE(wanted == std::vector<bool>{true, true, true, false, true, false});

    Map<> once, clipped;
    Riemannian<double> free(once.g, "map.*", {.rate = 1}),
        short_(clipped.g, "map.*", {.rate = 1, .clip = 0.01});
    const double before = once.g.parameter("map.W").value[0];
    once.backward(), clipped.backward();
    const double length = free.step();
    REQUIRE(short_.step() == length);
    REQUIRE(length > 0.01);
    REQUIRE(clipped.g.parameter("map.W").value[0] - before ==
            Approx((once.g.parameter("map.W").value[0] - before) * 0.01 / length));
}

TEST_CASE("Gradient and metric have one scale: a step at rate 1 is Newton's", "[riemannian][update]") {
    // A logistic regression: z = a x + b before a fixed head of two words, o = (0, z). The modulus of z is
    // p (1 - p), so that the unit's metric is the Hessian, of which the quasi-diagonal form holds all.
    const Divisor divisor = GENERATE(Divisor::tokens, Divisor::batch, Divisor::none);
    Graph<double> g(GraphOptions{.time = T, .batch = B});
    const auto x = g.input("x", 1);
    const auto y = g.tokens("y", 2);
    const auto z = g.add<Linear>("unit", {.units = 1}, x);
    const auto l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("out", {.vocabulary = 2}, z), y);
    g.parameter("out.W").value[0] = 0, g.parameter("out.W").value[1] = 1;
    Numbers in = numbers(T * B, 1);
    std::vector<Token> target;
    for (std::size_t r = 0; r < T * B; ++r) target.push_back(r % 3 == 0 ? in[r] < 0 : in[r] > 0);
    Riemannian<double> update(g, "unit.*",
                              {.modulus = UnitModulus::rbpm,
                               .rate = 1,
                               .damping = 1e-15,
                               .floor = 0,
                               .decay = 0,
                               .every = 1,
                               .divisor = divisor});
    Numbers lengths;
    for (int k = 0; k < 8; ++k) {
        g.forward(l, {x, in.data(), T, B}, {y, {target.data(), T, B}});
        g.backward(l), g.backward<Modulus>(l);
        lengths.push_back(update.step());
        g.parameters("out.*").clear_gradients();
    }
    REQUIRE(lengths[0] > 0.1);
    REQUIRE(lengths[7] < 1e-13 * lengths[0]);  // of order two, where a wrong scale would be of order one
}

TEST_CASE("Updates do not depend on the origin and unit of an input", "[riemannian][update]") {
    // x' = α x + β with W' = W / α, b' = b - Σ β W': the same outputs after every step
    const MetricForm form = GENERATE(MetricForm::quasi_diagonal, MetricForm::diagonal);
    const double alpha[] = {3, 0.2, -1.5}, beta[] = {1, -2, 0.5};
    Map<> a, b;
    for (std::size_t r = 0; r < T * B; ++r)
        for (std::size_t i = 0; i < 3; ++i) b.in[3 * r + i] = alpha[i] * a.in[3 * r + i] + beta[i];
    for (Index i = 0; i < 3; ++i)
        for (Index j = 0; j < 2; ++j) {
            double& w = b.g.parameter("map.W").value[2 * i + j];
            w = a.g.parameter("map.W").value[2 * i + j] / alpha[i];
            b.g.parameter("map.b").value[j] -= beta[i] * w;
        }
    const RiemannianOptions o{.form = form, .rate = 0.05, .damping = 1e-14, .floor = 0};
    Riemannian<double> of_a(a.g, "map.*", o), of_b(b.g, "map.*", o);
    double worst = 0;
    for (int k = 0; k < 50; ++k) {
        for (auto* m : {&a, &b}) m->weights = numbers(T * B * 2, std::uint64_t(100 + k)), m->backward();
        of_a.step(), of_b.step();
        a.backward(), b.backward();
        worst = std::max(worst, apart(flat(a.g.value(a.y)), flat(b.g.value(b.y))));
        a.g.parameters().clear_gradients(), b.g.parameters().clear_gradients();
    }
    if (form == MetricForm::diagonal) REQUIRE(worst > 1e-3);
    else REQUIRE(worst < 1e-8);
}

TEST_CASE("Sums keep the names by which checkpoints hold them", "[riemannian][update]") {
    struct Names {
        std::vector<std::string> found;
        void number(const std::string&, double&) {}
        void counter(const std::string&, std::uint64_t&) {}
        void array(const std::string& name, double*, Index rows, Index cols) {
            found.push_back(message(name, " ", rows, " ", cols));
        }
    };
    const auto names = [](MetricForm form) {
        Graph<double> g({.time = 7, .batch = 3});
        const auto h = g.add<Lstm>("cell", {.units = 6}, g.input("x", 3));
        g.add<Softmax>("out", {.vocabulary = 5}, h);
        Riemannian<double> update(g, "*", {.form = form});
        Names visitor;
        update.visit(visitor);
        return visitor.found;
    };
    const std::vector<std::string> head = {"square/out.W 5 6", "cross/out.W 5 6", "whole/out.W 1 5"};
    std::vector<std::string> quasi = {"whole0/cell.z 1 24", "square0/cell.z 3 24", "cross0/cell.z 3 24",
                                      "square1/cell.z 6 24", "cross1/cell.z 6 24"};
    quasi.insert(quasi.end(), head.begin(), head.end());
    REQUIRE(names(MetricForm::full) == quasi);  // as of heads
    REQUIRE(names(MetricForm::quasi_diagonal) == quasi);
}

TEST_CASE("The general update refuses what has no metric", "[riemannian][update]") {
    Graph<double> g({.time = 4, .batch = 1});
    const auto x = g.tokens("x", 5), y = g.tokens("y", 5);
    const auto E = g.weight("E", 5, 4, uniform(1));
    const auto h = g.add<Lstm>("lstm", {.units = 4}, g.add<Embedding>("embed", {}, x, E));
    const auto l = g.add<CrossEntropy>("loss", {}, g.add<TiedSoftmax>("softmax", {}, h, E), y);
    REQUIRE_THROWS_MATCHES(Riemannian<double>(g, "lstm.*", {.damping = 0}), UsageError, says("damping = 0"));
    REQUIRE_THROWS_MATCHES(Riemannian<double>(g, "lstm.*", {.floor = -1}), UsageError, says("floor = -1"));
    REQUIRE_THROWS_MATCHES(Riemannian<double>(g, "lstm.*", {.decay = 1}), UsageError, says("decay = 1"));
    REQUIRE_THROWS_MATCHES(Riemannian<double>(g, "lstm.*", {.every = 0}), UsageError, says("every = 0"));
    REQUIRE_THROWS_MATCHES(Riemannian<double>(g, "none", {}), UsageError, says("no name matches"));
    Riemannian<double> rbpm(g, "lstm.*", {.modulus = UnitModulus::rbpm});
    const std::vector<Token> text = {1, 2, 3, 4};
    g.forward(l, {x, {text.data(), 4, 1}}, {y, {text.data(), 4, 1}});
    g.backward(l);
    REQUIRE_THROWS_MATCHES(rbpm.step(), UsageError, says("backward<Modulus>"));
    Graph<double> k({.time = 4, .batch = 1});
    k.weight("E", 5, 4, uniform(1));
    REQUIRE_THROWS_MATCHES(Riemannian<double>(k, "E", {}), UsageError, says("'E' has no metric"));
    REQUIRE_THROWS_MATCHES(Riemannian<double>(k, g.parameters("lstm.*"), {}), UsageError,
                           says("is a parameter of another graph"));
}

TEST_CASE("A metric that is not finite is refused, and starts anew", "[riemannian][update][errors]") {
    const MetricForm form = GENERATE(MetricForm::quasi_diagonal, MetricForm::diagonal);
    Map<float> m;
    const Numbers small = m.weights;
    Riemannian<float> update(m.g, "map.*", {.form = form});
    const auto weights = [&] { return flat(m.g.value(m.g.weight("map.W"))); };
    const auto step = [&](double size) {
        for (std::size_t i = 0; i < small.size(); ++i) m.weights[i] = size * small[i];
        m.g.parameters().clear_gradients();
        m.backward();
        return update.step();
    };
    step(1);
    const Numbers before = weights();
    // The gradient is finite in float, its square is not: the direction would be 0.
    REQUIRE_THROWS_MATCHES(step(1e30), NumericError, says("riemannian: found inf in the metric"));
    CHECK(weights() == before);
    CHECK(step(1) > 0);
    CHECK(weights() != before);

    // Sums that are given, as those of several shards, start it anew too.
    REQUIRE_THROWS_AS(step(1e30), NumericError);
    m.weights = small;
    m.g.parameters().clear_gradients();
    m.backward();
    std::vector<float> sums(static_cast<std::size_t>(update.sums()));
    REQUIRE_THROWS_MATCHES(update.take_sums(std::span<float>(sums).first(sums.size() - 1)), UsageError,
                           says("take_sums"));
    update.take_sums(std::span<float>(sums));
    update.give_sums(std::span<const float>(sums));
    CHECK(update.step() > 0);
}

TEMPLATE_TEST_CASE("Recurrent cells and heads learn by their metrics", "[riemannian][update]", Rnn<float>,
                   Lstm<float>, Gru<float>) {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    const double keep = 0.9;
    Graph<float> g({.time = 8, .batch = 4});
    const auto x = g.tokens("x", 5), y = g.tokens("y", 5);
    const auto e = g.add<Embedding>("embed", {}, x, g.weight("E", 5, 4, normal(1)));
    Seq<float> h;
    const auto scheme = DropoutScheme::gal;
    if constexpr (std::is_same_v<TestType, Rnn<float>>)
        h = g.add<Rnn>("cell", {.units = 6, .keep = keep, .scheme = scheme}, e);
    else if constexpr (std::is_same_v<TestType, Lstm<float>>)
        h = g.add<Lstm>("cell", {.units = 6, .keep = keep, .scheme = scheme}, e);
    else h = g.add<Gru>("cell", {.units = 6, .keep = keep, .scheme = scheme}, e);
    const auto l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("out", {.vocabulary = 5}, h), y);
    Riemannian<float> cell(g, "cell.*",
                           {.modulus = modulus, .rate = 0.02, .damping = 0.1, .every = 2, .clip = 1}),
        head(g, "out.*", {.modulus = modulus, .rate = 0.05, .damping = 0.1, .clip = 1});
    std::vector<Token> in, out;
    for (Index r = 0; r < 32; ++r) in.push_back(static_cast<Token>((r * r + r / 4) % 5));
    for (Index r = 0; r < 32; ++r)
        out.push_back(static_cast<Token>(r < 4 ? 0 : (in[std::size_t(r)] + in[std::size_t(r - 4)]) % 5));
    double first = 0, last = 0;
    for (int k = 0; k < 300; ++k) {
        g.reset();
        const double loss = g.forward(l, {x, {in.data(), 8, 4}}, {y, {out.data(), 8, 4}});
        if (k < 10) first += loss;
        if (k >= 290) last += loss;
        g.backward(l);
        if (cell.wants_modulus()) g.template backward<Modulus>(l);
        cell.step(), head.step();
        g.parameters("E").clear_gradients();
    }
    REQUIRE(last < 0.6 * first);
}

TEST_CASE("Where a gradient goes to 0 the floor holds the steps of RUOP", "[riemannian][update]") {
    // Φ = (∂l/∂z)²: without a floor a gradient a million times as small takes a step a million times as long.
    const auto longest = [&](double scale, double floor) {
        Map<> m;
        for (double& w : m.weights) w *= scale;
        Riemannian<double> update(m.g, "map.*", {.rate = 1, .floor = floor, .divisor = Divisor::none});
        m.backward();
        const Numbers G = gradient(m.g, "map.W");
        update.step();
        double step = 0, steepest = 0;
        for (const double v : update.direction(0)) step = std::max(step, std::abs(v));
        for (const double v : G) steepest = std::max(steepest, std::abs(v));
        return step;
    };
    REQUIRE(longest(1e-6, 0) == Approx(1e6 * longest(1, 0)).epsilon(1e-6));
    REQUIRE(longest(1e-6, 1e-5) < 1e-3 * longest(1e-6, 0));
    REQUIRE(longest(1e-6, 1e-5) < 1);
}

TEMPLATE_TEST_CASE("A step to infinite weights is refused by metrics, too", "[riemannian][update][errors]",
                   float, double) {
    Map<TestType> m;
    Riemannian<TestType> update(m.g, "map.*", {.rate = double(std::numeric_limits<TestType>::max())});
    m.backward();
    const Numbers before = flat(m.g.value(m.g.weight("map.W")));
    REQUIRE_THROWS_MATCHES(update.step(), NumericError, says("'map."));
    REQUIRE(flat(m.g.value(m.g.weight("map.W"))) == before);
    update.rate(0.01);
    REQUIRE(update.step() > 0);
}
