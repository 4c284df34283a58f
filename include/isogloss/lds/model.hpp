/// @file lds/model.hpp  The parameters of a linear dynamical system over whitened words.
#pragma once

#include <cmath>
#include <isogloss/lds/dense.hpp>
#include <isogloss/lds/whitening.hpp>
#include <numbers>
#include <span>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// A linear dynamical system over whitened words y_t (see Whitening).
///
///     x_t = A x_{t-1} + η_t,   η ~ N(0, I)
///     y_t = C x_t + ε_t,       ε ~ N(0, R),   R = I - m mᵀ - C M Cᵀ
///
/// The noise covariance of the words is never stored: it is the identity on the space orthogonal to m, minus a
/// matrix of rank h. The basis of x is arbitrary, so covariance I of η is no restriction.
///
/// Shapes   A, M [h, h] in double, M symmetric;  C [V, h], Cᵀm = 0;  μ by word
/// Source   Belanger, Kakade 2015, eqs. (1)-(2), (9), (12).
template <class T> struct Lds {
    SmallMatrix A;        ///< transition; eigenvalues inside the unit circle
    TallMatrix<T> C;      ///< maps states to whitened words
    SmallMatrix M;        ///< R subtracts C M Cᵀ
    Whitening whitening;  ///< μ, m, w

    Index states() const { return rows(A); }      ///< h
    Index vocabulary() const { return rows(C); }  ///< V
};

namespace detail {

/// Throws UsageError unless the shapes of a system are consistent, with at least one state.
template <class T> void require_consistent(const Lds<T>& s, const char* who) {
    const Index h = s.states();
    if (h < 1 || cols(s.A) != h || rows(s.M) != h || cols(s.M) != h || cols(s.C) != h ||
        s.vocabulary() != std::ssize(s.whitening.mu))
        throw UsageError(who, ": found A [", h, ", ", cols(s.A), "], C [", s.vocabulary(), ", ", cols(s.C),
                         "], M [", rows(s.M), ", ", cols(s.M), "] and ", s.whitening.mu.size(),
                         " frequencies");
}

/// Throws UsageError unless what is given beside a system, averages or a steady state, has the shape that it has for it.
template <class M>
void require_shape(const M& m, Index expected_rows, Index expected_cols, const char* who, const char* name) {
    if (rows(m) != expected_rows || cols(m) != expected_cols)
        throw UsageError(who, ": found ", name, " [", rows(m), ", ", cols(m), "], expected [", expected_rows,
                         ", ", expected_cols, "] for this system");
}

/// Throws DataError unless a text has a likelihood: tokens, each of a word with μ > 0.
inline void require_likely(std::span<const Token> tokens, const Array<double>& mu, const char* who) {
    if (tokens.empty()) throw DataError(who, ": a text without tokens has no likelihood");
    for (const Token token : tokens)
        if (token < 0 || token >= std::ssize(mu) || !(mu[token] > 0))
            throw DataError(who, ": found token ", token, ", expected one of the ", mu.size(),
                            " words, with a frequency above 0");
}

}  // namespace detail

/// Mean of log N(y_t; a_t, S) over tokens, in nats, from log det S and the mean of (y_t - a_t)ᵀ S⁻¹ (y_t - a_t).
inline double gaussian_log_likelihood(Index dimension, double log_det, double squares) {
    return -0.5 * (static_cast<double>(dimension) * std::log(2 * std::numbers::pi) + log_det + squares);
}

/// Log-likelihood per token of whitened words under a model without dynamics, N(0, I - m mᵀ): the baseline
/// for the same μ. `words`: the number of words with μ > 0.
inline double static_log_likelihood(Index words) {
    require("static log-likelihood", "words", words, 1);
    return -0.5 * static_cast<double>(words - 1) * (1 + std::log(2 * std::numbers::pi));
}

/// The same for a text: under frequencies other than μ its words do not have variance 1. Throws DataError for a
/// text without tokens, for a token outside the vocabulary, and for a token with μ = 0.
inline double static_log_likelihood(const Whitening& whitening, std::span<const Token> tokens) {
    detail::require_likely(tokens, whitening.mu, "static log-likelihood");
    double squares = 0;
    for (const Token token : tokens) squares += 1 / whitening.mu[token] - 1;
    return gaussian_log_likelihood(whitening.dimension, 0, squares / static_cast<double>(tokens.size()));
}

/// λ_max(C M Cᵀ) = λ_max(M^½ CᵀC M^½): R is positive definite on the space orthogonal to m if this is
/// below 1. G = CᵀC. 0 for an M without positive eigenvalues, such as 0, of white noise R = I - m mᵀ: C M Cᵀ has
/// none either. Of an M that has both, the negative ones count as 0, which may only raise the result.
inline double largest_share(const SmallMatrix& G, const SmallMatrix& M) {
    const char* who = "noise covariance";
    const BlasOnOneThread blas;
    const auto e = symmetric_eigen<double>(M, who);
    if (e.values.empty() || !(e.values.back() > 0)) return 0;
    const SmallMatrix root = symmetric_power(e, 0.5, who);
    return symmetric_eigen<double>(symmetrised(product(root, G, root)), who).values.back();
}

/// Scales M by limit / λ_max(C M Cᵀ) if λ_max is at least `limit`, above 0 and below 1, so that R is positive
/// definite; returns the factor, 1 if M is unchanged. Throws UsageError for another limit.
///
/// Source   Belanger, Kakade 2015, appendix A.1. Departure: the paper's factor 1 / λ_max leaves R singular,
///          so the limit is below 1; λ_max comes from an h × h problem instead of power iterations.
inline double repair_noise(const SmallMatrix& G, SmallMatrix& M, double limit = 0.98) {
    require("repair_noise", "limit", limit, Exclusive{0}, Exclusive{1});
    const double share = largest_share(G, M);
    if (share < limit) return 1;
    M *= limit / share;
    return limit / share;
}

}}}  // namespace isogloss::lds
