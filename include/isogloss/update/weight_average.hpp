/// @file update/weight_average.hpp  Running averages of weights, exchanged in for an evaluation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/subnormals.hpp>
#include <isogloss/update/gradients.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of WeightAverage.
struct WeightAverageOptions {
    double decay = 0.999;  ///< λ in [0, 1] of the average at each add(); 1: the plain mean of all
};

/// Averages of the weights of a group over training, beside any update:
///
///     w̄ ← w̄ + a_k (w - w̄),   a_k = max(1 - λ, 1 / k),   k = 1, 2, …
///
/// the mean of the first 1 / (1 - λ) weights, which then decays exponentially. On a text that is seen many times
/// the averages predict other texts better than the last weights: noise of the steps cancels in them.
///
///     WeightAverage<float> average(g.parameters(), {.decay = 0.999});
///     sgd.step();
///     average.add();        // in the loop
///     average.swap();       // the averages in, for an evaluation …
///     average.swap();       // … and out again, for training
///
/// Between the two calls write no other weights: the second one would replace them.
///
/// Memory   one copy of the group's weights
/// Errors   UsageError: λ out of range; an empty group; rows held at norm 1, whose averages would be shorter; add(),
///          or a load of parameters alone, while the averages are in use; add() and swap() while the weights are
///          temporary ones of a WeightDrop or DynamicUpdate
/// Source   Polyak, Juditsky 1992, "Acceleration of stochastic approximation by averaging"; with exponential
///          decay: Ruppert 1988 and common practice
template <class T> class WeightAverage {
public:
    using Options = WeightAverageOptions;

    /// Of the trained parameters of the group; `who` names the owner in messages.
    explicit WeightAverage(const Parameters<T>& group, WeightAverageOptions options = {},
                           std::string_view who = "weight average")
        : group_(group.trained()), forget_(1 - options.decay), who_(who) {
        require(who_, "decay", options.decay, 0, 1);
        if (group_.size() == 0)
            throw UsageError(who_, ": the group of parameters is empty, or none of it is trained");
        for (const Parameter<T>* p : group_)
            if (p->unit_rows)
                throw UsageError(
                    who_, ": the rows of '", p->name,
                    "' are held at norm 1, which their averages are not; exclude it from the group");
        allocate_per_parameter(who_, group_, sizeof(T),
                               [&](const Parameter<T>& p) { mean_.emplace_back(p.size(), T(0)); });
    }

    // A copy would restore the weights that it found, not those of the time of its swap().
    WeightAverage(const WeightAverage&) = delete;
    WeightAverage& operator=(const WeightAverage&) = delete;
    WeightAverage(WeightAverage&&) = default;
    WeightAverage& operator=(WeightAverage&&) = default;

    /// Takes the weights into the averages.
    void add() {
        require_out("add()");
        graph::require_lasting(group_, who_, "add()");
        const SubnormalsAreZero flush;  // averages of weights that have become 0 would be subnormal for long
        ++count_;
        const T weight = static_cast<T>(std::max(forget_, 1 / static_cast<double>(count_)));
        for (std::size_t k = 0; k < mean_.size(); ++k) {
            const T* w = group_[k].value;
            T* m = mean_[k].data();
            over_numbers(std::ssize(mean_[k]), [&](Index first, Index last, Index) {
                if (weight == 1)
                    std::copy(w + first, w + last, m + first);  // whatever they hold, NaN included
                else
                    for (Index i = first; i < last; ++i) m[i] += weight * (w[i] - m[i]);
            });
        }
    }
    /// Exchanges weights and averages; without effect before the first add().
    void swap() {
        if (count_ == 0) return;
        graph::require_lasting(group_, who_, "swap()");
        swapped_ = !swapped_;
        for (std::size_t k = 0; k < mean_.size(); ++k)
            std::swap_ranges(mean_[k].begin(), mean_[k].end(), group_[k].value);
    }
    /// Forgets what was added, even if it is not finite: the next add() begins a new average.
    void restart() {
        require_out("restart()");
        count_ = 0;
    }
    /// How many weights were added since the beginning or the last restart().
    std::uint64_t count() const { return count_; }
    /// Whether the averages are in use.
    bool swapped() const { return swapped_; }
    /// Throws UsageError while the averages are in use, naming the `call` that this refuses.
    void require_out(std::string_view call) const {
        if (swapped_) throw UsageError(who_, ": ", call, " while the averages are in use; call swap() first");
    }

    /// Called by Checkpoint::load before one of parameters alone, see io/checkpoint.hpp.
    void before_load_of_parameters() const {
        if (swapped_)
            throw UsageError(
                who_,
                ": a load of parameters while the averages are in use, which the next swap() would "
                "replace by the weights before it; call swap() first");
    }

    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        v.flag("swapped", swapped_);
        v.counter("averaged", count_);
        for (std::size_t k = 0; k < mean_.size(); ++k) {
            const auto& p = group_[k];
            v.array(message("mean/", p.name), mean_[k].data(), p.rows, p.cols);
        }
    }

private:
    Parameters<T> group_;
    double forget_;  // 1 - λ
    std::string who_;
    bool swapped_ = false;
    std::uint64_t count_ = 0;
    std::vector<std::vector<T>> mean_;
};

}}  // namespace isogloss
