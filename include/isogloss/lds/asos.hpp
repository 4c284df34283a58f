/// @file lds/asos.hpp  Expectation-maximisation from lagged covariances: approximate second-order statistics.
#pragma once

#include <cmath>
#include <isogloss/lds/kalman.hpp>
#include <isogloss/lds/model.hpp>
#include <isogloss/lds/whitening.hpp>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// Averages over a text that an M-step needs, and the log-likelihood.
template <class T> struct Statistics {
    SmallMatrix xx;             ///< E[x_t x_tᵀ | all y]
    SmallMatrix xx_1;           ///< E[x_{t+1} x_tᵀ | all y]
    TallMatrix<T> yx;           ///< E[y_t x_tᵀ | all y]
    SmallMatrix xx_filtered;    ///< E[x_t x_tᵀ | y up to t]
    double log_likelihood = 0;  ///< of the parameters the averages were computed with, nats per token
};

/// The h × h algebra of asos_statistics, in the notation given there: weights of the sparse products, and the
/// statistics of the states from B_l. Independent of the words, and so identical on every rank when the words
/// are distributed over ranks.
class AsosRecursion {
public:
    /// For k ≥ 1 lags. A and M are of the system; F, H, … of its steady state.
    AsosRecursion(const SmallMatrix& A, const SmallMatrix& M, const SteadyState& f, Index k)
        : A_(A),
          M_(M),
          f_(f),
          k_(k),
          Ht_(transposed(f.H)),
          Lt_(transposed(f.L)),
          Jt_(transposed(f.J)),
          Pt_(transposed(f.P)) {
        const Index h = rows(A);
        Array<SmallMatrix> Jt_to{identity(h)};
        Ht_to_.push_back(identity(h));
        for (Index l = 0; l <= 2 * k; ++l) Ht_to_.push_back(product(Ht_to_.back(), Ht_));
        for (Index l = 0; l < k; ++l) Jt_to.push_back(product(Jt_to.back(), Jt_));
        W_.resize(k + 1);
        W_[k] = Jt_to[k];
        for (Index l = k - 1; l >= 0; --l) W_[l] = product(Pt_, Jt_to[l]) + product(Ht_, W_[l + 1]);
    }

    SmallMatrix weight(Index l) const { return product(Lt_, Ht_to_[l], W_[0]); }  ///< of U_l in E[yx̄ᵀ]
    SmallMatrix weight_transposed(Index l) const { return product(Lt_, W_[l]); }  ///< of Z_l, l ≥ 1

    /// For some rows of C, adds the terms of U_l and Z_l to the same rows of yx, and returns B_0 … B_k of these
    /// rows. `apply(l, block)` fills a block with these rows of U_l, `apply_transposed(l, block)` of Z_l.
    template <class T> Array<SmallMatrix> add_terms(MatrixRef<const T> C, MatrixRef<T> yx, auto&& apply,
                                                    auto&& apply_transposed) const {
        Array<SmallMatrix> B;
        TallMatrix<T> block = zeros<T>(C.rows, C.cols);
        for (Index l = 0; l <= k_; ++l) {
            apply(l, ref(block));
            B.push_back(inner_products<T>(C, ref(std::as_const(block))));
            add_product<T>(1, ref(block), weight(l), yx);
            if (l == 0) continue;
            apply_transposed(l, ref(block));
            add_product<T>(1, ref(block), weight_transposed(l), yx);
        }
        return B;
    }

    /// Fills all of `out` but yx from B_0 … B_k and G = CᵀC, for observations of dimension `dimension`; returns
    /// the weight of C in yx.
    template <class T> SmallMatrix finish(const Array<SmallMatrix>& B, const SmallMatrix& G, Index dimension,
                                          Statistics<T>& out) const {
        const Index h = rows(A_);
        const SmallMatrix GA = product(G, A_), LGA_t = transposed(product(f_.L, GA));

        // q and p for a given q_{k+1}.
        Array<SmallMatrix> q(k_ + 2), p(k_ + 1);
        const auto recur = [&](const SmallMatrix& beyond) {
            q[k_ + 1] = beyond;
            for (Index l = k_; l >= 0; --l) q[l] = product(q[l + 1], Ht_) + product(B[l], Lt_);
            p[0] = transposed(q[0]);
            for (Index l = 1; l <= k_; ++l) p[l] = product(f_.H, p[l - 1]) + product(f_.L, B[l]);
        };
        recur(zeros<double>(h, h));

        SmallMatrix X = zeros<double>(h, h), rest = product(p[k_], Lt_);
        const SmallMatrix H_far = transposed(Ht_to_[2 * k_ + 1]);
        for (int i = 0;; ++i) {
            rest = sylvester(A_, Ht_, rest);
            X += rest;
            if (i == 200 || !std::isfinite(detail::frobenius(X)))
                throw NumericError("ASOS: the primary equation does not converge; use a longer horizon");
            if (detail::frobenius(rest) <= 1e-13 * detail::frobenius(X)) break;
            rest = product(H_far, product(transposed(rest), LGA_t));
        }
        recur(product(GA, X));

        // First filtered with filtered, then smoothed with filtered states, from the horizon down.
        SmallMatrix xx = X, sx = X, sx_1 = X;
        for (Index l = k_ - 1; l >= 0; --l) {
            xx = product(xx, Ht_) + product(p[l], Lt_);
            sx_1 = sx;
            sx = product(f_.J, sx) + product(f_.P, xx);
        }
        const SmallMatrix open = product(product(f_.J, sx_1), Pt_) + product_t(f_.P, sx);
        // Symmetric in exact arithmetic on a stationary text.
        const SmallMatrix ss = symmetrised(sylvester(f_.J, Jt_, open));
        out.xx = ss + f_.smoothed;
        out.xx_1 = product(ss, Jt_) + product(sx_1, Pt_) + product(f_.smoothed, Jt_);
        out.xx_filtered = symmetrised(xx) + f_.filtered;

        const SmallMatrix FGA = product(f_.F, GA), FG = product(f_.F, G);
        const double squares = static_cast<double>(dimension) -
                               inner(product(SmallMatrix(f_.predicted - M_), FG), identity(h)) -
                               2 * inner(product(f_.F, q[1]), A_) + inner(product(FGA, xx), A_);
        out.log_likelihood = gaussian_log_likelihood(dimension, f_.log_det_S, squares);
        return product(product(A_, X), Ht_to_[k_ + 1], W_[0]);
    }

private:
    const SmallMatrix &A_, &M_;
    const SteadyState& f_;
    Index k_;
    SmallMatrix Ht_, Lt_, Jt_, Pt_;
    Array<SmallMatrix> Ht_to_, W_;  // powers of Hᵀ to 2k + 1; W_0 … W_k
};

namespace detail {

/// Throws what asos_statistics throws if a system, its steady state, moments and a horizon k do not match.
template <Moments P>
void require_asos(const Lds<typename P::Scalar>& s, const SteadyState& f, const P& moments, Index k) {
    require_consistent(s, "ASOS");
    require_shape(f.H, s.states(), s.states(), "ASOS", "a steady state");
    require("ASOS", "horizon", k, 1, moments.lags());
    if (moments.vocabulary() != s.vocabulary() || moments.whitening().mu != s.whitening.mu)
        throw UsageError(
            "ASOS: the moments have other word frequencies than the system; take the counts and ",
            "pseudo-counts it was made with");
    moments.require_pairs(k, "ASOS");
}

}  // namespace detail

/// The E-step of a linear dynamical system from Ψ_0 … Ψ_k alone: its cost is independent of the length of
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
/// The horizon k closes the recursions: at larger lags, the filtered states are assumed to follow the model.
///
/// Cost     2k sparse products, 3k products [V, h] × [h, h], O(k h³); memory four [V, h].
/// Errors   UsageError: k < 1 or more than the lags counted, shapes that do not match, the steady state of
///          another number of states, moments with other word frequencies. DataError: a lag without pairs.
///          NumericError: see steady_state; the primary equation does not converge.
/// Source   Martens 2010, in the form of Belanger, Kakade 2015, section 3.3. Departures: E[yx̄ᵀ] is one
///          weighted sum, so that no V × h array is kept per lag; the ends of the text are neglected.
template <Moments P, class T = typename P::Scalar>
Statistics<T> asos_statistics(const Lds<typename P::Scalar>& s, const SteadyState& f, const P& moments,
                              Index k) {
    detail::require_asos(s, f, moments, k);
    const BlasOnOneThread blas;
    const AsosRecursion recursion(s.A, s.M, f, k);
    Statistics<T> out;
    out.yx = zeros<T>(s.vocabulary(), s.states());
    const auto B = recursion.add_terms<T>(
        ref(s.C), ref(out.yx), [&](Index l, MatrixRef<T> U) { moments.apply(l, ref(s.C), U); },
        [&](Index l, MatrixRef<T> Z) { moments.apply_transposed(l, ref(s.C), Z); });
    const SmallMatrix beyond = recursion.finish(B, inner_products(s.C, s.C), s.whitening.dimension, out);
    add_product<T>(1, ref(s.C), beyond, ref(out.yx));
    return out;
}

/// Options of the M-step.
struct MaximiseOptions {
    /// Eigenvalues of A of larger modulus are scaled to it, above 0 and below 1.
    double radius = 0.9999;
    /// Upper limit to which λ_max(C M Cᵀ) is reduced if it reaches 1, above 0 and below 1.
    double noise_limit = 0.98;
    /// Estimate the covariance of η and change the basis so that it is I; false: it stays I, as in the paper.
    bool scaled = true;
};

/// The M-step.
///
///     A = E[x_{t+1}x_tᵀ] E[xxᵀ]⁻¹,   C = E[yxᵀ] E[xxᵀ]⁻¹,   M = E[xxᵀ]
///     scaled   Q = E[xxᵀ] - A E[x_{t+1}x_tᵀ]ᵀ;   x → Q^{-½} x:   A → Q^{-½} A Q^½,  C → C Q^½,  M → Q^{-½} M Q^{-½}
///
/// Any Q is I in some basis, so that both forms of EM have the same maxima; `scaled` maximises over Q too, and so
/// climbs faster. M then solves M = AMAᵀ + I: the system has the covariance of the words, CMCᵀ + R = Ψ_0. Q stays I
/// where the averages are too rough for it: where its least eigenvalue is below 10⁻³ of the largest.
///
/// Returns the factor by which M had to be scaled, usually 1.
///
/// Errors   UsageError: options out of range, averages of another shape than the system. NumericError:
///          averages that are not finite, or E[xxᵀ] without a positive eigenvalue. The system is then unchanged.
/// Source   Belanger, Kakade 2015, eq. (9), which this C turns into Ψ_0 - C M Cᵀ, and appendix A.1; `scaled`:
///          Liu, Rubin, Wu 1998, parameter expansion.
template <class T> double maximise(Statistics<T> statistics, Lds<T>& s, MaximiseOptions options = {}) {
    const char* who = "M-step";
    require(who, "radius", options.radius, Exclusive{0}, Exclusive{1});
    require(who, "noise_limit", options.noise_limit, Exclusive{0}, Exclusive{1});
    detail::require_consistent(s, who);
    const Index h = s.states(), V = s.vocabulary();
    const auto &xx = statistics.xx, &xx_1 = statistics.xx_1;
    const auto& yx = statistics.yx;
    detail::require_shape(xx, h, h, who, "averages xx");
    detail::require_shape(xx_1, h, h, who, "averages xx_1");
    detail::require_shape(yx, V, h, who, "averages yx");
    const BlasOnOneThread blas;
    SmallMatrix to_C = symmetric_power(xx, -1, who), M = xx;
    SmallMatrix A = with_radius(product(xx_1, to_C), options.radius, who);
    if (options.scaled) {  // Q of the A above, whose eigenvalues may have been scaled
        const SmallMatrix cross = product_t(A, xx_1);
        const SmallMatrix Q = symmetrised(xx - cross - transposed(cross) + product(A, product_t(xx, A)));
        if (const auto e = symmetric_eigen<double>(Q, who); e.values.front() > 1e-3 * e.values.back()) {
            const SmallMatrix half = symmetric_power(e, 0.5, who), back = symmetric_power(e, -0.5, who);
            A = product(back, A, half), M = symmetrised(product(back, M, back)), to_C = product(to_C, half);
        }
    }
    TallMatrix<T> C = times(yx, to_C);
    project_out<T>(s.whitening.m, ref(C));
    const SmallMatrix G = inner_products(C, C);
    const double factor = largest_share(G, M) < 1 ? 1 : repair_noise(G, M, options.noise_limit);
    s.A = std::move(A), s.C = std::move(C), s.M = std::move(M);  // last: above this line it may throw
    return factor;
}

}}}  // namespace isogloss::lds
