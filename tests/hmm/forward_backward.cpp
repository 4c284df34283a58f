// Sequences side by side against the recursions of one sequence, as the textbook has them.
#include <isogloss/hmm/hmm.hpp>
#include <limits>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

// Expected counts of one sequence after the other, without products of matrices.
hmm::ExpectedCounts one_by_one(const hmm::Hmm& m, const std::vector<std::vector<Token>>& sequences) {
    const Index N = m.states(), A = m.symbols();
    hmm::ExpectedCounts sum(N, A);
    for (const auto& x : sequences) {
        const Index T = std::ssize(x);
        std::vector<Numbers> u(x.size(), Numbers(std::size_t(N))), v = u;
        Numbers c(x.size(), 1);
        const auto emission = [&](Index i, Index t) {
            const Token s = x[std::size_t(t)];
            return s < 0 ? 1.0 : m.emission()[i * A + s];
        };
        const auto at = [](std::vector<Numbers>& of, Index t, Index i) -> double& {
            return of[std::size_t(t)][std::size_t(i)];
        };
        for (Index t = 0; t < T; ++t) {
            double all = 0;
            for (Index j = 0; j < N; ++j) {
                double alpha = t == 0 ? m.initial()[j] : 0;
                for (Index i = 0; t > 0 && i < N; ++i) alpha += at(u, t - 1, i) * m.transition()[i * N + j];
                all += at(u, t, j) = alpha * emission(j, t);
            }
            for (Index j = 0; j < N; ++j) at(u, t, j) /= all;
            c[std::size_t(t)] = all;
            sum.log_likelihood() += std::log(all);
        }
        for (Index t = T - 1; t >= 0; --t)
            for (Index i = 0; i < N; ++i) {
                double& beta = at(v, t, i) = t == T - 1 ? 1 : 0;
                for (Index j = 0; t < T - 1 && j < N; ++j) {
                    const double w = emission(j, t + 1) * at(v, t + 1, j) / c[std::size_t(t + 1)];
                    beta += m.transition()[i * N + j] * w;
                    if (m.transition()[i * N + j] > 0) sum.moves()[i * N + j] += at(u, t, i) * w;
                }
                const double gamma = at(u, t, i) * beta;
                if (t == 0) sum.starts()[i] += gamma;
                if (x[std::size_t(t)] >= 0) sum.emissions()[x[std::size_t(t)] * N + i] += gamma;
            }
    }
    return sum;
}

// Lengths from 0 to 70, a few of them equal, some symbols missing.
std::vector<std::vector<Token>> ragged(Index count, Index symbols) {
    const Random random(11, 4);
    std::vector<std::vector<Token>> all;
    Index place = 0;
    for (Index k = 0; k < count; ++k) {
        const Index length = k % 9 == 4 ? 0 : k % 9 == 5 ? 1 : random.below(place++, 70);
        all.emplace_back();
        for (Index t = 0; t < length; ++t)
            all.back().push_back(static_cast<Token>(random.below(place++, symbols + 1)) - 1);
    }
    return all;
}

double largest_difference(hmm::ExpectedCounts& a, hmm::ExpectedCounts& b, const hmm::Hmm& m) {
    REQUIRE(a.numbers.size() == b.numbers.size());
    const Index N = m.states();
    for (Index k = 0; k < N * N; ++k)  // what is multiplied with 0 in the end is nobody's business
        if (m.transition()[k] == 0) a.moves()[k] = b.moves()[k] = 0;
    double most = 0;
    for (std::size_t k = 0; k < a.numbers.size(); ++k) {
        const double x = a.numbers[k], y = b.numbers[k];
        const double apart = std::abs(x - y) / std::max(1.0, std::abs(y));
        most = std::max(most, std::isnan(apart) ? 1e300 : apart);
    }
    return most;
}

}  // namespace

TEST_CASE("Sequences side by side give the counts of one by one", "[hmm][side_by_side]") {
    // budgets: one sequence at a time with checkpoints; some with checkpoints; in groups; all at once
    const Index N = GENERATE(1, 7, 20), edges = GENERATE(0, 1, 2), count = GENERATE(1, 30, 300);
    const Index rows = GENERATE(0, 300, 3000, 100000);
    const bool in_float = GENERATE(false, true);
    CAPTURE(N, edges, count, rows, in_float);
    if (edges > N) return;
    hmm::Hmm m({.states = N, .symbols = 5, .edges = edges, .budget = rows * N * 8 + 1, .in_float = in_float});
    const double counts_close = in_float ? 1e-5 : 1e-11, close = in_float ? 1e-6 : 1e-12;
    if (N > 1) {  // a state that is no start and does not emit every symbol
        Array<double> initial(N, 1 / static_cast<double>(N - 1)), emission = m.emission();
        initial[0] = 0, emission[1] += emission[0], emission[0] = 0;
        m.set(initial, m.transition(), emission);
    }
    const auto sequences = ragged(count, 5);
    auto expected = one_by_one(m, sequences), found = m.expect(sequences);
    REQUIRE(largest_difference(found, expected, m) < counts_close);
    REQUIRE(m.log_likelihood(sequences) == Approx(expected.log_likelihood()).epsilon(close));
    double total = 0;
    for (const auto& x : sequences) total += m.log_likelihood(x);
    REQUIRE(total == Approx(expected.log_likelihood()).epsilon(close));
    Numbers posteriors;
    for (const auto& x : sequences)
        for (const double p : m.posteriors(x)) posteriors.push_back(p);
    REQUIRE(apart(m.posteriors(sequences), posteriors) < counts_close);
    double positions = 0, emitted = 0;
    for (const auto& x : sequences)
        for (const Token s : x) positions += s >= 0;
    for (Index k = 0; k < 5 * N; ++k) emitted += found.emissions()[k];
    REQUIRE(emitted == Approx(positions).epsilon(counts_close));
}

TEST_CASE("A state that cannot be reached adds nothing, however well it would explain the text",
          "[hmm][side_by_side]") {
    // State 1 is never entered and would give each symbol 9 times the probability: its v_t grows to 9^2000.
    const Index budget = GENERATE(1, Index{1} << 28);
    hmm::Hmm m({.states = 2, .symbols = 2, .budget = budget, .in_float = GENERATE(false, true)});
    m.set({1, 0}, {1, 0, 0, 1}, {0.1, 0.9, 0.9, 0.1});
    const std::vector<std::vector<Token>> text = {std::vector<Token>(2000, 0)};
    REQUIRE(m.step(text) == Approx(2000 * std::log(0.1)));
    REQUIRE(m.initial() == Numbers{1, 0});
    REQUIRE(m.transition() == Numbers{1, 0, 0, 1});
    REQUIRE(m.emission()[0] == Approx(1));
    REQUIRE(m.emission()[2] == 0.9);  // nothing was counted there
}

TEST_CASE("In float, a move of probability 1e-37 is counted, one of 1e-39 is none", "[hmm][side_by_side]") {
    const bool in_float = GENERATE(false, true);
    const double p = GENERATE(1e-37, 1e-39);
    hmm::Hmm m({.states = 2, .symbols = 2, .in_float = in_float});
    m.set({1, 0}, {1, p, p, 1}, {1, 0, 0, 1});  // the symbols are the states
    const std::vector<std::vector<Token>> text(10, {0, 1, 1, 0});
    if (in_float && p < 1e-38) {
        REQUIRE_THROWS_AS(m.expect(text), NumericError);
        return;
    }
    auto counts = m.expect(text);
    REQUIRE(counts.log_likelihood() == Approx(20 * std::log(p)));
    REQUIRE(counts.moves()[1] * p == Approx(10));
    REQUIRE(counts.moves()[3] == Approx(10));
    REQUIRE(counts.emissions()[2] == Approx(0).margin(1e-9));
    REQUIRE(counts.emissions()[3] == Approx(20));
}

TEST_CASE("Counts of parts add up, and the M-step refuses those of another model", "[hmm][side_by_side]") {
    hmm::Hmm m({.states = 6, .symbols = 5, .prior = 0.1});
    const auto sequences = ragged(20, 5);
    auto all = m.expect(sequences), part = m.expect(std::span(sequences).first(7)),
         rest = m.expect(std::span(sequences).subspan(7));
    for (std::size_t k = 0; k < part.numbers.size(); ++k) part.numbers[k] += rest.numbers[k];
    REQUIRE(largest_difference(part, all, m) < 1e-12);
    const auto before = m.emission();
    REQUIRE_THROWS_AS(m.maximise(hmm::ExpectedCounts(6, 4)), UsageError);
    REQUIRE(m.emission() == before);
    hmm::Hmm other = m;
    other.step(sequences);
    m.maximise(std::move(all));
    REQUIRE(m.emission() == other.emission());
    REQUIRE(m.transition() == other.transition());
}
