/// @file graph/blame.hpp  Whom a pass that failed names: the input, weight, state or node at fault, and where.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/error.hpp>
#include <isogloss/graph/node.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/tensor.hpp>
#include <string>
#include <string_view>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

/// Searches the numbers of the current pass for what is not finite, or did not fit. Nothing here runs in a pass that
/// succeeds, except in checking mode.
template <class T> class Blame {
public:
    Blame(Store<T>& store, const Array<NodeRecord<T>>& nodes) : store_(store), nodes_(nodes) {}

    /// Throws NumericError if the value of a loss just computed is not finite.
    void require_finite(const LossRecord& l) const {
        if (std::isfinite(l.value)) return;
        std::string where;
        for (Index r = 0; l.by_token && r < store_.rows() && where.empty(); ++r)
            if (!std::isfinite(l.by_token[r]))
                where = message(", first at step ", r / store_.batch, ", batch row ", r % store_.batch);
        throw NumericError("node '", l.name, "': the loss is ", l.value, where, " (training step ",
                           store_.step, "). ", not_finite_before("Lower the learning rate or clip."));
    }

    /// What was not finite before the pass computed anything, and what to do about it; `otherwise` if all was finite.
    std::string not_finite_before(std::string_view otherwise) const {
        for (const auto& s : store_.seqs) {
            const Index n = s.fed ? store_.rows() * s.width : 0, bad = kernel::first_non_finite(n, s.value);
            if (bad != n) return message("The input", place(s, s.value, bad), ": check the data given.");
        }
        for (const auto& p : store_.parameters)
            if (const Index bad = kernel::first_non_finite(p.size(), p.value); bad != p.size())
                return message("The weight '", p.name, "' is ", p.value[bad], " at row ", bad / p.cols,
                               ", column ", bad % p.cols, ": a file or an update left it so.");
        for (const auto& s : store_.seqs) {
            if (!s.carried || !nodes_[s.node].needed) continue;
            const Index count = store_.batch * s.width, bad = kernel::first_non_finite(count, s.value);
            if (bad != count)
                return message("The carried state '", s.name, "' was ", s.value[bad],
                               " before the pass, in batch row ", bad / s.width, ", unit ", bad % s.width,
                               "; call reset(), or restore a finite state.");
        }
        return std::string(otherwise);
    }

    /// Throws UsageError if the forward pass of a node has left out the sums of some units, or their terms computed
    /// step by step, or the value of its loss: what is there would be that of another pass.
    void require_complete(int node) const {
        const std::string& name = store_.node_names[node];
        store_.units.of_node(node, [&](const auto& u) {
            const bool by_step = std::ranges::any_of(u.sources, [](const auto& s) { return s.by_step(); });
            if (u.begun != store_.pass || (by_step && u.stepped != store_.pass))
                throw UsageError("node '", name, "', forward: every pass calls affine(z) of the units '",
                                 u.name, by_step ? "' and affine(z, t) in every step" : "'");
        });
        for (const auto& l : store_.losses)
            if (l.node == node && l.predicted < 0)
                throw UsageError("node '", name, "', forward: every pass calls set(l, value, predicted)");
    }

    /// Throws UsageError for a node whose forward or backward has assigned an array of another shape.
    [[noreturn]] void refuse_shapes(int node, const char* way, const ShapeError& error) const {
        throw UsageError("node '", store_.node_names[node], "', ", way, ": ", error.text(),
                         "; p.at(z, t) has ", store_.batch, " rows, p.at(z) ", store_.rows());
    }

    // --- checking mode: NumericError, unless all numbers are finite --------------------------------

    void check_forward(int node) const {
        store_.seqs.of_node(node, [&](const auto& s) {
            check(s, s.value + s.lead * store_.batch * s.width, node, "output");
        });
    }
    void check_backward(int node, int quantity) const {
        const auto adjoint = [&](const auto& s) {
            if (!s.unset[quantity])
                check(s, s.adjoint[quantity] + s.lead * store_.batch * s.width, node,
                      quantity == 0 ? "gradient of" : "modulus of");
        };
        store_.seqs.of_node(node, adjoint);
        for (const int i : nodes_[node].input_seqs) adjoint(store_.seqs[i]);
    }

private:
    // " 'h' is nan at step 2, batch row 1, unit 0", for number `bad` of a sequence.
    std::string place(const SeqRecord<T>& s, const T* data, Index bad) const {
        return message(" '", s.name, "' is ", data[bad], " at step ", bad / s.width / store_.batch,
                       ", batch row ", bad / s.width % store_.batch, ", unit ", bad % s.width);
    }
    void check(const SeqRecord<T>& s, const T* data, int node, const char* what) const {
        const Index n = store_.rows() * s.width, bad = kernel::first_non_finite(n, data);
        if (bad == n) return;
        throw NumericError("node '", store_.node_names[node], "': the ", what, place(s, data, bad),
                           " (training step ", store_.step, "). ",
                           not_finite_before("Lower the learning rate or clip."));
    }

    Store<T>& store_;
    const Array<NodeRecord<T>>& nodes_;
};

}}}  // namespace isogloss::graph
