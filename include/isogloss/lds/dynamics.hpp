/// @file lds/dynamics.hpp  Singular vectors of the transition, and the words associated with them.
#pragma once

#include <algorithm>
#include <isogloss/lds/model.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// One pair of singular vectors of the transition, described by words.
struct Direction {
    double strength = 0;      ///< singular value: how much of the direction remains one token later
    std::vector<Token> from;  ///< words of the right singular vector, strongest first
    std::vector<Token> to;    ///< words of the left singular vector: where it leads
};

/// Singular value decomposition of A in the basis where states have covariance I, and for each side the
/// words with the largest entries of C times the vector.
///
///     B = E[xxᵀ]^{-½} A E[xxᵀ]^{½} = U diag(s) Vᵀ,   from: E[xxᵀ]^{½} V,  to: E[xxᵀ]^{½} U
///
/// The signs of a pair of vectors may flip together; both signs are given, so that 2 · `pairs` directions are
/// returned, strongest first. Words with μ_i < min_frequency are left out.
///
/// Throws UsageError for more pairs than states, fewer than one word, a min_frequency that is not in 0 … 1, and
/// averages of another number of states.
/// Source   Belanger, Kakade 2015, table 1. Departure: the basis, on which singular vectors depend, is fixed.
template <class T> std::vector<Direction> dynamics(const Lds<T>& s, const SmallMatrix& xx, Index pairs,
                                                   Index words, double min_frequency = 0) {
    detail::require_consistent(s, "dynamics");
    require("dynamics", "pairs", pairs, 1, s.states());
    require("dynamics", "words", words, 1);
    require("dynamics", "min_frequency", min_frequency, 0, 1);
    detail::require_shape(xx, s.states(), s.states(), "dynamics", "averages");
    const BlasOnOneThread blas;
    const SmallMatrix half = symmetric_power(xx, 0.5, "dynamics");
    const auto svd = thin_svd<double>(product(symmetric_power(xx, -0.5, "dynamics"), s.A, half), "dynamics");
    const auto first = [&](const Tensor<double, 2>& m) {
        SmallMatrix cut = xt::view(m, xt::all(), xt::range(0, pairs));
        return times(s.C, product(half, cut));
    };
    const TallMatrix<T> from = first(svd.V), to = first(svd.U);
    Array<Token> known;
    for (Index i = 0; i < s.vocabulary(); ++i)
        if (s.whitening.mu[i] > 0 && s.whitening.mu[i] >= min_frequency)
            known.push_back(static_cast<Token>(i));
    const auto top = [&](const TallMatrix<T>& score, Index pair, T sign) {
        auto order = known;
        const auto n = std::min(std::ssize(order), words);
        std::partial_sort(order.begin(), order.begin() + n, order.end(), [&](Token a, Token b) {
            const T x = sign * score(a, pair), y = sign * score(b, pair);
            return x != y ? x > y : a < b;
        });
        order.resize(n);
        return order;
    };
    std::vector<Direction> out;
    for (Index p = 0; p < pairs; ++p)
        for (const T sign : {T(1), T(-1)}) out.push_back({svd.s(p), top(from, p, sign), top(to, p, sign)});
    return out;
}

}}}  // namespace isogloss::lds
