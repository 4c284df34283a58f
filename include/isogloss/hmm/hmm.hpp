/// @file hmm/hmm.hpp  Hidden Markov models with discrete symbols: Baum-Welch, scoring, prediction, sampling.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/array.hpp>
#include <isogloss/elementary.hpp>
#include <isogloss/error.hpp>
#include <isogloss/hmm/forward_backward.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/kernel/transpose.hpp>
#include <isogloss/random.hpp>
#include <isogloss/sizes.hpp>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// Hidden Markov models.
namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace hmm {

/// Options of Hmm.
struct Options {
    Index states = 0;   ///< N ≥ 1
    Index symbols = 0;  ///< A ≥ 1
    /// Transitions out of a state, its self-transition included, chosen at random; 0: all N.
    Index edges = 0;
    /// Count, 0 to 1e100, added to every emission before the data; keeps unseen ones above 0.
    double prior = 0;
    /// Probability 0 to 1 with which a state of the start stays as it is, besides that drawn for P_ii: where states
    /// last, as the kinds of region of a genome do, 0.95 finds what random transitions miss.
    double stay = 0;
    std::uint64_t seed = 1;  ///< of the random start
    /// Bytes ≥ 1 for the forward and backward probabilities of stacked sequences.
    Index budget = Index{1} << 28;
    /// Forward and backward probabilities, and their products, in float: half the time and memory of a step with many
    /// states. Probabilities below 1e-38 count as 0.
    bool in_float = false;
};

/// A text drawn from a hidden Markov model, and the states that emitted its symbols.
struct Sample {
    std::vector<Token> symbols;
    std::vector<Index> states;
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
/// Memory   of the model, in numbers of 8 bytes: N (N + 2 A); of a step besides N (2 N + A) for a transpose and counts,
///          `budget` bytes, and one for each symbol and time of the sequences side by side (see ForwardBackward);
///          N = 2,000, A = 10,000: 0.35 GB, and 0.5 GB of a step.
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
        require("hmm", "stay", options.stay, 0, 1);
        require("hmm", "budget", options.budget, 1);
        const Index most = bytes_of("hmm", {N, std::max(N, A), 4}, sizeof(double));
        within_memory("hmm", most, [&] {
            transition_.reserve(N * N), emission_.reserve(N * A), emission_by_symbol_.resize(A * N);
        });
        const Random random(options.seed, stream_of("hmm"));
        Index place = 0;
        initial_.assign(N, 1 / static_cast<double>(N));
        // Exponential variates, normalised.
        for (Index i = 0; i < N * N; ++i)
            transition_.push_back(-kernel::elementary::log(random.uniform(place++)));
        for (Index i = 0; i < N * A; ++i)
            emission_.push_back(-kernel::elementary::log(random.uniform(place++)));
        if (options.edges > 0)
            for (Index i = 0; i < N; ++i)
                for (Index left = N; left > options.edges;) {  // removes transitions to other states
                    const Index j = random.below(place++, N);
                    double& p = transition_[i * N + j];
                    if (j == i || p == 0) continue;
                    p = 0;
                    --left;
                }
        normalise(transition_, Array<double>(transition_).data(), N);
        normalise(emission_, Array<double>(emission_).data(), A);
        for (Index i = 0; i < N; ++i)
            for (Index j = 0; j < N; ++j) {
                double& p = transition_[i * N + j];
                p = (1 - options.stay) * p + (i == j ? options.stay : 0);
            }
        arrange();
    }

    Index states() const { return options_.states; }
    Index symbols() const { return options_.symbols; }
    const Array<double>& initial() const { return initial_; }        ///< init [N]
    const Array<double>& transition() const { return transition_; }  ///< P [N, N]; rows sum to 1
    const Array<double>& emission() const { return emission_; }      ///< E [N, A]; rows sum to 1

    /// Replaces the model by init [N], P [N, N] and E [N, A].
    ///
    ///     model.set(model.initial(), {0.99, 0.01, 0.01, 0.99}, model.emission());    // a start whose states last
    ///
    /// Throws UsageError for other sizes and DataError for a row that does not sum to 1, to 0.001, or holds what is not a
    /// number of at least 0; the model is then unchanged.
    void set(Array<double> initial, Array<double> transition, Array<double> emission) {
        const Index N = states(), A = symbols();
        if (std::ssize(initial) != N || std::ssize(transition) != N * N || std::ssize(emission) != N * A)
            throw UsageError("hmm: found ", initial.size(), ", ", transition.size(), " and ", emission.size(),
                             " numbers, expected [N], [N, N] and [N, A]");
        require_rows("initial", initial, N);
        require_rows("transition", transition, N);
        require_rows("emission", emission, A);
        initial_ = std::move(initial), transition_ = std::move(transition), emission_ = std::move(emission);
        arrange();
    }

    /// One step of Baum-Welch on all sequences; returns Σ log P(sequence) in nats before it. Without a symbol, missing
    /// or not, in any of them nothing is changed. Throws DataError for a symbol out of range and NumericError for a
    /// sequence of probability 0 under the model or a transition of so small a probability (near 1e-300) that its
    /// count divided by it overflows; the model is then unchanged.
    double step(const Sequences& sequences) {
        ExpectedCounts counts = expect(sequences);
        const double before = counts.log_likelihood();
        maximise(std::move(counts));
        return before;
    }

    /// The E-step: expected counts given sequences, without the prior. Those of several sets of sequences add up.
    /// Throws as step().
    ExpectedCounts expect(const Sequences& sequences) const {
        ExpectedCounts counts(states(), symbols());
        with_recursions([&](auto&& r) { r.add(sequences, counts); });
        return counts;
    }

    /// The M-step: init, P and E become the normalised counts. A row without counts is unchanged; with a prior, which
    /// counts as well, a row of E without data becomes uniform. Counts that are all 0, as those of no sequence, change
    /// nothing, not even with a prior. Throws UsageError for counts of a model of another size, NumericError for a
    /// count that is not finite, see step(); the model is then unchanged.
    void maximise(ExpectedCounts counts) {
        const Index N = states(), A = symbols();
        counts.require_size(N, A);
        if (std::all_of(counts.numbers.begin(), counts.numbers.end() - 1, [](double n) { return n == 0; }))
            return;  // those of no sequence: the prior alone is no data
        double* const moves = counts.moves();
        for (Index k = 0; k < N * N; ++k)  // by P: may be infinite where that is 0 or hardly more
            moves[k] = transition_[k] > 0 ? moves[k] * transition_[k] : 0;
        if (const Index size = std::ssize(counts.numbers),
            bad = kernel::first_non_finite(size, counts.numbers.data());
            bad < size)
            throw NumericError("hmm: expected count ", bad, " is ", counts.numbers[bad],
                               "; if a transition has a probability near ",
                               "1e-300, set it to 0, or to more");
        normalise(initial_, counts.starts(), N);
        normalise(transition_, moves, N);
        const double* const emits = counts.emissions();
        Array<double> sums(N, static_cast<double>(A) * options_.prior);
        for (Index x = 0; x < A; ++x)
            for (Index i = 0; i < N; ++i) sums[i] += emits[x * N + i];
        for (Index i = 0; i < N; ++i)
            for (Index x = 0; sums[i] > 0 && x < A; ++x)
                emission_[i * A + x] = (options_.prior + emits[x * N + i]) / sums[i];
        arrange();
    }

    /// Σ log P(sequence) in nats, many sequences at a time. Throws as step(). Numbers below 2·10⁻³⁰⁸ count as 0.
    double log_likelihood(const Sequences& sequences) const {
        return with_recursions([&](auto&& r) { return r.log_likelihood(sequences); });
    }
    /// log P(x) in nats, the same for one.
    double log_likelihood(ArrayView<const Token> x) const { return log_likelihood(Sequences(x)); }

    /// γ_t(i) = P(state i at t | x), [T, N] row by row: rows sum to 1, missing symbols have one too. Throws as step().
    ///
    ///     const auto gamma = model.posteriors(x);            // gamma[t * model.states() + i]
    Array<double> posteriors(ArrayView<const Token> x) const { return posteriors(Sequences(x)); }
    /// The same for every sequence in turn, many at a time: [ΣT, N].
    Array<double> posteriors(const Sequences& sequences) const {
        return with_recursions([&](auto&& r) { return r.posteriors(sequences); });
    }

    /// The path of Viterbi: the sequence of states that is the most probable given x, as a whole. Of equally probable
    /// ones, that with the lowest last state, and so on backwards.
    ///
    ///     δ_0(i) = log init_i + log E_{i x_0},   δ_{t+1}(j) = max_i (δ_t(i) + log P_ij) + log E_{j x_{t+1}}
    ///
    /// A sequence of no symbols has the empty path. Throws DataError for a symbol out of range, NumericError for a
    /// sequence of probability 0, UsageError if memory runs out.
    ///
    /// Cost     2 N² operations per position, with `edges` 2 for each transition, and N logarithms; once N² of these
    /// Memory   4 bytes for each position and state, 8 for each pair of states
    Path most_probable_path(ArrayView<const Token> x) const {
        Sequences(x).require_symbols(symbols());
        const ModelView m = view();
        const Index N = states(), T = std::ssize(x);
        constexpr double never = -std::numeric_limits<double>::infinity();
        Path path;
        Array<Token> best;  // the best state before each state, at all times but the first
        Array<double> log_move, score, next(N);
        within_memory("hmm: a path", bytes_of("hmm: a path", {T, N}, sizeof(Token)), [&] {
            best.resize(T * N), path.states.resize(std::size_t(T)), log_move.reserve(N * N);
        });
        if (T == 0) return path;
        for (const double p : initial_) score.push_back(kernel::elementary::log(p));
        for (const double p : transition_) log_move.push_back(kernel::elementary::log(p));
        for (Index t = 0; t < T; ++t) {
            if (t > 0) {
                std::fill(next.begin(), next.end(), never);
                Token* const best_at = best.data() + t * N;
                for (Index i = 0; i < N; ++i)
                    m.each_target(i, [&](Index j) {
                        if (const double way = score[i] + log_move[i * N + j]; way > next[j])
                            next[j] = way, best_at[j] = static_cast<Token>(i);
                    });
                std::swap(score, next);
            }
            if (const Token s = x[t]; s >= 0)
                for (Index i = 0; i < N; ++i) score[i] += kernel::elementary::log(m.emission[s * N + i]);
            if (*std::max_element(score.begin(), score.end()) == never)
                detail::refuse_probability(0, x[t], t, 0);
        }
        const auto last = std::max_element(score.begin(), score.end());
        path.log_probability = *last;
        Index state = last - score.begin();
        for (Index t = T - 1; t >= 0; --t) {
            path.states[std::size_t(t)] = state;
            state = best[t * N + state];
        }
        return path;
    }

    /// Calls f(t, p) for every position with p [A] = P(x_t = · | x_0 … x_{t-1}). A symbol of probability 0 is
    /// treated as missing. Throws DataError for a symbol out of range, before any call.
    template <class F> void predict(ArrayView<const Token> x, F&& f) const {
        Sequences(x).require_symbols(symbols());
        const BlasOnOneThread blas;
        const Index N = states(), A = symbols();
        Array<double> alpha = initial_, next(N), p(A);
        for (Index t = 0; t < std::ssize(x); ++t) {
            std::fill(p.begin(), p.end(), 0.0);
            for (Index i = 0; i < N; ++i)
                for (Index s = 0; s < A; ++s) p[s] += alpha[i] * emission_[i * A + s];
            f(t, ArrayView<const double>(p));
            if (const Token s = x[t]; s >= 0 && p[s] > 0)  // 1 / p may exceed the range, α e / p does not
                for (Index i = 0; i < N; ++i) alpha[i] = alpha[i] * emission_[i * A + s] / p[s];
            view().move(alpha.data(), 1, transition_.data(), next.data());
            std::swap(alpha, next);
        }
    }

    /// Samples a text of n symbols, n ≥ 0. Throws UsageError for n below 0 or if there is not enough memory.
    Sample sample(Index n, const Random& random) const {
        Index place = 0;
        const auto draw = [&](const Array<double>& p, Index row, Index width) {
            return isogloss::sample(std::span(p.data() + row * width, std::size_t(width)),
                                    random.uniform(place++));
        };
        Sample text;
        within_memory("hmm: a text", bytes_of("hmm: a text", {n}, sizeof(Token) + sizeof(Index)),
                      [&] { text.symbols.reserve(std::size_t(n)), text.states.reserve(std::size_t(n)); });
        for (Index t = 0; t < n; ++t) {
            text.states.push_back(t == 0 ? draw(initial_, 0, states())
                                         : draw(transition_, text.states.back(), states()));
            text.symbols.push_back(static_cast<Token>(draw(emission_, text.states.back(), symbols())));
        }
        return text;
    }

    /// Passes the parameters to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        v.array("initial", initial_.data(), 1, states());
        v.array("transition", transition_.data(), states(), states());
        v.array("emission", emission_.data(), states(), symbols());
    }
    /// Call after the model has been loaded from a file, as Checkpoint::load does. Throws as set(); the model is then
    /// that of a random start.
    void after_load() {
        try {
            set(initial_, transition_, emission_);
        } catch (const Error&) {
            *this = Hmm(options_);
            throw;
        }
    }

private:
    // Rows are often given in float, or with few decimals.
    static void require_rows(const char* what, const Array<double>& p, Index width) {
        for (Index row = 0; row < std::ssize(p) / width; ++row) {
            const auto begin = p.begin() + row * width;
            const double sum = std::accumulate(begin, begin + width, 0.0);
            if (!(*std::min_element(begin, begin + width) >= 0 && std::abs(sum - 1) <= 1e-3))
                throw DataError("hmm: row ", row, " of `", what, "` sums to ", sum,
                                ", expected numbers of at least 0 that sum to 1");
        }
    }
    // What the recursions read besides the three matrices. At most a quarter of the transitions, as with `edges`: they
    // are listed, and cost less one by one than products of matrices.
    void arrange() {
        const Index N = states();
        kernel::transpose_add<double>(N, symbols(), emission_.data(), symbols(), 0,
                                      emission_by_symbol_.data(), N);
        first_.clear(), target_.clear();
        if (N * N - std::count(transition_.begin(), transition_.end(), 0.0) > N * N / 4) return;
        for (Index k = 0; k < N * N; ++k) {
            if (k % N == 0) first_.push_back(std::ssize(target_));
            if (transition_[k] != 0) target_.push_back(k % N);
        }
        first_.push_back(std::ssize(target_));
    }
    ModelView view() const {
        return {states(),
                symbols(),
                initial_.data(),
                transition_.data(),
                emission_by_symbol_.data(),
                std::span(first_),
                std::span(target_)};
    }
    template <class F> std::invoke_result_t<F, ForwardBackward<>> with_recursions(F&& f) const {
        if (options_.in_float) return f(ForwardBackward<float>(view(), options_.budget));
        return f(ForwardBackward<double>(view(), options_.budget));
    }

    // Rows of counts as probabilities; a row without counts is unchanged.
    static void normalise(Array<double>& p, const double* counts, Index width) {
        for (Index r = 0; r < std::ssize(p); r += width) {
            const double sum = std::accumulate(counts + r, counts + r + width, 0.0);
            for (Index k = r; sum > 0 && k < r + width; ++k) p[k] = counts[k] / sum;
        }
    }

    Options options_;
    Array<double> initial_, transition_, emission_, emission_by_symbol_;  // the last: Eᵀ
    Array<Index> first_, target_;                                         // see ModelView
};

}}}  // namespace isogloss::hmm
