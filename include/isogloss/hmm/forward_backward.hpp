/// @file hmm/forward_backward.hpp  The forward-backward recursions of many sequences in parallel.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <isogloss/array.hpp>
#include <isogloss/elementary.hpp>
#include <isogloss/error.hpp>
#include <isogloss/kernel/transpose.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/subnormals.hpp>
#include <ranges>
#include <span>
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
        if (states != states_ || symbols != symbols_)
            throw UsageError("hmm: found counts of ", states, " states and ", symbols, " symbols, expected ",
                             states_, " and ", symbols_);
    }
};

/// Sequences of symbols in memory owned elsewhere. Converts from one sequence, and from a std::vector or std::span of
/// sequences, each of them a std::vector<Token> or a std::span<const Token>, such as a part of a mapped text::Corpus.
class Sequences {
public:
    /// None.
    Sequences() = default;
    explicit Sequences(std::span<const Token> only) : list_{only} {}
    template <std::ranges::forward_range List>
    requires std::convertible_to<std::ranges::range_reference_t<const List>, std::span<const Token>>
    Sequences(const List& list) : list_(std::ranges::begin(list), std::ranges::end(list)) {}

    Index size() const { return std::ssize(list_); }
    ArrayView<const Token> operator[](Index k) const { return list_[k]; }
    /// Sequences first … last - 1.
    Sequences part(Index first, Index last) const {
        Sequences some;
        some.list_.assign(list_.begin() + first, list_.begin() + last);
        some.first_ = first_ + first;
        return some;
    }
    /// The number of sequence k in the list that this is a part of, for messages.
    Index number(Index k) const { return first_ + k; }

    /// Throws DataError for a symbol that is neither one of 0 to symbols - 1 nor missing.
    void require_symbols(Index symbols) const {
        for (Index k = 0; k < size(); ++k)
            for (Index t = 0; t < std::ssize(list_[k]); ++t)
                if (const Token s = (*this)[k][t]; s >= symbols || s < not_predicted)
                    throw DataError("hmm: found symbol ", s, " at position ", t, " of sequence ", number(k),
                                    ", expected -1 to ", symbols - 1);
    }

private:
    Array<std::span<const Token>> list_;
    Index first_ = 0;  // in the list that this is a part of
};

namespace detail {

/// Throws NumericError for a symbol whose probability c, given those before it, is 0 or not a number.
[[noreturn]] inline void refuse_probability(double c, Token symbol, Index position, Index sequence) {
    throw NumericError("hmm: symbol ", symbol, " at position ", position, " of sequence ", sequence,
                       " has probability ", c, "; give emissions a prior above 0");
}

}  // namespace detail

/// What the recursions read of a model.
struct ModelView {
    Index states = 0, symbols = 0;
    const double* initial = nullptr;     ///< [N]
    const double* transition = nullptr;  ///< [N, N]
    const double* emission = nullptr;    ///< [A, N]: one row per symbol
    /// If they are not empty, state i moves only to target[first[i]] … target[first[i + 1] - 1].
    ArrayView<const Index> first = {}, target = {};

    /// Calls f(j) for every state j that state i may move to.
    template <class F> void each_target(Index i, F&& f) const {
        if (first.empty())
            for (Index j = 0; j < states; ++j) f(j);
        else
            for (Index k = first[i]; k < first[i + 1]; ++k) f(target[k]);
    }
    /// out [n, N] = in [n, N] P; `matrix` is P, which is read where there is no list of moves.
    template <class Real> void move(const Real* in, Index n, const Real* matrix, Real* out) const {
        if (first.empty()) return product(in, n, matrix, out);
        std::fill_n(out, n * states, Real(0));
        for (Index b = 0; b < n; ++b, in += states, out += states)
            for (Index i = 0; i < states; ++i)
                each_target(i, [&](Index j) { out[j] += Real(in[i] * transition[i * states + j]); });
    }
    /// out [n, N] = in [n, N] Pᵀ; `transposed` is Pᵀ, which is read where there is no list of moves.
    template <class Real> void move_back(const Real* in, Index n, const Real* transposed, Real* out) const {
        if (first.empty()) return product(in, n, transposed, out);
        for (Index b = 0; b < n; ++b, in += states, out += states)
            for (Index i = 0; i < states; ++i) {
                double sum = 0;
                each_target(i, [&](Index j) { sum += transition[i * states + j] * in[j]; });
                out[i] = Real(sum);
            }
    }

private:
    // out [n, N] = in [n, N] matrix [N, N]
    template <class Real> void product(const Real* in, Index n, const Real* matrix, Real* out) const {
        const Index N = states;
        constexpr Index worth_calling = 512;  // multiply-adds below which the overhead of BLAS dominates
        if (n * N * N >= worth_calling) return gemm<Real>(1, {in, n, N}, {matrix, N, N}, 0, {out, n, N});
        std::fill_n(out, n * N, Real(0));
        for (Index b = 0; b < n; ++b)
            for (Index i = 0; i < N; ++i)
                for (Index j = 0; j < N; ++j) out[b * N + j] += in[b * N + i] * matrix[i * N + j];
    }
};

/// The recursions of Hmm for many sequences at once. Sequences are sorted by length, longest first, and
/// stacked as rows; at time t the n_t sequences longer than t remain, and a step of all of them is one product
///
///     α_{t+1} [n, N] = u_t [n, N] P,   v_t [n, N] = w_t [n, N] Pᵀ,    w_t(j) = E_{j x_{t+1}} v_{t+1}(j) / c_{t+1}
///     Σ_t u_tᵀ w_t                       one product for a segment of times
///
/// in place of matrix-vector products, which read P for every position. The results are those of the sequences one
/// by one, up to the rounding of Real, of which u, v, w and the products are; other sums are of double.
/// Where u_t(i) = 0, v_t(i) counts as 0: it contributes to no count, and may overflow. Subnormal numbers count as 0.
///
/// Memory   N² numbers for the transpose of P, in float as many for P and for the counts of a segment, and `budget`
///          bytes for u and w of the stacked sequences. If that does not hold all times of at least 32 sequences, u is
///          kept at every S-th time, S = √(T/2), and recomputed from there: a third more work. A sequence takes
///          2 √(2T) N numbers then, even if the budget is smaller. To these come 8 bytes for each symbol and time.
///          log_likelihood() takes 2 N numbers for each of up to 256 sequences, and no transpose.
/// Source   Rabiner 1989, section III; Churchill, Lazareva 1999, checkpoints in time.
template <class Real = double> class ForwardBackward {
public:
    /// The model must outlive it and not change.
    ForwardBackward(const ModelView& model, Index budget)
        : m_(model), budget_rows_(budget / (Index{sizeof(Real)} * model.states)) {}

    /// Adds the expected counts and log-likelihoods of sequences. Throws DataError for a symbol out of range and
    /// UsageError for counts of another size, before adding any, NumericError for a sequence of probability 0 under
    /// the model or a model that is not finite, UsageError if memory runs out.
    void add(const Sequences& sequences, ExpectedCounts& counts) {
        counts.require_size(m_.states, m_.symbols);
        smooth(
            sequences, counts.log_likelihood(),
            [&](Index t, Index b, const Real* u, const Real* v) {
                if (t == 0) add_products(u, v, counts.starts());
                if (const Token s = text(b)[t]; s >= 0)
                    add_products(u, v, counts.emissions() + Index{s} * m_.states);
            },
            [&](Index rows) { count_moves(rows, counts.moves()); });
    }

    /// Σ log P(sequence) in nats. Throws as add().
    double log_likelihood(const Sequences& sequences) {
        double total = 0;
        each_group(sequences, false, [&] {
            double sum = 0;
            for (Index t = 0; t < time_; ++t) sum = forward(t, t + 1, sum);
            total += sum;
        });
        return total;
    }

    /// γ_t(i) = P(state i at t | x) for every position of every sequence, in their order: [ΣT, N], row by row. A
    /// missing symbol has a row as well. Throws as add(), UsageError also if there is not enough memory for the result.
    Array<double> posteriors(const Sequences& sequences) {
        const Index N = m_.states;
        Index total = 0;
        for (Index k = 0; k < sequences.size(); ++k) total += std::ssize(sequences[k]);
        Array<double> out;
        within_memory("hmm: posteriors", bytes_of("hmm: posteriors", {total, N}, sizeof(double)),
                      [&] { out.resize(total * N); });
        double log_likelihood = 0;
        smooth(
            sequences, log_likelihood,
            [&](Index t, Index b, const Real* u, const Real* v) {
                add_products(u, v, out.data() + (order_[group_ + b].begin + t) * N);
            },
            [](Index) {});
        return out;
    }

private:
    static constexpr Index most_stacked = 256;
    static constexpr Index enough =
        32;  // sequences for which the budget must hold all times, else checkpoints are used

    struct Row {
        ArrayView<const Token> text;
        Index number, begin;  // of the sequence, and of its first position among all
    };

    ArrayView<const Token> text(Index row) const { return order_[group_ + row].text; }
    Index active(Index t) const { return first_[t + 1] - first_[t]; }  // n_t
    Real* rows(Array<Real>& memory, Index t) const {
        return memory.data() + (first_[t] - start_) * m_.states;
    }
    const Real* transition() const {
        if constexpr (std::same_as<Real, double>) return m_.transition;
        else return rounded_.data();
    }
    const double* emission(Token s) const { return m_.emission + Index{s} * m_.states; }

    // Calls f() for groups of sequences, described by order_, first_, time_ and segment_. Without `both` directions only
    // the last u is kept.
    template <class F> void each_group(const Sequences& sequences, bool both, F&& f) {
        const BlasOnOneThread blas;
        const SubnormalsAreZero flush;
        sequences.require_symbols(m_.symbols);
        order_.clear();
        Index begin = 0;
        for (Index k = 0; k < sequences.size(); begin += std::ssize(sequences[k++]))
            if (!sequences[k].empty()) order_.push_back({sequences[k], sequences.number(k), begin});
        std::stable_sort(order_.begin(), order_.end(),
                         [](const Row& a, const Row& b) { return a.text.size() > b.text.size(); });
        for (Index sequence = 0; sequence < std::ssize(order_);) {
            const Index count = choose_group(sequence, both);
            f();
            sequence += count;
        }
    }

    // Chooses how many of the remaining sequences to stack, and how their time is cut into segments.
    Index choose_group(Index begin, bool both) {
        group_ = begin;
        time_ = std::ssize(text(0));
        const Index left = std::ssize(order_) - begin, groups = (left + most_stacked - 1) / most_stacked;
        const Index share = (left + groups - 1) / groups, whole = budget_rows_ / (2 * time_);
        Index count = std::min(share, whole);
        segment_ = time_;
        if (!both) {
            count = share;
            segment_ = 1;
        } else if (count < std::min(share, enough)) {
            segment_ = std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(time_) / 2)));
            const Index rows = 2 * segment_ + (time_ + segment_ - 1) / segment_;
            count = std::clamp<Index>(budget_rows_ / rows, 1, share);
        }
        first_.assign(1, 0);
        for (Index t = 0, n = count; t < time_; ++t) {
            while (std::ssize(text(n - 1)) <= t) --n;
            first_.push_back(first_.back() + n);
        }
        checkpoints_apart_ = both ? count : 0;
        const Index N = m_.states, rows = std::min(first_.back(), count * segment_);
        const Index checkpoints = segment_ == time_ ? 0 : both ? (time_ - 1) / segment_ : 1;
        const Index bytes =
            bytes_of("hmm", {(both ? 2 : 1) * rows + count * (1 + checkpoints), N}, sizeof(Real)) +
            Index{sizeof(double)} * first_.back();
        within_memory("hmm", bytes, [&] {
            u_.resize(rows * N), c_.resize(first_.back());
            checkpoints_.resize(checkpoints * count * N);
            const bool dense = m_.first.empty();
            if (dense && std::same_as<Real, float> && rounded_.empty())
                for (Index k = 0; k < N * N; ++k) rounded_.push_back(Real(m_.transition[k]));
            if (!both) return;
            w_.resize(rows * N), v_.resize(count * N);
            if (dense && back_.empty()) {
                back_.resize(N * N), moves_.resize(rounded_.size());
                kernel::transpose_add<Real>(N, N, transition(), N, 0, back_.data(), N);
            }
        });
        return count;
    }

    // u at the last time before t, the beginning of a segment other than the first: one row for each sequence of the group.
    Real* checkpoint(Index t) {
        return checkpoints_.data() + (t / segment_ - 1) * checkpoints_apart_ * m_.states;
    }

    // Both recursions. Calls each(t, b, u, v) for every position, with γ_t(i) = u(i) v(i) of row b, and after(rows) for
    // every segment, whose u and w then have so many rows. Adds to the log-likelihood.
    template <class Each, class After>
    void smooth(const Sequences& sequences, double& log_likelihood, Each&& each, After&& after) {
        const auto segment = [&](Index begin, Index end) {
            backward(begin, end, each);
            after((end < time_ ? first_[end] : first_.back()) - start_);
        };
        each_group(sequences, true, [&] {
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
        });
    }

    // u and c for the times begin to end - 1, from u at begin - 1 in its checkpoint; saves u at end - 1. Returns
    // total + Σ log c.
    double forward(Index begin, Index end, double total = 0) {
        const Index N = m_.states;
        start_ = first_[begin];
        for (Index t = begin; t < end; ++t) {
            const Index n = active(t);
            Real* const u = rows(u_, t);
            if (t == 0)
                for (Index k = 0; k < n * N; ++k) u[k] = Real(m_.initial[k % N]);
            else m_.move<Real>(t == begin ? checkpoint(t) : rows(u_, t - 1), n, transition(), u);
            for (Index b = 0; b < n; ++b) {
                const Token s = text(b)[t];
                double c = 1;
                if (s >= 0) {
                    const double* const e = emission(s);
                    Real* const row = u + b * N;
                    c = 0;
                    for (Index i = 0; i < N; ++i) c += row[i] * e[i];
                    if (!(c > 0 && std::isfinite(c)))
                        detail::refuse_probability(c, s, t, order_[group_ + b].number);
                    for (Index i = 0; i < N; ++i) row[i] = Real(row[i] * e[i] / c);
                }
                c_[first_[t] + b] = c;
                total += kernel::elementary::log(c);
            }
        }
        if (end < time_) std::copy_n(rows(u_, end - 1), active(end) * N, checkpoint(end));
        return total;
    }

    // v and w for the times begin to end - 1, from u of forward(); v_ is that of time `end` and becomes that of `begin`.
    template <class Each> void backward(Index begin, Index end, Each&& each) {
        const Index N = m_.states;
        for (Index t = end - 1; t >= begin; --t) {
            const Index n = active(t), next = t + 1 < time_ ? active(t + 1) : 0;
            Real *const w = rows(w_, t), *const u = rows(u_, t);
            for (Index b = 0; b < next; ++b) {
                const Token s = text(b)[t + 1];
                const Real* const v = v_.data() + b * N;
                const double scale = 1 / c_[first_[t + 1] + b];
                Real* const row = w + b * N;
                if (s < 0) {
                    std::copy_n(v, N, row);
                    continue;
                }
                const double* const e = emission(s);
                // e / c first: it is at most 1 / α, while v e alone may be below the range.
                for (Index i = 0; i < N; ++i) row[i] = Real(v[i] * (e[i] * scale));
            }
            std::fill(w + next * N, w + n * N, Real(0));  // sequences that end here have no next state
            m_.move_back<Real>(w, next, back_.data(), v_.data());
            std::fill(v_.data() + next * N, v_.data() + n * N, Real(1));
            for (Index b = 0; b < n; ++b) {
                Real* const v = v_.data() + b * N;
                const Real* const row = u + b * N;
                for (Index i = 0; i < N; ++i) v[i] = row[i] > 0 ? v[i] : 0;
                each(t, b, row, v);
            }
        }
    }
    void add_products(const Real* u, const Real* v, double* sums) const {
        for (Index i = 0; i < m_.states; ++i) sums[i] += double{u[i]} * v[i];
    }
    // moves += uᵀ w over the rows of a segment.
    void count_moves(Index count, double* moves) {
        const Index N = m_.states;
        if (m_.first.empty()) {
            const auto add = [&](Real beta, Real* sums) {
                gemm<Real>(1, t(MatrixRef<const Real>(u_.data(), count, N)), {w_.data(), count, N}, beta,
                           {sums, N, N});
            };
            if constexpr (std::same_as<Real, double>) return add(1, moves);
            add(0, moves_.data());
            for (Index k = 0; k < N * N; ++k) moves[k] += moves_[k];
            return;
        }
        for (Index r = 0; r < count; ++r)
            for (Index i = 0; i < N; ++i)
                m_.each_target(i,
                               [&](Index j) { moves[i * N + j] += double{u_[r * N + i]} * w_[r * N + j]; });
    }

    ModelView m_;
    Index budget_rows_;                         // rows of u and w together that fit in the budget
    Array<Real> rounded_, back_, moves_;        // P in float, Pᵀ, and Σ uᵀ w of a segment in float
    Array<Row> order_;                          // nonempty sequences, longest first
    Index group_ = 0, time_ = 0, segment_ = 0;  // first of the group, its longest length, times per segment
    Index checkpoints_apart_ = 0;               // rows from one to the next; 0: there is one alone
    Array<Index> first_;                        // the row where each time begins
    Index start_ = 0;                           // the same for the current segment
    Array<Real> u_, w_, v_, checkpoints_;
    Array<double> c_;  // for the whole group
};

}}}  // namespace isogloss::hmm
