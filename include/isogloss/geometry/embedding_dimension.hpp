/// @file geometry/embedding_dimension.hpp  The width of an embedding table by the minimal-entropy rule.
#pragma once

#include <cmath>
#include <isogloss/error.hpp>
#include <isogloss/types.hpp>
#include <numbers>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// -lim h_n / n = ½ ln((√5 + 1) / 2): the negative of what each dimension adds to the entropy, in nats.
///
/// By Laplace's method: ln sin θ + cos θ is largest where cos θ = sin²θ = 1/φ, φ the golden ratio.
inline constexpr double entropy_per_dimension = 0.24060591252980172;

/// The largest n for which `sphere_entropy` is defined; its cost grows with n.
inline constexpr Index most_dimensions = 100'000'000;

/// h_n: the contribution of dimension n to the entropy of two co-occurring words, in nats.
///
///     h_n = ln A - B / A,   A = E[exp(n cos θ)],   B = E[n cos θ exp(n cos θ)]
///
/// with θ the angle between two random points of the unit sphere in Rⁿ, of density ∝ sinⁿ⁻²θ. Computed from the
/// power series of A, whose terms are all positive:
///
///     A = Σ_k a_k,  a_0 = 1,  a_{k+1} / a_k = (n/2)² / ((k + 1)(k + n/2)),   B = Σ_k 2k a_k
///
/// so that h_n = ln Σ a_k - 2 ⟨k⟩ under weights a_k: nothing overflows, nothing cancels, and no special
/// function is needed. Relative error below 1e-12 up to n = 10⁵; O(n) operations, 32,000 terms at n = 10⁵.
///
/// Errors   UsageError for n below 1 or above most_dimensions.
/// Source   Su Jianlin 2020, "Minimal entropy principle (6): how to choose the dimension of word vectors",
///          kexue.fm/archives/7695. Departure: the series in place of quadrature.
inline double sphere_entropy(Index n) {
    require("sphere_entropy", "dimension", n, 1, most_dimensions);
    const double half = 0.5 * static_cast<double>(n);
    double term = 1, sum = 1, moment = 0, log_scale = 0;
    for (double k = 0;; ++k) {
        const double ratio = half / (k + 1) * (half / (k + half));
        term *= ratio;
        sum += term;
        moment += (k + 1) * term;
        if (sum > 0x1p500) {  // rescaling by a power of two is exact
            term *= 0x1p-500;
            sum *= 0x1p-500;
            moment *= 0x1p-500;
            log_scale += 500 * std::numbers::ln2;
        }
        // Beyond the largest term the ratio decreases, so the remainder is less than a geometric series.
        if (ratio < 1 && term * (k + 1) < 1e-17 * (1 - ratio) * moment) break;
    }
    return std::log(sum) + log_scale - 2 * moment / sum;
}

/// H(N, n) = 2 ln N + h_n: the entropy of a pair of words of a skip-gram model over N words whose vectors lie
/// on the sphere of radius √n in Rⁿ, in nats. Once it is below 0, N points no longer fill the space.
///
/// Errors   UsageError for N below 1 or not finite, and for n as in sphere_entropy.
/// Source   as in sphere_entropy.
inline double skip_gram_entropy(double words, Index n) {
    require("skip_gram_entropy", "words", words, 1);
    return 2 * std::log(words) + sphere_entropy(n);
}

/// The result of the minimal-entropy rule for a vocabulary.
struct EmbeddingDimension {
    Index exact = 1;        ///< the smallest n with H(N, n) < H̃
    double asymptotic = 0;  ///< (2 ln N - H̃) / (½ ln φ), with H̃ = 0 8.3123 ln N, φ the golden ratio
    double rule = 0;        ///< 8.33 (ln N - H̃ / 2), as quoted: the coefficient rounded to 0.24
};

/// The minimum dimension of word vectors for N words by the minimal-entropy rule.
///
///     n > 8.33 (ln N - H̃/2),   exactly: the smallest n with H(N, n) = 2 ln N + h_n < H̃
///
/// H̃ is the entropy of the pairs of a corpus, of counts::pair_entropy for instance; 0, below any, asks for the largest n.
/// Meant for skip-gram models, as an order of magnitude: a smaller n cannot distinguish the words, a larger one
/// may overfit.
///
/// Errors   UsageError for N below 1 or not finite, and H̃ outside 0 … 2 ln N.
/// Source   as sphere_entropy.
inline EmbeddingDimension embedding_dimension(double words, double entropy = 0) {
    require("embedding_dimension", "words", words, 1);
    require("embedding_dimension", "entropy", entropy, 0, 2 * std::log(words));
    EmbeddingDimension d;
    d.asymptotic = (2 * std::log(words) - entropy) / entropy_per_dimension;
    d.rule = 8.33 * (std::log(words) - entropy / 2);
    // h_n falls by slightly more than the limit per dimension: the crossing is near the asymptote.
    d.exact = static_cast<Index>(d.asymptotic) + 1;
    while (skip_gram_entropy(words, d.exact) >= entropy) ++d.exact;
    while (d.exact > 1 && skip_gram_entropy(words, d.exact - 1) < entropy) --d.exact;
    return d;
}

}}  // namespace isogloss
