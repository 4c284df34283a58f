/// @file lds/whitening.hpp  Whitening of observations, and the interface of lagged covariances.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <isogloss/lds/dense.hpp>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// How counts are turned into frequencies.
struct WhiteningOptions {
    std::optional<double> pseudo_counts =
        {};  ///< κ ≥ 0, added to the count of every word; none: those of half
             ///< of the tokens, shared by the words, κ = T / (2 V)
};

/// Frequencies of words, and the whitening in which all words have variance 1.
///
///     μ_i = (n_i + κ) / T',   T' = T + κ V;      m_i = √μ_i, a unit vector;      w_i = 1/√μ_i
///     y_t = W (e_{i_t} - μ) = e_{i_t} w_{i_t} - m        whitened word, W = diag(w)
///
/// A word with μ_i = 0 (never seen, κ = 0) has w_i = 0 and no effect.
///
/// Errors   DataError: κ < 0 or not finite, no tokens.
/// Source   Belanger, Kakade 2015, sections 4.3 and 7.2.
struct Whitening {
    Array<double> mu, m, w;
    double mass = 0;      ///< T'
    Index words = 0;      ///< words with μ > 0
    Index dimension = 0;  ///< of the space that y lives in, words - 1: orthogonal to m

    Whitening() = default;
    explicit Whitening(const std::vector<std::int64_t>& occurrences, WhiteningOptions options = {}) {
        const auto tokens = std::accumulate(occurrences.begin(), occurrences.end(), std::int64_t{0});
        if (tokens == 0) throw DataError("whitening: the counts hold no tokens; count a text first");
        const auto T = static_cast<double>(tokens), V = static_cast<double>(occurrences.size());
        const double kappa = options.pseudo_counts.value_or(0.5 * T / V);
        require<DataError>("whitening", "pseudo_counts", kappa, 0);
        mass = T + kappa * V;
        Array<double> f;
        for (const std::int64_t n : occurrences) f.push_back((static_cast<double>(n) + kappa) / mass);
        *this = of_frequencies(std::move(f), mass);
    }

    /// The same from frequencies and T', as stored in a model. Throws E, naming `who`, unless the frequencies are
    /// nonnegative and sum to 1, and T' is above 0.
    template <class E = DataError>
    static Whitening of_frequencies(Array<double> mu, double mass, std::string_view who = "whitening") {
        require<E>(who, "mass", mass, Exclusive{0});
        Whitening u;
        u.mu = std::move(mu);
        u.mass = mass;
        double sum = 0;
        for (const double f : u.mu) {
            require<E>(who, "a frequency", f, 0);
            sum += f;
            u.m.push_back(std::sqrt(f));
            u.w.push_back(f > 0 ? 1 / std::sqrt(f) : 0);
            u.words += f > 0;
        }
        if (!(std::abs(sum - 1) < 1e-6)) throw E(who, ": the frequencies sum to ", sum, ", expected 1");
        u.dimension = u.words - 1;
        return u;
    }
};

/// x - m (mᵀ x): the part of every column that is orthogonal to m, in place.
template <class T> void project_out(const Array<double>& m, MatrixRef<T> x) {
    Array<double> along(x.cols);
    for (Index i = 0; i < x.rows; ++i)
        for (Index j = 0; j < x.cols; ++j) along[j] += m[i] * static_cast<double>(x.row(i)[j]);
    const Array<T> a(along.begin(), along.end());
    for (Index i = 0; i < x.rows; ++i) {
        const T mi = static_cast<T>(m[i]);
        T* row = x.row(i);
        for (Index j = 0; j < x.cols; ++j) row[j] -= mi * a[j];
    }
}

/// Lagged covariances Ψ_k = E[y_{t+k} y_tᵀ] of white observations, Ψ_0 = I - m mᵀ, given only as products: the
/// input of subspace identification and EM. LagMoments implements the concept for words. A type of your own may have any
/// source: of vectors of n numbers that are white, Ψ_0 = I, the whitening is μ = m = 0, w = 1, dimension n.
///
///     m.vocabulary()                    rows of y, V                  m.lags()        r: products for k = 0 … r
///     m.whitening()                     μ, m, w and the dimension
///     m.require_pairs(k, who)           throws DataError unless each lag 1 … k has pairs
///     m.apply(k, x, y)                  y = Ψ_k x                      distinct blocks [V, l]
///     m.apply_transposed(k, x, y)       y = Ψ_kᵀ x
template <class M>
concept Moments = requires(const M& m, Index k, MatrixRef<const typename M::Scalar> x,
                           MatrixRef<typename M::Scalar> y) {
    { m.vocabulary() } -> std::convertible_to<Index>;
    { m.lags() } -> std::convertible_to<Index>;
    { m.whitening() } -> std::same_as<const Whitening&>;
    m.require_pairs(k, "who");
    m.apply(k, x, y);
    m.apply_transposed(k, x, y);
};

}}}  // namespace isogloss::lds
