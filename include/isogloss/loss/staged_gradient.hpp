/// @file loss/staged_gradient.hpp  A gradient computed in the forward pass for backward to commit.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <isogloss/graph/pass.hpp>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace detail {

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
        node_ = node, hidden_ = hidden;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            weights_[i] = {weights[i], is_trained(p, weights[i]), false};
            wanted = wanted && (weights[i].id < 0 ||
                                p.parameter(weights[i]).condition == Parameter<T>::Condition::empty);
        }
        T* adjoint = wanted ? p.stage_adjoint(hidden) : nullptr;
        staged_ = adjoint != nullptr;
        return adjoint;
    }

    /// Commits the staged gradient; false if it is no longer there and must be recomputed.
    bool commit(Backward<T, Gradient>& p) {
        using Condition = typename Parameter<T>::Condition;
        const bool committed = std::exchange(staged_, false) && p.commit(hidden_);
        const bool there = committed && std::ranges::all_of(weights_, [&](const Target& w) {
                               if (w.trained != is_trained(p, w.weight))
                                   return false;  // frozen or thawed since
                               if (!w.written) return true;
                               const auto& record = p.parameter(w.weight);
                               return record.condition == Condition::staged && record.staged_by == node_;
                           });
        if (committed && !there) p.discard(hidden_);
        for (Target& w : weights_)
            if (std::exchange(w.written, false) && there) p.parameter(w.weight).condition = Condition::dense;
        return there;
    }

    /// The gradient of one of the weights to write to, as (matrix, beta): beta is 0 on the first write in a pass if
    /// nothing counts in it yet, else 1.
    std::pair<MatrixRef<T>, T> weight(Pass<T>& p, Weight<T> weight) {
        auto& record = p.parameter(weight);
        const auto target = std::ranges::find(weights_, weight, &Target::weight);
        assert(target != weights_.end());
        T beta = 1;
        if (!std::exchange(target->written, true)) {
            beta = staged_ ? T(0) : record.begin_product();
            if (staged_) record.condition = Parameter<T>::Condition::staged, record.staged_by = node_;
        }
        return {{record.gradient, record.rows, record.cols}, beta};
    }

private:
    struct Target {
        Weight<T> weight;
        bool trained = false, written = false;  // in this pass
    };
    static bool is_trained(const Pass<T>& p, Weight<T> w) { return w.id >= 0 && p.is_trained(w); }

    bool staged_ = false;
    int node_ = -1;
    Seq<T> hidden_;
    std::array<Target, 3> weights_{};
};

}}}  // namespace isogloss::detail
