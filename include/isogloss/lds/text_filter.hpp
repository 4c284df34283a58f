/// @file lds/text_filter.hpp  States of a linear dynamical system along a text: filter and smoother.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/lds/kalman.hpp>
#include <numeric>
#include <span>
#include <vector>

namespace isogloss {

/// The steady-state filter and smoother over tokens, h² multiply-adds each per token.
///
///     x̂_t = H x̂_{t-1} + k_{i_t},   x̂_0 = 0,   k_i = L Cᵀ W e_i      filter; the table k [V, h] is made once
///     x̄_t = J x̄_{t+1} + P x̂_t,     x̄_T = x̂_T                       smoother
///
///     TextFilter<float> f(system, steady_state(system));
///     auto states = f.smooth(tokens);                              // [T, h]
///     auto states = f.smooth(sentences);                           // in their order, run side by side
///     f.step(token, state);                                        // streaming: state [h] moves on
///
/// A text is started as if its past were unknown but typical. Far from its ends these are the exact
/// conditional means; for the exact ones everywhere see exact_smoother.
///
/// Errors   UsageError: a state of another size. DataError: a token outside the vocabulary.
/// Source   Belanger, Kakade 2015, eqs. (4)-(5), (33)-(37).
template <class T> class TextFilter {
public:
    TextFilter(const Lds<T>& s, const SteadyState& f)
        : mu_(s.whitening.mu),
          words_(s.whitening.words),
          H_(transposed(f.H)),
          J_(transposed(f.J)),
          P_(transposed(f.P)),
          At_(transposed(s.A)),
          log_det_S_(f.log_det_S) {
        require_consistent(s, "TextFilter");
        columns_ = s.C;
        for (Index i = 0; i < s.vocabulary(); ++i)
            for (Index j = 0; j < s.states(); ++j)
                columns_.data()[i * s.states() + j] *= static_cast<T>(s.whitening.w[std::size_t(i)]);
        table_ = times(columns_, transposed(f.L));
        G_ = inner_products(s.C, s.C);
        NF_ = product(SmallMatrix(f.predicted - s.M), f.F);
    }

    Index states() const { return cols_of(table_); }      ///< h
    Index vocabulary() const { return rows_of(table_); }  ///< V
    /// k_i, by word: what a word adds to the state.
    const TallMatrix<T>& table() const { return table_; }

    /// Moves a state [h] on by one token.
    void step(Token token, std::span<T> state) const {
        require(token);
        if (std::ssize(state) != states())
            throw UsageError(
                message("TextFilter: found a state of ", state.size(), " numbers, expected ", states()));
        std::vector<T> next(table_.data() + token * states(), table_.data() + (token + 1) * states());
        gemm<T>(T(1), {state.data(), 1, states()}, ref(H_), T(1), {next.data(), 1, states()});
        std::copy(next.begin(), next.end(), state.begin());
    }

    /// x̂_t of every token, [T, h].
    TallMatrix<T> filter(std::span<const Token> tokens) const {
        const std::span<const Token> one[] = {tokens};
        return filter(std::span<const std::span<const Token>>(one));
    }
    /// x̄_t of every token, [T, h].
    TallMatrix<T> smooth(std::span<const Token> tokens) const {
        const std::span<const Token> one[] = {tokens};
        return smooth(std::span<const std::span<const Token>>(one));
    }

    /// x̂_t of every token of several texts, each started anew, [ΣT, h] in the order given.
    TallMatrix<T> filter(std::span<const std::span<const Token>> texts) const {
        const Plan plan(texts);
        for (const auto& one : texts)
            for (const Token token : one) require(token);
        const Index h = states();
        TallMatrix<T> out = zeros<T>(plan.total, h), now = zeros<T>(plan.widest, h), before = now;
        for (const auto& group : plan.groups) {
            std::fill_n(before.data(), before.size(), T(0));
            for (Index t = 0; t < plan.length(group[0]); ++t) {
                const Index n = plan.active(group, t);
                for (Index b = 0; b < n; ++b) {
                    const auto id = static_cast<std::size_t>(group[std::size_t(b)]);
                    std::copy_n(table_.data() + texts[id][std::size_t(t)] * h, h, now.data() + b * h);
                }
                gemm<T>(T(1), {before.data(), n, h}, ref(H_), T(1), {now.data(), n, h});
                for (Index b = 0; b < n; ++b)
                    std::copy_n(now.data() + b * h, h,
                                out.data() + (plan.start(group[std::size_t(b)]) + t) * h);
                std::swap(now, before);
            }
        }
        return out;
    }

    /// x̄_t of every token of several texts, see filter.
    TallMatrix<T> smooth(std::span<const std::span<const Token>> texts) const {
        const Plan plan(texts);
        const Index h = states();
        const TallMatrix<T> filtered = filter(texts);
        TallMatrix<T> out = filtered, now = zeros<T>(plan.widest, h), after = now;
        gemm<T>(T(1), ref(filtered), ref(P_), T(0), ref(out));
        for (const auto& group : plan.groups)
            for (Index t = plan.length(group[0]) - 1; t >= 0; --t) {
                const Index n = plan.active(group, t), going = plan.active(group, t + 1);
                for (Index b = 0; b < n; ++b) {
                    const Index at = (plan.start(group[std::size_t(b)]) + t) * h;
                    std::copy_n((b < going ? out : filtered).data() + at, h, now.data() + b * h);
                }
                if (going > 0) gemm<T>(T(1), {after.data(), going, h}, ref(J_), T(1), {now.data(), going, h});
                for (Index b = 0; b < n; ++b)
                    std::copy_n(now.data() + b * h, h,
                                out.data() + (plan.start(group[std::size_t(b)]) + t) * h);
                std::swap(now, after);
            }
        return out;
    }

    /// Log-likelihood of a text per token, in nats, in whitened words; comparable for equal μ only.
    ///
    ///     e_t = y_t - C A x̂_{t-1},   -½ [(V-1) log 2π + log det S + eᵀS⁻¹e]
    double log_likelihood(std::span<const Token> tokens) const {
        if (tokens.empty()) throw DataError("TextFilter: a text without tokens has no likelihood");
        const Index h = states();
        std::vector<T> state(std::size_t(h), T(0));
        std::vector<double> a(static_cast<std::size_t>(h)), d(a), Ga(a), NFd(a);
        const auto multiply = [h](const SmallMatrix& m, const auto& x, std::vector<double>& y) {
            for (Index i = 0; i < h; ++i) {
                double sum = 0;
                for (Index j = 0; j < h; ++j)
                    sum += m.data()[i * h + j] * static_cast<double>(x[std::size_t(j)]);
                y[std::size_t(i)] = sum;
            }
        };
        const SmallMatrix A = transposed(At_);
        double sum = 0;
        for (const Token token : tokens) {
            require(token);
            const double mu = mu_[static_cast<std::size_t>(token)];
            if (!(mu > 0))
                throw DataError(message("TextFilter: word ", token,
                                        " has frequency 0, so the text has no likelihood; "
                                        "count with pseudo-counts"));
            multiply(A, state, a);
            multiply(G_, a, Ga);
            double squares = 1 / mu - 1;
            for (Index j = 0; j < h; ++j) {
                const auto c = static_cast<double>(columns_.data()[token * h + j]);
                squares += a[std::size_t(j)] * (Ga[std::size_t(j)] - 2 * c);
                d[std::size_t(j)] = c - Ga[std::size_t(j)];
            }
            multiply(NF_, d, NFd);
            for (Index j = 0; j < h; ++j) squares -= d[std::size_t(j)] * NFd[std::size_t(j)];
            sum += squares;
            step(token, state);
        }
        return -0.5 * (static_cast<double>(words_ - 1) * std::log(6.283185307179586) + log_det_S_ +
                       sum / static_cast<double>(tokens.size()));
    }

private:
    // Texts in groups that run side by side, longest first, so that those still going are the first ones.
    struct Plan {
        explicit Plan(std::span<const std::span<const Token>> texts) {
            std::vector<Index> order;
            for (const auto& one : texts) {
                starts.push_back(total);
                lengths.push_back(std::ssize(one));
                total += lengths.back();
                if (!one.empty()) order.push_back(std::ssize(lengths) - 1);
            }
            std::stable_sort(order.begin(), order.end(),
                             [&](Index a, Index b) { return length(a) > length(b); });
            constexpr std::size_t together = 256;
            for (std::size_t i = 0; i < order.size(); i += together) {
                const std::size_t n = std::min(together, order.size() - i);
                groups.emplace_back(order.begin() + std::ptrdiff_t(i), order.begin() + std::ptrdiff_t(i + n));
                widest = std::max(widest, static_cast<Index>(n));
            }
        }
        Index length(Index i) const { return lengths[std::size_t(i)]; }
        Index start(Index i) const { return starts[std::size_t(i)]; }
        Index active(const std::vector<Index>& group, Index t) const {
            return std::partition_point(group.begin(), group.end(), [&](Index i) { return length(i) > t; }) -
                   group.begin();
        }
        std::vector<Index> starts, lengths;
        std::vector<std::vector<Index>> groups;
        Index total = 0, widest = 0;
    };

    void require(Token token) const {
        if (token < 0 || token >= vocabulary())
            throw DataError(message("TextFilter: token ", token, " is outside the vocabulary of ",
                                    vocabulary(), " words"));
    }

    std::vector<double> mu_;
    Index words_;
    Tensor<T, 2> H_, J_, P_;  // transposed, in the scalar type of the states
    SmallMatrix At_, G_, NF_;
    double log_det_S_;
    TallMatrix<T> table_, columns_;  // k, and W C
};

}  // namespace isogloss
