/// @file loss/staged_gradient.hpp  A gradient computed in the forward pass for backward to commit.
#pragma once

#include <algorithm>
#include <array>
#include <isogloss/graph/pass.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The gradients of a head's weights and hidden states, computed by a loss in a training forward pass, while
/// the logits are available. They are stored in place, in the gradients of the weights and in the adjoint, but
/// do not count until backward commits them:
///
///               stage(), in forward              commit(), in backward
///       none ─────────────────────────▶ staged ─────────────────────────▶ committed
///         ▲                               │
///         └───────────────────────────────┘
///           discarded: by the next forward pass, or because a weight or the adjoint was written to, or a weight
///           frozen or thawed, since
///
/// Nothing is staged where a gradient already counts or is staged by another loss; then, and after a
/// discard, backward computes the gradient.
template <class T> class StagedGradient {
public:
    /// For a forward pass: the zeroed adjoint [T·B, n] of `hidden` to stage in, or null if nothing is to be
    /// staged: not `wanted`, or one of the `weights` (an empty handle: none) or the adjoint is in use. `node` is
    /// the head's.
    T* stage(Forward<T>& p, bool wanted, int node, Seq<T> hidden, const std::array<Weight<T>, 3>& weights) {
        node_ = node, hidden_ = hidden, count_ = 0;
        weights_ = weights;
        for (std::size_t i = 0; i < weights.size(); ++i) trained_[i] = is_trained(p, weights[i]);
        const bool free = std::all_of(weights.begin(), weights.end(), [&](Weight<T> w) {
            return w.id < 0 || p.parameter(w).condition == Parameter<T>::Condition::empty;
        });
        T* adjoint = wanted && free ? p.stage_adjoint(hidden) : nullptr;
        staged_ = adjoint != nullptr;
        return adjoint;
    }

    /// Commits the staged gradient; false if it is no longer there and must be recomputed.
    bool commit(Backward<T, Gradient>& p) {
        const bool committed = std::exchange(staged_, false) && p.commit(hidden_);
        bool there =
            committed && std::all_of(written_.begin(), written_.begin() + count_, [&](Weight<T> w) {
                const auto& record = p.parameter(w);
                return record.condition == Parameter<T>::Condition::staged && record.staged_by == node_;
            });
        for (std::size_t i = 0; there && i < weights_.size(); ++i)
            there = trained_[i] == is_trained(p, weights_[i]);  // neither frozen nor thawed since
        if (committed && !there) p.discard(hidden_);
        for (Index i = 0; there && i < count_; ++i)
            p.parameter(written_[std::size_t(i)]).condition = Parameter<T>::Condition::dense;
        count_ = 0;
        return there;
    }

    /// The gradient of a weight to write to, as (matrix, beta): beta is 0 on the first write in a pass if
    /// nothing counts in it yet, else 1. Throws UsageError for a weight that stage() was not given.
    std::pair<MatrixRef<T>, T> weight(Pass<T>& p, Weight<T> weight) {
        auto& w = p.parameter(weight);
        if (std::find(weights_.begin(), weights_.end(), weight) == weights_.end())
            throw UsageError("node '", p.name(), "': found a gradient of '", w.name,
                             "', expected one of a weight that setup declares (also_writes)");
        T beta = 1;
        if (const auto end = written_.begin() + count_; std::find(written_.begin(), end, weight) == end) {
            written_[std::size_t(count_++)] = weight;
            beta = staged_ ? T(0) : w.begin_product();
            if (staged_) w.condition = Parameter<T>::Condition::staged, w.staged_by = node_;
        }
        return {{w.gradient, w.rows, w.cols}, beta};
    }

private:
    static bool is_trained(const Pass<T>& p, Weight<T> w) { return w.id >= 0 && p.is_trained(w); }

    bool staged_ = false;
    int node_ = -1;
    Seq<T> hidden_;
    std::array<Weight<T>, 3> weights_{};  // that the pass may write to, and whether they were trained
    std::array<bool, 3> trained_{};
    std::array<Weight<T>, 3> written_{};  // weights written to in this pass
    Index count_ = 0;
};

}}  // namespace isogloss
