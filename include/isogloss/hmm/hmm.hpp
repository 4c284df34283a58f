/// @file hmm/hmm.hpp  Hidden Markov models with discrete symbols: Baum-Welch, scoring, prediction, sampling.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/hmm/forward_backward.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/random.hpp>
#include <isogloss/sizes.hpp>
#include <limits>
#include <span>
#include <utility>
#include <vector>

/// Hidden Markov models.
namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace hmm {

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

/// A sequence of states of a hidden Markov model, and its probability together with that of the symbols.
struct Path {
    std::vector<Index> states;   ///< of every position, 0 to N - 1
    double log_probability = 0;  ///< log P(states, x) in nats; less log_likelihood(x): log P(states | x)
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
/// summed over sequences. The likelihood never decreases (with a prior: likelihood times prior). γ_t(i) is
/// P(state i at t | x), which posteriors() gives; most_probable_path() maximises over whole paths instead. A symbol of
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
/// Source   Rabiner 1989, "A tutorial on hidden Markov models", sections III and V.A; III.B for the path, which is
///          Viterbi 1967, "Error bounds for convolutional codes".
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
    /// transitions are not 0, as with `edges`, all functions except sample() use those alone, and the new ones
    /// would count as 0. New zeros cost nothing from then on.
    ///
    /// Throws UsageError, as all functions do, if `initial`, `transition` or `emission` has been given another size.
    /// It alone throws UsageError for a row of them that does not sum to 1, to 0.001, or has a number below 0.
    void list_edges() {
        require_sizes();
        require_sums("initial", initial, states());
        require_sums("transition", transition, states());
        require_sums("emission", emission, symbols());
        relist();
    }

    /// One step of Baum-Welch on all sequences; returns Σ log P(sequence) in nats before it. Without a symbol, missing
    /// or not, in any of them nothing is changed. Throws DataError for a symbol out of range and NumericError for a
    /// sequence of probability 0 under the model, a model that is not finite or a transition of so small a probability
    /// (near 1e-300) that its count divided by it overflows; the model is then unchanged.
    double step(Sequences sequences) {
        ExpectedCounts counts = expect(sequences);
        const double before = counts.log_likelihood();
        maximise(std::move(counts));
        return before;
    }

    /// The E-step: expected counts given sequences, without the prior. Those of several sets of sequences add up.
    /// Throws as step().
    ExpectedCounts expect(Sequences sequences) const {
        ExpectedCounts counts(states(), symbols());
        ForwardBackward(view(), options_.budget).add(sequences, counts);
        return counts;
    }

    /// The M-step: init, P and E become the normalised counts. A row without counts is unchanged; with a prior, which
    /// counts as well, a row of E without data becomes uniform. Counts that are all 0, as those of no sequence, change
    /// nothing, not even with a prior. Throws UsageError for counts of a model of another size, NumericError for a
    /// count that is not finite, see step(); the model is then unchanged.
    void maximise(ExpectedCounts counts) {
        const Index N = states(), A = symbols();
        counts.require_size(N, A);
        require_sizes();
        if (std::all_of(counts.numbers.begin(), counts.numbers.end() - 1, [](double n) { return n == 0; }))
            return;  // those of no sequence: the prior alone is no data
        const auto require_finite = [](const double* of, Index size, auto&& what) {
            if (const Index k = kernel::first_non_finite(size, of); k != size)
                throw NumericError("hmm: found ", of[k], " as the expected count of ", what(k),
                                   ", expected a finite one; the model is unchanged");
        };
        require_finite(counts.starts(), N,
                       [](Index i) { return message("sequences that start in state ", i); });
        require_finite(counts.emissions(), A * N,
                       [N](Index k) { return message("symbol ", k / N, " in state ", k % N); });
        double* const moves = counts.moves();
        for (Index k = 0; k < N * N; ++k) {
            const double quotient = moves[k];  // by P: may be infinite where that is 0 or hardly more
            moves[k] = transition[k] > 0 ? quotient * transition[k] : 0;
            if (!std::isfinite(moves[k]))
                throw NumericError("hmm: found ", moves[k],
                                   " as the expected count of the transition from state ", k / N,
                                   " to state ", k % N, ", whose probability is ", transition[k],
                                   ", expected a finite one; the model is unchanged. Set a probability "
                                   "so near to 0 to 0, or to more");
        }
        settle(initial, counts.starts(), N);
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
        require_sizes();
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
            } else if (const double sum = std::accumulate(alpha.begin(), alpha.end(), 0.0);
                       !std::isfinite(sum)) {
                refuse_probability(sum, s, message("at position ", t));
            }
            move(alpha.data(), next.data());
            std::swap(alpha, next);
        }
        return total;
    }

    /// Σ log P(sequence) in nats, many sequences at a time. Throws as step(). As there, and in posteriors(), numbers
    /// below 2·10⁻³⁰⁸ count as 0, which they do not in the function of one sequence.
    double log_likelihood(Sequences sequences) const {
        return ForwardBackward(view(), options_.budget).log_likelihood(sequences);
    }

    /// γ_t(i) = P(state i at t | x), [T, N] row by row: rows sum to 1, missing symbols have one too. Throws as step().
    ///
    ///     const auto gamma = model.posteriors(x);            // gamma[t * model.states() + i]
    Array<double> posteriors(ArrayView<const Token> x) const {
        const std::span<const Token> only = x;
        return posteriors(std::span(&only, 1));
    }
    /// The same for every sequence in turn, many at a time: [ΣT, N].
    Array<double> posteriors(Sequences sequences) const {
        return ForwardBackward(view(), options_.budget).posteriors(sequences);
    }

    /// The path of Viterbi: the sequence of states that is the most probable given x, as a whole. Of equally probable
    /// ones, that with the lowest last state, and so on backwards.
    ///
    ///     δ_0(i) = log init_i + log E_{i x_0},   δ_{t+1}(j) = max_i (δ_t(i) + log P_ij) + log E_{j x_{t+1}}
    ///
    /// A sequence of no symbols has the empty path. Throws DataError for a symbol out of range, NumericError for a
    /// sequence of probability 0 and for numbers of the model below 0 or not finite, UsageError if memory runs out.
    ///
    /// Cost     2 N² operations per position, with `edges` 2 for each transition, and N logarithms; once as many
    ///          logarithms as there are transitions
    /// Memory   4 bytes for each position and state, 8 for each transition
    Path most_probable_path(ArrayView<const Token> x) const {
        const Index N = options_.states, A = options_.symbols, T = std::ssize(x);
        for (Index t = 0; t < T; ++t) check(x[t], t);
        constexpr double never = -std::numeric_limits<double>::infinity();
        const bool dense = view().dense();
        const auto each_target = [&](Index i, auto&& f) {  // f(number of the transition, its target)
            for (Index k = dense ? i * N : first_[i], end = dense ? k + N : first_[i + 1]; k < end; ++k)
                f(k, dense ? k - i * N : to_[k]);
        };
        Path path;
        Array<Token> before;     // the best state before each state, at all times but the first
        Array<double> log_move;  // by number of the transition
        Array<double> score(N), next(N);
        within_memory("hmm: a path", bytes_of("hmm: a path", {T, N}, sizeof(Token)), [&] {
            before.resize(T * N), path.states.resize(std::size_t(T));
            log_move.reserve(dense ? N * N : first_[N]);
        });
        if (T == 0) return path;
        for (Index i = 0; i < N; ++i) score[i] = log_of(initial[i]);
        for (Index i = 0; i < N; ++i)
            each_target(i, [&](Index, Index j) { log_move.push_back(log_of(transition[i * N + j])); });
        for (Index t = 0;; ++t) {
            if (const Token s = x[t]; s >= 0)
                for (Index i = 0; i < N; ++i) score[i] += log_of(emission[i * A + s]);
            if (*std::max_element(score.begin(), score.end()) == never)
                refuse_probability(0, x[t], message("at position ", t));
            if (t + 1 == T) break;
            std::fill(next.begin(), next.end(), never);
            Token* const from = before.data() + (t + 1) * N;
            for (Index i = 0; i < N; ++i)
                each_target(i, [&](Index k, Index j) {
                    if (const double way = score[i] + log_move[k]; way > next[j])
                        next[j] = way, from[j] = static_cast<Token>(i);
                });
            std::swap(score, next);
        }
        const auto best = std::max_element(score.begin(), score.end());
        path.log_probability = *best;
        Index state = best - score.begin();
        for (Index t = T - 1; t >= 0; --t) {
            path.states[std::size_t(t)] = state;
            state = before[t * N + state];
        }
        return path;
    }

    /// Calls f(t, p) for every position with p [A] = P(x_t = · | x_0 … x_{t-1}). A symbol of probability 0 is
    /// treated as missing. Throws DataError for a symbol out of range and NumericError for a model that is not finite,
    /// before the call for this position.
    template <class F> void predict(ArrayView<const Token> x, F&& f) const {
        require_sizes();
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

    /// Samples a text of n symbols, n ≥ 0. Throws UsageError for n below 0 or if there is not enough memory, NumericError
    /// for a row of init, P or E with numbers below 0 or not finite, or all 0.
    std::vector<Token> sample(Index n, const Random& random) const {
        require_sizes();
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
        require_sizes();
        v.array("initial", initial.data(), 1, states());
        v.array("transition", transition.data(), states(), states());
        v.array("emission", emission.data(), states(), symbols());
    }
    /// Call after the model has been loaded from a file, as Checkpoint::load does.
    void after_load() { relist(); }

private:
    // Whatever the rows sum to.
    void relist() {
        require_sizes();
        const Index N = options_.states;
        first_.assign(1, 0), to_.clear();
        // What is not a number is not 0: it stays listed, so that the functions find it.
        for (Index i = 0; i < N; ++i) {
            const auto row = transition.begin() + i * N;
            first_.push_back(first_.back() + N - std::count(row, row + N, 0.0));
        }
        if (view().dense()) return;  // which needs no list
        to_.reserve(first_.back());
        for (Index k = 0; k < N * N; ++k)
            if (transition[k] != 0) to_.push_back(k % N);
    }
    void require_sizes() const {
        const auto require_size = [](const char* what, const Array<double>& found, Index expected) {
            if (std::ssize(found) != expected)
                throw UsageError("hmm: found ", found.size(), " numbers in `", what, "`, expected ", expected,
                                 ", those of the states and symbols that the model was made with; assign as ",
                                 "many, or make another model");
        };
        require_size("initial", initial, states());
        require_size("transition", transition, states() * states());
        require_size("emission", emission, states() * symbols());
    }
    // Rows are often given in float, or with few decimals. A sum that is not finite is left to the functions, which
    // name it where it has an effect.
    static void require_sums(const char* what, const Array<double>& p, Index width) {
        for (Index k = 0; k < std::ssize(p); k += width) {
            for (Index j = k; j < k + width; ++j)
                if (p[j] < 0)
                    throw UsageError("hmm: row ", k / width, " of `", what, "` holds ", p[j],
                                     ", expected at least 0; give probabilities, not their logarithms");
            if (const double sum = std::accumulate(p.begin() + k, p.begin() + k + width, 0.0);
                std::abs(sum - 1) > 1e-3 && std::isfinite(sum))
                throw UsageError("hmm: row ", k / width, " of `", what, "` sums to ", sum,
                                 ", expected 1; divide its numbers by their sum");
        }
    }
    ModelView view() const {
        require_sizes();
        return {states(),        symbols(),         initial.data(), transition.data(),
                emission.data(), std::span(first_), std::span(to_)};
    }

    void check(Token s, Index t) const {
        if (s >= options_.symbols || s < not_predicted)
            throw DataError("hmm: found symbol ", s, " at position ", t, ", expected 0 to ",
                            options_.symbols - 1, ", or -1 where it is missing");
    }

    static double log_of(double p) {
        if (p >= 0 && std::isfinite(p)) return std::log(p);
        throw NumericError("hmm: found ", p,
                           " among init, P and E, expected numbers of at least 0 that are finite; load or ",
                           "train the model again");
    }

    // out = in P
    void move(const double* in, double* out) const {
        const Index N = options_.states;
        const bool dense = view().dense();
        std::fill_n(out, N, 0.0);
        for (Index i = 0; i < N; ++i) {
            const double* row = transition.data() + i * N;
            if (dense)
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
    Array<Index> first_, to_;  // see ModelView
};

}}}  // namespace isogloss::hmm
