/// @file update/rule.hpp  The base of all updates: a group of parameters and the common options.
#pragma once

#include <isogloss/error.hpp>
#include <isogloss/update/gradients.hpp>
#include <limits>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The base of an update: its group of parameters and its options, of which these have a common meaning:
///
///     rate          learning rate η ≥ 0, a finite number of type T
///     clip          maximum norm of the group's direction, ≥ 0; 0: no clipping (if it has this option)
///     weight_decay  λ ≥ 0 (if it has this option)
///     divisor       d, what raw sums of derivatives are divided by before clipping
template <class T, class O> class Rule {
public:
    using Options = O;
    using RuleOfUpdate = Rule;  ///< by which a checkpoint recognises an update that has no visit() of its own

    double rate() const { return options_.rate; }
    /// Sets η ≥ 0; throws UsageError if it is out of range.
    void rate(double r) {
        require_rate(r);
        options_.rate = r;
    }
    const Parameters<T>& group() const { return group_; }

    /// Shows its state to a visitor (see io/checkpoint.hpp): the rate. An update that accumulates something has a
    /// visit() that begins with this one; one that does not says `static constexpr bool stateless = true;`.
    template <class Visitor> void visit(Visitor& v) { v.number("rate", options_.rate); }

protected:
    /// `who`, a literal, begins the messages. The trained parameters of `group` are updated. Throws UsageError
    /// for options out of range, for a group with none of them, and for a graph without gradients.
    Rule(std::string_view who, Parameters<T> group, O options)
        : who_(who), group_(group.trained_for(who)), options_(std::move(options)) {
        require_rate(options_.rate);
        if constexpr (requires { options_.clip; }) require(who, "clip", options_.clip, 0.0);
        if constexpr (requires { options_.weight_decay; })
            require(who, "weight_decay", options_.weight_decay, 0.0);
    }
    /// Call first in a step: returns d, of the gradients of the group. Throws UsageError if no backward pass has reached
    /// it since the last step, and while the weights are lent, see Lease.
    double begin_step() const {
        graph::require_unlent(group_, who_);
        group_.require_gradients(who_);
        return group_.divisor(options_.divisor);
    }
    /// η times the clipping factor of a direction of this norm.
    double clipped_rate(double length) const { return options_.rate * clip_factor(length, options_.clip); }

    // A larger one would be infinite in the updates' arithmetic.
    void require_rate(double r) const {
        require(who_, "rate", r, 0.0, static_cast<double>(std::numeric_limits<T>::max()));
    }

    std::string_view who_;
    Parameters<T> group_;
    O options_;
};

}}  // namespace isogloss
