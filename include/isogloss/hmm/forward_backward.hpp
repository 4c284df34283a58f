/// @file hmm/forward_backward.hpp  The forward-backward recursions of many sequences in parallel.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/kernel/transpose.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/subnormals.hpp>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace hmm {

/// Expected counts of a hidden Markov model given sequences, and their log-likelihood: the output of the E-step of
/// Baum-Welch and the input of the M-step. Counts of several sets of sequences add up elementwise.
struct ExpectedCounts {
    Index states = 0, symbols = 0;  ///< N, A
    Array<double> numbers;          ///< all counts in one array: N + N² + A N + 1

    ExpectedCounts() = default;
    /// Zeros. Throws UsageError if there is not enough memory.
    ExpectedCounts(Index states_, Index symbols_) : states(states_), symbols(symbols_) {
        const Index size = elements_of("hmm: expected counts", {states, 2 + states + symbols});
        within_memory("hmm: expected counts", 8 * size,
                      [&] { numbers.assign(states * (1 + states + symbols) + 1, 0); });
    }
    double* starts() { return numbers.data(); }          ///< Σ γ_0(i), [N]
    double* moves() { return numbers.data() + states; }  ///< Σ_t ξ_t(i, j) / P_ij, [N, N]
    /// Σ_{t: x_t = x} γ_t(i), [A, N]: one row per symbol.
    double* emissions() { return numbers.data() + states * (1 + states); }
    double& log_likelihood() { return numbers.back(); }  ///< Σ log P(sequence), nats

    /// Throws UsageError unless these are counts for a model of this size.
    void require_size(Index states_, Index symbols_) const {
        if (states != states_ || symbols != symbols_ ||
            std::ssize(numbers) != states * (1 + states + symbols) + 1)
            throw UsageError("hmm: found counts of ", states, " states and ", symbols, " symbols, ",
                             numbers.size(), " numbers, expected ", states_, " states and ", symbols_,
                             " symbols, ", states_ * (1 + states_ + symbols_) + 1, " numbers");
    }
};

/// Sequences of symbols in memory owned elsewhere. Converts from a std::vector or std::span of sequences, each of them a
/// std::vector<Token> or a std::span<const Token>, such as a part of the tokens of a mapped text::Corpus.
class Sequences {
public:
    /// None.
    Sequences() = default;
    template <std::convertible_to<std::span<const std::vector<Token>>> List> Sequences(const List& list)
        : vectors_(list) {}
    template <std::convertible_to<std::span<const std::span<const Token>>> List> Sequences(const List& list)
        : spans_(list) {}

    std::size_t size() const { return vectors_.size() + spans_.size(); }
    std::span<const Token> operator[](std::size_t k) const {
        return vectors_.empty() ? spans_[k] : std::span<const Token>(vectors_[k]);
    }
    /// Sequences first … first + count - 1.
    Sequences subspan(std::size_t first, std::size_t count) const {
        Sequences part;
        part.first_ = first_ + first;
        if (vectors_.empty()) part.spans_ = spans_.subspan(first, count);
        else part.vectors_ = vectors_.subspan(first, count);
        return part;
    }
    /// The number of sequence k in the list that this is a part of, for messages.
    std::size_t number(std::size_t k) const { return first_ + k; }

private:
    std::span<const std::vector<Token>> vectors_;  // one of the two is empty
    std::span<const std::span<const Token>> spans_;
    std::size_t first_ = 0;  // in the list that this is a part of
};

/// Throws NumericError for a symbol whose probability c, given those before it, is 0 or not finite; `where` is its
/// place in the message.
[[noreturn]] inline void refuse_probability(double c, Token symbol, std::string_view where) {
    if (std::isfinite(c))
        throw NumericError(
            "hmm: symbol ", symbol, " ", where,
            " has probability 0 under the model: no path of initial, transition and emission "
            "probabilities above 0 emits it; give emissions a prior above 0, or put no 0 into init and P");
    throw NumericError(
        "hmm: symbol ", symbol, " ", where, " has the probability ", c,
        ", as init, P or E contain numbers that are not finite; load or train the model again");
}

/// What the recursions read of a model, and the nonzero transitions by state.
struct ModelView {
    Index states, symbols;
    const double *initial, *transition, *emission;  ///< [N], [N, N], [N, A]
    /// State i moves to to[first[i]] … to[first[i + 1] - 1]. Of a dense model only the number of transitions,
    /// first[N], is read, and `to` may be empty.
    ArrayView<const Index> first, to;

    /// Whether dense matrix products cost less than the transitions one by one.
    bool dense() const { return first[states] > states * states / 4; }
};

/// The recursions of Hmm for many sequences at once. Sequences are sorted by length, longest first, and
/// stacked as rows; at time t the n_t sequences longer than t remain, and a step of all of them is one product
///
///     α_{t+1} [n, N] = u_t [n, N] P,   v_t [n, N] = w_t [n, N] Pᵀ,    w_t(j) = E_{j x_{t+1}} v_{t+1}(j) / c_{t+1}
///     Σ_t u_tᵀ w_t                       one product for a segment of times
///
/// in place of matrix-vector products, which read P for every position. The results are those of the sequences one
/// by one, up to rounding. Where u_t(i) = 0, v_t(i) counts as 0: it contributes to no count, and may overflow.
/// Subnormal numbers count as 0.
///
/// Memory   A N numbers for the transpose of E, N² for that of P, and `budget` bytes for u and w of the stacked
///          sequences. If that does not hold all times of at least `worth_it` sequences, u is kept at every S-th
///          time, S = √(T/2), and recomputed from there: a third more work. A sequence takes 2 √(2T) N numbers
///          then, even if the budget is smaller. To these come 8 bytes for each symbol and time.
/// Source   Rabiner 1989, section III; Churchill, Lazareva 1999, checkpoints in time.
class ForwardBackward {
public:
    static constexpr Index most = 256;  ///< sequences stacked at most
    static constexpr Index worth_it =
        32;  ///< sequences for which the budget must hold all times, else checkpoints are used

    /// The model must outlive it and not change.
    ForwardBackward(const ModelView& model, Index budget)
        : m_(model), rows_(budget / (Index{sizeof(double)} * model.states)) {
        const Index N = m_.states, A = m_.symbols;
        const Index bytes = bytes_of("hmm", {N, A + N}, sizeof(double));
        within_memory("hmm", bytes, [&] {
            emission_.resize(A * N);
            if (m_.dense()) back_.resize(N * N);
        });
        kernel::transpose_add<double>(N, A, m_.emission, A, 0, emission_.data(), N);
        if (m_.dense()) kernel::transpose_add<double>(N, N, m_.transition, N, 0, back_.data(), N);
    }

    /// Adds the expected counts and log-likelihoods of sequences. Throws DataError for a symbol out of range and
    /// UsageError for counts of another size, before adding any, NumericError for a sequence of probability 0 under
    /// the model or a model that is not finite, UsageError if memory runs out.
    void add(Sequences sequences, ExpectedCounts& to) {
        to.require_size(m_.states, m_.symbols);
        each_group(sequences, [&] {
            smooth(
                to.log_likelihood(),
                [&](Index t, Index b, const double* u, const double* v) {
                    if (t == 0) add_products(u, v, to.starts());
                    if (const Token s = text(b)[std::size_t(t)]; s >= 0)
                        add_products(u, v, to.emissions() + Index{s} * m_.states);
                },
                [&](Index rows) { count_moves(rows, to.moves()); });
        });
    }

    /// Σ log P(sequence) in nats. Throws as add().
    double log_likelihood(Sequences sequences) {
        double total = 0;
        each_group(sequences, [&] {
            for (Index t = 0; t < time_; t += segment_) total += forward(t, std::min(t + segment_, time_));
        });
        return total;
    }

    /// γ_t(i) = P(state i at t | x) for every position of every sequence, in their order: [ΣT, N], row by row. A
    /// missing symbol has a row as well. Throws as add(), UsageError also if there is not enough memory for the result.
    Array<double> posteriors(Sequences sequences) {
        const Index N = m_.states;
        Array<Index> begin;
        Index total = 0;
        for (std::size_t k = 0; k < sequences.size(); ++k)
            begin.push_back(total), total += std::ssize(sequences[k]);
        Array<double> out;
        within_memory("hmm: posteriors", bytes_of("hmm: posteriors", {total, N}, sizeof(double)),
                      [&] { out.resize(total * N); });
        double log_likelihood = 0;
        each_group(sequences, [&] {
            smooth(
                log_likelihood,
                [&](Index t, Index b, const double* u, const double* v) {
                    double* const row = out.data() + (begin[order_[group_ + b]] + t) * N;
                    add_products(u, v, row);
                    // Where symbols are missing, forward() does not see what the model holds.
                    if (const double sum = std::accumulate(row, row + N, 0.0); !std::isfinite(sum))
                        refuse_probability(sum, text(b)[std::size_t(t)],
                                           message("at position ", t, " of sequence ", number(b)));
                },
                [](Index) {});
        });
        return out;
    }

private:
    std::span<const Token> text(Index row) const { return all_[std::size_t(order_[group_ + row])]; }
    std::size_t number(Index row) const { return all_.number(std::size_t(order_[group_ + row])); }
    Index active(Index t) const { return first_[t + 1] - first_[t]; }  // n_t
    double* row(Array<double>& of, Index t) const { return of.data() + (first_[t] - start_) * m_.states; }
    const double* emission(Token s) const { return emission_.data() + Index{s} * m_.states; }

    // Calls f() for groups of sequences, described by order_, first_, time_ and segment_.
    template <class F> void each_group(Sequences sequences, F&& f) {
        const BlasOnOneThread blas;
        const SubnormalsAreZero flush;
        all_ = sequences;
        order_.clear();
        for (std::size_t k = 0; k < all_.size(); ++k) {
            const auto x = all_[k];
            for (std::size_t t = 0; t < x.size(); ++t)
                if (const Token s = x[t]; s >= m_.symbols || s < not_predicted)
                    throw DataError("hmm: found symbol ", s, " at position ", t, " of sequence ",
                                    all_.number(k), ", expected 0 to ", m_.symbols - 1,
                                    ", or -1 where it is missing");
            if (!x.empty()) order_.push_back(static_cast<Index>(k));
        }
        std::stable_sort(order_.begin(), order_.end(), [&](Index a, Index b) {
            return all_[std::size_t(a)].size() > all_[std::size_t(b)].size();
        });
        for (Index sequence = 0; sequence < std::ssize(order_);) {
            const Index count = choose_group(sequence);
            f();
            sequence += count;
        }
    }

    // Chooses how many of the remaining sequences to stack, and how their time is cut into segments.
    Index choose_group(Index begin) {
        group_ = begin;
        time_ = std::ssize(text(0));
        const Index all = std::ssize(order_) - begin, groups = (all + most - 1) / most;
        const Index left = (all + groups - 1) / groups, whole = rows_ / (2 * time_);
        Index count = std::min(left, whole);
        segment_ = time_;
        if (count < std::min(left, worth_it)) {
            segment_ = std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(time_) / 2)));
            const Index rows = 2 * segment_ + (time_ + segment_ - 1) / segment_;
            count = std::clamp<Index>(rows_ / rows, 1, left);
        }
        first_.assign(1, 0);
        for (Index t = 0, n = count; t < time_; ++t) {
            while (std::ssize(text(n - 1)) <= t) --n;
            first_.push_back(first_.back() + n);
        }
        const Index N = m_.states, most_rows = std::min(first_.back(), count * segment_);
        const Index bytes = bytes_of("hmm", {2 * most_rows + count * (time_ / segment_), N}, sizeof(double)) +
                            Index{sizeof(double)} * first_.back();
        within_memory("hmm", bytes, [&] {
            u_.resize(most_rows * N), w_.resize(most_rows * N), v_.resize(count * N);
            c_.resize(first_.back());
            checkpoints_.resize(segment_ < time_ ? count * N * ((time_ - 1) / segment_) : 0);
        });
        return count;
    }

    // u at the last time of each segment but the last, a block with as many rows as the group has sequences.
    double* checkpoint(Index t) { return checkpoints_.data() + (t / segment_ - 1) * active(0) * m_.states; }

    // Both recursions for the group. Calls each(t, b, u, v) for every position, with γ_t(i) = u(i) v(i) of row b, and
    // after(rows) for every segment, whose u and w then have so many rows. Adds to the log-likelihood.
    template <class Each, class After> void smooth(double& log_likelihood, Each&& each, After&& after) {
        const auto segment = [&](Index from, Index to) {
            backward(from, to, each);
            after((to < time_ ? first_[to] : first_.back()) - start_);
        };
        Index t = 0;
        for (;; t += segment_) {
            log_likelihood += forward(t, std::min(t + segment_, time_));
            if (t + segment_ >= time_) break;
        }
        segment(t, time_);
        while (t > 0) {
            t -= segment_;
            forward(t, t + segment_);
            segment(t, t + segment_);
        }
    }

    // u and c for the times [from, to), from u at from - 1 in its checkpoint; saves u at to - 1. Returns Σ log c.
    double forward(Index from, Index to) {
        const Index N = m_.states;
        double total = 0;
        start_ = first_[from];
        for (Index t = from; t < to; ++t) {
            const Index n = active(t);
            double* const u = row(u_, t);
            if (t == 0)
                for (Index b = 0; b < n; ++b) std::copy_n(m_.initial, N, u + b * N);
            else move(t == from ? checkpoint(t) : row(u_, t - 1), n, u);
            for (Index b = 0; b < n; ++b) {
                const Token s = text(b)[std::size_t(t)];
                double c = 1;
                if (s >= 0) {
                    const double* const e = emission(s);
                    double* const of = u + b * N;
                    c = 0;
                    for (Index i = 0; i < N; ++i) c += of[i] *= e[i];
                    if (!(c > 0 && std::isfinite(c)))
                        refuse_probability(c, s, message("at position ", t, " of sequence ", number(b)));
                    for (Index i = 0; i < N; ++i) of[i] /= c;
                } else if (const double sum = std::accumulate(u + b * N, u + (b + 1) * N, 0.0);
                           !std::isfinite(sum)) {
                    refuse_probability(sum, s, message("at position ", t, " of sequence ", number(b)));
                }
                c_[first_[t] + b] = c;
                total += std::log(c);
            }
        }
        if (to < time_) std::copy_n(row(u_, to - 1), active(to) * N, checkpoint(to));
        return total;
    }

    // v and w for the times [from, to), from u of forward(); v_ is that of time `to` and becomes that of `from`.
    template <class Each> void backward(Index from, Index to, Each&& each) {
        const Index N = m_.states;
        for (Index t = to - 1; t >= from; --t) {
            const Index n = active(t), next = t + 1 < time_ ? active(t + 1) : 0;
            double *const w = row(w_, t), *const u = row(u_, t);
            for (Index b = 0; b < next; ++b) {
                const Token s = text(b)[std::size_t(t) + 1];
                const double *const v = v_.data() + b * N, scale = 1 / c_[first_[t + 1] + b];
                double* const of = w + b * N;
                if (s < 0) {
                    std::copy_n(v, N, of);
                    continue;
                }
                const double* const e = emission(s);
                // e / c first: it is at most 1 / α, while v e alone may be below the range.
                for (Index i = 0; i < N; ++i) of[i] = v[i] * (e[i] * scale);
            }
            std::fill(w + next * N, w + n * N, 0.0);  // sequences that end here have no next state
            move_back(w, next, v_.data());
            std::fill(v_.data() + next * N, v_.data() + n * N, 1.0);
            for (Index b = 0; b < n; ++b) {
                double* const v = v_.data() + b * N;
                const double* const of = u + b * N;
                for (Index i = 0; i < N; ++i) v[i] = of[i] > 0 ? v[i] : 0;
                each(t, b, of, v);
            }
        }
    }
    void add_products(const double* u, const double* v, double* to) const {
        for (Index i = 0; i < m_.states; ++i) to[i] += u[i] * v[i];
    }

    // Calls f(j, P_ij) for every state j reachable from i.
    template <class F> void each_target(Index i, F&& f) const {
        for (Index k = m_.first[i]; k < m_.first[i + 1]; ++k)
            f(m_.to[k], m_.transition[i * m_.states + m_.to[k]]);
    }
    // out [n, N] = in [n, N] P
    void product(const double* in, Index n, const double* P, double* out) const {
        const Index N = m_.states;
        constexpr Index worth_calling = 512;  // multiply-adds below which the overhead of BLAS dominates
        if (n * N * N >= worth_calling) return gemm<double>(1, {in, n, N}, {P, N, N}, 0, {out, n, N});
        std::fill_n(out, n * N, 0.0);
        for (Index b = 0; b < n; ++b)
            for (Index i = 0; i < N; ++i)
                for (Index j = 0; j < N; ++j) out[b * N + j] += in[b * N + i] * P[i * N + j];
    }
    // out = in P, n rows
    void move(const double* in, Index n, double* out) const {
        const Index N = m_.states;
        if (m_.dense()) return product(in, n, m_.transition, out);
        std::fill_n(out, n * N, 0.0);
        for (Index b = 0; b < n; ++b, in += N, out += N)
            for (Index i = 0; i < N; ++i) each_target(i, [&](Index j, double p) { out[j] += in[i] * p; });
    }
    // out = in Pᵀ, n rows
    void move_back(const double* in, Index n, double* out) const {
        const Index N = m_.states;
        if (m_.dense()) return product(in, n, back_.data(), out);
        for (Index b = 0; b < n; ++b, in += N, out += N)
            for (Index i = 0; i < N; ++i) {
                double sum = 0;
                each_target(i, [&](Index j, double p) { sum += p * in[j]; });
                out[i] = sum;
            }
    }
    // moves += uᵀ w over the rows of a segment.
    void count_moves(Index rows, double* moves) const {
        const Index N = m_.states;
        if (m_.dense())
            return gemm<double>(1, t(MatrixRef<const double>(u_.data(), rows, N)), {w_.data(), rows, N}, 1,
                                {moves, N, N});
        for (Index r = 0; r < rows; ++r)
            for (Index i = 0; i < N; ++i)
                each_target(i, [&](Index j, double) { moves[i * N + j] += u_[r * N + i] * w_[r * N + j]; });
    }

    ModelView m_;
    Index rows_;                     // rows of u and w together that fit in the budget
    Array<double> emission_, back_;  // Eᵀ, Pᵀ
    Sequences all_;
    Array<Index> order_;                         // nonempty sequences, longest first
    Index group_ = 0, time_ = 0, segment_ = 0;   // first of the group, its longest length, times per segment
    Array<Index> first_;                         // the row where each time begins
    Index start_ = 0;                            // the same for the current segment
    Array<double> u_, w_, v_, c_, checkpoints_;  // c for the whole group
};

}}}  // namespace isogloss::hmm
