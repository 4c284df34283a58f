/// @file lds/embedding.hpp  Vectors for tokens in their context, and for words, from a linear dynamical
/// system.
#pragma once

#include <algorithm>
#include <concepts>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/lds/asos.hpp>
#include <isogloss/lds/text_filter.hpp>
#include <span>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// Scales every row to norm 1; a zero row is unchanged.
template <class T> void normalise_rows(TallMatrix<T>& x) {
    for (Index i = 0; i < rows(x); ++i) kernel::normalise(cols(x), x.data() + i * cols(x));
}

/// Which states represent tokens.
enum class TokenStates {
    filter,   ///< x̂_t, given the words up to and including the token
    smoother  ///< x̄_t, given all words of the text
};

/// Has the averages E[xxᵀ] given all words and given the words up to each: Statistics, or LdsFile.
template <class S>
concept StateAverages = requires(const S& s) {
    { s.xx } -> std::convertible_to<const SmallMatrix&>;
    { s.xx_filtered } -> std::convertible_to<const SmallMatrix&>;
};

/// Embeddings of tokens: states along a text, whitened and on the unit sphere.
///
///     z_t = E[xxᵀ]^{-½} x_t,   z_t / ‖z_t‖
///
/// E[xxᵀ] is the average of the same states: xx of `averages` for the smoother, xx_filtered for the filter. The
/// whitened vectors depend on the basis of the states only up to a rotation.
///
///     const TokenEmbedding<float> embed(system, steady_state(system), statistics, TokenStates::smoother);
///     auto z = embed(tokens);                                      // [T, h]
///
/// Errors   UsageError: averages of another number of states, and as TextFilter. NumericError: averages
///          that are not finite, or without a positive eigenvalue. DataError: as TextFilter.
/// Source   Belanger, Kakade 2015, section 5. Departure: E[xxᵀ] includes the posterior covariance.
template <class T> class TokenEmbedding {
public:
    using Texts = typename TextFilter<T>::Texts;  ///< several texts, each started from the initial state

    TokenEmbedding(const Lds<T>& system, const SteadyState& steady, const StateAverages auto& averages,
                   TokenStates states)
        : filter_(system, steady), states_(states) {
        const SmallMatrix& xx = states == TokenStates::filter ? averages.xx_filtered : averages.xx;
        detail::require_shape(xx, system.states(), system.states(), "TokenEmbedding", "averages");
        const BlasOnOneThread blas;
        whiten_ = symmetric_power(xx, -0.5, "TokenEmbedding");
    }

    Index width() const { return filter_.states(); }         ///< h
    const TextFilter<T>& filter() const { return filter_; }  ///< the states themselves
    /// Rows of norm 1, [ΣT, h], for texts each started from the initial state.
    TallMatrix<T> operator()(Texts texts) const {
        const BlasOnOneThread blas;
        auto x =
            times(states_ == TokenStates::filter ? filter_.filter(texts) : filter_.smooth(texts), whiten_);
        normalise_rows(x);
        return x;
    }
    /// The same for a single text.
    TallMatrix<T> operator()(std::span<const Token> text) const { return (*this)(Texts(&text, 1)); }

private:
    TextFilter<T> filter_;
    SmallMatrix whiten_;
    TokenStates states_;
};

/// Embeddings of words, [V, h], rows of norm 1: the whitened mean state over a word's tokens under the model,
///
///     E[x | w_t = i] = E[xxᵀ] Cᵀ e_i / √μ_i,   so   v_i ∝ E[xxᵀ]^{½} Cᵀ e_i
///
/// A word of frequency 0 has a zero row.
/// Errors   as TokenEmbedding.
/// Source   as TokenEmbedding; the mean over tokens follows from C = E[yxᵀ] E[xxᵀ]⁻¹.
template <class T> TallMatrix<T> type_embedding(const Lds<T>& system, const SmallMatrix& xx) {
    detail::require_consistent(system, "type_embedding");
    detail::require_shape(xx, system.states(), system.states(), "type_embedding", "averages");
    const BlasOnOneThread blas;
    auto v = times(system.C, symmetric_power(xx, 0.5, "type_embedding"));
    const Whitening& whitening = system.whitening;
    for (std::size_t i = 0; i < whitening.mu.size(); ++i)
        if (!(whitening.mu[i] > 0)) std::fill_n(v.data() + i * v.shape(1), v.shape(1), T(0));
    normalise_rows(v);
    return v;
}

}}}  // namespace isogloss::lds
