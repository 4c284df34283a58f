/// @file health.hpp  Indicators of the course of a training: gradients, the soft term, long word vectors, and
/// whether to stop.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <isogloss/kernel/rows.hpp>
#include <limits>

#include "model.hpp"
#include "updates.hpp"

namespace lm {

/// Sums over the epoch so far, and the last validation.
struct Health {
    double soft = 0, tokens = 0;  ///< nats of the soft term, and the number of tokens
    double norm = 0, largest = 0, clipped = 0, steps = 0;
    double validation = std::numeric_limits<double>::quiet_NaN();  ///< nats per token; not finite: none yet

    /// Records a step: nats of the soft term over `of_tokens` tokens.
    void add(double of_soft, double of_tokens, const Step& step) {
        soft += of_soft;
        tokens += of_tokens;
        norm += step.norm;
        largest = std::max(largest, step.norm);
        clipped += step.clipped;
        ++steps;
    }
    double soft_term() const { return tokens > 0 ? soft / tokens : 0; }
    double mean_norm() const { return steps > 0 ? norm / steps : 0; }
    double clipped_share() const { return steps > 0 ? clipped / steps : 0; }
    /// Begins an epoch, after a validation loss of `nats`.
    void next(double nats) { *this = {.validation = nats}; }
    /// For the checkpoint.
    template <class Visitor> void visit(Visitor& v) {
        v.number("soft", soft), v.number("tokens", tokens), v.number("norm", norm);
        v.number("largest", largest), v.number("clipped", clipped), v.number("steps", steps);
        v.number("validation", validation);
    }
};

/// The longest word vector.
struct LongestRow {
    double square = -1;  ///< |e|²
    ig::Token word = 0;
};

inline LongestRow longest_row(ig::MatrixRef<const float> table) {
    LongestRow it;
    for (ig::Index i = 0; i < table.rows; ++i)
        if (const double square = ig::kernel::sum_of_squares(table.cols, table.row(i)); square > it.square)
            it = {square, static_cast<ig::Token>(i)};
    return it;
}

/// Whether a validation of `nats` per token shows by itself, without a best to compare it with, that the training
/// has run away: the perplexity is not finite or, unless --runaway is 0, above 1000 V, where equal probabilities of
/// all V `types` would give V.
inline bool is_hopeless(const Options& o, double nats, ig::Index types) {
    return std::isinf(std::exp(nats)) ||
           (o.runaway > 0 && nats > std::log(1000 * static_cast<double>(types)));
}

/// Why a training ends before its last epoch.
enum class Stop { none, patience, runaway };

/// `epoch`: the next one; `best`, `validation`: the best and the last loss, in nats per token; `types`: those of
/// the vocabulary.
inline Stop stop_of(const Options& o, std::uint64_t epoch, std::uint64_t best_epoch, double best,
                    double validation, ig::Index types) {
    if (is_hopeless(o, validation, types)) return Stop::runaway;
    if (o.runaway > 0 && validation > best + std::log(o.runaway)) return Stop::runaway;
    if (o.patience > 0 && best_epoch > 0 && epoch > best_epoch + static_cast<std::uint64_t>(o.patience))
        return Stop::patience;
    return Stop::none;
}

}  // namespace lm
