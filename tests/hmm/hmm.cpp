// Hidden Markov models, against enumeration of all paths.
#include <isogloss/hmm/hmm.hpp>
#include <isogloss/io.hpp>
#include <isogloss/node/gnn.hpp>
#include <limits>

#include "allocations.hpp"
#include "catch.hpp"
#include "graphs.hpp"
#include "io/files.hpp"
#include "reference/hmm_values.hpp"

using namespace isogloss;

namespace {

// Sums over all paths of states: P(x), P(x and state i at t), and expected counts of starts, moves and emissions, all
// times P(x); and the best of the paths.
struct Paths {
    double total = 0, most = 0;
    Numbers starts, moves, emits, states;
    std::vector<Index> best;
    Paths(const hmm::Hmm& m, const std::vector<Token>& x) {
        const auto N = static_cast<std::size_t>(m.states()), A = static_cast<std::size_t>(m.symbols()),
                   T = x.size();
        starts.assign(N, 0), moves.assign(N * N, 0), emits.assign(N * A, 0), states.assign(T * N, 0);
        std::vector<std::size_t> path(T, 0);
        for (;;) {
            double p = m.initial()[path[0]];
            for (std::size_t t = 0; t < T; ++t) {
                if (x[t] >= 0) p *= m.emission()[path[t] * A + std::size_t(x[t])];
                if (t > 0) p *= m.transition()[path[t - 1] * N + path[t]];
            }
            total += p;
            starts[path[0]] += p;
            if (p > most) most = p, best.assign(path.begin(), path.end());
            for (std::size_t t = 0; t < T; ++t) {
                states[t * N + path[t]] += p;
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
    REQUIRE(apart(m.initial(), normalised(starts, 3)) < 1e-12);
    REQUIRE(apart(m.transition(), normalised(moves, 3)) < 1e-12);
    REQUIRE(apart(m.emission(), normalised(emits, 4)) < 1e-12);
}

TEST_CASE("Posteriors and the best path are those of all paths", "[hmm][path]") {
    const bool sparse = GENERATE(false, true);  // 2 of 8 transitions: few enough to be listed
    const hmm::Hmm m({.states = sparse ? 8 : 3, .symbols = 4, .edges = sparse ? 2 : 0, .seed = 5});
    const std::vector<std::vector<Token>> texts = {
        {0, 2, not_predicted, 1, 1}, {3, 2, 2, 1}, {}, {not_predicted}, {2}};
    Numbers all;
    for (const auto& x : texts) {
        if (x.empty()) continue;
        const Paths expected(m, x);
        auto posteriors = expected.states;
        for (double& p : posteriors) p /= expected.total;
        REQUIRE(apart(m.posteriors(x), posteriors) < 1e-12);
        all.insert(all.end(), posteriors.begin(), posteriors.end());
        const hmm::Path found = m.most_probable_path(x);
        REQUIRE(found.states == expected.best);
        REQUIRE(found.log_probability == Approx(std::log(expected.most)).epsilon(1e-12));
    }
    REQUIRE(apart(m.posteriors(texts), all) < 1e-12);
    REQUIRE(m.posteriors(std::vector<Token>{}).empty());
    REQUIRE(m.posteriors(std::vector<std::vector<Token>>{}).empty());
    REQUIRE(m.most_probable_path({}).states.empty());
    REQUIRE(m.most_probable_path({}).log_probability == 0);
}

TEST_CASE("Posteriors and the best path are those that NumPy computes", "[hmm][path]") {
    namespace theirs = reference::hmm;
    hmm::Hmm m({.states = 3, .symbols = 4});
    m.set({std::begin(theirs::initial), std::end(theirs::initial)},
          {std::begin(theirs::transition), std::end(theirs::transition)},
          {std::begin(theirs::emission), std::end(theirs::emission)});
    REQUIRE(m.log_likelihood(theirs::x) == Approx(theirs::log_likelihood).epsilon(1e-13));
    REQUIRE(apart(m.posteriors(theirs::x), theirs::posteriors) < 1e-13);
    const hmm::Path path = m.most_probable_path(theirs::x);
    REQUIRE(std::ranges::equal(path.states, theirs::path));
    REQUIRE(path.log_probability == Approx(theirs::log_probability).epsilon(1e-13));
}

TEST_CASE("A path that was unlikely for a long time can be the best in the end", "[hmm][path]") {
    // Both states last for ever. State 1 is 9 times less likely at every symbol 0, and alone emits symbol 2.
    hmm::Hmm m({.states = 2, .symbols = 3});
    m.set({0.5, 0.5}, {1, 0, 0, 1}, {0.9, 0.1, 0, 0.1, 0.4, 0.5});
    std::vector<Token> x(2000, 0);
    REQUIRE(m.most_probable_path(x).states == std::vector<Index>(2000, 0));
    x.push_back(2);
    const hmm::Path path = m.most_probable_path(x);
    REQUIRE(path.states == std::vector<Index>(2001, 1));
    REQUIRE(path.log_probability == Approx(2 * std::log(0.5) + 2000 * std::log(0.1)));
}

TEST_CASE("Sequences may be parts of one array of tokens", "[hmm]") {
    const std::vector<Token> tokens = {0, 2, not_predicted, 1, 1, 0, 3, 2, 2, 1};
    const std::vector<std::span<const Token>> parts = {std::span(tokens).first(6),
                                                       std::span(tokens).subspan(6)};
    const Index edges = GENERATE(0, 2);
    hmm::Hmm m({.states = 8, .symbols = 4, .edges = edges}), other = m;
    REQUIRE(m.log_likelihood(parts) == m.log_likelihood(two));
    REQUIRE(m.posteriors(std::span(parts)) == m.posteriors(two));
    REQUIRE(m.expect(parts).numbers == m.expect(two).numbers);
    REQUIRE(m.step(parts) == other.step(two));
    REQUIRE(m.transition() == other.transition());
    const hmm::Sequences all(parts), none;
    REQUIRE(none.size() == 0);
    REQUIRE(all.part(1, 2).size() == 1);
    REQUIRE(all.part(1, 2)[0].data() == tokens.data() + 6);
    REQUIRE(all.part(1, 2).number(0) == 1);
}

TEST_CASE("A row of emissions without data is that of the prior, and stays without one", "[hmm]") {
    const double prior = GENERATE(0.0, 0.5);
    hmm::Hmm m({.states = 2, .symbols = 4, .prior = prior});
    m.set({1, 0}, {1, 0, 0.5, 0.5}, m.emission());  // state 1 is never entered
    Numbers expected = m.emission();
    const double counts[] = {2, 3, 3, 1};
    for (std::size_t s = 0; s < 4; ++s) {
        expected[s] = (counts[s] + prior) / (9 + 4 * prior);
        if (prior > 0) expected[4 + s] = 0.25;
    }
    m.step(two);
    REQUIRE(m.transition() == Numbers{1, 0, 0.5, 0.5});
    REQUIRE(apart(m.emission(), expected) < 1e-14);
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
            alive += thin.transition()[12 * i + j] > 0, sum += thin.transition()[12 * i + j];
        REQUIRE(alive <= 2);
        REQUIRE(sum == Approx(1));
    }
}

TEST_CASE("Baum-Welch climbs, and finds a source that it can hold", "[hmm]") {
    // two states that alternate almost always, each with a symbol of its own most of the time
    hmm::Hmm truth({.states = 2, .symbols = 2});
    truth.set({1, 0}, {0.1, 0.9, 0.9, 0.1}, {0.95, 0.05, 0.05, 0.95});
    const std::vector<std::vector<Token>> x = {truth.sample(4000, Random(1, 1)).symbols};
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
    m.set({0.5, 0.5}, {0.9, 0.1, 0.2, 0.8}, {1, 1e-310, 1, 3e-310});  // 1 / p is above the range of a double
    std::vector<double> after;
    m.predict(std::vector<Token>{1, 0}, [&](Index t, std::span<const double> p) {
        if (t == 1) after.assign(p.begin(), p.end());
    });
    // The states are in the ratio 1 : 3 once symbol 1 is seen.
    CHECK(after[0] == Approx(1));
    CHECK(after[1] / 1e-310 ==
          Approx((0.25 * 0.9 + 0.75 * 0.2) + 3 * (0.25 * 0.1 + 0.75 * 0.8)).epsilon(1e-3));
}

TEST_CASE("To the predictions after it a symbol of probability 0 is a missing one", "[hmm]") {
    hmm::Hmm m({.states = 2, .symbols = 3});
    m.set({0.5, 0.5}, {0.9, 0.1, 0.2, 0.8}, {0.5, 0.5, 0, 0.25, 0.75, 0});
    const auto predictions = [&](Token second) {
        Numbers all;
        m.predict(std::vector<Token>{1, second, 0, 1},
                  [&](Index, std::span<const double> p) { all.insert(all.end(), p.begin(), p.end()); });
        return all;
    };
    REQUIRE(predictions(2) == predictions(not_predicted));
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
                    m.emission()[std::size_t(i * A + s)] * m.transition()[std::size_t(i * N + j)];
            }
    set(g, "net.start", m.initial());
    const std::vector<Token> text = m.sample(T, Random(2, 2)).symbols;
    g.forward(a, {x, {text.data(), T, 1}});
    const auto activity = g.value(a);
    m.predict(text, [&](Index t, std::span<const double> p) {
        double sum = 0;
        Numbers out(A, 0);
        for (Index i = 0; i < N; ++i) {
            const double v =
                t == 0 ? m.initial()[std::size_t(i)] : activity(std::size_t(t) - 1, std::size_t(i));
            sum += v;
            for (Index s = 0; s < A; ++s) out[std::size_t(s)] += v * m.emission()[std::size_t(i * A + s)];
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
        const Numbers& rows = n == N ? m.transition() : m.emission();
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
    for (const double v : m.initial()) REQUIRE(v == 1.0 / N);
    const hmm::Hmm other({.states = N, .symbols = A, .seed = 7});
    REQUIRE(apart(m.emission(), other.emission()) > 0.05);
}

TEST_CASE("A hidden Markov model goes on from a file with the same bits", "[hmm]") {
    const TemporaryDirectory folder;
    const Index edges = GENERATE(0, 2);  // of 9: few enough to be listed one by one
    hmm::Hmm whole({.states = 9, .symbols = 4, .edges = edges, .seed = 3}),
        other({.states = 9, .symbols = 4, .edges = edges, .seed = 4});
    const std::vector<std::vector<Token>> text = {whole.sample(200, Random(5, 5)).symbols,
                                                  {0, 1, 2, 3, 3, 2, 1, 0}};
    whole.step(text);
    io::Checkpoint().state("hmm", whole).save(folder / "hmm.safetensors");
    io::Checkpoint().state("hmm", other).load(io::Safetensors::open(folder / "hmm.safetensors"));
    for (int k = 0; k < 3; ++k) REQUIRE(other.step(text) == whole.step(text));
    REQUIRE(other.transition() == whole.transition());
    REQUIRE(other.emission() == whole.emission());
    REQUIRE(other.initial() == whole.initial());
}

TEST_CASE("Texts without a symbol change nothing, not even with a prior", "[hmm]") {
    const double prior = GENERATE(0.0, 0.5);
    hmm::Hmm m({.states = 3, .symbols = 4, .prior = prior});
    const hmm::Hmm before = m;
    using Texts = std::vector<std::vector<Token>>;
    for (const Texts& none : {Texts{}, Texts{{}, {}}}) {
        REQUIRE(m.step(none) == 0);
        REQUIRE(m.initial() == before.initial());
        REQUIRE(m.transition() == before.transition());
        REQUIRE(m.emission() == before.emission());
    }
    m.step(two);
    REQUIRE(m.emission() != before.emission());
}

TEST_CASE("Posteriors sum to 1 where a symbol has hardly any probability", "[hmm]") {
    hmm::Hmm m({.states = 2, .symbols = 3});
    m.set({0.5, 0.5}, {1, 0, 0, 1}, {0.1, 1e-307, 0.9, 0.91, 1e-307, 0.09});
    const Numbers gamma = m.posteriors(std::vector<Token>{1, 1, 2});
    for (std::size_t t = 0; t < 3; ++t) {  // the state does not change, and the last symbol tells which
        REQUIRE(gamma[2 * t] == Approx(10. / 11));
        REQUIRE(gamma[2 * t + 1] == Approx(1. / 11));
    }
}

TEST_CASE("A model that is set is the one that was given, its zeros included", "[hmm]") {
    hmm::Hmm m({.states = 8, .symbols = 2, .edges = 2});  // few enough to be listed
    const std::vector<Token> x(10, 0);
    m.set(m.initial(), Array<double>(64, 1. / 8), Array<double>(16, 0.5));
    REQUIRE(m.log_likelihood(x) == Approx(10 * std::log(0.5)));
    Array<double> cycle(64, 0);
    for (Index i = 0; i < 8; ++i) cycle[i * 8 + (i + 1) % 8] = 1;
    m.set(m.initial(), cycle, m.emission());
    const auto path = m.most_probable_path(x);
    for (std::size_t t = 1; t < 10; ++t) REQUIRE(path.states[t] == (path.states[t - 1] + 1) % 8);
}

TEST_CASE("A start whose states stay finds regions that random transitions miss", "[hmm]") {
    // Two kinds of region, of 50 bases on average, one with more of C and G.
    hmm::Hmm truth({.states = 2, .symbols = 4});
    truth.set({0.5, 0.5}, {0.98, 0.02, 0.02, 0.98}, {0.35, 0.15, 0.15, 0.35, 0.15, 0.35, 0.35, 0.15});
    std::vector<std::vector<Token>> texts;
    std::vector<Index> states;
    for (std::uint32_t k = 0; k < 20; ++k) {
        const hmm::Sample text = truth.sample(500, Random(9, k));
        texts.push_back(text.symbols);
        states.insert(states.end(), text.states.begin(), text.states.end());
    }
    for (const double stay : {0.0, 0.95}) {
        hmm::Hmm m({.states = 2, .symbols = 4, .stay = stay});
        for (Index i = 0; i < 2; ++i) REQUIRE(m.transition()[3 * i] >= stay);
        for (int k = 0; k < 50; ++k) m.step(texts);
        const auto gamma = m.posteriors(texts);
        double right = 0;
        for (std::size_t t = 0; t < states.size(); ++t)
            right += (gamma[2 * t + 1] > 0.5) == (states[t] == 1) ? 1. / double(states.size()) : 0;
        CAPTURE(stay, right);
        REQUIRE(std::max(right, 1 - right) > (stay > 0 ? 0.8 : 0.4));
        REQUIRE((m.log_likelihood(texts) > truth.log_likelihood(texts)) == (stay > 0));
    }
}

TEST_CASE("The states of a sample are those that emitted it", "[hmm]") {
    hmm::Hmm m({.states = 3, .symbols = 3});
    m.set({0, 1, 0}, {0, 0.25, 0.75, 1, 0, 0, 0, 1, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1});  // symbols are states
    const hmm::Sample text = m.sample(4000, Random(2, 1));
    REQUIRE(std::ranges::equal(text.symbols, text.states));
    REQUIRE(text.states[0] == 1);
    double moves = 0, to_two = 0;
    for (std::size_t t = 1; t < text.states.size(); ++t) {
        REQUIRE(m.transition()[text.states[t - 1] * 3 + text.states[t]] > 0);
        if (text.states[t - 1] == 0) moves += 1, to_two += text.states[t] == 2;
    }
    REQUIRE(to_two / moves == Approx(0.75).margin(0.05));
}
