/// @file hmm/hmm.hpp  Hidden Markov models with discrete symbols: Baum-Welch, scoring, prediction, sampling.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/random.hpp>
#include <isogloss/sizes.hpp>
#include <span>
#include <vector>

/// Hidden Markov models.
namespace isogloss::inline ISOGLOSS_CONFIGURATION::hmm {

/// Options of Hmm.
struct Options {
    Index states = 0;   ///< N ≥ 1
    Index symbols = 0;  ///< A ≥ 1
    Index edges = 0;    ///< transitions that leave a state, itself among them, chosen at random; 0: all N
    double prior = 0;  ///< count ≥ 0 that every emission is given before the data; keeps unseen ones above 0
    std::uint64_t seed = 1;  ///< of the random start
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
/// summed over sequences. The likelihood never falls (with a prior: likelihood times prior). A symbol of
/// not_predicted is missing: it counts for nothing and its place is skipped over. Transitions that are 0 stay
/// 0 and, where `edges` thins them out, cost nothing. Everything is scaled step by step, so that length is no
/// matter. Memory of a step: 2 N + 1 numbers a position.
/// Source   Rabiner 1989, "A tutorial on hidden Markov models", sections III and V.A.
class Hmm {
public:
    /// Random start: each row of P and E drawn from the flat Dirichlet distribution, init uniform. (Rows that differ
    /// little begin near the point where all states are alike, a saddle that EM leaves late or never.) Throws UsageError
    /// for options out of range.
    explicit Hmm(Options options) : options_(options) {
        const Index N = options.states, A = options.symbols;
        require("hmm", "states", N, 1);
        require("hmm", "symbols", A, 1);
        require("hmm", "edges", options.edges, 0, N);
        require("hmm", "prior", options.prior, 0);
        const Index most = bytes_of("hmm", {N, std::max(N, A), 3}, sizeof(double));
        within_memory("hmm", most, [&] { transition.reserve(N * N), emission.reserve(N * A); });
        const Random random(options.seed, stream_of("hmm"));
        Index place = 0;
        initial.assign(N, 1 / static_cast<double>(N));
        // Exponential numbers over their sum.
        for (Index i = 0; i < N * N; ++i) transition.push_back(-std::log(random.uniform(place++)));
        for (Index i = 0; i < N * A; ++i) emission.push_back(-std::log(random.uniform(place++)));
        if (options.edges > 0)
            for (Index i = 0; i < N; ++i)
                for (Index left = N; left > options.edges;) {  // takes away transitions to others
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

    /// To be called after `transition` was written to, so that new zeros are known as such.
    void list_edges() {
        const Index N = options_.states;
        first_.assign(1, 0), to_.clear();
        for (Index i = 0; i < N; ++i) {
            for (Index j = 0; j < N; ++j)
                if (transition[i * N + j] > 0) to_.push_back(j);
            first_.push_back(std::ssize(to_));
        }
    }

    /// One step of Baum-Welch on all sequences; returns Σ log P(sequence) in nats before it. Throws DataError
    /// for a symbol out of range and NumericError for a sequence the model holds impossible; nothing has
    /// changed then.
    double step(std::span<const std::vector<Token>> sequences) {
        const Index N = options_.states, A = options_.symbols;
        Array<double> starts(N), moves(N * N), emits(N * A, options_.prior);
        double total = 0;
        for (const auto& x : sequences) {
            if (x.empty()) continue;
            total += filter(x);
            smooth(x, emits);
            for (Index i = 0; i < N; ++i) starts[i] += u_[i] * v_[i];
            count_moves(std::ssize(x), moves);
        }
        for (Index k = 0; k < N * N; ++k) moves[k] *= transition[k];
        settle(initial, starts, N);
        settle(transition, moves, N);
        settle(emission, emits, A);
        return total;
    }

    /// log P(x) in nats. Throws as step().
    double log_likelihood(ArrayView<const Token> x) {
        double total = 0;
        predict(x, [&](Index t, ArrayView<const double> p) {
            const Token s = x[t];
            if (s < 0) return;
            if (!(p[s] > 0)) impossible(s, t);
            total += std::log(p[s]);
        });
        return total;
    }

    /// Calls f(t, p) for every position with p [A] = P(x_t = · | x_0 … x_{t-1}). A symbol held impossible
    /// leaves the state as if it were missing.
    template <class F> void predict(ArrayView<const Token> x, F&& f) const {
        const Index N = options_.states, A = options_.symbols;
        Array<double> alpha = initial, next(N), p(A);
        for (Index t = 0; t < std::ssize(x); ++t) {
            check(x[t], t);
            std::fill(p.begin(), p.end(), 0.0);
            for (Index i = 0; i < N; ++i)
                for (Index s = 0; s < A; ++s) p[s] += alpha[i] * emission[i * A + s];
            f(t, ArrayView<const double>(p));
            if (const Token s = x[t]; s >= 0 && p[s] > 0)
                for (Index i = 0; i < N; ++i) alpha[i] *= emission[i * A + s] / p[s];
            move(alpha.data(), next.data());
            std::swap(alpha, next);
        }
    }

    /// A text of n symbols, n ≥ 0. Throws UsageError where there is no memory for it.
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

    /// Shows the model to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        v.array("initial", initial.data(), 1, states());
        v.array("transition", transition.data(), states(), states());
        v.array("emission", emission.data(), states(), symbols());
    }
    /// To be called when the model has come from a file, as Checkpoint::load does.
    void after_load() { list_edges(); }

private:
    bool dense() const { return std::ssize(to_) > options_.states * options_.states / 4; }

    void check(Token s, Index t) const {
        if (s >= options_.symbols || s < not_predicted)
            throw DataError("hmm: found symbol ", s, " at position ", t, ", expected 0 to ",
                            options_.symbols - 1, ", or -1 where it is missing");
    }
    [[noreturn]] static void impossible(Token s, Index t) {
        throw NumericError("hmm: symbol ", s, " at position ", t,
                           " has probability 0 under the model; give emissions a prior above 0");
    }

    // Calls f(j) for every state j that i may move to.
    template <class F> void each_target(Index i, F&& f) const {
        if (dense())
            for (Index j = 0; j < options_.states; ++j) f(j);
        else
            for (Index k = first_[i]; k < first_[i + 1]; ++k) f(to_[k]);
    }

    // out = in P
    void move(const double* in, double* out) const {
        const Index N = options_.states;
        std::fill_n(out, N, 0.0);
        for (Index i = 0; i < N; ++i) {
            const double* row = transition.data() + i * N;
            each_target(i, [&](Index j) { out[j] += in[i] * row[j]; });
        }
    }

    // u and c of a whole sequence; returns its log likelihood.
    double filter(ArrayView<const Token> x) {
        const Index N = options_.states, A = options_.symbols, T = std::ssize(x);
        u_.resize(T * N), c_.resize(T);
        std::copy(initial.begin(), initial.end(), u_.begin());
        double total = 0;
        for (Index t = 0; t < T; ++t) {
            const Token s = x[t];
            check(s, t);
            double* u = u_.data() + t * N;
            if (t > 0) move(u - N, u);
            double c = 1;
            if (s >= 0) {
                c = 0;
                for (Index i = 0; i < N; ++i) c += u[i] *= emission[i * A + s];
                if (!(c > 0)) impossible(s, t);
                for (Index i = 0; i < N; ++i) u[i] /= c;
            }
            c_[t] = c;
            total += std::log(c);
        }
        return total;
    }

    // v of a whole sequence, of which emits receives the counts γ. Afterwards v_ holds, but for t = 0,
    // E_{j x_t} v_t(j) / c_t in the place of v_t(j).
    void smooth(ArrayView<const Token> x, Array<double>& emits) {
        const Index N = options_.states, A = options_.symbols, T = std::ssize(x);
        v_.assign(T * N, 1);
        for (Index t = T - 1; t >= 0; --t) {
            const Token s = x[t];
            double* v = v_.data() + t * N;
            for (Index i = 0; s >= 0 && i < N; ++i) emits[i * A + s] += u_[t * N + i] * v[i];
            if (t == 0) break;
            for (Index i = 0; s >= 0 && i < N; ++i) v[i] *= emission[i * A + s] / c_[t];
            for (Index i = 0; i < N; ++i) {
                const double* row = transition.data() + i * N;
                double sum = 0;
                each_target(i, [&](Index j) { sum += row[j] * v[j]; });
                v[i - N] = sum;
            }
        }
    }

    // moves += Σ_t u_t(i) E_{j x_{t+1}} v_{t+1}(j) / c_{t+1}, after smooth.
    void count_moves(Index T, Array<double>& moves) const {
        const Index N = options_.states;
        if (T == 1) return;
        if (dense()) {
            const BlasOnOneThread blas;
            return gemm<double>(1, t(MatrixRef<const double>(u_.data(), T - 1, N)), {v_.data() + N, T - 1, N},
                                1, {moves.data(), N, N});
        }
        for (Index t = 0; t + 1 < T; ++t)
            for (Index i = 0; i < N; ++i)
                each_target(i, [&](Index j) { moves[i * N + j] += u_[t * N + i] * v_[(t + 1) * N + j]; });
    }

    // Rows of counts become rows of probabilities; a row that nothing was counted in stays as it was.
    static void settle(Array<double>& p, const Array<double>& counts, Index width) {
        for (Index r = 0; r < std::ssize(p); r += width) {
            double sum = 0;
            for (Index k = r; k < r + width; ++k) sum += counts[k];
            if (!(sum > 0)) continue;
            for (Index k = r; k < r + width; ++k) p[k] = counts[k] / sum;
        }
    }
    static void normalise(Array<double>& p, Index width) { settle(p, Array<double>(p), width); }

    Options options_;
    Array<Index> first_, to_;  // transitions above 0, by state
    Array<double> u_, v_, c_;  // of the sequence at hand
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::hmm
