/// @file update/weight_average.hpp  Running averages of weights, exchanged in for an evaluation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/subnormals.hpp>
#include <isogloss/update/lease.hpp>
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
/// Between the two calls the weights are lent (Lease): they may be saved, and evaluated dynamically, and no update steps
/// them.
///
/// Memory   one copy of the group's weights
/// Errors   UsageError: λ out of range; an empty group; rows held at norm 1, whose averages would be shorter; add(),
///          restart(), or a load of parameters alone, while the averages are in use; add() and swap() while the weights
///          are lent to another
/// Source   Polyak, Juditsky 1992, "Acceleration of stochastic approximation by averaging"; with exponential
///          decay: Ruppert 1988 and common practice
template <class T> class WeightAverage {
public:
    using Options = WeightAverageOptions;

    /// Of the trained parameters of the group; `who`, a literal, names the owner in messages.
    explicit WeightAverage(const Parameters<T>& group, WeightAverageOptions options = {},
                           std::string_view who = "weight average")
        : lease_(group.trained_for(who, false), who, true), forget_(1 - options.decay), who_(who) {
        require(who_, "decay", options.decay, 0, 1);
    }

    /// Takes the weights into the averages.
    void add() {
        require_out();
        const SubnormalsAreZero flush;  // averages of weights that have become 0 would be subnormal for long
        ++count_;
        const T weight = static_cast<T>(std::max(forget_, 1 / static_cast<double>(count_)));
        for (std::size_t k = 0; k < lease_.group().size(); ++k) {
            const T* w = lease_.group()[k].value;
            T* m = lease_.kept(k).data();
            kernel::over_numbers(std::ssize(lease_.kept(k)), [&](Index first, Index last, Index) {
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
        lease_.exchange();
        swapped_ = lease_.lent();
    }
    /// Forgets what was added, even if it is not finite: the next add() begins a new average.
    void restart() {
        require_out();
        count_ = 0;
    }
    /// How many weights were added since the beginning or the last restart().
    std::uint64_t count() const { return count_; }
    /// Whether the averages are in use.
    bool swapped() const { return swapped_; }

    /// Called by Checkpoint::load.
    void after_load() { lease_.mark(swapped_); }
    /// Shows its state to a visitor (see io/checkpoint.hpp), under names that begin with `prefix`.
    template <class Visitor> void visit(Visitor& v, std::string_view prefix = "") {
        v.flag(message(prefix, "swapped"), swapped_);
        v.counter(message(prefix, "averaged"), count_);
        for (std::size_t k = 0; k < lease_.group().size(); ++k) {
            const auto& p = lease_.group()[k];
            v.array(message(prefix, "mean/", p.name), lease_.kept(k).data(), p.rows, p.cols);
        }
    }

private:
    void require_out() const { graph::require_unlent(lease_.group(), who_); }

    Lease<T> lease_;  // keeps the averages while the weights are in use, and the other way round
    double forget_;   // 1 - λ
    std::string_view who_;
    bool swapped_ = false;
    std::uint64_t count_ = 0;
};

/// The mean of the weights since a step that validation chooses, with nothing to set. Of two plain means the longer began
/// at an earlier step. Where the shorter has no larger loss at a validation, it becomes the longer one, and a shorter
/// one begins:
///
///     add():       l ← mean of n_l + 1 weights,  s ← mean of n_s + 1 weights
///     observe(f):  if f(s) <= f(l):  l ← s,  n_s ← 0
///
/// Called as WeightAverage is; observe() takes the place of a schedule for λ.
///
/// Memory   two copies of the group's weights
/// Errors   those of WeightAverage
/// Source   Melis 2022, "Two-tailed averaging", arXiv 2209.12581. The weights themselves are not evaluated.
template <class T> class TwoTailedAverage {
public:
    /// Of the trained parameters of the group.
    explicit TwoTailedAverage(const Parameters<T>& group)
        : averages_{WeightAverage<T>(group, {.decay = 1}, "two-tailed average"),
                    WeightAverage<T>(group, {.decay = 1}, "two-tailed average")} {}

    /// Takes the weights into both averages.
    void add() {
        for (auto& average : averages_) average.add();
    }
    /// Calls `loss`, a function without arguments that evaluates, with each of the averages in use, and returns the
    /// smaller result, that of the average which swap() then exchanges in.
    template <class Loss> double observe(Loss&& loss) {
        struct InUse {
            explicit InUse(WeightAverage<T>& a) : average(a) { average.swap(); }
            ~InUse() { average.swap(); }
            WeightAverage<T>& average;
        };
        const auto with = [&](WeightAverage<T>& average) {
            const InUse use(average);
            return static_cast<double>(loss());
        };
        auto &longer = averages_[longer_], &shorter = averages_[1 - longer_];
        const double l = with(longer);
        if (shorter.count() == 0) return l;
        const double s = shorter.count() == longer.count() ? l : with(shorter);
        if (!(s <= l)) return l;
        longer_ = 1 - longer_;
        longer.restart();
        return s;
    }
    /// WeightAverage::swap, of the longer one.
    void swap() { averages_[longer_].swap(); }
    /// How many weights the longer one holds.
    std::uint64_t count() const { return averages_[longer_].count(); }

    /// WeightAverage::after_load.
    void after_load() {
        for (auto& average : averages_) average.after_load();
    }
    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        v.counter("longer", longer_);
        averages_[0].visit(v, "first/");
        averages_[1].visit(v, "second/");
    }

private:
    WeightAverage<T> averages_[2];
    std::uint64_t longer_ = 0;
};

}}  // namespace isogloss
