/// @file lds/dense_moments.hpp  Real vectors as observations: their lagged covariances, and states along them.
#pragma once

#include <cmath>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/lds/kalman.hpp>
#include <isogloss/lds/whitening.hpp>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// Lagged covariances of vectors x_t of n numbers for subspace identification and EM (concept Moments).
///
///     Γ_k = 1/T Σ_t (x_{t+k} - x̄)(x_t - x̄)ᵀ,   W = Γ_0^{-½},   y_t = W (x_t - x̄),   Ψ_k = W Γ_k W,   Ψ_0 = I
///
///     const DenseMoments<double> moments(x, 20);                       // x [T, n], a row each time
///     auto s = subspace_identification(moments, {.states = 3, .lags = 4, .scaled = true}).system;
///     for (…) maximise(asos_statistics(s, steady_state(s), moments, 20), s);
///     const VectorFilter f(s, steady_state(s));
///     f.filter(moments.whitened(x));                                    // [T, h]
///
/// The system found is that of y. For x, the observation matrix is W⁻¹C and the noise W⁻¹(I - C M Cᵀ)W⁻¹.
/// Covariances may be given in place of observations, for a known source or sums computed elsewhere.
///
/// Cost     r T n² once; a product 2 n² l
/// Memory   (r + 1) n² numbers
/// Errors   UsageError: shapes that do not match, no lags, lags not below T, k out of range. NumericError:
///          observations that are not finite; Γ_0 whose least eigenvalue is not above 1e-12 of the largest: divide each
///          component by its standard deviation, or leave out those that are constant or linear in others.
/// Source   van Overschee, De Moor 1996; Belanger, Kakade 2015, eqs. (13)-(14), for vectors in place of words.
template <class T> class DenseMoments {
public:
    using Scalar = T;

    /// From observations [T, n], for lags up to r.
    DenseMoments(const SmallMatrix& x, Index r) {
        require(who, "lags", r, 1);
        require(who, "observations", rows(x), r + 1);
        require(who, "numbers of an observation", cols(x), 1);
        if (const Index size = std::ssize(x), bad = kernel::first_non_finite(size, x.data()); bad != size)
            throw NumericError(
                who, ": found ", x.data()[bad], " in row ", bad / cols(x), ", column ", bad % cols(x),
                " of the observations, expected finite numbers; fill it in, or take the longest part "
                "without such numbers");
        const BlasOnOneThread blas;
        const Index N = rows(x), n = cols(x);
        SmallMatrix mean = zeros<double>(1, n);
        for (Index t = 0; t < N; ++t)
            for (Index i = 0; i < n; ++i) mean.data()[i] += x.data()[t * n + i] / static_cast<double>(N);
        SmallMatrix centred = x;
        for (Index t = 0; t < N; ++t)
            for (Index i = 0; i < n; ++i) centred.data()[t * n + i] -= mean.data()[i];
        Array<SmallMatrix> covariances;
        for (Index k = 0; k <= r; ++k) {
            SmallMatrix c = inner_products<double>(ref(std::as_const(centred)).rows_from(k, N - k),
                                                   ref(std::as_const(centred)).rows_from(0, N - k));
            c /= static_cast<double>(N);
            covariances.push_back(std::move(c));
        }
        take(std::move(mean), covariances);
    }

    /// From a mean [1, n] and Γ_0 … Γ_r, [n, n] each.
    DenseMoments(SmallMatrix mean, const Array<SmallMatrix>& covariances) {
        take(std::move(mean), covariances);
    }

    Index vocabulary() const { return cols(mean_); }               ///< n
    Index lags() const { return std::ssize(psi_) - 1; }            ///< r
    const Whitening& whitening() const { return whitening_; }      ///< of_numbers(n)
    const SmallMatrix& mean() const { return mean_; }              ///< x̄, [1, n]
    const SmallMatrix& whitener() const { return whitener_; }      ///< W
    const SmallMatrix& unwhitener() const { return unwhitener_; }  ///< W⁻¹
    void require_pairs(Index, const char*) const {}                ///< every lag has pairs

    /// y_t for rows x_t.
    SmallMatrix whitened(const SmallMatrix& x) const {
        if (cols(x) != vocabulary())
            throw UsageError(who, ": found observations of ", cols(x), " numbers, expected ", vocabulary());
        const BlasOnOneThread blas;
        SmallMatrix centred = x;
        for (Index t = 0; t < rows(x); ++t)
            for (Index i = 0; i < cols(x); ++i) centred.data()[t * cols(x) + i] -= mean_.data()[i];
        return product(centred, whitener_);  // symmetric
    }

    /// y = Ψ_k x
    void apply(Index k, MatrixRef<const T> x, MatrixRef<T> y) const { run(k, false, x, y); }
    /// y = Ψ_kᵀ x
    void apply_transposed(Index k, MatrixRef<const T> x, MatrixRef<T> y) const { run(k, true, x, y); }

private:
    static constexpr const char* who = "DenseMoments";

    void take(SmallMatrix mean, const Array<SmallMatrix>& covariances) {
        const Index n = cols(mean);
        if (rows(mean) != 1 || n < 1 || covariances.size() < 2)
            throw UsageError(
                who, ": found a mean [", rows(mean), ", ", n, "] and ", covariances.size(),
                " covariances, expected a mean of one row of numbers, and covariances of lags 0, 1, …");
        for (const SmallMatrix& c : covariances)
            if (rows(c) != n || cols(c) != n)
                throw UsageError(who, ": found a covariance [", rows(c), ", ", cols(c), "], expected [", n,
                                 ", ", n, "]");
        const auto require_finite = [n](const SmallMatrix& m, const std::string& what) {
            const Index size = std::ssize(m), bad = kernel::first_non_finite(size, m.data());
            if (bad < size)
                throw NumericError(who, ": found ", m.data()[bad], " in ", what, ", row ", bad / n,
                                   ", column ", bad % n, ", expected finite numbers");
        };
        require_finite(mean, "the mean");
        for (std::size_t k = 0; k < covariances.size(); ++k)
            require_finite(covariances[k], message("the covariance of lag ", k));
        const BlasOnOneThread blas;
        const auto spectrum = symmetric_eigen<double>(symmetrised(covariances[0]), who).values;
        if (!(spectrum.front() > 1e-12 * spectrum.back()))
            throw NumericError(who, ": the covariance of the observations has eigenvalues ", spectrum.front(),
                               " … ", spectrum.back(),
                               ", expected the least above 1e-12 of the largest; divide each number by its ",
                               "standard deviation, or leave out numbers that follow from others, or that ",
                               "never change");
        mean_ = std::move(mean);
        whitener_ = symmetric_power(symmetrised(covariances[0]), -0.5, who);
        unwhitener_ = symmetric_power(symmetrised(covariances[0]), 0.5, who);
        whitening_ = Whitening::of_numbers(n);
        for (std::size_t k = 0; k < covariances.size(); ++k) {
            const SmallMatrix psi = k == 0 ? identity(n) : product(whitener_, covariances[k], whitener_);
            psi_.push_back(TallMatrix<T>(psi));
        }
    }

    void run(Index k, bool transpose, MatrixRef<const T> x, MatrixRef<T> y) const {
        if (k < 0 || k > lags())
            throw UsageError(who, ": lag ", k, " was requested, but there are only lags 0 … ", lags());
        if (x.rows != vocabulary() || y.rows != x.rows || x.cols != y.cols || x.transposed || y.transposed)
            throw UsageError(who, ": found blocks [", x.height(), ", ", x.width(), "] and [", y.height(),
                             ", ", y.width(), "], expected two of ", vocabulary(), " rows");
        const BlasOnOneThread blas;
        const auto psi = ref(psi_[k]);
        gemm<T>(T(1), transpose ? t(psi) : psi, x, T(0), y);
    }

    SmallMatrix mean_, whitener_, unwhitener_;
    Whitening whitening_;
    Array<TallMatrix<T>> psi_;
};

/// The steady-state filter and smoother over rows of whitened observations y_t: TextFilter for vectors.
///
///     x̂_t = H x̂_{t-1} + L Cᵀ y_t,   x̂_0 = 0;   x̄_t = J x̄_{t+1} + P x̂_t
///     e_t = y_t - C A x̂_{t-1},   log-likelihood  -½ [n log 2π + log det S + eᵀS⁻¹e],   S⁻¹ = I - C (Σ₁ - M) F Cᵀ
///
/// Errors   UsageError: a system of words, the steady state of another number of states, rows of the wrong width,
///          log_likelihood of no rows. NumericError: a number of y or the likelihood that is not finite.
/// Source   as TextFilter.
class VectorFilter {
public:
    template <class T> VectorFilter(const Lds<T>& s, SteadyState f) {
        require_consistent(s, who);
        require_states(f, s.states(), who);
        if (s.whitening.words != 0)
            throw UsageError(who, ": the system is one of words, expected one of vectors (DenseMoments, or ",
                             "Whitening::of_numbers); for words there is TextFilter");
        const BlasOnOneThread blas;
        C_ = s.C, A_ = s.A, dimension_ = s.whitening.dimension;
        f_ = std::move(f);
        NF_ = product(SmallMatrix(f_.predicted - s.M), f_.F);
    }

    /// x̂_t, [T, h]
    SmallMatrix filter(const SmallMatrix& y) const {
        if (cols(y) != rows(C_))
            throw UsageError(who, ": found observations of ", cols(y), " numbers, expected ", rows(C_));
        if (const Index size = std::ssize(y), bad = kernel::first_non_finite(size, y.data()); bad != size)
            throw NumericError(who, ": found ", y.data()[bad], " in row ", bad / cols(y), ", column ",
                               bad % cols(y),
                               " of the observations, expected finite numbers; filter the rows ",
                               "before and after it as sequences of their own");
        const BlasOnOneThread blas;
        SmallMatrix x = product(product(y, C_), transposed(f_.L));
        for (Index t = 1; t < rows(y); ++t) step(f_.H, x, t - 1, t);
        return x;
    }
    /// x̄_t, [T, h]
    SmallMatrix smooth(const SmallMatrix& y) const {
        const BlasOnOneThread blas;
        const SmallMatrix filtered = filter(y);
        SmallMatrix x = product(filtered, transposed(f_.P));
        const Index h = cols(x), last = rows(x) - 1;
        if (last >= 0) std::copy_n(filtered.data() + last * h, h, x.data() + last * h);
        for (Index t = last - 1; t >= 0; --t) step(f_.J, x, t + 1, t);
        return x;
    }
    /// Mean over all rows, nats per row.
    double log_likelihood(const SmallMatrix& y) const {
        const Index N = rows(y), h = rows(A_);
        require(who, "observations", N, 1);
        const BlasOnOneThread blas;
        const SmallMatrix x = filter(y);
        SmallMatrix before = zeros<double>(N, h);
        if (N > 1) std::copy_n(x.data(), (N - 1) * h, before.data() + h);
        const SmallMatrix e = y - product(product(before, transposed(A_)), transposed(C_)),
                          d = product(e, C_);
        const double squares = (inner(e, e) - inner(d, product_t(d, NF_))) / static_cast<double>(N),
                     value = gaussian_log_likelihood(dimension_, f_.log_det_S, squares);
        if (!std::isfinite(value))
            throw NumericError(who, ": found a log-likelihood of ", value, ", expected a finite number; the ",
                               "observations are too large to be squared");
        return value;
    }

private:
    static constexpr const char* who = "VectorFilter";

    // row `to` += step · row `from`
    static void step(const SmallMatrix& step, SmallMatrix& x, Index from, Index to) {
        const Index h = cols(x);
        for (Index i = 0; i < h; ++i) {
            double sum = 0;
            for (Index j = 0; j < h; ++j) sum += step.data()[i * h + j] * x.data()[from * h + j];
            x.data()[to * h + i] += sum;
        }
    }

    SmallMatrix C_, A_;
    Index dimension_ = 0;
    SteadyState f_;
    SmallMatrix NF_;
};

}}}  // namespace isogloss::lds
