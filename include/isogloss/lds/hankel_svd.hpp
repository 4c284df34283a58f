/// @file lds/hankel_svd.hpp  The leading singular vectors of the block-Hankel operator of lagged covariances.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <isogloss/lds/dense.hpp>
#include <isogloss/lds/moments.hpp>
#include <isogloss/random.hpp>
#include <numbers>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// The block-Hankel operator H [rV, rV] with blocks (i, j) = Ψ_{r-j+i}, i, j = 0 … r-1, lags 1 … 2r-1. Blocks
/// of columns are [rV, l], r stacked [V, l]. Each product takes r² sparse products.
///
/// The moments must outlive it. Throws UsageError for r < 2 or fewer than 2r - 1 lags, DataError for a lag
/// without pairs.
/// Source   Belanger, Kakade 2015, eq. (11); van Overschee, De Moor 1996.
template <class T, Moments P = LagMoments<T>> class HankelOperator {
public:
    using Scalar = T;
    HankelOperator(const P& moments, Index r) : moments_(&moments), r_(r) {
        if (r < 2 || r > (moments.lags() + 1) / 2)
            throw UsageError("subspace identification: found ", r, " lags, and moments of ", moments.lags(),
                             ", expected at least 2, and moments of twice as many less 1");
        moments.require_pairs(2 * r - 1, "subspace identification");
    }
    Index size() const { return r_ * moments_->vocabulary(); }  ///< rV
    /// Calls f(l) after each of the r² sparse products of apply and apply_transposed, l being its number of
    /// columns. An exception from f aborts the product.
    void after_each_product(std::function<void(Index)> f) { watch_ = std::move(f); }

    void apply(const TallMatrix<T>& x, TallMatrix<T>& y) const { run<false>(x, y); }            ///< y = H x
    void apply_transposed(const TallMatrix<T>& x, TallMatrix<T>& y) const { run<true>(x, y); }  ///< y = Hᵀ x

private:
    template <bool transpose> void run(const TallMatrix<T>& x, TallMatrix<T>& y) const {
        const Index V = moments_->vocabulary(), l = cols(x);
        y = zeros<T>(size(), l);
        TallMatrix<T> part = zeros<T>(V, l);
        for (Index i = 0; i < r_; ++i)
            for (Index j = 0; j < r_; ++j) {
                const auto from = ref(x).rows_from((transpose ? i : j) * V, V);
                if constexpr (transpose) moments_->apply_transposed(r_ - j + i, from, ref(part));
                else moments_->apply(r_ - j + i, from, ref(part));
                T* to = y.data() + (transpose ? j : i) * V * l;
                for (std::size_t k = 0; k < part.size(); ++k) to[k] += part.data()[k];
                if (watch_) watch_(l);
            }
    }

    const P* moments_;
    Index r_;
    std::function<void(Index)> watch_;
};

/// Options of hankel_svd.
struct RandomisedSvdOptions {
    Index oversampling = 10;     ///< columns beyond the rank, ≥ 0
    Index power_iterations = 3;  ///< 0 … 10⁶
    std::uint64_t seed = 1;      ///< of the random columns
};

/// H ≈ U diag(s) Vᵀ of rank h.
template <class T> struct HankelSvd {
    TallMatrix<T> U, V;      ///< [rV, h]
    Array<double> s;         ///< descending
    double error_bound = 0;  ///< ‖H - QQᵀH‖₂ is at most this, see hankel_svd
};

/// State of a randomised SVD: the orthonormal block to which the next product is applied.
template <class T> struct SvdState {
    Index products = 0;   ///< number of products done, with H and Hᵀ in turn, 0 … 2 power_iterations + 1
    TallMatrix<T> block;  ///< [rV, h + oversampling], fewer columns where H has a lower rank; unused at 0
};

/// Receives the state of a randomised SVD after each product but the last. An exception from it aborts the SVD.
template <class T> using SvdCheckpoint = std::function<void(Index products, const TallMatrix<T>& block)>;

namespace detail {

/// Independent standard normal numbers [rows, cols].
template <class T> TallMatrix<T> gaussian(Index rows, Index cols, std::uint64_t seed, std::uint32_t stream) {
    TallMatrix<T> x = zeros<T>(rows, cols);
    const Random random(seed, stream);
    for (Index i = 0; i < std::ssize(x); ++i) x.data()[i] = static_cast<T>(random.normal(i));
    return x;
}

inline constexpr int error_power = 3, error_probes = 10,
                     error_products = 2 * error_power + 1;  // of the probes with H or Hᵀ

/// The bound of hankel_svd on ‖E‖, E = (I - QQᵀ) H, from ‖E‖^{2q+1} = ‖(E Eᵀ)^q E‖, q = 3. Each image is
/// normalised, since the seventh power of a small error underflows in float.
template <class Operator, class T>
double error_bound(const Operator& H, const TallMatrix<T>& Q, std::uint64_t seed) {
    constexpr int q = error_power, columns = error_probes;
    double largest = 0, log_norm = 0;
    TallMatrix<T> probe = gaussian<T>(H.size(), columns, seed, stream_of("hankel error")), image;
    for (int i = 0;; ++i) {
        H.apply(probe, image);
        for (int pass = 0; pass < 2;
             ++pass)  // a single pass leaves rounding errors along Q, which Hᵀ would amplify
            add_product<T>(-1, ref(Q), inner_products(Q, image), ref(image));
        const SmallMatrix squares = inner_products(image, image);
        largest = 0;
        for (Index j = 0; j < columns; ++j) largest = std::max(largest, squares(j, j));
        if (!(largest > 0)) return 0;
        if (i == q) break;
        const double norm = std::sqrt(largest);
        log_norm += std::log(norm);
        image *= static_cast<T>(1 / norm);
        H.apply_transposed(image, probe);
    }
    return std::exp((std::log(10 * std::sqrt(2 / std::numbers::pi * largest)) + log_norm) / (2 * q + 1));
}

}  // namespace detail

/// Randomised SVD: Y = H Ω for a Gaussian Ω [rV, h + oversampling], power iterations with orthonormal blocks
/// on both sides, Q = orth(Y), and the exact SVD of QᵀH.
///
/// The error E = (I - QQᵀ) H is bounded with ten more random columns ω: ‖E‖⁷ ≤ 10 √(2/π) max ‖(EEᵀ)³E ω‖, except
/// with probability 10⁻¹⁰. It is the error of Q, of rank h + oversampling, and at least the next singular
/// value.
///
/// H is a HankelOperator, or a type with its functions, such as RankHankel. `checkpoint` receives every state but
/// the last; resuming from it with the same H, h and options gives bit-identical results.
///
/// Throws UsageError for h < 1, for options out of range, for H with fewer than h singular values above rounding,
/// and for a state of another size; NumericError for H that is zero or not finite.
/// Source   Halko, Martinsson, Tropp 2011, algorithms 4.4 and 5.1, eq. (4.3).
template <class Operator, class T = typename Operator::Scalar>
HankelSvd<T> hankel_svd(const Operator& H, Index h, RandomisedSvdOptions options = {}, SvdState<T> from = {},
                        const SvdCheckpoint<T>& checkpoint = {}) {
    const char* who = "randomised SVD";
    require(who, "rank", h, 1);
    require(who, "oversampling", options.oversampling, 0);
    require(who, "power_iterations", options.power_iterations, 0, 1000000);
    const auto require_rank = [h](Index rank) {
        if (rank < h)
            throw UsageError("subspace identification: found ", h, " states, expected at most ", rank,
                             ", the rank of the lagged covariances");
    };
    require_rank(H.size());
    const Index l = h < H.size() - options.oversampling ? h + options.oversampling : H.size(),
                last = 2 * options.power_iterations + 1;  // product of all, from 0
    require(who, "products of the state to resume from", from.products, 0, last);
    if (from.products > 0 && (rows(from.block) != H.size() || cols(from.block) < 1 || cols(from.block) > l))
        throw UsageError(who, ": found a state [", rows(from.block), ", ", cols(from.block), "], expected [",
                         H.size(), ", ", l, "] or fewer columns");
    const BlasOnOneThread blas;
    // Q = orth(H B) after an even product, B = orth(Hᵀ Q) after an odd one
    TallMatrix<T> Q, B;
    if (from.products == 0) B = detail::gaussian<T>(H.size(), l, options.seed, stream_of("hankel"));
    else (from.products % 2 == 1 ? Q : B) = std::move(from.block);
    for (Index i = from.products; i < last; ++i) {
        TallMatrix<T>& made = i % 2 == 0 ? Q : B;
        if (i % 2 == 0) H.apply(B, Q);
        else H.apply_transposed(Q, B);
        detail::orthonormalise(made, who);
        if (checkpoint) checkpoint(i + 1, made);
    }
    H.apply_transposed(Q, B);
    const SmallMatrix R = detail::orthonormalise(B, who);  // QᵀH = Rᵀ Bᵀ
    const auto small = thin_svd<double>(transposed(R), who);
    require_rank(std::ssize(small.s));
    HankelSvd<T> out;
    const auto leading = [&](const Tensor<double, 2>& m) {
        SmallMatrix cut = xt::view(m, xt::all(), xt::range(0, h));
        return cut;
    };
    out.U = times(Q, leading(small.U));
    out.V = times(B, leading(small.V));
    for (Index i = 0; i < h; ++i) out.s.push_back(small.s(i));
    out.error_bound = detail::error_bound(H, Q, options.seed);
    return out;
}

}}}  // namespace isogloss::lds
