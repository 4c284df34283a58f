/// @file reference/lds_exact.hpp  Exact time-varying filter, smoother and EM along a text: what the steady state is compared with.
#pragma once

#include <cmath>
#include <isogloss/lds/asos.hpp>
#include <isogloss/lds/kalman.hpp>
#include <utility>

namespace reference {

using namespace isogloss;
using namespace isogloss::lds;

/// What exact_smoother computes for a text of T tokens.
template <class T> struct ExactStates {
    SmallMatrix filtered, smoothed;          ///< x̂_t and x̄_t, [T, h]
    Array<SmallMatrix> filtered_covariance;  ///< of each x_t given y up to t
    Array<SmallMatrix> smoothed_covariance;  ///< of each x_t given all y
    Statistics<T> statistics;                ///< averages over the text; xx_1 over T - 1 pairs
    SmallMatrix xx_before;                   ///< E[x_t x_tᵀ] over t = 1 … T-1
};

/// Kalman filter and Rauch-Tung-Striebel smoother with a covariance for every token: x_1 ~ N(0, I), as after
/// x_0 = 0.
///
///     x_t^{t-1} = A x_{t-1}^{t-1},   Σ_t^{t-1} = A Σ_{t-1}^{t-1} Aᵀ + I
///     F = (I + G (Σ_t^{t-1} - M))⁻¹,  L = Σ_t^{t-1} F,   x_t^t = x_t^{t-1} + L (Cᵀy_t - G x_t^{t-1})
///     Σ_t^t = Σ_t^{t-1} - L G Σ_t^{t-1},   J_t = Σ_t^t Aᵀ (Σ_{t+1}^t)⁻¹
///     x_t^T = x_t^t + J_t (x_{t+1}^T - A x_t^t),   Σ_t^T = Σ_t^t + J_t (Σ_{t+1}^T - Σ_{t+1}^t) J_tᵀ
///
/// Cost     O(T h³) time and O(T h²) memory: a reference for small problems.
/// Source   Belanger, Kakade 2015, eqs. (45)-(52), with misprints corrected.
template <class T> ExactStates<T> exact_smoother(const Lds<T>& s, ArrayView<const Token> tokens) {
    const char* who = "exact smoother";
    const BlasOnOneThread blas;
    const Index h = s.states(), N = std::ssize(tokens);
    const SmallMatrix I = identity(h), G = inner_products(s.C, s.C);
    const auto column = [&](const SmallMatrix& m, Index t) {
        SmallMatrix x = zeros<double>(h, 1);
        for (Index j = 0; j < h; ++j) x.data()[j] = m.data()[t * h + j];
        return x;
    };
    const auto store = [&](SmallMatrix& m, Index t, const SmallMatrix& x) {
        std::copy_n(x.data(), h, m.data() + t * h);
    };

    ExactStates<T> out;
    out.filtered = out.smoothed = zeros<double>(N, h);
    Array<SmallMatrix> predicted;
    SmallMatrix x = zeros<double>(h, 1), cov = zeros<double>(h, h);
    double log_sum = 0;
    for (Index t = 0; t < N; ++t) {
        const Token word = tokens[t];
        const double w = s.whitening.w[word];
        SmallMatrix Cy = zeros<double>(h, 1);
        for (Index j = 0; j < h; ++j) Cy.data()[j] = w * static_cast<double>(s.C(word, j));
        const SmallMatrix a = product(s.A, x);
        const SmallMatrix ahead = symmetrised(product(s.A, product_t(cov, s.A)) + I);
        const SmallMatrix N_ = ahead - s.M, S = I + product(G, N_);
        const SmallMatrix F = inverse(S, who), L = product(ahead, F);
        const SmallMatrix d = Cy - product(G, a), NFd = product(N_, F, d);
        x = a + product(L, d);
        cov = symmetrised(ahead - product(L, G, ahead));
        for (const double modulus : schur<double>(S, who).moduli()) log_sum += std::log(modulus);
        log_sum += w * w - 1 - 2 * inner(Cy, a) + inner(a, product(G, a)) - inner(d, NFd);
        predicted.push_back(ahead);
        out.filtered_covariance.push_back(cov);
        store(out.filtered, t, x);
    }

    Statistics<T>& sums = out.statistics;
    sums.xx = sums.xx_1 = sums.xx_filtered = out.xx_before = zeros<double>(h, h);
    sums.yx = zeros<T>(s.vocabulary(), h);
    SmallMatrix yx = zeros<double>(s.vocabulary(), h), mean = zeros<double>(1, h);
    out.smoothed_covariance.resize(N);
    SmallMatrix later = x, later_cov = cov;
    for (Index t = N - 1; t >= 0; --t) {
        SmallMatrix now = column(out.filtered, t), now_cov = out.filtered_covariance[t];
        if (t + 1 < N) {
            const SmallMatrix& ahead = predicted[t + 1];
            const SmallMatrix J = transposed(solve(ahead, product(s.A, now_cov), who));
            const SmallMatrix change = later - product(s.A, now), cov_change = later_cov - ahead;
            now += product(J, change);
            now_cov = symmetrised(now_cov + product(J, product_t(cov_change, J)));
            sums.xx_1 += product_t(later, now) + product_t(later_cov, J);
            out.xx_before += product_t(now, now) + now_cov;
        }
        sums.xx += product_t(now, now) + now_cov;
        const SmallMatrix filtered = column(out.filtered, t);
        sums.xx_filtered += product_t(filtered, filtered) + out.filtered_covariance[t];
        const Token word = tokens[t];
        for (Index j = 0; j < h; ++j) {
            yx(word, j) += s.whitening.w[word] * now.data()[j];
            mean.data()[j] += now.data()[j];
        }
        store(out.smoothed, t, now);
        out.smoothed_covariance[t] = now_cov;
        later = now;
        later_cov = now_cov;
    }
    const double n = static_cast<double>(N);
    for (Index i = 0; i < s.vocabulary(); ++i)
        for (Index j = 0; j < h; ++j)
            sums.yx(i, j) = static_cast<T>((yx(i, j) - s.whitening.m[i] * mean.data()[j]) / n);
    sums.xx /= n;
    sums.xx_filtered /= n;
    sums.xx_1 /= n - 1;
    out.xx_before /= n - 1;
    sums.log_likelihood = gaussian_log_likelihood(s.whitening.dimension, 0, log_sum / n);
    return out;
}

/// One iteration of EM with exact statistics of a text; returns its log-likelihood per token before the step,
/// which never decreases between iterations.
///
/// μ must be the frequencies of this same text, without pseudo-counts: only then is I - m mᵀ the covariance
/// of y, and the M-step exact. With `scaled` the covariance of η too, up to the first state, whose prior stays I.
template <class T> double exact_em_step(Lds<T>& s, ArrayView<const Token> tokens, bool scaled = false) {
    const char* who = "exact EM";
    const BlasOnOneThread blas;
    ExactStates<T> e = exact_smoother(s, tokens);
    const double value = e.statistics.log_likelihood;
    SmallMatrix A = with_radius(product(e.statistics.xx_1, symmetric_power(e.xx_before, -1, who)),
                                MaximiseOptions{}.radius, who);
    const SmallMatrix Q = symmetrised(e.statistics.xx - product_t(A, e.statistics.xx_1));
    maximise(std::move(e.statistics), s, {.scaled = false});
    s.A = std::move(A);
    if (scaled) {
        const SmallMatrix half = symmetric_power(Q, 0.5, who), back = symmetric_power(Q, -0.5, who);
        s.A = product(back, s.A, half), s.C = times(s.C, half), s.M = product(back, s.M, back);
    }
    return value;
}

}  // namespace reference
