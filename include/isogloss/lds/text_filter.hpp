/// @file lds/text_filter.hpp  States of a linear dynamical system along a text: filter and smoother.
#pragma once

#include <algorithm>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/lds/kalman.hpp>
#include <span>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// Options of TextFilter::log_likelihood and TextFilter::cross_entropy.
struct PredictionOptions {
    /// The least share of its frequency that a word keeps, above 0, at most 1; of no effect on log_likelihood.
    double floor = 0.01;
    /// The token after which the state is reset, as between sentences; -1: none.
    Token boundary = -1;
};

/// The steady-state filter and smoother over tokens, h² and 3 h² multiply-adds per token.
///
///     x̂_t = H x̂_{t-1} + k_{i_t},   x̂_0 = 0,   k_i = L Cᵀ W e_i      filter; the table k [V, h] is made once
///     x̄_t = J x̄_{t+1} + P x̂_t,     x̄_T = x̂_T                       smoother
///
///     TextFilter<float> f(system, steady_state(system));
///     auto states = f.smooth(tokens);                              // [T, h]
///     auto states = f.smooth(sentences);                           // in their order, run side by side
///     f.step(token, state);                                        // streaming: state [h] moves on
///     f.cross_entropy(tokens, {.boundary = eos});                  // how well the next word is predicted
///
/// The initial state of a text is that of an unknown but typical past. Far from the ends these are the exact
/// conditional means.
///
/// Errors   UsageError: a state of the wrong size, the steady state of another number of
///          states. DataError: a token outside the vocabulary.
/// Source   Belanger, Kakade 2015, eqs. (4)-(5), (33)-(37).
template <class T> class TextFilter {
public:
    using Texts =
        ArrayView<const std::span<const Token>>;  ///< several texts, each started from the initial state

    TextFilter(const Lds<T>& s, const SteadyState& f) {
        detail::require_consistent(s, "TextFilter");
        detail::require_shape(f.H, s.states(), s.states(), "TextFilter", "a steady state");
        const BlasOnOneThread blas;
        mu_ = s.whitening.mu, words_ = s.whitening.words, log_det_S_ = f.log_det_S;
        H_ = transposed(f.H), J_ = transposed(f.J), P_ = transposed(f.P), At_ = transposed(s.A);
        columns_ = s.C;
        for (Index i = 0; i < s.vocabulary(); ++i)
            for (Index j = 0; j < s.states(); ++j) columns_(i, j) *= static_cast<T>(s.whitening.w[i]);
        table_ = times(columns_, transposed(f.L));
        G_ = inner_products(s.C, s.C);
        NF_ = product(SmallMatrix(f.predicted - s.M), f.F);
    }

    Index states() const { return cols(table_); }      ///< h
    Index vocabulary() const { return rows(table_); }  ///< V
    /// k_i, by word: what a word adds to the state.
    const TallMatrix<T>& table() const { return table_; }

    /// Advances a state [h] by one token.
    void step(Token token, std::span<T> state) const {
        check(token);
        require("TextFilter", "numbers of the state", std::ssize(state), states(), states());
        const BlasOnOneThread blas;
        Array<T> next(table_.data() + token * states(), table_.data() + (token + 1) * states());
        gemm<T>(T(1), {state.data(), 1, states()}, ref(H_), T(1), {next.data(), 1, states()});
        std::copy(next.begin(), next.end(), state.begin());
    }

    /// x̂_t for every token, [T, h].
    TallMatrix<T> filter(std::span<const Token> tokens) const { return filter(Texts(&tokens, 1)); }
    /// x̄_t for every token, [T, h].
    TallMatrix<T> smooth(std::span<const Token> tokens) const { return smooth(Texts(&tokens, 1)); }

    /// x̂_t for every token of several texts, each started from the initial state, [ΣT, h] in the order given.
    TallMatrix<T> filter(Texts texts) const {
        const Plan plan(texts);
        const BlasOnOneThread blas;
        for (const auto& one : texts)
            for (const Token token : one) check(token);
        TallMatrix<T> out = zeros<T>(plan.total, states());
        recur<false>(plan, H_, out, [&](Index text, Index t, bool) {
            return table_.data() + texts[text].data()[t] * states();
        });
        return out;
    }

    /// x̄_t for every token of several texts, see filter.
    TallMatrix<T> smooth(Texts texts) const {
        const Plan plan(texts);
        const BlasOnOneThread blas;
        const TallMatrix<T> filtered = filter(texts);
        TallMatrix<T> out = filtered;
        gemm<T>(T(1), ref(filtered), ref(P_), T(0), ref(out));
        recur<true>(plan, J_, out, [&](Index text, Index t, bool begun) {
            return (begun ? out : filtered).data() + (plan.starts[text] + t) * states();
        });
        return out;
    }

    /// Log-likelihood of a text per token, in nats, in whitened words; comparable only for equal μ, for example
    /// with static_log_likelihood of the same text.
    ///
    ///     e_t = y_t - C A x̂_{t-1},   -½ [(V-1) log 2π + log det S + eᵀS⁻¹e]
    ///
    /// Throws UsageError for a boundary that is not -1 or a word, DataError for a text without tokens, and if a token
    /// has μ = 0.
    double log_likelihood(std::span<const Token> tokens, PredictionOptions options = {}) const {
        const BlasOnOneThread blas;
        double sum = 0;
        ahead(tokens, options.boundary, [&](Index first, const SmallMatrix& a) {
            const SmallMatrix Ga = product(a, G_);
            SmallMatrix d = Ga;
            for (Index i = 0; i < rows(a); ++i) {
                const Token token = tokens[static_cast<std::size_t>(first + i)];
                sum += 1 / mu_[token] - 1;
                for (Index j = 0; j < states(); ++j) {
                    const auto c = static_cast<double>(columns_(token, j));
                    sum += a(i, j) * (Ga(i, j) - 2 * c);
                    d(i, j) = c - Ga(i, j);
                }
            }
            sum -= inner(product(d, transposed(NF_)), d);
        });
        return gaussian_log_likelihood(words_ - 1, log_det_S_, sum / static_cast<double>(tokens.size()));
    }

    /// Mean -log p(i_t) over the tokens of a text, in nats, where p is the system's predicted mean of e_{i_t},
    /// made a distribution: comparable between systems with the same vocabulary, and with the unigram model.
    ///
    ///     E[e_{i_t} | y to t-1] = μ + W⁻¹ C A x̂_{t-1},   its entries sum to 1
    ///     p_i ∝ μ_i max(floor, 1 + w_i (C A x̂_{t-1})_i)
    ///
    /// Throws UsageError for `floor` or `boundary` out of range, DataError as log_likelihood, NumericError for a
    /// prediction not finite.
    double cross_entropy(std::span<const Token> tokens, PredictionOptions options = {}) const {
        require("TextFilter", "floor", options.floor, Exclusive{0}, 1);
        const BlasOnOneThread blas;
        const Index V = vocabulary(), block = 64;
        Tensor<T, 2> some = zeros<T>(block, states()), ratios = zeros<T>(block, V);
        double nats = 0;
        ahead(tokens, options.boundary, [&](Index first, const SmallMatrix& a) {
            for (Index begin = 0, n; begin < rows(a); begin += n) {
                n = std::min(block, rows(a) - begin);
                std::transform(&a(begin, 0), &a(begin, 0) + n * states(), some.data(),
                               [](double x) { return static_cast<T>(x); });
                gemm<T>(T(1), {some.data(), n, states()}, t(ref(columns_)), T(0), {ratios.data(), n, V});
                for (Index i = 0; i < n; ++i) {
                    const T* r = ratios.data() + i * V;
                    const auto share = [&](Index v) {
                        return mu_[v] * std::max(options.floor, 1 + static_cast<double>(r[v]));
                    };
                    double all = 0;
                    for (Index v = 0; v < V; ++v) all += share(v);
                    require_finite("TextFilter", "the prediction of the system", V, r);
                    nats -= std::log(share(tokens[static_cast<std::size_t>(first + begin + i)]) / all);
                }
            }
        });
        return nats / static_cast<double>(tokens.size());
    }

private:
    // Texts in groups that run side by side, longest first, so that the texts still active come first.
    struct Plan {
        explicit Plan(Texts texts) {
            Array<Index> order;
            for (const auto& one : texts) {
                starts.push_back(total);
                lengths.push_back(std::ssize(one));
                total += lengths.back();
                if (!one.empty()) order.push_back(std::ssize(lengths) - 1);
            }
            std::stable_sort(order.begin(), order.end(),
                             [&](Index a, Index b) { return lengths[a] > lengths[b]; });
            constexpr Index together = 256;
            for (Index i = 0; i < std::ssize(order); i += together) {
                const Index n = std::min(together, std::ssize(order) - i);
                groups.push_back(std::vector(order.begin() + i, order.begin() + i + n));
                widest = std::max(widest, n);
            }
        }
        // Number of texts of a group that have a token t: these are the first ones.
        Index active(const Array<Index>& group, Index t) const {
            return std::partition_point(group.begin(), group.end(), [&](Index i) { return lengths[i] > t; }) -
                   group.begin();
        }
        Array<Index> starts, lengths;
        Array<Array<Index>> groups;
        Index total = 0, widest = 0;
    };

    // state(t) = start(text, t, begun) + M state(t ± 1) for all texts, from their ends on if `back`; no state of the text
    // precedes the one that is not `begun`. Into the rows of `out`.
    template <bool back, class Start>
    void recur(const Plan& plan, const Tensor<T, 2>& M, TallMatrix<T>& out, Start&& start) const {
        const Index h = states();
        TallMatrix<T> now = zeros<T>(plan.widest, h), last = now;
        for (const auto& group : plan.groups)
            for (Index length = plan.lengths[group[0]], i = 0; i < length; ++i) {
                const Index t = back ? length - 1 - i : i, n = plan.active(group, t);
                const Index begun = i == 0 ? 0 : back ? plan.active(group, t + 1) : n;
                for (Index b = 0; b < n; ++b)
                    std::copy_n(start(group[b], t, b < begun), h, now.data() + b * h);
                if (begun > 0) gemm<T>(T(1), {last.data(), begun, h}, ref(M), T(1), {now.data(), begun, h});
                for (Index b = 0; b < n; ++b)
                    std::copy_n(now.data() + b * h, h, out.data() + (plan.starts[group[b]] + t) * h);
                std::swap(now, last);
            }
    }

    // Calls f(first, a) for parts of a text, where a has rows A x̂_{t-1} for the tokens from `first` on.
    template <class F> void ahead(std::span<const Token> tokens, Token boundary, F&& f) const {
        require("TextFilter", "boundary", Index{boundary}, -1, vocabulary() - 1);
        detail::require_likely(tokens, mu_, "TextFilter");
        constexpr Index part = 256;
        const Index h = states();
        Array<T> state(h), next(h);
        for (Index first = 0, n; first < std::ssize(tokens); first += n) {
            n = std::min(part, std::ssize(tokens) - first);
            SmallMatrix before = zeros<double>(n, h);
            for (Index i = 0; i < n; ++i) {
                const Token token = tokens[static_cast<std::size_t>(first + i)];
                std::copy(state.begin(), state.end(), &before(i, 0));
                std::copy_n(table_.data() + token * h, h, next.begin());
                gemm<T>(T(1), {state.data(), 1, h}, ref(H_), T(1), {next.data(), 1, h});
                std::swap(state, next);
                if (token == boundary) std::fill(state.begin(), state.end(), T(0));
            }
            f(first, product(before, At_));
        }
    }
    void check(Token token) const {
        require<DataError>("TextFilter", "token", Index{token}, 0, vocabulary() - 1);
    }

    Array<double> mu_;
    Index words_ = 0;
    Tensor<T, 2> H_, J_, P_;  // transposed, in the scalar type of the states
    SmallMatrix At_, G_, NF_;
    double log_det_S_ = 0;
    TallMatrix<T> table_, columns_;  // k, and W C
};

}}}  // namespace isogloss::lds
