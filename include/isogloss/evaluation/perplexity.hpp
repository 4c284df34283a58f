/// @file evaluation/perplexity.hpp  Average loss, as perplexity or in bits.
#pragma once

#include <cmath>
#include <isogloss/elementary.hpp>
#include <isogloss/error.hpp>
#include <isogloss/types.hpp>
#include <numbers>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Accumulates losses and computes their averages.
///
///     perplexity = exp(Σ nats / tokens),  bits per token = Σ nats / (tokens ln 2),
///     bits per character = Σ nats / (characters ln 2)
class Perplexity {
public:
    /// Adds a summed loss in nats over `tokens` predicted tokens, which stand for `characters` characters of the
    /// text. Throws NumericError for a loss that is not finite and UsageError for negative counts.
    void add(double nats, Index tokens, Index characters = 0) {
        if (!std::isfinite(nats))
            throw NumericError("perplexity: found a loss of ", nats, " nats over ", tokens, " tokens");
        require("perplexity", "tokens", tokens, 0);
        require("perplexity", "characters", characters, 0);
        nats_ += nats;
        tokens_ += tokens;
        characters_ += characters;
    }

    double total() const { return nats_; }  ///< Σ nats
    Index tokens() const { return tokens_; }
    Index characters() const { return characters_; }

    /// Nats per token; like all averages below, throws UsageError when nothing was counted.
    double nats() const { return nats_ / count(tokens_, "tokens"); }
    double bits_per_token() const { return nats() / std::numbers::ln2; }
    double bits_per_character() const { return nats_ / count(characters_, "characters") / std::numbers::ln2; }
    double value() const { return kernel::elementary::exp(nats()); }  ///< the perplexity

private:
    static double count(Index n, const char* what) {
        if (n == 0) throw UsageError("perplexity: no ", what, " were counted, so there is no average");
        return static_cast<double>(n);
    }
    double nats_ = 0;
    Index tokens_ = 0, characters_ = 0;
};

}}  // namespace isogloss
