/// @file graph/loss_result.hpp  What a pass computed of a loss.
#pragma once

#include <cmath>
#include <isogloss/error.hpp>
#include <isogloss/graph/store.hpp>
#include <isogloss/tensor.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

/// What the last forward pass computed of a loss, valid until the next one.
class LossResult {
public:
    LossResult(const LossRecord& loss, Index time, Index batch) : loss_(loss), time_(time), batch_(batch) {}

    /// The loss, summed over time and batch, in nats.
    double nats() const { return loss_.value; }
    /// The plain cross-entropy Σ -log p(y_t) within the loss, in nats, without what is added to it and how it is
    /// weighted there: the basis of perplexity. Throws UsageError for a loss that has none.
    double cross_entropy() const {
        if (std::isnan(loss_.cross_entropy))
            throw UsageError("cross_entropy: loss '", loss_.name,
                             "' has none; ask a CrossEntropy on the logits");
        return loss_.cross_entropy;
    }
    /// Positions that counted: targets other than not_predicted.
    Index predicted() const { return loss_.predicted; }
    /// The loss of each position, a view [T, B] in nats, 0 where nothing is predicted. Throws UsageError for a loss
    /// that keeps none.
    auto by_token() const {
        if (!loss_.by_token) throw UsageError("by_token: node '", loss_.name, "' keeps no loss per position");
        return matrix_view(static_cast<const double*>(loss_.by_token), time_, batch_);
    }

private:
    const LossRecord& loss_;
    Index time_, batch_;
};

}}}  // namespace isogloss::graph
