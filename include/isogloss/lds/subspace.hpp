/// @file lds/subspace.hpp  A linear dynamical system from lagged covariances alone: subspace identification.
#pragma once

#include <algorithm>
#include <functional>
#include <isogloss/lds/hankel_svd.hpp>
#include <isogloss/lds/kalman.hpp>
#include <isogloss/lds/model.hpp>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// Options of subspace_identification.
struct SubspaceOptions {
    Index states = 200;  ///< h ≥ 1, at most r - 1 times the dimension of the whitened observations, see below
    Index lags = 4;      ///< r ≥ 2; uses lags 1 … 2r-1
    double radius = 0.98;       ///< larger eigenvalues of A are scaled to this modulus, above 0 and below 1
    double noise_limit = 0.98;  ///< λ_max(C M Cᵀ) is kept below it, above 0 and below 1
    bool scaled = false;        ///< estimate the covariance of η and change the basis so that it is I
    RandomisedSvdOptions svd = {};  ///< of the Hankel operator
};

/// Result of subspace_identification.
template <class T> struct Subspace {
    Lds<T> system;
    Array<double> singular_values;  ///< of the Hankel operator, descending
    double error_bound = 0;         ///< of its randomised SVD, see hankel_svd
    double radius = 0;              ///< largest modulus of an eigenvalue of A before scaling
    double noise_factor = 1;        ///< factor by which M was scaled, 1 if the noise was positive definite
};

/// Monitors subspace identification while it runs. Either function may be empty; an exception from it aborts
/// the work, for example in a program that was asked to stop.
template <class T> struct SubspaceWatch {
    /// After each sparse product: the fraction of all of them that is done, 0 … 1. Small dense algebra follows.
    std::function<void(double share)> progress;
    /// Receives the state of the singular vectors from time to time, to be kept for `from`.
    SvdCheckpoint<T> checkpoint;
    /// A state that `checkpoint` received with the same moments and options: the result is bit-identical.
    SvdState<T> from;
};

namespace detail {

/// subspace_identification for a Hankel operator of `r` lags and the whitening of its words.
template <class Operator, class T = typename Operator::Scalar>
Subspace<T> identify(const Operator& H, const Whitening& whitening, const SubspaceOptions& options,
                     SubspaceWatch<T> watch = {}) {
    const char* who = "subspace identification";
    require(who, "states", options.states, 1);
    require(who, "radius", options.radius, Exclusive{0}, Exclusive{1});
    require(who, "noise_limit", options.noise_limit, Exclusive{0}, Exclusive{1});
    const Index h = options.states, r = options.lags, V = std::ssize(whitening.mu);
    const Index most = whitening.dimension * (options.scaled ? 1 : r - 1);
    if (h > most)
        throw UsageError(who, ": found ", h, " states, expected at most ", most, ", which ", r,
                         " lags, or `scaled`, determine; use fewer states or more lags");
    const BlasOnOneThread blas;
    HankelSvd<T> svd = hankel_svd(H, h, options.svd, std::move(watch.from), watch.checkpoint);

    auto root = zeros<double>(h, h);
    for (Index i = 0; i < h; ++i) root(i, i) = std::sqrt(svd.s[i]);
    const TallMatrix<T> gamma = times(svd.U, root), delta = times(svd.V, root);  // Δᵀ
    svd.U = svd.V = TallMatrix<T>();
    const auto block = [&](const TallMatrix<T>& x, Index first, Index count) {
        return ref(x).rows_from(first * V, count * V);
    };

    Subspace<T> out;
    Lds<T>& s = out.system;
    const SmallMatrix cross = inner_products<T>(block(delta, 0, r - 1), block(delta, 1, r - 1));
    const SmallMatrix square = inner_products<T>(block(delta, 1, r - 1), block(delta, 1, r - 1));
    s.A = product(cross, symmetric_power(square, -1, who));
    out.radius = spectral_radius(s.A, who);
    s.A = with_radius(s.A, options.radius, who);

    TallMatrix<T> sum = zeros<T>(V, h);
    auto powers = zeros<double>(h, h);
    SmallMatrix power = identity(h);
    for (Index i = 0; i < r; ++i) {
        add_product<T>(1, block(gamma, i, 1), transposed(power), ref(sum));
        powers += product_t(power, power);
        power = product(power, s.A);
    }
    s.C = times(sum, symmetric_power(powers, -1, who));
    s.whitening = whitening;
    project_out<T>(s.whitening.m, ref(s.C));

    if (options.scaled) {
        const SmallMatrix G = inner_products(s.C, s.C);
        const SmallMatrix G0C = inner_products<T>(block(delta, r - 1, 1), ref(s.C));
        const SmallMatrix sigma = symmetrised(product(solve(s.A, G0C, who), symmetric_power(G, -1, who)));
        const SmallMatrix noise = symmetrised(sigma - product(s.A, product_t(sigma, s.A)));
        const SmallMatrix half = symmetric_power(noise, 0.5, who, 1e-3);
        s.A = product(symmetric_power(noise, -0.5, who, 1e-3), s.A, half);
        s.C = times(s.C, half);
    }
    s.M = lyapunov(s.A, identity(h));
    out.noise_factor = repair_noise(inner_products(s.C, s.C), s.M, options.noise_limit);
    out.singular_values = std::move(svd.s);
    out.error_bound = svd.error_bound;
    return out;
}

/// Reports each product of the operator to watch.progress, if there is one.
template <class Operator, class T>
void tell_progress(Operator& H, const SubspaceOptions& options, const SubspaceWatch<T>& watch) {
    if (!watch.progress) return;
    const double columns = std::min(
                     static_cast<double>(options.states) + static_cast<double>(options.svd.oversampling),
                     static_cast<double>(H.size())),
                 products = 2 * static_cast<double>(options.svd.power_iterations) + 2;
    const double all = columns * products + error_probes * error_products;
    const auto each = 1 / static_cast<double>(options.lags * options.lags);
    H.after_each_product([progress = watch.progress, all, each,
                          done = columns * static_cast<double>(watch.from.products)](Index l) mutable {
        done += each * static_cast<double>(l);
        progress(std::min(1.0, done / all));
    });
}

}  // namespace detail

/// Subspace identification (n4sid) of a system from lagged covariances.
///
///     H = Γ Δ,   Γ = U s^½ = [C; CA; …; CA^{r-1}],   G₀ = E[x_{t+1} y_tᵀ]
///     Δ = s^½ Vᵀ = [A^{r-1}G₀, …, AG₀, G₀]
///     A = Δ[first r-1 blocks] Δ[last r-1 blocks]⁺     eigenvalues scaled to at most `radius`
///     C = [Γ_0 … Γ_{r-1}] [I A … A^{r-1}]⁺
///     Σ = A Σ Aᵀ + I,   M = Σ, scaled where R would not be positive definite
///
/// With `scaled`, Σ is the solution of G₀ = A Σ Cᵀ and the basis is changed so that Σ - AΣAᵀ, with eigenvalues
/// floored at 10⁻³ of the largest, becomes I. This is the better start if y really comes from a linear
/// system and A is well conditioned; A⁻¹ amplifies noise.
///
/// `watch` reports progress, saves checkpoints, can abort, and resumes from a checkpoint.
///
/// Cost     2 (power iterations + 1) r² sparse products with h + oversampling columns; memory about
///          4 r V (h + oversampling) numbers.
/// Errors   UsageError: options out of range; more states than (V - 1) (r - 1) for V words, or than (r - 1) times the
///          dimension of vectors, which is the rank of the covariances that determine A; with `scaled`, more than V - 1 or
///          that dimension. DataError: a lag without pairs. NumericError: all covariances are zero, or
///          one is not finite; with `scaled`, A is singular, or the covariance of η has no positive eigenvalue.
/// Source   Belanger, Kakade 2015, section 3.4 and appendix A.1. Departures: C by regression on all
///          blocks of Γ; eigenvalues scaled in the Schur form; `scaled`.
template <Moments P>
Subspace<typename P::Scalar> subspace_identification(const P& moments, SubspaceOptions options = {},
                                                     SubspaceWatch<typename P::Scalar> watch = {}) {
    HankelOperator<typename P::Scalar, P> H(moments, options.lags);
    detail::tell_progress(H, options, watch);
    return detail::identify(H, moments.whitening(), options, std::move(watch));
}

}}}  // namespace isogloss::lds
