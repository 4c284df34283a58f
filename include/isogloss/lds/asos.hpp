/// @file lds/asos.hpp  Expectation-maximisation from lagged covariances: approximate second-order statistics.
#pragma once

#include <cmath>
#include <isogloss/lds/kalman.hpp>
#include <isogloss/lds/model.hpp>
#include <isogloss/lds/moments.hpp>
#include <utility>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds {

/// Averages over a text that an M-step needs, and what comes with them.
template <class T> struct Statistics {
    SmallMatrix xx;             ///< E[x_t x_tᵀ | all y]
    SmallMatrix xx_1;           ///< E[x_{t+1} x_tᵀ | all y]
    TallMatrix<T> yx;           ///< E[y_t x_tᵀ | all y]
    SmallMatrix xx_filtered;    ///< E[x_t x_tᵀ | y to t]
    double log_likelihood = 0;  ///< of the parameters they were made with, nats per token
};

/// The E-step of a linear dynamical system from Ψ_0 … Ψ_k alone: its cost does not depend on the length of
/// the text.
///
///     U_l = Ψ_l C, Z_l = Ψ_lᵀ C      the only products with words;  B_l = CᵀU_l
///     q_l = CᵀE[y_{t+l} x̂_tᵀ],   q_l = q_{l+1} Hᵀ + B_l Lᵀ
///     p_l = E[x̂_{t+l} y_tᵀ] C,    p_0 = q_0ᵀ,  p_l = H p_{l-1} + L B_l
///     X   = E[x̂_{t+k} x̂_tᵀ] solves  X = A X Hᵀ + H^{2k+1} Xᵀ (L G A)ᵀ + p_k Lᵀ    with p of q_{k+1} = 0
///     then q_{k+1} = G A X
///     E[x̂_{t+l} x̂_tᵀ] = E[x̂_{t+l+1} x̂_tᵀ] Hᵀ + p_l Lᵀ
///     E[x̄_{t+l} x̂_tᵀ] = J E[x̄_{t+l+1} x̂_tᵀ] + P E[x̂_{t+l} x̂_tᵀ]
///     E[x̄x̄ᵀ] = J E[x̄x̄ᵀ] Jᵀ + J E[x̄_{t+1} x̂_tᵀ] Pᵀ + P E[x̄_t x̂_tᵀ]ᵀ
///     E[yx̄ᵀ] = Σ_{l=0}^k U_l Lᵀ (Hᵀ)^l W_0 + C A X (Hᵀ)^{k+1} W_0 + Σ_{l=1}^k Z_l Lᵀ W_l
///     W_k = (Jᵀ)^k,  W_l = Pᵀ (Jᵀ)^l + Hᵀ W_{l+1}
///
/// The horizon k closes the recursions: further apart, the filtered states behave as the model says.
///
/// Cost     2k sparse products, 3k products [V, h] × [h, h], O(k h³); memory four [V, h].
/// Errors   UsageError: k < 1 or more than the lags counted, shapes that do not fit, moments of other word
///          frequencies. DataError: a lag without pairs. NumericError: see steady_state; the primary equation
///          does not settle.
/// Source   Martens 2010, in the form of Belanger, Kakade 2015, section 4.  Departures: E[yx̄ᵀ] is one
///          weighted sum, so that no array of V × h is kept per lag; ends of the text are left out.
template <class T>
Statistics<T> asos_statistics(const Lds<T>& s, const SteadyState& f, const LagMoments<T>& moments, Index k) {
    require_consistent(s, "ASOS");
    if (k < 1 || k > moments.lags() || moments.vocabulary() != s.vocabulary())
        throw UsageError("ASOS: found a horizon of ", k, " with counts of ", moments.lags(), " lags and ",
                         moments.vocabulary(), " words, expected 1 … ", moments.lags(), " lags and ",
                         s.vocabulary(), " words");
    if (moments.whitening().mu != s.whitening.mu)
        throw UsageError(
            "ASOS: found moments of other word frequencies than those of the system; take the counts and "
            "pseudo-counts it was made with");
    moments.require_pairs(k, "ASOS");
    const Index h = s.states(), V = s.vocabulary();
    const SmallMatrix Ht = transposed(f.H), Lt = transposed(f.L), Jt = transposed(f.J), Pt = transposed(f.P);

    // Powers, and the weights of U and Z in E[y x̄ᵀ].
    Array<SmallMatrix> Ht_to{identity(h)}, Jt_to{identity(h)};
    for (Index l = 0; l <= 2 * k; ++l) Ht_to.push_back(product(Ht_to.back(), Ht));
    for (Index l = 0; l < k; ++l) Jt_to.push_back(product(Jt_to.back(), Jt));
    Array<SmallMatrix> W(k + 1);
    W[k] = Jt_to[k];
    for (Index l = k - 1; l >= 0; --l) W[l] = product(Pt, Jt_to[l]) + product(Ht, W[l + 1]);

    Statistics<T> out;
    out.yx = zeros<T>(V, h);
    Array<SmallMatrix> B;
    TallMatrix<T> U = zeros<T>(V, h);
    for (Index l = 0; l <= k; ++l) {
        moments.apply(l, ref(s.C), ref(U));
        B.push_back(inner_products(s.C, U));
        add_product<T>(1, ref(U), product(Lt, Ht_to[l], W[0]), ref(out.yx));
        if (l == 0) continue;
        moments.apply_transposed(l, ref(s.C), ref(U));
        add_product<T>(1, ref(U), product(Lt, W[l]), ref(out.yx));
    }
    const SmallMatrix G = inner_products(s.C, s.C);
    const SmallMatrix GA = product(G, s.A), LGA_t = transposed(product(f.L, GA));

    // q and p for a given q_{k+1}.
    Array<SmallMatrix> q(k + 2), p(k + 1);
    const auto recur = [&](const SmallMatrix& beyond) {
        q[k + 1] = beyond;
        for (Index l = k; l >= 0; --l) q[l] = product(q[l + 1], Ht) + product(B[l], Lt);
        p[0] = transposed(q[0]);
        for (Index l = 1; l <= k; ++l) p[l] = product(f.H, p[l - 1]) + product(f.L, B[l]);
    };
    recur(zeros<double>(h, h));

    SmallMatrix X = zeros<double>(h, h), rest = product(p[k], Lt);
    const SmallMatrix H_far = transposed(Ht_to[2 * k + 1]);
    for (int i = 0;; ++i) {
        rest = sylvester(s.A, Ht, rest);
        X += rest;
        if (i == 200 || !std::isfinite(frobenius(X)))
            throw NumericError("ASOS: the primary equation does not settle; take a longer horizon");
        if (frobenius(rest) <= 1e-13 * frobenius(X)) break;
        rest = product(H_far, product(transposed(rest), LGA_t));
    }
    recur(product(GA, X));
    add_product<T>(1, ref(s.C), product(product(s.A, X), Ht_to[k + 1], W[0]), ref(out.yx));

    // Filtered with filtered, then smoothed with filtered, from the horizon down.
    SmallMatrix xx = X, sx = X, sx_1 = X;
    for (Index l = k - 1; l >= 0; --l) {
        xx = product(xx, Ht) + product(p[l], Lt);
        sx_1 = sx;
        sx = product(f.J, sx) + product(f.P, xx);
    }
    const SmallMatrix open = product(product(f.J, sx_1), Pt) + product_t(f.P, sx);
    // In exact arithmetic on a stationary text it is symmetric.
    const SmallMatrix ss = symmetrised(sylvester(f.J, Jt, open));
    out.xx = ss + f.smoothed;
    out.xx_1 = product(ss, Jt) + product(sx_1, Pt) + product(f.smoothed, Jt);
    out.xx_filtered = symmetrised(xx) + f.filtered;

    const Index dimension = s.whitening.words - 1;
    const SmallMatrix FGA = product(f.F, GA), FG = product(f.F, G);
    const double squares = static_cast<double>(dimension) -
                           inner(product(SmallMatrix(f.predicted - s.M), FG), identity(h)) -
                           2 * inner(product(f.F, q[1]), s.A) + inner(product(FGA, xx), s.A);
    out.log_likelihood = gaussian_log_likelihood(dimension, f.log_det_S, squares);
    return out;
}

/// Options of the M-step.
struct MaximiseOptions {
    double radius = 0.9999;     ///< eigenvalues of A beyond it are scaled to it, 0 … 1
    double noise_limit = 0.98;  ///< λ_max(C M Cᵀ) is kept at most this where it reaches 1, 0 … 1
};

/// The M-step: A = E[x_{t+1}x_tᵀ] E[xxᵀ]⁻¹, C = E[yxᵀ] E[xxᵀ]⁻¹, M = E[xxᵀ], Q stays I.
///
/// Returns the factor that M had to be scaled with, 1 as a rule.
/// Source   Belanger, Kakade 2015, eq. (9), which this C turns into Ψ_0 - C M Cᵀ, and appendix A.1.
template <class T> double maximise(Statistics<T> statistics, Lds<T>& s, MaximiseOptions options = {}) {
    const char* who = "M-step";
    const SmallMatrix inverse_xx = symmetric_power(statistics.xx, -1, who);
    s.A = with_radius(product(statistics.xx_1, inverse_xx), options.radius, who);
    s.C = times(statistics.yx, inverse_xx);
    project_out<T>(s.whitening.m, ref(s.C));
    s.M = std::move(statistics.xx);
    const SmallMatrix G = inner_products(s.C, s.C);
    return largest_share(G, s.M) < 1 ? 1 : repair_noise(G, s.M, options.noise_limit);
}

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds
