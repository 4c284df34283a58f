/// @file graph/graph.hpp  The graph: built once, run many times.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <isogloss/graph/builder.hpp>
#include <isogloss/graph/logits.hpp>
#include <isogloss/graph/options.hpp>
#include <isogloss/graph/runner.hpp>
#include <isogloss/graph/select.hpp>
#include <isogloss/graph/states.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// A model: tokens, weights and nodes, wired by handles, over float or double.
///
///     Graph<float> g({.time = 35, .batch = 20});
///     auto x = g.tokens("x", V), y = g.tokens("y", V);
///     auto E = g.weight("E", V, 200, uniform(0.1));
///     auto h = g.add<Lstm>("lstm", {.units = 200}, g.add<Embedding>("embed", {}, x, E));
///     auto l = g.add<CrossEntropy>("loss", {}, g.add<TiedSoftmax>("softmax", {}, h, E), y);
///     double nats = g.forward(l, {x, batch.input}, {y, batch.target});
///     g.backward(l);
///
/// - Memory is allocated while the graph is built; forward, backward and updates allocate nothing, with three
///   exceptions: the first training pass in bfloat16 takes 1.5 MiB for each of threads(), so does the first pass of a
///   thread on weights packed in bfloat16 or int8, and the first backward<Modulus> the buffers of the moduli.
/// - T and B are capacities: any pass may be smaller, down to one token.
/// - Recurrent nodes continue where the last pass that ran them ended, row by row, until reset().
/// - Gradients are sums over time and batch; backward adds to them, an update's step() clears those it uses. Passes over
///   parts of a batch before one step() give the step of the whole batch.
/// - A graph cannot be copied or moved, and handles belong to the graph that created them.
///
/// Anything that cannot be built, including sizes for which there is no memory, throws UsageError from the
/// offending line and leaves the graph unchanged; tokens out of range throw DataError before anything runs; a
/// loss that is not finite throws NumericError, which names the input or weight that was not finite, if any. A forward
/// pass that throws leaves the carried states, the training step, weights and gradients as they were; a backward pass
/// of gradients in which a node throws clears all gradients of the graph, one of moduli leaves them.
/// Handles of another graph, or of one that has been destroyed, throw UsageError.
template <class T> class Graph {
public:
    explicit Graph(GraphOptions options) { graph::configure(store_, options); }
    /// A graph on the weights of another, for evaluation only: `seed` and `gradients` are ignored. Each weight
    /// made is the shared one of its name, not initialised anew; UsageError if there is none, or it has another
    /// shape. See SharedWeights.
    Graph(GraphOptions options, SharedWeights<T> weights);
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    // --- building ---------------------------------------------------------------------------------

    /// An input of tokens [T, B] with values 0 … vocabulary-1, or not_predicted where only losses read it.
    Tokens tokens(const std::string& name, Index vocabulary) { return builder_.tokens(name, vocabulary); }

    /// An input of vectors [T, B, width].
    Seq<T> input(const std::string& name, Index width) { return builder_.input(name, width); }

    /// A matrix [rows, cols], trained unless the options say otherwise.
    Weight<T> weight(const std::string& name, Index rows, Index cols, const Init& init,
                     WeightOptions options = {}) {
        return builder_.weight(name, rows, cols, init, options.unit_rows, options.trained);
    }

    /// Adds a node and returns what its setup returns. The inputs must match that setup's parameters.
    template <template <class> class Node, class... Inputs>
    auto add(const std::string& name, typename Node<T>::Options options, Inputs... inputs) {
        return builder_.template add<Node>(name, std::move(options), inputs...);
    }

    // --- running ----------------------------------------------------------------------------------

    /// Runs the nodes that the loss needs, in order of creation, on the given inputs; returns the loss summed
    /// over time and batch, in nats. In training mode a new step begins: masks are redrawn.
    double forward(Loss<T> l, const Feed<T>& a, const Feed<T>& b = {}, const Feed<T>& c = {},
                   const Feed<T>& d = {}, const Feed<T>& e = {}, const Feed<T>& f = {}) {
        return forward(l, std::array{a, b, c, d, e, f});
    }
    double forward(Loss<T> l, std::span<const Feed<T>> inputs);  ///< any number of inputs, see above
    /// The same up to a sequence or to logits; nothing is returned, see value() and probabilities().
    void forward(Seq<T> to, const Feed<T>& a, const Feed<T>& b = {}, const Feed<T>& c = {},
                 const Feed<T>& d = {}, const Feed<T>& e = {}, const Feed<T>& f = {}) {
        forward(to, std::array{a, b, c, d, e, f});
    }
    void forward(Logits<T> to, const Feed<T>& a, const Feed<T>& b = {}, const Feed<T>& c = {},
                 const Feed<T>& d = {}, const Feed<T>& e = {}, const Feed<T>& f = {}) {
        forward(to, std::array{a, b, c, d, e, f});
    }                                                           ///< see above
    void forward(Seq<T> to, std::span<const Feed<T>> inputs) {  ///< any number of inputs, see above
        runner_.forward(record(to).node, inputs);
    }
    void forward(Logits<T> to, std::span<const Feed<T>> inputs) {  ///< see above
        runner_.forward(record(to).node, inputs);
    }

    /// Propagates a quantity backward from the loss that the last forward pass computed. Gradient adds to
    /// the gradients of the weights; Modulus fills the moduli of the sequences (the first call allocates their
    /// memory) and is refused if a node on the way does not support it. With `down_to`, the nodes up to and
    /// including the one that made that sequence are skipped: enough for the gradients of what follows it.
    template <class Quantity = Gradient> void backward(Loss<T> l, Seq<T> down_to = {});
    /// Reruns the nodes after the one that made `from`, on the inputs of the last forward pass, which must have
    /// been for this loss: the loss after a change only of weights downstream of `from`. It is the same training
    /// step, with the same masks, from the states that this pass began with, whatever was done to them since. Throws
    /// UsageError if training(on) has changed the mode since.
    double forward_again(Loss<T> l, Seq<T> from);

    /// Clears the carried states: the next pass starts from zero.
    void reset() { states_.reset(); }
    /// The same for one column of the batch, from 0 to capacity().batch - 1.
    void reset(Index column) { states_.reset(column); }
    /// Copies the states of one column to another, as for search hypotheses with a common beginning.
    void copy_state(Index from, Index to) { states_.copy(from, to); }
    /// The same for the first columns at once: column b continues from what column from[b] carried before, so that
    /// from = {2, 2, 0} makes two hypotheses of the third and one of the first. At most capacity().batch.
    void copy_states(std::span<const Index> from) { states_.copy(from); }
    /// The names of the carried sequences, such as "lstm1.h" and "lstm1.c", in the order of Carried::values.
    std::vector<std::string> state_names() const { return states_.names(); }
    /// The state that one of them carries into the next pass: a read-write view [capacity().batch, width].
    auto state(std::string_view name) {
        auto& s = states_.at(name);
        return view({s.carried, store_.capacity.batch, s.width}, s.name);
    }
    /// A copy of the carried states; `carry` restores it.
    Carried<T> carried() const { return states_.saved(); }
    void carry(const Carried<T>& states) { states_.restore(states); }  ///< see carried()

    // --- modes ------------------------------------------------------------------------------------

    /// Training draws dropout masks and lets losses stage their gradients; evaluation does neither.
    /// Throws UsageError for training in a graph without gradients.
    void training(bool on) {
        if (on) require_gradients("training");
        store_.training = on;
    }
    bool training() const { return store_.training; }  ///< true at the start, false without gradients
    /// Whether it computes gradients: GraphOptions::gradients, and false on shared weights.
    bool gradients() const { return store_.gradients; }
    /// In checking mode every pass stops at the first input or node with a value or adjoint that is not
    /// finite and throws NumericError naming it, the step and the batch row.
    void checking(bool on) { runner_.checking = on; }
    bool checking() const { return runner_.checking; }  ///< false at the start
    /// Counts training passes; masks are a function of it. Set it to repeat or resume a run.
    std::uint64_t training_step() const { return store_.step; }
    void training_step(std::uint64_t n) { store_.step = n; }  ///< see above
    /// From now on the columns of a pass are those from `first` on of a batch of `all`, whose other parts are left
    /// to other passes: masks and samples are drawn as for the whole batch, so that the gradients of the parts,
    /// each at the same training_step(), sum to that of the whole. With GraphOptions::epsilon they do so in expectation:
    /// which blocks of rows are sampled depends on the rows. all = 0: a pass is a whole batch, as initially. Carried states
    /// stay with the columns of the graph, not with those of the batch: carried() and carry() them around each part.
    /// Throws UsageError for numbers below 0 or above 2³¹; forward throws it for columns beyond `all`.
    void columns(Index first, Index all);
    /// Sets the columns and predicted positions, at least 0, by which updates divide, where they are not those of the
    /// backward passes since the gradients were cleared, which are counted: for gradients summed elsewhere, or if passes
    /// share their columns (the segments of a text one after another, several losses of one batch). A later backward pass
    /// adds its own to them.
    void summed_over(Index columns, Index predicted);
    /// Seed of initial values and masks.
    std::uint64_t seed() const { return store_.seed; }

    // --- inspection -------------------------------------------------------------------------------

    Capacity capacity() const { return store_.capacity; }
    /// Precision::full or bf16: what `automatic` resolved to.
    Precision precision() const { return store_.precision; }
    double epsilon() const { return store_.epsilon; }  ///< as in GraphOptions
    /// Parameters whose names match a pattern in which '*' stands for any run of characters, or one of several:
    /// "lstm*.U, softmax.*". A pattern that begins with '!' removes what matches from those before it or, if it is
    /// first, from all: "!E". A pattern that matches no name is an error, and so is an empty group.
    Parameters<T> parameters(std::string_view pattern = "*") { return graph::select(store_, pattern); }
    /// One parameter by its exact name.
    Parameter<T>& parameter(std::string_view name) { return store_[weight(name)]; }
    /// The handle of a parameter by its exact name, for sharing one that a node made.
    Weight<T> weight(std::string_view name) { return graph::weight_named(store_, name); }

    /// All current weights, for other graphs to be built on; see SharedWeights.
    SharedWeights<T> shared_weights() const {
        return store_.shared ? *store_.shared
                             : SharedWeights<T>(store_.memory, store_.seed, store_.parameters);
    }

    /// The same with the matrices of affine terms and heads packed for products in a given precision: for graphs
    /// that multiply the same weights by few rows again and again, as in a server or in score_hypotheses. full
    /// keeps T; bf16 (automatic: if faster) takes half its bytes, int8 a quarter, both for float; see Precision.
    ///
    ///     const auto weights = model.packed_weights(Precision::int8);
    ///     Graph<float> g({.time = 1, .batch = 50}, weights);
    ///
    /// The packed matrices are a snapshot: unlike with shared_weights(), later changes of the weights take effect
    /// only where they are read unpacked (embeddings, biases, matrices chosen by a token). Call it again after a
    /// change. Throws UsageError for bf16 and int8 in double and while weights are temporary ones of a WeightDrop or
    /// DynamicUpdate, NumericError for a matrix that is not finite.
    SharedWeights<T> packed_weights(Precision precision = Precision::full) const;

    /// Views [rows, cols] of a weight and its gradient, and [T·B, width] of a sequence's value, adjoint and
    /// modulus after the last pass. The next pass of another size invalidates the views.
    ///
    /// Throws UsageError for a value that the last forward pass did not compute, or that was not its input, for an
    /// adjoint or modulus without a backward pass after it or to which that pass did not come, and if the pass failed.
    /// A node may keep the adjoint of a sequence within itself: of "lstm.c" there is only what other nodes add. The same
    /// holds for the sequence at which a pass stopped, backward(l, h): what its own node would add, as a recurrence does
    /// from later steps, is not in its adjoint.
    auto value(Weight<T> w) { return view(record(w).values(), record(w).name); }
    auto gradient(Weight<T> w) { return view(record(w).dense_gradient(), record(w).name); }  ///< see above
    auto value(Seq<T> a) {                                                                   ///< see above
        require_held("value", record(a));
        return view(a, store_.value(a.id));
    }
    auto adjoint(Seq<T> a) {  ///< see above
        require_gradients("adjoint");
        return back_view<Gradient>("adjoint", a);
    }
    auto modulus(Seq<T> a) { return back_view<Modulus>("modulus", a); }  ///< see above

    /// The full names of all sequences, in order of creation: inputs, and those of nodes, such as "lstm1.h",
    /// "lstm1.c" or the gates "lstm1.z".
    std::vector<std::string> sequence_names() const;
    /// The handle of a sequence by its full name: value() gives its contents after the last pass, if that ran the
    /// node. Throws UsageError for other names.
    Seq<T> sequence(std::string_view name) const { return graph::sequence_named(store_, name); }

    /// A copy of a dropout mask in the last pass, by its full name such as "lstm1.mask", [groups · B, width]: row
    /// g B + b is that of gate g in column b, B being the columns of that pass. Entries are 0 or 1/keep, and 1 if
    /// no mask was active: in evaluation, or with keep = 1. Throws UsageError for other names, and if the last
    /// pass did not run its node or failed.
    Tensor<T, 2> mask(std::string_view name) const;

    /// The loss of the last forward pass, summed over time and batch, in nats. Throws UsageError if that pass did not
    /// run it or failed.
    double value(Loss<T> l) const { return require_reached("value", record(l).node), record(l).value; }
    /// The plain cross-entropy Σ -log p(y_t) within a loss, in nats, without what is added to it and how it is
    /// weighted there: the basis of perplexity. Throws UsageError for a loss that has none, and if the last pass did
    /// not run it or failed.
    double cross_entropy(Loss<T> l) const;
    /// Positions that counted in a loss: targets other than not_predicted. Throws likewise.
    Index predicted(Loss<T> l) const {
        return require_reached("predicted", record(l).node), record(l).predicted;
    }
    /// The loss of each position [T, B] in nats, 0 where nothing is predicted. Throws likewise.
    auto by_token(Loss<T> l) const;

    /// softmax(o / temperature) after a forward pass that reached o, for positions [first, first + count)
    /// counted over time and batch, into out [count, V]. Only here do probabilities exist as an array; request
    /// only the rows needed.
    void probabilities(Logits<T> o, Index first, MatrixRef<T> out, double temperature = 1);
    Tensor<T, 2> probabilities(Logits<T> o, double temperature = 1);  ///< all positions, [T·B, V]
    /// log softmax(o / temperature) likewise, in nats: also for words whose probability underflows T.
    void log_probabilities(Logits<T> o, Index first, MatrixRef<T> out, double temperature = 1);
    Tensor<T, 2> log_probabilities(Logits<T> o, double temperature = 1);  ///< all positions, [T·B, V]
    /// The logits themselves, likewise.
    void logits(Logits<T> o, Index first, MatrixRef<T> out);
    Tensor<T, 2> logits(Logits<T> o);  ///< all positions, [T·B, V]

    /// The sequence from which a head computes its logits.
    Seq<T> hidden(Logits<T> o) { return record(o).hidden; }

    /// Bytes of the arena: weights unless shared, gradients, activations.
    std::size_t memory() const { return store_.arena.size(); }
    /// Whether no node has written beyond the ends of its blocks; for tests.
    bool guards_intact() const { return store_.arena.guards_intact(); }

    /// The internals, for files and updates.
    graph::Store<T>& store() { return store_; }
    const graph::Store<T>& store() const { return store_; }              ///< see above
    const Array<graph::NodeRecord<T>>& nodes() const { return nodes_; }  ///< see above

private:
    auto view(MatrixRef<T> m, const std::string& name) {
        return MatrixView<T>(m.data, m.rows, m.cols, &name);
    }
    auto view(Seq<T> a, T* data) { return MatrixView<T>(data, store_.rows(), a.width, &store_[a].name); }
    // The records behind handles of this graph; others are refused.
    auto& record(Weight<T> w) { return store_.require_own(w, "weight"), store_[w]; }
    auto& record(Seq<T> a) { return store_.require_own(a, "sequence"), store_[a]; }
    auto& record(Logits<T> o) { return store_.require_own(o, "logits"), store_[o]; }
    const graph::LossRecord& record(Loss<T> l) const {
        return store_.require_own(l, "loss"), store_.losses[l.id];
    }

    void require_reached(std::string_view who, int node) const {
        if (!runner_.reached(node))
            throw UsageError(who, ": the last forward pass did not reach '", store_.node_names[node],
                             "', or failed; call forward for it, or for what depends on it, first");
    }
    void require_held(std::string_view who, const graph::SeqRecord<T>& a) const {
        if (a.node >= 0) require_reached(who, a.node);
        else if (!a.fed || runner_.failed())
            throw UsageError(who, ": the last forward pass had no input '", a.name,
                             "', or failed; call forward with it first");
    }
    template <class Quantity> auto back_view(std::string_view who, Seq<T> a) {
        constexpr int q = Backward<T, Quantity>::quantity;
        require_held(who, record(a));
        if (!store_.carried(q))
            throw UsageError(who, ": no backward", q == 1 ? "<Modulus>" : "",
                             " has followed the last forward pass; ", "call it with the loss first");
        if (const int node = runner_.left_out(a.id, q); node >= 0)
            throw UsageError(who, ": the last backward pass stopped before node '", store_.node_names[node],
                             "', which adds to that of '", store_[a].name,
                             "'; call backward for the loss without a sequence to stop at");
        return view(a, store_.adjoint(a.id, q));
    }
    void require_gradients(std::string_view who) const {
        if (!store_.gradients) graph::refuse_gradients(who);
    }
    template <class Finish> void rows_of_logits(std::string_view who, Logits<T> o, Index first,
                                                MatrixRef<T> out, double temperature, Finish&& finish);
    template <class Fill> Tensor<T, 2> all_positions(std::string_view who, Logits<T> o, Fill&& fill);

    const std::shared_ptr<graph::Store<T>> shared_store_ = std::make_shared<graph::Store<T>>();
    graph::Store<T>& store_ = *shared_store_;  // groups of parameters keep it alive
    Array<graph::NodeRecord<T>> nodes_;
    graph::Builder<T> builder_{store_, nodes_};
    graph::Runner<T> runner_{store_, nodes_};
    graph::States<T> states_{store_};
};

template <class T> Graph<T>::~Graph() = default;  // here, so that the compiled core contains it

template <class T> Graph<T>::Graph(GraphOptions options, SharedWeights<T> weights)
    : Graph((options.gradients = false, options.seed = weights.seed(), options)) {
    store_.shared = std::move(weights);
}

template <class T> SharedWeights<T> Graph<T>::packed_weights(Precision precision) const {
    if (precision == Precision::automatic) precision = fastest_precision<T>();
    if (!std::is_same_v<T, float> && precision != Precision::full)
        throw UsageError("packed_weights: found precision = ", precision == Precision::bf16 ? "bf16" : "int8",
                         " for a graph of double, expected full");
    graph::require_lasting(store_.parameters, "packed_weights", "pack");
    // For a graph that is itself on shared weights, those of their owner are packed.
    SharedWeights<T> weights(store_.shared ? store_.shared->unpacked() : shared_weights());
    for (const auto& u : store_.units)
        for (const auto& s : u.sources)
            if (s.tokens.id < 0) weights.pack(store_.parameters[s.weight.id].name, false, precision);
    for (const auto& o : store_.logits) weights.pack(store_.parameters[o.table.id].name, true, precision);
    return weights;
}

// --- running --------------------------------------------------------------------------------------

template <class T> double Graph<T>::forward(Loss<T> l, std::span<const Feed<T>> inputs) {
    const auto& asked = record(l);
    runner_.forward(asked.node, inputs, l.id);
    return asked.value;
}

template <class T> double Graph<T>::forward_again(Loss<T> l, Seq<T> from) {
    const auto& asked = record(l);
    runner_.require_ran(asked, "forward_again");
    runner_.set_upstream(l.id);
    runner_.forward_again(record(from).node + 1, asked.node, l.id);
    return asked.value;
}

template <class T> template <class Quantity> void Graph<T>::backward(Loss<T> l, Seq<T> down_to) {
    const auto& asked = record(l);
    require_gradients("backward");
    runner_.require_ran(asked, "backward");
    runner_.template backward<Quantity>(asked, down_to.id < 0 ? -1 : record(down_to).node);
}

template <class T> void Graph<T>::columns(Index first, Index all) {
    constexpr Index most = Index{1} << 31;  // so that positions of random numbers do not overflow
    require("columns", "first", first, 0, most);
    require("columns", "all", all, 0, most);
    store_.first_column = all > 0 ? first : 0;
    store_.all_columns = all;
}

template <class T> void Graph<T>::summed_over(Index columns, Index predicted) {
    require("summed_over", "columns", columns, 0);
    require("summed_over", "predicted", predicted, 0);
    store_.columns = columns;
    store_.predicted = predicted;
    for (auto& p : store_.parameters) p.columns = columns, p.predicted = predicted;
}

// --- inspection -----------------------------------------------------------------------------------

template <class T> std::vector<std::string> Graph<T>::sequence_names() const {
    std::vector<std::string> names;
    for (const auto& s : store_.seqs) names.push_back(s.name);
    return names;
}

template <class T> Tensor<T, 2> Graph<T>::mask(std::string_view name) const {
    const auto at =
        std::find_if(store_.masks.begin(), store_.masks.end(), [&](const auto& m) { return m.name == name; });
    if (at == store_.masks.end())
        throw UsageError("mask: there is no mask '", name, "'; there are: ", graph::names_of(store_.masks));
    const auto id = static_cast<int>(at - store_.masks.begin());
    for (std::size_t n = 0; n < nodes_.size(); ++n)
        if (id >= nodes_[n].first_mask && id < nodes_[n].last_mask)
            require_reached("mask", static_cast<int>(n));
    const Index rows = at->groups * store_.batch;
    Tensor<T, 2> out({static_cast<std::size_t>(rows), static_cast<std::size_t>(at->width)});
    if (at->active) std::copy_n(at->value, rows * at->width, out.data());
    else std::fill_n(out.data(), rows * at->width, T(1));
    return out;
}

template <class T> double Graph<T>::cross_entropy(Loss<T> l) const {
    const auto& asked = record(l);
    require_reached("cross_entropy", asked.node);
    if (std::isnan(asked.cross_entropy))
        throw UsageError(
            "cross_entropy: loss '", asked.name,
            "' has computed none. CrossEntropy and AugmentedLoss have one after their forward pass, a sum "
            "of losses has none of its own; a loss of your own reports one by set_cross_entropy, or is "
            "evaluated by a CrossEntropy on the same logits");
    return asked.cross_entropy;
}

template <class T> auto Graph<T>::by_token(Loss<T> l) const {
    const auto& asked = record(l);
    if (!asked.by_token) throw UsageError("by_token: node '", asked.name, "' keeps no loss per position");
    require_reached("by_token", asked.node);
    return matrix_view(static_cast<const double*>(asked.by_token), store_.time, store_.batch);
}

template <class T>
void Graph<T>::probabilities(Logits<T> o, Index first, MatrixRef<T> out, double temperature) {
    rows_of_logits("probabilities", o, first, out, temperature,
                   [&](T* z) { return kernel::softmax(out.cols, z, static_cast<T>(1 / temperature)); });
}
template <class T>
void Graph<T>::log_probabilities(Logits<T> o, Index first, MatrixRef<T> out, double temperature) {
    rows_of_logits("log_probabilities", o, first, out, temperature,
                   [&](T* z) { return kernel::log_softmax(out.cols, z, static_cast<T>(1 / temperature)); });
}
template <class T> void Graph<T>::logits(Logits<T> o, Index first, MatrixRef<T> out) {
    rows_of_logits("logits", o, first, out, 1, [&](const T* z) {
        return kernel::first_non_finite(out.cols, z) < out.cols ? std::numeric_limits<double>::quiet_NaN()
                                                                : 0.0;
    });
}
template <class T> Tensor<T, 2> Graph<T>::probabilities(Logits<T> o, double temperature) {
    return all_positions("probabilities", o, [&](MatrixRef<T> p) { probabilities(o, 0, p, temperature); });
}
template <class T> Tensor<T, 2> Graph<T>::log_probabilities(Logits<T> o, double temperature) {
    return all_positions("log_probabilities", o,
                         [&](MatrixRef<T> p) { log_probabilities(o, 0, p, temperature); });
}
template <class T> Tensor<T, 2> Graph<T>::logits(Logits<T> o) {
    return all_positions("logits", o, [&](MatrixRef<T> z) { logits(o, 0, z); });
}

// Computes rows of logits and applies `finish` to each, which returns NaN for a row that is not finite.
template <class T> template <class Finish>
void Graph<T>::rows_of_logits(std::string_view who, Logits<T> o, Index first, MatrixRef<T> out,
                              double temperature, Finish&& finish) {
    const auto& head = record(o);
    require_reached(who, head.node);
    if (const T inverse = static_cast<T>(1 / temperature);
        !(inverse >= std::numeric_limits<T>::min() && std::isfinite(inverse)))
        throw UsageError(who, ": found temperature ", temperature,
                         ", expected a number above 0 whose inverse is within the range of the graph's "
                         "scalar type");
    if (first < 0 || !out.is_valid() || first > store_.rows() - out.rows || out.cols != head.vocabulary ||
        out.transposed)
        throw UsageError(who, ": ", out.rows, " rows from ", first, " on into [", out.rows, ", ", out.cols,
                         "] with rows ", out.stride, " apart", out.data ? "" : " and null data",
                         "; expected rows within 0 to ", store_.rows(), ", ", head.vocabulary,
                         " columns, and memory for them");
    const BlasOnOneThread blas;
    const SubnormalsAreZero flush;
    const auto table = store_[head.table].values();
    graph::logits<T>({store_.value(head.hidden.id) + first * table.cols, out.rows, table.cols}, table,
                     head.bias.id >= 0 ? store_[head.bias].value : nullptr, out, nullptr, 0, Precision::full,
                     store_[head.table].packed_transpose);
    for (Index r = 0; r < out.rows; ++r)
        if (std::isnan(finish(out.row(r))))
            throw NumericError(who, ": the logits of '", head.name, "' are not finite at row ", first + r,
                               ". ",
                               runner_.not_finite_before(
                                   "Inputs, weights and carried states are finite, but not their products: "
                                   "return to smaller weights."));
}
template <class T> template <class Fill>
Tensor<T, 2> Graph<T>::all_positions(std::string_view who, Logits<T> o, Fill&& fill) {
    const Index rows = store_.rows(), V = record(o).vocabulary;
    auto all = within_memory(who, bytes_of(who, {rows, V}, sizeof(T)), [&] {
        return Tensor<T, 2>(std::array{static_cast<std::size_t>(rows), static_cast<std::size_t>(V)});
    });
    fill(MatrixRef<T>{all.data(), rows, V});
    return all;
}

}}  // namespace isogloss
