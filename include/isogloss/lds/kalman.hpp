/// @file lds/kalman.hpp  The steady state of the Kalman filter and smoother, in h × h matrices.
#pragma once

#include <cmath>
#include <isogloss/lds/dense.hpp>
#include <isogloss/lds/model.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// X = E X F + M, by doubling. The product of the spectral radii of E and F must be below 1. Throws
/// NumericError if the sum does not converge.
inline SmallMatrix sylvester(SmallMatrix E, SmallMatrix F, const SmallMatrix& M) {
    SmallMatrix X = M;
    for (int i = 0; i < 60; ++i) {
        const SmallMatrix more = product(E, X, F);
        X += more;
        if (!std::isfinite(detail::frobenius(X))) break;
        if (detail::frobenius(more) <= 1e-15 * detail::frobenius(X)) return X;
        E = product(E, E);
        F = product(F, F);
    }
    throw NumericError(
        "sylvester: the sum does not converge; the product of the spectral radii is 1 or more");
}

/// X = E X Eᵀ + M, symmetric.
inline SmallMatrix lyapunov(const SmallMatrix& E, const SmallMatrix& M) {
    return symmetrised(sylvester(E, transposed(E), M));
}

/// Steady-state covariances and gains of the filter and the smoother, far from the ends of a text. C enters
/// only through G = CᵀC, so that everything is h × h.
///
///     Σ₁ = A (Σ₁⁻¹ + CᵀR⁻¹C)⁻¹ Aᵀ + I      covariance of x_t given y before t
///     F  = (I + G (Σ₁ - M))⁻¹,  L = Σ₁ F      CᵀS⁻¹ = F Cᵀ,  K = L Cᵀ, the gain;  S = C Σ₁ Cᵀ + R
///     H  = A - L G A                          filter    x̂_t = H x̂_{t-1} + K y_t
///     Σ₀ = Σ₁ - L G Σ₁                        covariance of x_t given y to t
///     J  = Σ₀ Aᵀ Σ₁⁻¹,  P = I - J A           smoother  x̄_t = J x̄_{t+1} + P x̂_t
///     Σ  = Σ₀ + J (Σ - Σ₁) Jᵀ                 covariance of x_t given all y
///     log det S = log det (I + G (Σ₁ - M))    on the space orthogonal to m
///
/// Source   Belanger, Kakade 2015, eqs. (4)-(7), (31)-(32). Departures: Σ₁ solves the Riccati equation, by
///          doubling (the paper prints the unconditional covariance Σ₁ = AΣ₁Aᵀ + Q in its place, which does not
///          give a filter gain); the inversion lemma in the form that also holds for singular Σ₁ - M.
struct SteadyState {
    SmallMatrix predicted;  ///< Σ₁
    SmallMatrix filtered;   ///< Σ₀
    SmallMatrix smoothed;   ///< Σ
    SmallMatrix F, L, H, J, P;
    double log_det_S = 0;
};

/// The steady state for a transition A, G = CᵀC and M.
///
/// Throws NumericError if R is not positive definite, A is not stable, or the iteration does not converge.
inline SteadyState steady_state(const SmallMatrix& A, const SmallMatrix& G, const SmallMatrix& M) {
    const char* who = "steady state";
    const BlasOnOneThread blas;
    const Index h = rows(A);
    const SmallMatrix I = identity(h), At = transposed(A);
    if (const double r = spectral_radius(A, who); !(r < 1))
        throw NumericError(who, ": the spectral radius of A is ", r, ", expected below 1");
    if (const double s = largest_share(G, M); !(s < 1))
        throw NumericError(who, ": C M Cᵀ has an eigenvalue ", s,
                           ", expected below 1: the noise is not positive definite; see repair_noise");

    SteadyState k;
    // Riccati equation by doubling, with CᵀR⁻¹C = G (I - M G)⁻¹.
    SmallMatrix phi = At, theta = I;
    SmallMatrix psi = symmetrised(product(G, inverse(I - product(M, G), who)));
    for (int i = 0;; ++i) {
        const SmallMatrix B = inverse(I + product(psi, theta), who);
        const SmallMatrix B_phi = product(B, phi);
        const SmallMatrix more = symmetrised(product(transposed(phi), product(theta, B_phi)));
        psi = symmetrised(psi + product(product(phi, B, psi), transposed(phi)));
        phi = product(phi, B_phi);
        theta += more;
        if (i == 60 || !std::isfinite(detail::frobenius(theta)))
            throw NumericError(who, ": the Riccati iteration did not converge");
        if (detail::frobenius(more) <= 1e-14 * detail::frobenius(theta)) break;
    }
    k.predicted = theta;
    const SmallMatrix inner_S = I + product(G, theta - M);
    k.F = inverse(inner_S, who);
    k.L = product(theta, k.F);
    const SmallMatrix LG = product(k.L, G);
    k.H = A - product(LG, A);
    k.filtered = symmetrised(theta - product(LG, theta));
    k.J = transposed(solve(theta, product(A, k.filtered), who));
    k.P = I - product(k.J, A);
    k.smoothed = lyapunov(k.J, k.filtered - product(k.J, product_t(theta, k.J)));
    // complex eigenvalues come in conjugate pairs, so the product of the moduli is the determinant
    for (const double modulus : schur<double>(inner_S, who).moduli()) k.log_det_S += std::log(modulus);
    return k;
}

/// The steady state of a system. Throws UsageError if its shapes do not match, NumericError as above.
template <class T> SteadyState steady_state(const Lds<T>& s) {
    detail::require_consistent(s, "steady state");
    const BlasOnOneThread blas;
    return steady_state(s.A, inner_products(s.C, s.C), s.M);
}

}}}  // namespace isogloss::lds
