// Hidden Markov models, against enumeration of all paths.
#include <isogloss/hmm/hmm.hpp>
#include <isogloss/io.hpp>
#include <isogloss/node/gnn.hpp>
#include <limits>

#include "catch.hpp"
#include "graphs.hpp"
#include "io/files.hpp"

using namespace isogloss;

namespace {

// Sums over all paths of states: P(x), and expected counts of starts, moves and emissions given x.
struct Paths {
    double total = 0;
    Numbers starts, moves, emits;
    Paths(const hmm::Hmm& m, const std::vector<Token>& x) {
        const auto N = static_cast<std::size_t>(m.states()), A = static_cast<std::size_t>(m.symbols()),
                   T = x.size();
        starts.assign(N, 0), moves.assign(N * N, 0), emits.assign(N * A, 0);
        std::vector<std::size_t> path(T, 0);
        for (;;) {
            double p = m.initial[path[0]];
            for (std::size_t t = 0; t < T; ++t) {
                if (x[t] >= 0) p *= m.emission[path[t] * A + std::size_t(x[t])];
                if (t > 0) p *= m.transition[path[t - 1] * N + path[t]];
            }
            total += p;
            starts[path[0]] += p;
            for (std::size_t t = 0; t < T; ++t) {
                if (x[t] >= 0) emits[path[t] * A + std::size_t(x[t])] += p;
                if (t > 0) moves[path[t - 1] * N + path[t]] += p;
            }
            std::size_t t = 0;
            while (t < T && ++path[t] == N) path[t++] = 0;
            if (t == T) break;
        }
    }
};

Numbers normalised(Numbers counts, std::size_t width) {
    for (std::size_t r = 0; r < counts.size(); r += width) {
        double sum = 0;
        for (std::size_t k = r; k < r + width; ++k) sum += counts[k];
        for (std::size_t k = r; k < r + width; ++k) counts[k] /= sum;
    }
    return counts;
}

const std::vector<std::vector<Token>> two = {{0, 2, not_predicted, 1, 1, 0}, {3, 2, 2, 1}};

}  // namespace

TEST_CASE("A step of Baum-Welch takes the expected counts over all paths", "[hmm]") {
    const Index edges = GENERATE(0, 2);
    hmm::Hmm m({.states = 3, .symbols = 4, .edges = edges, .prior = 0.5});
    const Paths a(m, two[0]), b(m, two[1]);
    Numbers starts, moves, emits;
    for (std::size_t k = 0; k < a.starts.size(); ++k)
        starts.push_back(a.starts[k] / a.total + b.starts[k] / b.total);
    for (std::size_t k = 0; k < a.moves.size(); ++k)
        moves.push_back(a.moves[k] / a.total + b.moves[k] / b.total);
    for (std::size_t k = 0; k < a.emits.size(); ++k)
        emits.push_back(0.5 + a.emits[k] / a.total + b.emits[k] / b.total);
    REQUIRE(m.log_likelihood(two[0]) == Approx(std::log(a.total)).epsilon(1e-12));
    REQUIRE(m.step(two) == Approx(std::log(a.total) + std::log(b.total)).epsilon(1e-12));
    REQUIRE(apart(m.initial, normalised(starts, 3)) < 1e-12);
    REQUIRE(apart(m.transition, normalised(moves, 3)) < 1e-12);
    REQUIRE(apart(m.emission, normalised(emits, 4)) < 1e-12);
}

TEST_CASE("Thin transitions stay thin", "[hmm]") {
    hmm::Hmm thin({.states = 12, .symbols = 3, .edges = 2});
    std::vector<std::vector<Token>> x(1);
    const Random random(3, 3);
    for (Index t = 0; t < 300; ++t) x[0].push_back(static_cast<Token>(random.below(t, 3)));
    double before = -1e300;
    for (int k = 0; k < 30; ++k) {
        const double now = thin.step(x);
        REQUIRE(now >= before - 1e-9);
        before = now;
    }
    for (std::size_t i = 0; i < 12; ++i) {
        int alive = 0;
        double sum = 0;
        for (std::size_t j = 0; j < 12; ++j)
            alive += thin.transition[12 * i + j] > 0, sum += thin.transition[12 * i + j];
        REQUIRE(alive <= 2);
        REQUIRE(sum == Approx(1));
    }
}

TEST_CASE("Baum-Welch climbs, and finds a source that it can hold", "[hmm]") {
    // two states that alternate almost always, each with a symbol of its own most of the time
    hmm::Hmm truth({.states = 2, .symbols = 2});
    truth.initial = {1, 0}, truth.transition = {0.1, 0.9, 0.9, 0.1},
    truth.emission = {0.95, 0.05, 0.05, 0.95};
    const std::vector<std::vector<Token>> x = {truth.sample(4000, Random(1, 1))};
    hmm::Hmm model({.states = 2, .symbols = 2, .seed = 4});
    double before = -1e300;
    for (int k = 0; k < 60; ++k) {
        const double now = model.step(x);
        REQUIRE(now >= before - 1e-9);
        before = now;
    }
    REQUIRE(before >= truth.log_likelihood(x[0]) - 1);
    REQUIRE(before < truth.log_likelihood(x[0]) + 12);
}

TEST_CASE("A symbol of hardly any probability leaves the predictions after it finite", "[hmm]") {
    hmm::Hmm m({.states = 2, .symbols = 2, .seed = 7});
    m.initial = {0.5, 0.5};
    m.transition = {0.9, 0.1, 0.2, 0.8};
    m.emission = {1, 1e-310, 1, 3e-310};  // 1 / p is above the range of a double
    std::vector<double> after;
    m.predict(std::vector<Token>{1, 0}, [&](Index t, std::span<const double> p) {
        if (t == 1) after.assign(p.begin(), p.end());
    });
    // The states are in the ratio 1 : 3 once symbol 1 is seen.
    CHECK(after[0] == Approx(1));
    CHECK(after[1] / 1e-310 ==
          Approx((0.25 * 0.9 + 0.75 * 0.2) + 3 * (0.25 * 0.1 + 0.75 * 0.8)).epsilon(1e-3));
}

TEST_CASE("A hidden Markov model is a linear gated network", "[hmm][edges]") {
    // τ_ijx = E_ix P_ij, no always-on unit, s = identity, start = init: a_i = P(x_0 … x_{t-1}, state i at t)
    constexpr Index N = 4, A = 3, T = 12;
    hmm::Hmm m({.states = N, .symbols = A, .seed = 7});
    Graph<double> g({.time = T, .batch = 1});
    const auto x = g.tokens("x", A);
    const auto a = g.add<Gnn>("net", {.units = N, .edges = N, .activation = Activation::identity}, x);
    auto& tau = g.parameter("net.tau");
    const auto& e = edge_record(g).edges;
    std::fill_n(tau.value, tau.size(), 0.0);
    for (Index s = 0; s < A; ++s)
        for (Index j = 0; j < N; ++j)
            for (Index k = e.first[j]; k < e.first[j + 1]; ++k) {
                const Index i = e.from[k];
                tau.value[s * (N + N * N) + N + k] =
                    m.emission[std::size_t(i * A + s)] * m.transition[std::size_t(i * N + j)];
            }
    set(g, "net.start", m.initial);
    const std::vector<Token> text = m.sample(T, Random(2, 2));
    g.forward(a, {x, {text.data(), T, 1}});
    const auto activity = g.value(a);
    m.predict(text, [&](Index t, std::span<const double> p) {
        double sum = 0;
        Numbers out(A, 0);
        for (Index i = 0; i < N; ++i) {
            const double v =
                t == 0 ? m.initial[std::size_t(i)] : activity(std::size_t(t) - 1, std::size_t(i));
            sum += v;
            for (Index s = 0; s < A; ++s) out[std::size_t(s)] += v * m.emission[std::size_t(i * A + s)];
        }
        for (double& v : out) v /= sum;
        REQUIRE(apart(out, std::vector<double>(p.begin(), p.end())) < 1e-12);
    });
    double sequence = 0;
    for (std::size_t i = 0; i < N; ++i) sequence += activity(T - 1, i);
    REQUIRE(std::log(sequence) == Approx(m.log_likelihood(text)).epsilon(1e-12));
}

TEST_CASE("The rows of a start are drawn from the flat Dirichlet distribution", "[hmm]") {
    // A row p of n numbers has mean 1/n, E p² = 2 / (n (n + 1)), and P(p > x) = (1 - x)^(n-1) in each of them.
    constexpr Index N = 40, A = 25;
    const hmm::Hmm m({.states = N, .symbols = A, .seed = 6});
    for (const Index n : {N, A}) {
        const Numbers& rows = n == N ? m.transition : m.emission;
        Numbers mean(std::size_t(n), 0);
        double square = 0, above = 0;
        for (Index i = 0; i < N; ++i) {
            const auto row = std::span(rows).subspan(std::size_t(i * n), std::size_t(n));
            double sum = 0;
            for (std::size_t j = 0; j < row.size(); ++j) {
                sum += row[j], mean[j] += row[j] / N, square += row[j] * row[j] / double(N * n);
                above += row[j] > 2.0 / double(n) ? 1.0 / double(N * n) : 0.0;
            }
            REQUIRE(sum == Approx(1));
            REQUIRE(*std::max_element(row.begin(), row.end()) >
                    2 * *std::min_element(row.begin(), row.end()));
        }
        for (const double v : mean)
            REQUIRE(v == Approx(1.0 / double(n)).epsilon(0.6));  // 4 deviations of 40 rows
        REQUIRE(square == Approx(2.0 / double(n * (n + 1))).epsilon(0.15));
        REQUIRE(above == Approx(std::pow(1 - 2.0 / double(n), double(n - 1))).epsilon(0.2));
    }
    for (const double v : m.initial) REQUIRE(v == 1.0 / N);
    const hmm::Hmm other({.states = N, .symbols = A, .seed = 7});
    REQUIRE(apart(m.emission, other.emission) > 0.05);
}

TEST_CASE("A hidden Markov model goes on from a file with the same bits", "[hmm]") {
    const TemporaryDirectory folder;
    const Index edges = GENERATE(0, 2);  // of 9: few enough to be listed one by one
    hmm::Hmm whole({.states = 9, .symbols = 4, .edges = edges, .seed = 3}),
        other({.states = 9, .symbols = 4, .edges = edges, .seed = 4});
    const std::vector<std::vector<Token>> text = {whole.sample(200, Random(5, 5)), {0, 1, 2, 3, 3, 2, 1, 0}};
    whole.step(text);
    io::Checkpoint().state("hmm", whole).save(folder / "hmm.safetensors");
    io::Checkpoint().state("hmm", other).load(io::Safetensors::open(folder / "hmm.safetensors"));
    for (int k = 0; k < 3; ++k) REQUIRE(other.step(text) == whole.step(text));
    REQUIRE(other.transition == whole.transition);
    REQUIRE(other.emission == whole.emission);
    REQUIRE(other.initial == whole.initial);
}

TEST_CASE("Texts without a symbol change nothing, not even with a prior", "[hmm]") {
    const double prior = GENERATE(0.0, 0.5);
    hmm::Hmm m({.states = 3, .symbols = 4, .prior = prior});
    const hmm::Hmm before = m;
    using Texts = std::vector<std::vector<Token>>;
    for (const Texts& none : {Texts{}, Texts{{}, {}}}) {
        REQUIRE(m.step(none) == 0);
        REQUIRE(m.initial == before.initial);
        REQUIRE(m.transition == before.transition);
        REQUIRE(m.emission == before.emission);
    }
    m.step(two);
    REQUIRE(m.emission != before.emission);
}

TEST_CASE("A prior of any size that is accepted leaves rows of sum 1", "[hmm]") {
    REQUIRE_THROWS_MATCHES(hmm::Hmm({.states = 2, .symbols = 4, .prior = 1e308}), UsageError,
                           says("prior = 1e+308", "0 to 1e+100"));
    hmm::Hmm m({.states = 2, .symbols = 4, .prior = 1e100});
    REQUIRE(std::isfinite(m.step(two)));
    for (const double e : m.emission) REQUIRE(e == Approx(0.25));
    REQUIRE(m.step(two) == Approx(9 * std::log(0.25)));
}

TEST_CASE("Transitions that were 0 count once they are listed", "[hmm]") {
    hmm::Hmm m({.states = 8, .symbols = 2, .edges = 2});  // few enough to be listed
    m.transition.assign(64, 1. / 8);
    m.emission.assign(16, 0.5);
    m.list_edges();
    const std::vector<Token> x(10, 0);
    REQUIRE(m.log_likelihood(x) == Approx(10 * std::log(0.5)));
    REQUIRE(m.log_likelihood(std::vector<std::vector<Token>>{x}) == Approx(10 * std::log(0.5)));
}

TEST_CASE("A model with numbers that are not finite is named as the cause", "[hmm][errors]") {
    const double bad =
        GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
    const int matrix = GENERATE(0, 1, 2);
    CAPTURE(bad, matrix);
    hmm::Hmm m({.states = 2, .symbols = 3});
    (matrix == 0 ? m.initial : matrix == 1 ? m.transition : m.emission)[0] = bad;
    const std::vector<Token> x = {0, 0, not_predicted, 0};
    const auto cause = says("hmm: symbol 0 at position", "init, P or E contain numbers that are not finite");
    REQUIRE_THROWS_MATCHES(m.log_likelihood(x), NumericError, cause);
    const std::vector<std::vector<Token>> many = {x, x};
    REQUIRE_THROWS_MATCHES(m.log_likelihood(many), NumericError, cause);
    const auto emission = m.emission;
    REQUIRE_THROWS_MATCHES(m.step(many), NumericError, cause);
    REQUIRE(std::equal(emission.begin() + 1, emission.end(), m.emission.begin() + 1));
    bool finite = true;
    const auto predict = [&] {
        m.predict(x, [&](Index, std::span<const double> p) {
            for (const double v : p) finite = finite && std::isfinite(v);
        });
    };
    REQUIRE_THROWS_MATCHES(predict(), NumericError, cause);
    REQUIRE(finite);
}

TEST_CASE("Hidden Markov models refuse what they cannot be or read", "[hmm]") {
    REQUIRE_THROWS_MATCHES(hmm::Hmm({.states = 0, .symbols = 3}), UsageError, says("states = 0"));
    REQUIRE_THROWS_MATCHES(hmm::Hmm({.states = 2, .symbols = 3, .edges = 3}), UsageError, says("edges = 3"));
    hmm::Hmm m({.states = 2, .symbols = 3});
    const std::vector<std::vector<Token>> wrong = {{0, 1}, {0, 3}};
    const auto before = m.emission;
    REQUIRE_THROWS_MATCHES(m.step(wrong), DataError, says("symbol 3 at position 1", "0 to 2"));
    REQUIRE(m.emission == before);
    m.emission = {0.5, 0.5, 0, 0.5, 0.5, 0};
    const std::vector<Token> impossible = {0, 2};
    REQUIRE_THROWS_MATCHES(m.log_likelihood(impossible), NumericError,
                           says("symbol 2 at position 1", "probability 0"));
    REQUIRE_THROWS_MATCHES(m.step(std::vector<std::vector<Token>>{impossible}), NumericError,
                           says("prior above 0"));
    hmm::Hmm single({.states = 1, .symbols = 1});
    REQUIRE(single.step(std::vector<std::vector<Token>>{{0}, {}, {0, 0, 0}}) == Approx(0));
    REQUIRE(single.log_likelihood(std::vector<Token>{0, 0}) == Approx(0));
}
