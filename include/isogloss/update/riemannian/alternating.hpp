/// @file update/riemannian/alternating.hpp  Training by alternating steps with self-adjusting rates.
#pragma once

#include <algorithm>
#include <isogloss/update/riemannian/search_step.hpp>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Full-batch training of one loss over several groups of parameters in turn. A step of a group is computed,
/// tried, and accepted when the loss is no worse, in which case the group's rate grows; else it is cancelled,
/// the rate shrinks, and the same direction is tried again. A round never makes the loss worse: if all trials
/// fail the old values are restored bit for bit. A group whose direction is not finite, because a gradient or a
/// metric overflows where the loss does not, leaves its parameters as they are and counts as cancelled; another
/// group may lead away from there. An exception from a pass leaves the values of before the trial. All this needs the
/// same loss for the same weights: with dropout call g.training(false), which leaves masks out.
///
///     AlternatingTraining<double> training(g, l);
///     training.add(softmax, {.rate = 0.05});      // first: see below
///     training.add(transition, {.rate = 0.05});
///     training.data({{{x, text}, {y, next}}});
///     while (...) training.round();
///
/// The weights of the softmax come first: they start at 0, so no gradient flows back and the other groups
/// would have no metric. Each sequence starts from the start values (Graph::reset). Losses of several sequences
/// are summed with weights: 1 for all weights by length, 1/length weights all equally. The absolute damping of
/// the steps is multiplied by the mean weight, so that a common factor of all weights does not change the
/// steps. Sequences of similar length are best run as columns of one pass, padded with not_predicted.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", section 3, which does not state the
///          factors.
template <class T> class AlternatingTraining {
public:
    using Sequence = std::vector<Feed<T>>;

    /// How a learning rate adjusts itself.
    struct RateControl {
        double rate = 0;     ///< η > 0 of the first step
        double up = 1.1;     ///< factor ≥ 1 after an accepted step
        double down = 2;     ///< divisor > 1 after a cancelled one
        Index retries = 60;  ///< maximum number of trials ≥ 1 of one direction
    };

    AlternatingTraining(Graph<T>& g, Loss<T> l) : graph_(g), loss_handle_(l) {}

    /// Adds a group, in the order of training. Throws UsageError for options out of range.
    void add(SearchStep<T>& step, RateControl control) {
        const auto* who = "alternating training";
        require(who, "rate", control.rate, Exclusive{0});
        require(who, "up", control.up, 1.0);
        require(who, "down", control.down, Exclusive{1});
        require(who, "retries", control.retries, 1);
        groups_.push_back({&step, control, 0, 0});
    }

    /// Sets the training data: the inputs of one pass for each sequence, and a weight ≥ 0 for each, not all 0 (none: 1).
    /// Evaluates the loss once. May be called again with other data, for instance a growing text. The arrays that the
    /// feeds point to are read by every round and must outlive the training, or the next call of data().
    void data(std::vector<Sequence> sequences, std::vector<double> weights = {}) {
        if (weights.empty()) weights.assign(sequences.size(), 1);
        for (const double weight : weights) require("alternating training", "weight", weight, 0.0);
        const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        if (weights.size() != sequences.size() || sum == 0)
            throw UsageError("alternating training: found ", sequences.size(), " sequences and ",
                             weights.size(), " weights that sum to ", sum, ", expected a weight for each");
        sequences_ = std::move(sequences);
        weights_ = std::move(weights);
        mean_weight_ = sum / static_cast<double>(weights_.size());
        for (auto& g : groups_) g.step->forget_direction();
        resume();
        require_finite("alternating training", "the loss at the start", 1, &value_);
    }

    /// Call this if the graph or its weights were used elsewhere since the last round, parameters alone were loaded, or its
    /// mode was changed (Graph::training); changed weights are accepted as they are.
    void resume() { value_ = evaluate(); }

    /// One step of every group. Returns the loss; throws NumericError when no group has a direction that is
    /// finite: nothing has changed then, nor would further rounds change anything.
    double round() {
        if (sequences_.empty() || groups_.empty())
            throw UsageError("alternating training: call add() and data() before round()");
        graph::require_unlent(graph::Inspect::store(graph_).parameters, "alternating training");
        std::size_t without = 0;
        for (auto& g : groups_) {
            sum(g);
            try {
                g.step->solve(mean_weight_);
            } catch (const NumericError&) {
                ++g.cancelled;
                g.step->cancel();
                g.step->forget_direction();
                if (++without == groups_.size()) throw;
                continue;
            }
            search(g);
        }
        return value_;
    }

    /// The weighted sum of the losses, in nats.
    double value() const { return value_; }
    /// The rate of a group, and how many of its steps were accepted and cancelled.
    /// Throws UsageError for a group that was not added.
    double rate(std::size_t group) const { return at(group).control.rate; }
    Index accepted(std::size_t group) const { return Index(at(group).accepted); }    ///< see rate
    Index cancelled(std::size_t group) const { return Index(at(group).cancelled); }  ///< see rate

    /// Shows its state to a visitor (see io/checkpoint.hpp): the loss, and each group's rate, counts and
    /// conjugate direction. To resume from a file: add the groups and set the data as before, then load.
    template <class Visitor> void visit(Visitor& v) {
        v.number("value", value_);
        for (std::size_t k = 0; k < groups_.size(); ++k) {
            const std::string prefix = message("group", k, '/');
            v.number(prefix + "rate", groups_[k].control.rate);
            v.counter(prefix + "accepted", groups_[k].accepted);
            v.counter(prefix + "cancelled", groups_[k].cancelled);
            groups_[k].step->visit(v, prefix);
        }
    }
    /// Call this after state and weights were loaded from a file, as Checkpoint::load does.
    void after_load() { current_ = passed_ = false; }

private:
    struct Group {
        SearchStep<T>* step;
        RateControl control;
        std::uint64_t accepted, cancelled;
    };

    const Group& at(std::size_t group) const {
        require("alternating training", "group", Index(group), 0, std::ssize(groups_) - 1);
        return groups_[group];
    }

    double forward(std::size_t s) {
        graph_.reset();
        return graph_.forward(loss_handle_, std::span<const Feed<T>>(sequences_[s]));
    }

    // The loss; infinity where it is not finite. Leaves the graph after the last sequence. If `behind` is given,
    // whatever it depends on has not changed since a pass that succeeded.
    double evaluate(Seq<T> behind = {}) {
        double total = 0;
        current_ = false;
        try {
            if (behind.id >= 0 && sequences_.size() == 1 && passed_) {
                passed_ = false;
                total = weights_[0] * graph_.forward_again(loss_handle_, behind);
            } else {
                passed_ = false;
                for (std::size_t s = 0; s < sequences_.size(); ++s) total += weights_[s] * forward(s);
            }
            passed_ = true;
        } catch (const NumericError&) {
            return std::numeric_limits<double>::infinity();
        }
        current_ = sequences_.size() == 1;
        return total;
    }

    // The gradient and metric of a group.
    void sum(Group& g) {
        g.step->clear();
        for (Parameter<T>* p : graph_.parameters())  // of passes elsewhere; not what is staged
            if (p->counts()) p->clear_gradient();
        const Seq<T> behind = g.step->behind();
        const bool held =
            std::exchange(current_, false);  // after a backward pass that throws there is no pass
        for (std::size_t s = 0; s < sequences_.size(); ++s) {
            if (!held) forward(s), passed_ = true;  // else the accepted trial was this pass
            graph_.backward(loss_handle_, behind);
            if (g.step->wants_modulus()) graph_.template backward<Modulus>(loss_handle_, behind);
            g.step->add(weights_[s]);
            graph_.parameters().clear_gradients();
        }
        current_ = held;
    }

    // Tries the direction of a group at falling rates. An exception restores the values before it.
    void search(Group& g) {
        const Seq<T> behind = g.step->behind();
        for (Index trial = 0; trial < g.control.retries; ++trial) {
            g.step->move(g.control.rate);
            double reached;
            try {
                reached = evaluate(behind);
            } catch (...) {
                g.step->cancel();
                g.step->forget_direction();
                throw;
            }
            if (reached <= value_) {
                value_ = reached;
                g.step->accept();
                g.control.rate = std::min(g.control.rate * g.control.up, 1e30);  // finite in float
                ++g.accepted;
                return;
            }
            ++g.cancelled;
            g.control.rate /= g.control.down;
        }
        g.step->cancel();
        g.step->forget_direction();
        g.control.rate = std::max(g.control.rate, 1e-100);
        current_ = false;
    }

    Graph<T>& graph_;
    Loss<T> loss_handle_;
    std::vector<Group> groups_;
    std::vector<Sequence> sequences_;
    std::vector<double> weights_;
    double mean_weight_ = 1;
    double value_ = std::numeric_limits<double>::infinity();
    bool current_ = false;  // the graph holds a forward pass at the current values
    bool passed_ = false;   // the last forward pass succeeded
};

}}  // namespace isogloss
