/// @file graph/run.hpp  The part of Graph that runs: feeding, forward, backward. Included by graph.hpp.
#pragma once

#include <algorithm>
#include <isogloss/graph/graph.hpp>
#include <isogloss/graph/logits.hpp>
#include <isogloss/kernel/softmax.hpp>

namespace isogloss {

template <class T> void Graph<T>::feed(const Feed<T>& f) {
    const bool is_tokens = f.tokens.id >= 0, is_seq = f.seq.id >= 0;
    if (!is_tokens && !is_seq) return;  // an argument that was not given
    if (is_tokens) check_owner(f.tokens, "tokens");
    else check_owner(f.seq, "sequence");
    const std::string& name =
        is_tokens ? store_.at(store_.tokens, f.tokens.id).name : store_.at(store_.seqs, f.seq.id).name;
    const auto [time, batch] = std::pair(f.block.time, f.block.batch);
    if (time < 1 || batch < 1 || time > store_.capacity.time || batch > store_.capacity.batch)
        throw UsageError(message("forward: input '", name, "' has ", time, " steps and ", batch,
                                 " columns; the graph holds 1 to ", store_.capacity.time, " steps and 1 to ",
                                 store_.capacity.batch,
                                 " columns. Cut the batch or build the graph with larger capacities."));
    if (is_seq ? f.values == nullptr : f.block.data == nullptr)
        throw UsageError(message("forward: input '", name, "' has no data: the pointer is null"));
    if (store_.time == 0) {
        store_.time = time;
        store_.batch = batch;
    } else if (store_.time != time || store_.batch != batch) {
        throw UsageError(message("forward: input '", name, "' has ", time, " steps and ", batch,
                                 " columns, another input has ", store_.time, " and ", store_.batch));
    }
    if (is_seq) {
        auto& s = store_.at(store_.seqs, f.seq.id);
        if (s.node >= 0)
            throw UsageError(message("forward: '", name, "' is computed by a node and cannot be given"));
        std::copy_n(f.values, time * batch * s.width, s.value);
        s.fed = true;
        return;
    }
    auto& x = store_.at(store_.tokens, f.tokens.id);
    for (Index r = 0; r < time * batch; ++r) {
        const Token v = f.block.data[r];
        if (v < 0 ? (v != not_predicted || x.read_by_node) : v >= x.vocabulary)
            throw DataError(message("forward: input '", name, "' holds token ", v, " at step ", r / batch,
                                    ", column ", r % batch, "; expected 0 to ", x.vocabulary - 1,
                                    x.read_by_node ? "" : ", or -1 where nothing is predicted"));
        x.value[r] = v;
    }
    x.fed = true;
}

template <class T> template <class Each> void Graph<T>::run(int last, Each&& for_each_feed) {
    const BlasOnOneThread blas;
    const SubnormalsAreZero flush;
    ran_ = -1;
    ++store_.pass;
    store_.time = store_.batch = 0;
    for (auto& x : store_.tokens) x.fed = false;
    for (auto& s : store_.seqs) s.fed = false;
    for_each_feed([this](const Feed<T>& f) { feed(f); });
    if (checking_)
        for (const auto& s : store_.seqs)
            if (s.fed &&
                kernel::first_non_finite(store_.rows() * s.width, s.value) != store_.rows() * s.width)
                throw NumericError(message("forward: ", not_finite_before()));

    for (auto& n : nodes_) n.needed = false;
    if (last >= 0) nodes_[static_cast<std::size_t>(last)].needed = true;
    for (int id = last; id >= 0; --id) {
        auto& n = nodes_[static_cast<std::size_t>(id)];
        if (!n.needed) continue;
        for (const int i : n.inputs) nodes_[static_cast<std::size_t>(i)].needed = true;
        for (const int i : n.input_tokens)
            if (const auto& x = store_.at(store_.tokens, i); !x.fed)
                throw UsageError(message("forward: input '", x.name, "' is read by node '",
                                         store_.node_names[std::size_t(id)], "' but was not given"));
        for (const int i : n.input_seqs)
            if (const auto& s = store_.at(store_.seqs, i); s.node < 0 && !s.fed)
                throw UsageError(message("forward: input '", s.name, "' is read by node '",
                                         store_.node_names[std::size_t(id)], "' but was not given"));
    }
    run_nodes(0, last);
}

// Needed nodes first … last, in that order.
template <class T> void Graph<T>::run_nodes(int first, int last) {
    for (auto& p : store_.parameters)
        if (p.condition == Parameter<T>::Condition::staged) p.condition = Parameter<T>::Condition::empty;
    for (auto& s : store_.seqs) s.staged_by = -1;
    if (store_.training) ++store_.step;

    for (int id = first; id <= last; ++id) {
        auto& n = nodes_[static_cast<std::size_t>(id)];
        if (!n.needed) continue;
        for (int i = n.first_mask; i < n.last_mask; ++i) {
            auto& m = store_.at(store_.masks, i);
            m.active = store_.training && m.keep < 1;
            if (!m.active) continue;
            const Random random(store_.seed, m.stream, store_.step);
            for (Index j = 0; j < m.groups * store_.batch * m.width; ++j)
                m.value[j] = random.uniform(j) < m.keep ? static_cast<T>(1 / m.keep) : T(0);
        }
        for (int i = n.first_seq; i < n.last_seq; ++i)
            if (auto& s = store_.at(store_.seqs, i); s.carried)
                std::copy_n(s.carried, store_.batch * s.width, s.value);
        Forward<T> pass(store_, id);
        n.node->forward(pass);
        for (int i = n.first_seq; i < n.last_seq; ++i)
            if (auto& s = store_.at(store_.seqs, i); s.carried)
                std::copy_n(store_.value(i, store_.time - 1), store_.batch * s.width, s.carried);
        if (checking_) check_forward(n, id);
    }
    ran_ = last;
}

template <class T> void Graph<T>::set_upstream(int asked) {
    for (auto& l : store_.losses) l.upstream = 0;
    if (asked < 0) return;
    store_.at(store_.losses, asked).upstream = 1;
    for (int id = asked; id >= 0; --id) {
        const auto& l = store_.at(store_.losses, id);
        for (const auto& [part, weight] : l.parts)
            store_.at(store_.losses, part).upstream += weight * l.upstream;
    }
}

template <class T>
double Graph<T>::forward(Loss<T> l, const Feed<T>& a, const Feed<T>& b, const Feed<T>& c, const Feed<T>& d) {
    loss(l), set_upstream(l.id);
    run(loss(l).node, [&](auto&& give) { give(a), give(b), give(c), give(d); });
    return finish(loss(l));
}

template <class T> double Graph<T>::forward(Loss<T> l, std::span<const Feed<T>> inputs) {
    loss(l), set_upstream(l.id);
    run(loss(l).node, [&](auto&& give) {
        for (const auto& f : inputs) give(f);
    });
    return finish(loss(l));
}

template <class T> double Graph<T>::forward_again(Loss<T> l, Seq<T> from) {
    const auto& record = loss(l);
    require_ran(record, "forward_again");
    const int after = store_.at(store_.seqs, own(from).id).node + 1;
    for (std::size_t id = std::size_t(after); id < nodes_.size(); ++id)
        for (int i = nodes_[id].first_seq; nodes_[id].needed && i < nodes_[id].last_seq; ++i)
            if (store_.at(store_.seqs, i).carried)
                throw UsageError(message("forward_again: node '", store_.node_names[id],
                                         "' carries a state and cannot run again; call forward"));
    const BlasOnOneThread blas;
    const SubnormalsAreZero flush;
    ran_ = -1;
    ++store_.pass;
    set_upstream(l.id);
    run_nodes(after, record.node);
    return finish(record);
}

template <class T> double Graph<T>::cross_entropy(Loss<T> l) const {
    const auto& record = loss(l);
    if (std::isnan(record.cross_entropy))
        throw UsageError(message("cross_entropy: loss '", record.name,
                                 "' has computed none; a softmax loss has one after ",
                                 "its forward pass, a sum of losses has none of its own"));
    return record.cross_entropy;
}

// The value of a loss that has just been computed, if it is one.
template <class T> double Graph<T>::finish(const graph::LossRecord& record) {
    if (!std::isfinite(record.value)) {
        ran_ = -1;
        std::string where;
        if (record.by_token)
            for (Index r = 0; r < store_.rows() && where.empty(); ++r)
                if (!std::isfinite(record.by_token[r]))
                    where = message(", first at step ", r / store_.batch, ", batch row ", r % store_.batch);
        const std::string cause = not_finite_before();
        throw NumericError(message("node '", record.name, "': the loss is ", record.value, where,
                                   " (training step ", store_.step, "). ",
                                   cause.empty() ? "Lower the learning rate or the clipping threshold; "
                                                   "checking(true) names the first node that is not finite."
                                                 : cause));
    }
    return record.value;
}

template <class T> void Graph<T>::forward(Seq<T> to, const Feed<T>& a, const Feed<T>& b, const Feed<T>& c) {
    set_upstream(-1);
    run(store_.at(store_.seqs, own(to).id).node, [&](auto&& give) { give(a), give(b), give(c); });
}

template <class T>
void Graph<T>::forward(Logits<T> to, const Feed<T>& a, const Feed<T>& b, const Feed<T>& c) {
    check_owner(to, "logits");
    set_upstream(-1);
    run(store_.at(store_.logits, to.id).node, [&](auto&& give) { give(a), give(b), give(c); });
}

template <class T> void Graph<T>::require_ran(const graph::LossRecord& record, const char* what) const {
    if (ran_ != record.node)
        throw UsageError(message(what, ": the last forward pass was not for loss '", record.name,
                                 "', or it failed; call forward with this loss first"));
}

template <class T> template <class Quantity> void Graph<T>::backward(Loss<T> l, Seq<T> down_to) {
    constexpr int q = Backward<T, Quantity>::quantity;
    const auto& record = loss(l);
    require_ran(record, "backward");
    const int past = down_to.id < 0 ? -1 : store_.at(store_.seqs, own(down_to).id).node;
    if constexpr (q == 1) {
        for (std::size_t id = 0; id < nodes_.size(); ++id)
            if (nodes_[id].needed && !nodes_[id].node->has_modulus())
                throw UsageError(
                    message("backward: node '", store_.node_names[id],
                            "' carries no modulus; write its backward as template <class Quantity> over "
                            "Backward<T, Quantity>"));
        enable_moduli();
    }
    const BlasOnOneThread blas;
    const SubnormalsAreZero flush;
    ++store_.pass;
    for (auto& s : store_.seqs) s.unset[q] = true;
    store_.predicted = record.predicted;
    store_.columns = store_.batch;
    for (int id = record.node; id > past; --id) {
        auto& n = nodes_[static_cast<std::size_t>(id)];
        if (!n.needed) continue;
        if constexpr (q == 1)
            for (int u = n.first_units; u < n.last_units; ++u)
                for (auto& s : store_.at(store_.units, u).sources) {
                    const auto& p = store_.at(store_.parameters, s.weight);
                    for (Index i = 0; i < p.size(); ++i) s.squared[i] = p.value[i] * p.value[i];
                }
        Backward<T, Quantity> pass(store_, id);
        n.node->backward(pass);
        if (checking_) check_backward<Quantity>(n, id);
    }
}

template <class T> void Graph<T>::enable_moduli() {
    if (store_.moduli) return;
    const Arena::Mark taken = store_.arena.mark();
    try {
        for (auto& s : store_.seqs) s.adjoint[1] = store_.take_seq(s);
        for (auto& u : store_.units)
            for (auto& s : u.sources)
                s.squared = store_.arena.template take<T>(store_.at(store_.parameters, s.weight).size(),
                                                          message("units '", u.name, "'"));
    } catch (...) {  // as if it had never been asked for; the pointers are null again
        for (auto& s : store_.seqs) s.adjoint[1] = nullptr;
        for (auto& u : store_.units)
            for (auto& s : u.sources) s.squared = nullptr;
        store_.arena.back_to(taken);
        throw;
    }
    store_.moduli = true;
}

template <class T> void Graph<T>::reset() {
    for (auto& s : store_.seqs)
        if (s.carried) std::fill_n(s.carried, store_.capacity.batch * s.width, T(0));
}

template <class T> Carried<T> Graph<T>::carried() const {
    Carried<T> c;
    for (const auto& s : store_.seqs)
        if (s.carried) c.values.emplace_back(s.carried, s.carried + store_.capacity.batch * s.width);
    return c;
}

template <class T> void Graph<T>::carry(const Carried<T>& states) {
    std::size_t i = 0;
    const auto fits = [&](const auto& s) {
        return i < states.values.size() && std::ssize(states.values[i]) == store_.capacity.batch * s.width;
    };
    for (const auto& s : store_.seqs)
        if (s.carried && !(fits(s) && ++i))
            throw UsageError(message("carry: the states do not fit this graph at '", s.name, "'"));
    if (i != states.values.size())
        throw UsageError(message("carry: found ", states.values.size(), " states, expected ", i));
    i = 0;
    for (auto& s : store_.seqs)
        if (s.carried) std::copy(states.values[i].begin(), states.values[i].end(), s.carried), ++i;
}

template <class T> Tensor<T, 2> Graph<T>::mask(std::string_view name) const {
    const auto at =
        std::find_if(store_.masks.begin(), store_.masks.end(), [&](const auto& m) { return m.name == name; });
    if (at == store_.masks.end()) {
        std::string names;
        for (const auto& m : store_.masks) names += (names.empty() ? "" : ", ") + m.name;
        throw UsageError(
            message("mask: there is no mask '", name, "'; there are: ", names.empty() ? "none" : names));
    }
    const auto id = static_cast<int>(at - store_.masks.begin());
    for (const auto& n : nodes_)
        if (id >= n.first_mask && id < n.last_mask && !n.needed)
            throw UsageError(message("mask: the last pass did not run the node of '", name, "'"));
    const Index rows = at->groups * store_.batch;
    Tensor<T, 2> out({static_cast<std::size_t>(rows), static_cast<std::size_t>(at->width)});
    if (at->active) std::copy_n(at->value, rows * at->width, out.data());
    else std::fill_n(out.data(), rows * at->width, T(1));
    return out;
}

template <class T> auto Graph<T>::by_token(Loss<T> l) const {
    const auto& record = loss(l);
    if (!record.by_token)
        throw UsageError(message("by_token: node '", record.name, "' keeps no loss per position"));
    return matrix_view(static_cast<const double*>(record.by_token), store_.time, store_.batch);
}

template <class T>
void Graph<T>::probabilities(Logits<T> o, Index first, MatrixRef<T> out, double temperature) {
    check_owner(o, "logits");
    const auto& head = store_.at(store_.logits, o.id);
    if (ran_ < 0 || !nodes_[static_cast<std::size_t>(head.node)].needed)
        throw UsageError(message("probabilities: the last forward pass did not reach '", head.name, "'"));
    if (!(temperature > 0))
        throw UsageError(message("probabilities: found temperature ", temperature, ", expected above 0"));
    if (first < 0 || !out.is_valid() || first > store_.rows() - out.rows || out.cols != head.vocabulary ||
        out.transposed)
        throw UsageError(message("probabilities: ", out.rows, " rows from ", first, " on into [", out.rows,
                                 ", ", out.cols, "] with rows ", out.stride, " apart",
                                 out.data ? "" : " and null data", "; expected rows within 0 to ",
                                 store_.rows(), ", ", head.vocabulary, " columns, and memory for them"));
    const BlasOnOneThread blas;
    const SubnormalsAreZero flush;
    const auto& table = store_.at(store_.parameters, head.table);
    graph::logits<T>({store_.value(head.hidden) + first * table.cols, out.rows, table.cols}, table.values(),
                     head.bias >= 0 ? store_.at(store_.parameters, head.bias).value : nullptr, out);
    for (Index r = 0; r < out.rows; ++r)
        if (std::isnan(kernel::softmax(out.cols, out.row(r), static_cast<T>(1 / temperature))))
            throw NumericError(message("probabilities: the logits of '", head.name,
                                       "' are not finite at row ", first + r, ". ", not_finite_before()));
}

template <class T> Tensor<T, 2> Graph<T>::probabilities(Logits<T> o, double temperature) {
    check_owner(o, "logits");
    const Index rows = store_.rows(), V = store_.at(store_.logits, o.id).vocabulary;
    auto p = within_memory("probabilities", bytes_of("probabilities", {rows, V}, sizeof(T)), [&] {
        return Tensor<T, 2>(std::array{static_cast<std::size_t>(rows), static_cast<std::size_t>(V)});
    });
    probabilities(o, 0, {p.data(), rows, V}, temperature);
    return p;
}

// --- checking mode --------------------------------------------------------------------------------

template <class T> void Graph<T>::refuse_non_finite(int seq, const T* data, int node, const char* what) {
    const auto& s = store_.at(store_.seqs, seq);
    const Index n = store_.rows() * s.width, bad = kernel::first_non_finite(n, data);
    if (bad == n) return;
    ran_ = -1;
    throw NumericError(message("node '", store_.node_names[static_cast<std::size_t>(node)], "': the ", what,
                               " '", s.name, "' is ", data[bad], " at step ", bad / s.width / store_.batch,
                               ", batch row ", bad / s.width % store_.batch, ", unit ", bad % s.width,
                               " (training step ", store_.step, "). ", not_finite_before()));
}

// What was not finite before the pass computed anything, and what to do about it; nothing where all was.
template <class T> std::string Graph<T>::not_finite_before() const {
    for (const auto& s : store_.seqs) {
        const Index n = s.fed ? store_.rows() * s.width : 0, bad = kernel::first_non_finite(n, s.value);
        if (bad != n)
            return message("The input '", s.name, "' is ", s.value[bad], " at step ",
                           bad / s.width / store_.batch, ", batch row ", bad / s.width % store_.batch,
                           ", unit ", bad % s.width, ": look at the data that were given.");
    }
    for (const auto& p : store_.parameters)
        if (const Index bad = kernel::first_non_finite(p.size(), p.value); bad != p.size())
            return message("The weight '", p.name, "' is ", p.value[bad], " at row ", bad / p.cols,
                           ", column ", bad % p.cols,
                           ": a file or an update has left it so. Go back to values that are "
                           "finite; if it was an update, lower its learning rate or clipping threshold.");
    return {};
}

template <class T> void Graph<T>::check_forward(const graph::NodeRecord<T>& n, int id) {
    for (int i = n.first_seq; i < n.last_seq; ++i) refuse_non_finite(i, store_.value(i), id, "output");
}

template <class T> template <class Quantity>
void Graph<T>::check_backward(const graph::NodeRecord<T>& n, int id) {
    constexpr int q = Backward<T, Quantity>::quantity;
    const char* what = q == 0 ? "gradient of" : "modulus of";
    for (int i = n.first_seq; i < n.last_seq; ++i)
        if (!store_.at(store_.seqs, i).unset[q]) refuse_non_finite(i, store_.adjoint(i, q), id, what);
    for (const int i : n.input_seqs)
        if (!store_.at(store_.seqs, i).unset[q]) refuse_non_finite(i, store_.adjoint(i, q), id, what);
}

}  // namespace isogloss
