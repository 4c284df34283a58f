/// @file hmm/hmm.hpp  Hidden Markov models with discrete symbols: Baum-Welch, scoring, prediction, sampling.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/hmm/forward_backward.hpp>
#include <isogloss/random.hpp>
#include <isogloss/sizes.hpp>
#include <span>
#include <utility>
#include <vector>

/// Hidden Markov models.
namespace isogloss::inline ISOGLOSS_CONFIGURATION::hmm {

/// Options of Hmm.
struct Options {
    Index states = 0;   ///< N ≥ 1
    Index symbols = 0;  ///< A ≥ 1
    Index edges =
        0;  ///< transitions out of a state, its self-transition included, chosen at random; 0: all N
    double prior =
        0;  ///< count, 0 to 1e100, added to every emission before the data; keeps unseen ones above 0
    std::uint64_t seed = 1;  ///< of the random start
    Index budget =
        Index{1} << 28;  ///< bytes ≥ 1 for the forward and backward probabilities of stacked sequences
};

/// A hidden Markov model. A state emits a symbol, then moves:
///
///     P(i starts) = init_i,   P(i → j) = P_ij,   P(x | i) = E_ix
///     α_t(i) = P(state i at t | x_0 … x_{t-1}),   c_t = Σ_i α_t(i) E_{i x_t} = P(x_t | x_0 … x_{t-1})
///     u_t(i) = α_t(i) E_{i x_t} / c_t,            α_{t+1} = u_t P,                 log P(x) = Σ log c_t
///     v_t(i) = Σ_j P_ij E_{j x_{t+1}} v_{t+1}(j) / c_{t+1},   v_{T-1} = 1
///
/// A step of Baum-Welch sets init, P and E to the normalised expected counts
///
///     init_i ∝ Σ γ_0(i),   E_ix ∝ prior + Σ_{t: x_t = x} γ_t(i),   γ_t(i) = u_t(i) v_t(i)
///     P_ij ∝ Σ_t u_t(i) P_ij E_{j x_{t+1}} v_{t+1}(j) / c_{t+1}
///
/// summed over sequences. The likelihood never decreases (with a prior: likelihood times prior). A symbol of
/// not_predicted is missing: it is not counted and its position is skipped. Transitions that are 0 stay 0 and,
/// if `edges` makes them sparse, cost nothing. Everything is rescaled at each step, so that sequences may
/// have any length.
///
/// A step processes up to 256 sequences at a time, so that its work is matrix products: cut a long text into
/// sequences, of a sentence or some hundred symbols each. A single one of any length works too, by matrix-vector
/// products. Each sequence starts from `init`, which is the only effect of the cuts.
///
/// Cost     6 N² operations per position, 8 N² if the budget does not hold all positions at once; on threads()
/// Memory   of a step, without the model, in numbers of 8 bytes: 2 N (N + A) for transposes and counts, and
///          `budget` bytes, and one for each symbol and time of the sequences side by side (see ForwardBackward);
///          N = 2,000, A = 10,000: 0.65 GB, and the model 0.2 GB.
///          distributed/baum_welch.hpp distributes a step over ranks.
/// Source   Rabiner 1989, "A tutorial on hidden Markov models", sections III and V.A.
class Hmm {
public:
    /// Random start: each row of P and E is drawn from the flat Dirichlet distribution, init is uniform. (Rows
    /// that differ little start near the point where all states are alike, a saddle that EM leaves late or never.)
    /// Throws UsageError for options out of range.
    explicit Hmm(Options options) : options_(options) {
        const Index N = options.states, A = options.symbols;
        require("hmm", "states", N, 1);
        require("hmm", "symbols", A, 1);
        require("hmm", "edges", options.edges, 0, N);
        require("hmm", "prior", options.prior, 0, 1e100);  // Σ over symbols stays finite
        require("hmm", "budget", options.budget, 1);
        const Index most = bytes_of("hmm", {N, std::max(N, A), 3}, sizeof(double));
        within_memory("hmm", most, [&] { transition.reserve(N * N), emission.reserve(N * A); });
        const Random random(options.seed, stream_of("hmm"));
        Index place = 0;
        initial.assign(N, 1 / static_cast<double>(N));
        // Exponential variates, normalised.
        for (Index i = 0; i < N * N; ++i) transition.push_back(-std::log(random.uniform(place++)));
        for (Index i = 0; i < N * A; ++i) emission.push_back(-std::log(random.uniform(place++)));
        if (options.edges > 0)
            for (Index i = 0; i < N; ++i)
                for (Index left = N; left > options.edges;) {  // removes transitions to other states
                    const Index j = random.below(place++, N);
                    double& p = transition[i * N + j];
                    if (j == i || p == 0) continue;
                    p = 0;
                    --left;
                }
        normalise(transition, N);
        normalise(emission, A);
        list_edges();
    }

    Array<double> initial, transition, emission;  ///< init [N], P [N, N], E [N, A]; rows sum to 1

    Index states() const { return options_.states; }
    Index symbols() const { return options_.symbols; }

    /// Call after writing to `transition`. Where a 0 has become positive it must be called: if at most a quarter of the
    /// transitions were above 0, as with `edges`, all functions except sample() use those alone, and the new ones
    /// would count as 0. New zeros cost nothing from then on.
    void list_edges() {
        const Index N = options_.states;
        first_.assign(1, 0), to_.clear();
        for (Index i = 0; i < N; ++i) {
            for (Index j = 0; j < N; ++j)
                if (transition[i * N + j] > 0) to_.push_back(j);
            first_.push_back(std::ssize(to_));
        }
    }

    /// One step of Baum-Welch on all sequences; returns Σ log P(sequence) in nats before it. Without a symbol, missing
    /// or not, in any of them nothing is changed. Throws DataError for a symbol out of range and NumericError for a
    /// sequence of probability 0 under the model or a model that is not finite; the model is then unchanged.
    double step(std::span<const std::vector<Token>> sequences) {
        ExpectedCounts counts = expect(sequences);
        const double before = counts.log_likelihood();
        maximise(std::move(counts));
        return before;
    }

    /// The E-step: expected counts given sequences, without the prior. Those of several sets of sequences add up.
    /// Throws as step().
    ExpectedCounts expect(std::span<const std::vector<Token>> sequences) const {
        ExpectedCounts counts(states(), symbols());
        ForwardBackward(view(), options_.budget).add(sequences, counts);
        return counts;
    }

    /// The M-step: init, P and E become the normalised counts. A row without counts is unchanged. Counts that are all
    /// 0, as those of no sequence, change nothing, not even with a prior. Throws UsageError for counts of a model of
    /// another size.
    void maximise(ExpectedCounts counts) {
        const Index N = states(), A = symbols();
        counts.require_size(N, A);
        if (std::all_of(counts.numbers.begin(), counts.numbers.end() - 1, [](double n) { return n == 0; }))
            return;  // those of no sequence: the prior alone is no data
        settle(initial, counts.starts(), N);
        double* const moves = counts.moves();
        for (Index k = 0; k < N * N; ++k) moves[k] *= transition[k];
        settle(transition, moves, N);
        const double* const emits = counts.emissions();
        Array<double> sums(N, static_cast<double>(A) * options_.prior);
        for (Index x = 0; x < A; ++x)
            for (Index i = 0; i < N; ++i) sums[i] += emits[x * N + i];
        for (Index i = 0; i < N; ++i)
            for (Index x = 0; sums[i] > 0 && x < A; ++x)
                emission[i * A + x] = (options_.prior + emits[x * N + i]) / sums[i];
    }

    /// log P(x) in nats. Throws as step().
    double log_likelihood(ArrayView<const Token> x) const {
        const Index N = states(), A = symbols();
        Array<double> alpha = initial, next(N);
        double total = 0;
        for (Index t = 0; t < std::ssize(x); ++t) {
            check(x[t], t);
            if (const Token s = x[t]; s >= 0) {
                double c = 0;
                for (Index i = 0; i < N; ++i) c += alpha[i] *= emission[i * A + s];
                if (!(c > 0 && std::isfinite(c))) refuse_probability(c, s, message("at position ", t));
                for (Index i = 0; i < N; ++i) alpha[i] /= c;
                total += std::log(c);
            }
            move(alpha.data(), next.data());
            std::swap(alpha, next);
        }
        return total;
    }

    /// Σ log P(sequence) in nats, many sequences at a time. Throws as step().
    double log_likelihood(std::span<const std::vector<Token>> sequences) const {
        return ForwardBackward(view(), options_.budget).log_likelihood(sequences);
    }

    /// Calls f(t, p) for every position with p [A] = P(x_t = · | x_0 … x_{t-1}). A symbol of probability 0 is
    /// treated as missing. Throws DataError for a symbol out of range and NumericError for a model that is not finite,
    /// before the call for this position.
    template <class F> void predict(ArrayView<const Token> x, F&& f) const {
        const Index N = options_.states, A = options_.symbols;
        Array<double> alpha = initial, next(N), p(A);
        for (Index t = 0; t < std::ssize(x); ++t) {
            check(x[t], t);
            std::fill(p.begin(), p.end(), 0.0);
            for (Index i = 0; i < N; ++i)
                for (Index s = 0; s < A; ++s) p[s] += alpha[i] * emission[i * A + s];
            for (Index s = 0; s < A; ++s)
                if (!std::isfinite(p[s]))
                    refuse_probability(p[s], static_cast<Token>(s), message("at position ", t));
            f(t, ArrayView<const double>(p));
            if (const Token s = x[t]; s >= 0 && p[s] > 0)  // 1 / p may exceed the range, α e / p does not
                for (Index i = 0; i < N; ++i) alpha[i] = alpha[i] * emission[i * A + s] / p[s];
            move(alpha.data(), next.data());
            std::swap(alpha, next);
        }
    }

    /// Samples a text of n symbols, n ≥ 0. Throws UsageError if there is not enough memory.
    std::vector<Token> sample(Index n, const Random& random) const {
        const Index N = options_.states, A = options_.symbols;
        Index place = 0;
        const auto draw = [&](const std::vector<double>& p, Index row, Index width) {
            return isogloss::sample(std::span(p.data() + row * width, std::size_t(width)),
                                    random.uniform(place++));
        };
        Array<Token> x;
        within_memory("hmm: a text", bytes_of("hmm: a text", {n}, sizeof(Token)), [&] { x.reserve(n); });
        if (n == 0) return x;
        for (Index i = draw(initial, 0, N); std::ssize(x) < n; i = draw(transition, i, N))
            x.push_back(draw(emission, i, A));
        return x;
    }

    /// Passes the parameters to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        v.array("initial", initial.data(), 1, states());
        v.array("transition", transition.data(), states(), states());
        v.array("emission", emission.data(), states(), symbols());
    }
    /// Call after the model has been loaded from a file, as Checkpoint::load does.
    void after_load() { list_edges(); }

private:
    ModelView view() const {
        return {states(),        symbols(),         initial.data(), transition.data(),
                emission.data(), std::span(first_), std::span(to_)};
    }

    void check(Token s, Index t) const {
        if (s >= options_.symbols || s < not_predicted)
            throw DataError("hmm: found symbol ", s, " at position ", t, ", expected 0 to ",
                            options_.symbols - 1, ", or -1 where it is missing");
    }

    // out = in P
    void move(const double* in, double* out) const {
        const Index N = options_.states;
        std::fill_n(out, N, 0.0);
        for (Index i = 0; i < N; ++i) {
            const double* row = transition.data() + i * N;
            if (view().dense())
                for (Index j = 0; j < N; ++j) out[j] += in[i] * row[j];
            else
                for (Index k = first_[i]; k < first_[i + 1]; ++k) out[to_[k]] += in[i] * row[to_[k]];
        }
    }

    // Normalises rows of counts to probabilities; a row without counts is unchanged.
    static void settle(Array<double>& p, const double* counts, Index width) {
        for (Index r = 0; r < std::ssize(p); r += width) {
            double sum = 0;
            for (Index k = r; k < r + width; ++k) sum += counts[k];
            if (!(sum > 0)) continue;
            for (Index k = r; k < r + width; ++k) p[k] = counts[k] / sum;
        }
    }
    static void normalise(Array<double>& p, Index width) { settle(p, Array<double>(p).data(), width); }

    Options options_;
    Array<Index> first_, to_;  // nonzero transitions, by state
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::hmm
