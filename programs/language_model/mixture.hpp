/// @file mixture.hpp  A model mixed with other models and with probabilities written by another program.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <isogloss/error.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/evaluation/perplexity.hpp>
#include <isogloss/text/words.hpp>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "print.hpp"

namespace lm {

/// The probabilities of the tokens of a text in a file: numbers in [0, 1] separated by white space, one for
/// each of the `tokens`, line ends included; a number above 0 that is too small for a double, such as 1e-400, is
/// taken for the smallest double above 0, about 5e-324. Returns -log p, infinite for 0. Throws DataError with
/// file and line for anything else; `text` names the text in messages.
inline std::vector<double> read_probabilities(const std::string& path, ig::Index tokens,
                                              const std::string& text) {
    ig::file::LineReader reader(path);
    std::vector<double> nats;
    for (std::string_view line; reader.next(line);)
        ig::text::for_each_word(line, [&](std::string_view word) {
            double p = 0;
            const char* const end = word.data() + word.size();
            auto read = std::from_chars(word.data(), end, p);
            if (read.ec == std::errc::result_out_of_range &&
                std::strtod(std::string(word).c_str(), nullptr) < 1) {
                p = word.starts_with('-') ? -1 : std::numeric_limits<double>::denorm_min();
                read.ec = {};
            }
            if (read.ec != std::errc() || read.ptr != end || !(p >= 0 && p <= 1))
                throw ig::DataError(ig::message(
                    path, ":", reader.line(), ": ", ig::in_quotes(word),
                    " is not a probability; expected numbers from 0 to 1, one for each token of '", text, "'",
                    word.starts_with('-') ? ", not their logarithms" : ""));
            nats.push_back(-std::log(p));
        });
    if (std::ssize(nats) != tokens)
        throw ig::DataError(ig::message(path, ": ", grouped(std::ssize(nats)),
                                        " probabilities in it, expected ", grouped(tokens),
                                        ", one for each token of '", text, "', line ends included"));
    return nats;
}

/// Several predictions of one text, mixed:
///
///     p(x_i) = Σ_k w_k p_k(x_i),   w_k ≥ 0,   Σ_k w_k = 1
///
/// Source   Jelinek, Mercer 1980, "Interpolated estimation of Markov source parameters from sparse data",
///          which also finds the weights by EM on a held-out text.
class Mixture {
public:
    /// Adds a component: its name for messages, and -log p_k of every token.
    void add(std::string name, std::vector<double> nats) {
        names_.push_back(std::move(name));
        nats_.push_back(std::move(nats));
    }

    std::size_t size() const { return nats_.size(); }                   ///< components
    const std::string& name(std::size_t k) const { return names_[k]; }  ///< of a component
    ig::Index tokens() const { return std::ssize(nats_.front()); }      ///< of the text

    /// The perplexity of component k by itself; infinite if some token has probability 0.
    double alone(std::size_t k) const {
        return std::exp(std::accumulate(nats_[k].begin(), nats_[k].end(), 0.) /
                        static_cast<double>(tokens()));
    }

    /// The perplexity of the mixture. Throws NumericError if a token has probability 0.
    ig::Perplexity perplexity(const std::vector<double>& weights) const {
        ig::Perplexity p;
        for (std::size_t i = 0; i < nats_.front().size(); ++i) {
            const double least = least_nats(i, weights);
            double sum = 0;
            for (std::size_t k = 0; k < size(); ++k)
                if (weights[k] > 0) sum += weights[k] * std::exp(least - nats_[k][i]);
            if (!std::isfinite(least))
                throw ig::NumericError(
                    ig::message("evaluate: token ", i + 1,
                                " of the text has probability 0 under the mixture, because "
                                "--mix-weight gives all weight to predictors that give it none; "
                                "lower the weights"));
            p.add(least - std::log(sum), 1);
        }
        return p;
    }

    /// The weights of least cross-entropy, by EM from equal ones: w_k ← w_k g_k, g_k = mean_i p_k(x_i) /
    /// p(x_i). No other weights are better by more than max_k g_k - 1 nats per token; it ends when that is
    /// below 10⁻⁷, or after 10,000 rounds. Every token must have probability > 0 in some component.
    std::vector<double> best_weights() const {
        const std::vector<double> all(size(), 1);
        std::vector<double> p(nats_.front().size() * size());  // relative to the largest p_k of a token
        for (std::size_t i = 0; i < nats_.front().size(); ++i) {
            const double least = least_nats(i, all);
            for (std::size_t k = 0; k < size(); ++k) p[i * size() + k] = std::exp(least - nats_[k][i]);
        }
        std::vector<double> w(size(), 1 / static_cast<double>(size())), g(size());
        for (int round = 0; round < 10000; ++round) {
            std::fill(g.begin(), g.end(), 0.);
            for (std::size_t i = 0; i < p.size(); i += size()) {
                const double mixed =
                    std::inner_product(w.begin(), w.end(), p.begin() + std::ptrdiff_t(i), 0.);
                for (std::size_t k = 0; k < size(); ++k) g[k] += p[i + k] / mixed;
            }
            for (double& x : g) x /= static_cast<double>(tokens());
            if (*std::max_element(g.begin(), g.end()) - 1 < 1e-7) break;
            for (std::size_t k = 0; k < size(); ++k) w[k] *= g[k];
        }
        return w;
    }

private:
    double least_nats(std::size_t i, const std::vector<double>& weights) const {
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t k = 0; k < size(); ++k)
            if (weights[k] > 0) least = std::min(least, nats_[k][i]);
        return least;
    }

    std::vector<std::string> names_;
    std::vector<std::vector<double>> nats_;  // [component][token]
};

}  // namespace lm
