/// @file graph/runner.hpp  How a graph runs: inputs, the nodes a pass needs, forward and backward over them.
#pragma once

#include <algorithm>
#include <isogloss/graph/blame.hpp>
#include <isogloss/graph/feed.hpp>
#include <isogloss/graph/node.hpp>
#include <isogloss/subnormals.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

/// The half of Graph that runs passes; Graph documents each function.
template <class T> class Runner {
public:
    Runner(Store<T>& store, Array<NodeRecord<T>>& nodes)
        : store_(store), nodes_(nodes), blame_(store, nodes) {}

    bool checking = false;
    const Blame<T>& blame() const { return blame_; }

    /// Whether the last pass failed, or there was none.
    bool failed() const { return last_ == failed_pass; }
    /// Whether the last forward pass ran a node.
    bool reached(int node) const { return last_ >= 0 && at(node).needed; }

    void require_reached(std::string_view who, int node) const {
        if (!reached(node))
            throw UsageError(who, ": the last forward pass did not reach '", name(node), "', or failed");
    }

    /// Sets the upstream gradient of every loss when `asked` is differentiated; -1: none is.
    void set_upstream(int asked) {
        for (auto& l : store_.losses) l.upstream = 0;
        if (asked < 0) return;
        store_.losses[asked].upstream = 1;
        for (int id = asked; id >= 0; --id)
            for (const auto& [part, weight] : store_.losses[id].parts)
                store_.losses[part].upstream += weight * store_.losses[id].upstream;
    }

    /// `asked`: the loss that the pass is for, if any; NumericError if it is not finite. A pass that throws leaves
    /// the carried states and the number of steps as they were.
    void forward(int last, std::span<const Feed<T>> feeds, int asked = -1) {
        set_upstream(asked);
        asked_ = asked;
        last_ = failed_pass;  // also if there is no memory for the pass
        const Scope scope(store_);
        store_.forward_pass = store_.pass;
        take_inputs(store_, nodes_, feeds);
        find_needed(last);
        training_ = store_.training;
        const std::uint64_t before = store_.step;
        if (store_.training) ++store_.step;
        try {
            run(0, last, asked);
        } catch (...) {
            store_.step = before;
            throw;
        }
    }

    /// Runs nodes first … last again for a loss, on the inputs of the last pass and from the states that it began with.
    void forward_again(int first, int last, int asked) {
        if (training_ != store_.training)
            throw UsageError(
                "forward_again: training() has changed since the last forward pass; call forward");
        last_ = failed_pass;
        asked_ = asked;
        const Scope scope(store_);
        store_.forward_pass = store_.pass;
        run(first, last, asked, true);
    }

    void require_ran(const LossRecord& l, const char* what) const {
        if (last_ != l.node || asked_ < 0 || &store_.losses[asked_] != &l)
            throw UsageError(what, ": the last pass was not for loss '", l.name,
                             "', or failed; call forward");
    }

    /// Runs backward from the node of a loss down to, but excluding, node `past`. If a node throws in a pass of
    /// gradients, those of the whole graph are cleared: what counted before cannot be told from what this pass added.
    template <class Quantity> void backward(const LossRecord& l, int past) {
        constexpr int q = Backward<T, Quantity>::quantity;
        if (q == 0 && store_.training && store_.all_columns == 0 && l.predicted == 0 && l.value == 0)
            throw UsageError("backward: every target of the loss '", l.name, "' is not_predicted (-1)");
        if constexpr (q == 1) {
            for (int id = past + 1; id <= l.node; ++id)
                if (at(id).needed && !at(id).node->has_modulus())
                    throw UsageError("backward: node '", name(id),
                                     "' carries no modulus; write its backward as "
                                     "template <class Quantity>");
            enable_moduli();
        }
        const Scope scope(store_, q == 1);
        for (auto& s : store_.seqs) s.unset[q] = true;
        store_.carried_back[q] = 0;
        store_.stopped_at[q] = past;
        if constexpr (q == 0) count(l, past);
        const auto run = [&](int id) {
            if constexpr (q == 1) square_weights(id);
            Backward<T, Quantity> pass(store_, id);
            try {
                at(id).node->backward(pass);
            } catch (const ShapeError& error) {
                blame_.refuse_shapes(id, "backward", error);
            }
            if (checking) blame_.check_backward(id, q);
        };
        // First the losses that have staged gradients, which another loss on the same hidden states or the same
        // table would discard. No other node adds to what a loss returns: its place among the nodes is free.
        for (auto& n : nodes_) n.staged = false;
        if constexpr (q == 0)
            for (const auto& s : store_.seqs)
                if (s.staged_by >= 0) at(s.staged_by).staged = true;
        try {
            for (int id = l.node; id > past; --id)
                if (at(id).needed && at(id).staged) run(id);
            for (int id = l.node; id > past; --id)
                if (at(id).needed && !at(id).staged) run(id);
        } catch (...) {
            asked_ = -1;  // no further backward pass; the values of the forward pass remain
            for (auto& p : store_.parameters)
                if (q == 0) p.clear_gradient();
            throw;
        }
        for (auto& p : store_.parameters)
            if (q == 0 && p.counts()) p.clear_frozen_rows(p.gradient);
        store_.carried_back[q] = store_.forward_pass;
    }

    /// Whether the last backward pass has not run all nodes that may add to the adjoint of a sequence.
    bool left_out(int seq, int quantity) const {
        const auto& s = store_.seqs[seq];
        return s.node + (s.internal ? 0 : 1) <= store_.stopped_at[quantity];
    }

private:
    // While a pass runs: BLAS on one thread, subnormal numbers are 0.
    struct Scope {
        explicit Scope(Store<T>& store, bool exact = false) {
            ++store.pass;
            store.exact = exact;
            // Allocated first, so that a pass without memory leaves nothing half done.
            if (store.products() == Precision::bf16) isogloss::detail::bf16_memory(threads());
        }
        BlasOnOneThread blas;
        SubnormalsAreZero flush;
    };

    NodeRecord<T>& at(int id) const { return nodes_[id]; }
    const std::string& name(int id) const { return store_.node_names[id]; }

    // Marks the nodes that `last` needs, and requires their inputs.
    void find_needed(int last) {
        for (auto& n : nodes_) n.needed = false;
        if (last >= 0) at(last).needed = true;
        for (int id = last; id >= 0; --id) {
            const auto& n = at(id);
            if (!n.needed) continue;
            for (const int i : n.inputs) at(i).needed = true;
            const auto require_fed = [&](const auto& input) {
                if (!input.fed)
                    throw UsageError("forward: input '", input.name, "' is read by node '", name(id),
                                     "' but was not given");
            };
            for (const int i : n.input_tokens) require_fed(store_.tokens[i]);
            for (const int i : n.input_seqs)
                if (store_.seqs[i].node < 0) require_fed(store_.seqs[i]);
        }
    }

    // Counts the columns and predicted positions of a backward pass from a loss down to, but excluding, node `past`, for
    // the weights that it reaches: gradients that count already are sums over those of the earlier passes too.
    void count(const LossRecord& l, int past) {
        const Provenance pass{static_cast<double>(store_.batch), static_cast<double>(l.predicted), 1,
                              static_cast<double>(store_.forward_pass)};
        const auto runs = [&](int id) { return id > past && id <= l.node && at(id).needed; };
        for (auto& p : store_.parameters)
            if (p.is_trained() && (p.users.empty() || std::any_of(p.users.begin(), p.users.end(), runs)))
                p.add_pass(pass);
    }

    // Runs the needed nodes among first … last, in that order; `again` in the same step, with the same masks.
    // `asked`: the loss whose value must then be finite, if any.
    void run(int first, int last, int asked, bool again = false) {
        for (auto& p : store_.parameters)
            if (p.condition == Parameter<T>::Condition::staged) p.condition = Parameter<T>::Condition::empty;
        for (auto& s : store_.seqs) s.staged_by = -1;
        for (int id = first; id <= last; ++id) {
            auto& n = at(id);
            if (!n.needed) continue;
            if (!again) {  // else the block before the first step holds the states that the pass began with
                store_.masks.of_node(id, [&](auto& m) { draw(m); });
                for_each_carried(id,
                                 [&](auto& s) { std::copy_n(s.carried, store_.batch * s.width, s.value); });
            }
            store_.losses.of_node(id, [&](LossRecord& l) {
                l.value = l.cross_entropy = std::numeric_limits<double>::quiet_NaN();
                l.predicted = -1;
                if (l.by_token) std::fill_n(l.by_token, store_.time * store_.batch, 0.0);
            });
            Forward<T> pass(store_, id);
            try {
                n.node->forward(pass);
            } catch (const ShapeError& error) {
                blame_.refuse_shapes(id, "forward", error);
            }
            blame_.require_complete(id);
            if (checking) blame_.check_forward(id);
        }
        if (asked >= 0) blame_.require_finite(store_.losses[asked]);
        // Only now: until here the pass may fail, and would leave some layers a segment ahead of the others.
        for (int id = first; id <= last; ++id)
            if (at(id).needed)
                for_each_carried(id, [&](auto& s) {
                    std::copy_n(s.value + store_.rows() * s.width, store_.batch * s.width, s.carried);
                });
        last_ = last;
    }

    template <class F> void for_each_carried(int id, F&& f) {
        store_.seqs.of_node(id, [&](auto& s) {
            if (s.carried) f(s);
        });
    }

    void draw(MaskRecord<T>& m) const {
        m.active = store_.training && m.keep < 1;
        if (!m.active) return;
        const Random random(store_.seed, m.stream, store_.step);
        const Index part = store_.batch * m.width, all = store_.columns_in_batch();
        for (Index group = 0; group < m.groups; ++group)
            kernel::draw_mask(random, (group * all + store_.first_column) * m.width, part, m.keep,
                              m.value + group * part);
    }

    void square_weights(int id) {
        store_.units.of_node(id, [&](auto& u) {
            for (auto& s : u.sources) {
                const auto& p = store_[s.weight];
                for (Index i = 0; i < p.size(); ++i) s.squared[i] = p.value[i] * p.value[i];
            }
        });
    }

    void enable_moduli() {
        if (store_.moduli) return;
        for (auto& s : store_.seqs) s.adjoint[1] = store_.take_seq(s);
        for (auto& u : store_.units)
            for (auto& s : u.sources)
                s.squared =
                    store_.arena.template take<T>(store_[s.weight].size(), message("units '", u.name, "'"));
        store_.moduli = true;
    }

    Store<T>& store_;
    Array<NodeRecord<T>>& nodes_;
    Blame<T> blame_;
    bool training_ = true;  // of the last forward pass
    static constexpr int failed_pass = -2;
    int last_ = failed_pass;  // the last node of the last forward pass; -1 if that was to an input
    int asked_ = -1;          // its loss, if any
};

}}}  // namespace isogloss::graph
