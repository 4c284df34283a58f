/// @file chain_model.hpp  A conditional random field over tags, with binary features and vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <isogloss/array.hpp>
#include <isogloss/hmm/forward_backward.hpp>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "lexical_features.hpp"

namespace lt {

/// Sentences with binary features and a vector for each word.
struct ChainText {
    FeatureLists features;
    std::vector<float> vectors;  ///< [words, width]
    ig::Index width = 0;
    std::vector<std::size_t> starts;  ///< of the sentences, and the end
    std::vector<ig::Token> tags;

    std::size_t sentences() const { return starts.size() - 1; }
};

/// Sizes and training options of a chain model.
struct ChainOptions {
    ig::Index tags = 1, features = 0, width = 0;  ///< K, F, d
    double rate = 0.1;                            ///< of AdaGrad, > 0
    double vector_rate = 0.2;                     ///< of the weights of vectors, as a share of `rate`
    double vector_scale = 0.1;  ///< factor on the entries of vectors, which are of about unit size
};

/// A linear-chain conditional random field.
///
///     s_t(y) = Σ_{f on at t} W_f(y) + Σ_j v_t(j) D_j(y)
///     p(y_1 … y_n) = 1/Z exp(Σ_t s_t(y_t) + Σ_{t>1} U(y_{t-1}, y_t))
///
/// learn() takes steps of AdaGrad (Duchi, Hazan, Singer 2011) along the gradient of log p of one sentence,
/// observed minus expected counts: one of D and one of U, and of W one at each position, in turn, for the
/// features that are on there. Expected counts are those of a hidden Markov model with a symbol for each
/// position, e^{s_t} for emission and e^U for transition probabilities; the recursions do not need these to
/// sum to 1.
///
/// Source   Lafferty, McCallum, Pereira 2001.
class ChainModel {
public:
    explicit ChainModel(const ChainOptions& o)
        : o_(o), W_(o.features * o.tags), D_(o.width * o.tags), U_(o.tags * o.tags) {
        ig::require("chain model", "rate", o.rate, ig::Exclusive{0});
    }

    /// Observed minus expected counts of a sentence, and log p of its tags.
    struct Gradient {
        ig::Array<double> tags;   ///< 1[y_t = y] - p(y_t = y), [n, K]
        ig::Array<double> moves;  ///< the same for pairs of adjacent tags, [K, K]
        double log_likelihood = 0;
    };
    Gradient gradient(const ChainText& text, std::size_t sentence) const {
        const auto begin = static_cast<ig::Index>(text.starts[sentence]),
                   n = static_cast<ig::Index>(text.starts[sentence + 1]) - begin, K = o_.tags;
        const ig::Array<double> s = scores(text, sentence);
        // e^{s - max_y s}, a row for each position; e^U
        ig::Array<double> emission(n * K), transition(K * K), initial(K, 1.0);
        double shift = 0;
        for (ig::Index t = 0; t < n; ++t) {
            const double most = *std::max_element(s.begin() + t * K, s.begin() + (t + 1) * K);
            shift += most;
            for (ig::Index y = 0; y < K; ++y) emission[t * K + y] = std::exp(s[t * K + y] - most);
        }
        for (ig::Index i = 0; i < K * K; ++i) transition[i] = std::exp(double(U_.value[i]));
        ig::hmm::ExpectedCounts counts(K, n);
        std::vector<std::vector<ig::Token>> positions(1, std::vector<ig::Token>(std::size_t(n)));
        std::iota(positions[0].begin(), positions[0].end(), 0);
        ig::hmm::ForwardBackward({.states = K,
                                  .symbols = n,
                                  .initial = initial.data(),
                                  .transition = transition.data(),
                                  .emission = emission.data()},
                                 ig::Index{1} << 22)
            .add(positions, counts);
        Gradient g;
        g.log_likelihood = -shift - counts.log_likelihood();
        for (ig::Index i = 0; i < n * K; ++i) g.tags.push_back(-counts.emissions()[i]);
        for (ig::Index i = 0; i < K * K; ++i) g.moves.push_back(-counts.moves()[i] * transition[i]);
        for (ig::Index t = 0; t < n; ++t) {
            const ig::Index y = tag(text, begin + t);
            g.tags[t * K + y] += 1;
            g.log_likelihood += s[t * K + y];
            if (t == 0) continue;
            const ig::Index move = tag(text, begin + t - 1) * K + y;
            g.moves[move] += 1;
            g.log_likelihood += double(U_.value[move]);
        }
        return g;
    }

    /// Takes a step for one sentence; returns log p of its tags before the step.
    double learn(const ChainText& text, std::size_t sentence) {
        const auto begin = static_cast<ig::Index>(text.starts[sentence]),
                   n = static_cast<ig::Index>(text.starts[sentence + 1]) - begin, K = o_.tags;
        const Gradient g = gradient(text, sentence);
        ig::Array<double> of_vectors(o_.width * K);
        for (ig::Index t = 0; t < n; ++t) {
            const double* const r = g.tags.data() + t * K;
            each_feature(text, begin + t, [&](ig::Index f) { W_.step(f * K, {r, r + K}, o_.rate); });
            const float* const v = text.vectors.data() + (begin + t) * o_.width;
            for (ig::Index j = 0; j < o_.width; ++j) {
                const double x = o_.vector_scale * double(v[j]);
                for (ig::Index y = 0; y < K; ++y) of_vectors[j * K + y] += x * r[y];
            }
        }
        D_.step(0, of_vectors, o_.rate * o_.vector_rate);
        U_.step(0, g.moves, o_.rate);
        return g.log_likelihood;
    }

    /// The most probable tags of a sentence, by the Viterbi algorithm.
    std::vector<ig::Token> best_tags(const ChainText& text, std::size_t sentence) const {
        const ig::Index K = o_.tags;
        ig::Array<double> best = scores(text, sentence);  // of tag sequences up to t that end in y
        const ig::Index n = std::ssize(best) / K;
        ig::Array<ig::Token> from(n * K);
        for (ig::Index t = 1; t < n; ++t)
            for (ig::Index y = 0; y < K; ++y) {
                ig::Index most = 0;
                const auto of = [&](ig::Index i) {
                    return best[(t - 1) * K + i] + double(U_.value[i * K + y]);
                };
                for (ig::Index i = 1; i < K; ++i)
                    if (of(i) > of(most)) most = i;
                best[t * K + y] += of(most);
                from[t * K + y] = static_cast<ig::Token>(most);
            }
        std::vector<ig::Token> tags(std::size_t(n), 0);
        const auto last = best.begin() + (n - 1) * K;
        auto y = static_cast<ig::Token>(std::max_element(last, last + K) - last);
        for (ig::Index t = n - 1; t >= 0; --t) {
            tags[std::size_t(t)] = y;
            y = from[t * K + y];
        }
        return tags;
    }

    /// s_t(y) of a sentence, [n, K].
    ig::Array<double> scores(const ChainText& text, std::size_t sentence) const {
        const auto begin = static_cast<ig::Index>(text.starts[sentence]),
                   n = static_cast<ig::Index>(text.starts[sentence + 1]) - begin, K = o_.tags;
        ig::Array<double> s(n * K);
        for (ig::Index t = 0; t < n; ++t) {
            double* const to = s.data() + t * K;
            each_feature(text, begin + t, [&](ig::Index f) {
                for (ig::Index y = 0; y < K; ++y) to[y] += double(W_.value[f * K + y]);
            });
            const float* const v = text.vectors.data() + (begin + t) * o_.width;
            for (ig::Index j = 0; j < o_.width; ++j) {
                const double x = o_.vector_scale * double(v[j]);
                for (ig::Index y = 0; y < K; ++y) to[y] += x * double(D_.value[j * K + y]);
            }
        }
        return s;
    }

    /// Whether all weights are finite numbers.
    bool finite() const { return W_.finite() && D_.finite() && U_.finite(); }
    /// U, [K, K]: the weight of each pair of successive tags.
    const ig::Array<float>& moves() const { return U_.value; }

private:
    // Weights, and for each the sum of the squares of its gradients.
    struct Weights {
        explicit Weights(ig::Index n) : value(n), squares(n) {}
        void step(ig::Index at, std::span<const double> gradient, double rate) {
            for (const double g : gradient) {
                squares[at] += static_cast<float>(g * g);
                if (g != 0) value[at] += static_cast<float>(rate * g / std::sqrt(1e-8 + double(squares[at])));
                ++at;
            }
        }
        bool finite() const {
            return std::ranges::all_of(value, [](float w) { return std::isfinite(w); });
        }
        ig::Array<float> value, squares;
    };

    template <class F> static void each_feature(const ChainText& text, ig::Index i, F&& f) {
        for (auto at = text.features.first[std::size_t(i)]; at < text.features.first[std::size_t(i) + 1];
             ++at)
            f(ig::Index{text.features.list[at]});
    }
    static ig::Index tag(const ChainText& text, ig::Index i) { return text.tags[std::size_t(i)]; }

    ChainOptions o_;
    Weights W_, D_, U_;
};

}  // namespace lt
