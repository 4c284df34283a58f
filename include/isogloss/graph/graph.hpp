/// @file graph/graph.hpp  The graph: built once, run many times.
#pragma once

#include <array>
#include <cstdint>
#include <isogloss/graph/builder.hpp>
#include <isogloss/graph/head.hpp>
#include <isogloss/graph/loss_result.hpp>
#include <isogloss/graph/options.hpp>
#include <isogloss/graph/runner.hpp>
#include <isogloss/graph/select.hpp>
#include <isogloss/graph/states.hpp>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace graph {

struct Inspect;

/// To is a handle up to which a graph can run.
template <class To, class T>
concept IsTarget =
    std::is_same_v<To, Loss<T>> || std::is_same_v<To, Logits<T>> || std::is_convertible_v<To, Seq<T>>;

}  // namespace graph

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

    /// Runs the nodes that a loss, a sequence or logits need, in order of creation, on up to six inputs. Of a loss it
    /// returns the value, summed over time and batch, in nats; see value() for a sequence and head() for logits. In
    /// training mode a new step begins: masks are redrawn.
    template <class To>
    requires graph::IsTarget<To, T>
    auto forward(To to, const Feed<T>& a, const Feed<T>& b = {}, const Feed<T>& c = {}, const Feed<T>& d = {},
                 const Feed<T>& e = {}, const Feed<T>& f = {}) {
        return forward(to, std::array{a, b, c, d, e, f});
    }
    /// The same on any number of inputs.
    template <class To>
    requires graph::IsTarget<To, T>
    auto forward(To to, std::span<const Feed<T>> inputs) {
        if constexpr (std::is_same_v<To, Loss<T>>) {
            const auto& asked = record(to);
            runner_.forward(asked.node, inputs, to.id);
            return asked.value;
        } else if constexpr (std::is_same_v<To, Logits<T>>) {
            runner_.forward(record(to).node, inputs);
        } else {
            runner_.forward(record(Seq<T>(to)).node, inputs);
        }
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
    /// What is carried from one pass to the next: cleared by columns, copied, read, written, saved.
    graph::States<T>& states() { return states_; }
    const graph::States<T>& states() const { return states_; }  ///< see above

    // --- modes ------------------------------------------------------------------------------------

    /// Training draws dropout masks and lets losses stage their gradients; evaluation does neither.
    /// Throws UsageError for training in a graph without gradients.
    void training(bool on) {
        if (on) require_gradients("training");
        store_.training = on;
    }
    bool training() const { return store_.training; }  ///< true at the start, false without gradients
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
    /// stay with the columns of the graph, not with those of the batch: states().saved() and restore() them around each
    /// part. Throws UsageError for numbers below 0 or above 2³¹; forward throws it for columns beyond `all`.
    void shard(Index first, Index all);

    // --- inspection -------------------------------------------------------------------------------

    Capacity capacity() const { return store_.capacity; }
    /// The options it was made with. Those of a graph on shared weights have the seed of the owner and no gradients;
    /// `precision` is full or bf16, what `automatic` resolved to.
    GraphOptions options() const { return graph::options_of(store_); }
    /// Parameters whose names match a pattern in which '*' stands for any run of characters, or one of several:
    /// "lstm*.U, softmax.*". A pattern that begins with '!' removes what matches from those before it or, if it is
    /// first, from all: "!E". A pattern that matches no name is an error, and so is an empty group.
    Parameters<T> parameters(std::string_view pattern = "*") { return graph::select(store_, pattern); }
    /// One parameter by its exact name.
    Parameter<T>& parameter(std::string_view name) { return store_[weight(name)]; }
    /// The handle of a parameter by its exact name, for sharing one that a node made.
    Weight<T> weight(std::string_view name) { return graph::weight_named(store_, name); }
    /// The handle of a sequence by its full name, such as "lstm1.h" or the gates "lstm1.z": value() gives its
    /// contents after the last pass, if that ran the node. Throws UsageError, which lists the names, for others.
    Seq<T> sequence(std::string_view name) const { return graph::sequence_named(store_, name); }

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
    /// only where they are read unpacked (embeddings, biases, matrices chosen by a token). Call SharedWeights::repack()
    /// after a change. Throws UsageError for bf16 and int8 in double and while weights are lent (Lease) to a WeightDrop
    /// or DynamicUpdate, NumericError for a matrix that is not finite.
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
    auto adjoint(Seq<T> a) { return back_view<Gradient>("adjoint", a); }  ///< see above
    auto modulus(Seq<T> a) { return back_view<Modulus>("modulus", a); }   ///< see above

    /// A copy of a dropout mask in the last pass, by its full name such as "lstm1.mask", [groups · B, width]: row
    /// g B + b is that of gate g in column b, B being the columns of that pass. Entries are 0 or 1/keep, and 1 if
    /// no mask was active: in evaluation, or with keep = 1. Throws UsageError for other names, and if the last
    /// pass did not run its node or failed.
    Tensor<T, 2> mask(std::string_view name) const;

    /// What the last forward pass computed of a loss: nats, cross-entropy, predicted positions, the loss of each.
    /// Throws UsageError if that pass did not run it or failed.
    graph::LossResult result(Loss<T> l) const {
        const auto& asked = record(l);
        runner_.require_reached("result", asked.node);
        return {asked, store_.time, store_.batch};
    }
    /// A head after a forward pass that reached it: its probabilities and logits, for the rows asked for.
    graph::Head<T> head(Logits<T> o) { return {store_, runner_, record(o)}; }

    /// Bytes of the arena: weights unless shared, gradients, activations.
    std::size_t memory() const { return store_.arena.size(); }

private:
    auto view(MatrixRef<T> m, const std::string& name) {
        return MatrixView<T>(m.data, m.rows, m.cols, &name);
    }
    auto view(Seq<T> a, T* data) { return MatrixView<T>(data, store_.rows(), a.width, &store_[a].name); }
    // The record behind a handle of this graph; others are refused.
    template <class H> auto& record(const H& handle) const {
        store_.require_own(handle);
        return store_[handle];
    }

    void require_held(std::string_view who, const graph::SeqRecord<T>& a) const {
        if (a.node >= 0) runner_.require_reached(who, a.node);
        else if (!a.fed || runner_.failed())
            throw UsageError(who, ": the last forward pass had no input '", a.name, "', or failed");
    }
    template <class Quantity> auto back_view(std::string_view who, Seq<T> a) {
        constexpr int q = Backward<T, Quantity>::quantity;
        require_held(who, record(a));
        if (!store_.carried(q) || runner_.left_out(a.id, q))
            throw UsageError(who, ": since the last forward pass no backward", q == 1 ? "<Modulus>" : "",
                             " has come to '", store_[a].name, "'; call it with the loss first");
        return view(a, store_.adjoint(a.id, q));
    }
    void require_gradients(std::string_view who) const {
        if (!store_.gradients)
            throw UsageError(who,
                             ": the graph was built for evaluation alone, without GraphOptions::gradients");
    }
    friend struct graph::Inspect;

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
        throw UsageError("packed_weights: a graph of double packs them in full precision alone");
    graph::require_unlent(store_.parameters, "packed_weights", false);
    // For a graph that is itself on shared weights, those of their owner are packed.
    SharedWeights<T> weights(store_.shared ? store_.shared->unpacked() : shared_weights());
    for (const auto& u : store_.units)
        for (const auto& s : u.sources)
            if (s.tokens.id < 0) weights.pack(store_.parameters[s.weight.id].name, s.transposed, precision);
    for (const auto& o : store_.logits) weights.pack(store_.parameters[o.table.id].name, true, precision);
    return weights;
}

// --- running --------------------------------------------------------------------------------------

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

template <class T> void Graph<T>::shard(Index first, Index all) {
    constexpr Index most = Index{1} << 31;  // so that positions of random numbers do not overflow
    require("shard", "first", first, 0, most);
    require("shard", "all", all, 0, most);
    store_.first_column = all > 0 ? first : 0;
    store_.all_columns = all;
}

// --- inspection -----------------------------------------------------------------------------------

template <class T> Tensor<T, 2> Graph<T>::mask(std::string_view name) const {
    const auto at =
        std::find_if(store_.masks.begin(), store_.masks.end(), [&](const auto& m) { return m.name == name; });
    if (at == store_.masks.end())
        throw UsageError("mask: there is no mask '", name, "'; there are: ", graph::names_of(store_.masks));
    runner_.require_reached("mask", at->node);
    const Index rows = at->groups * store_.batch;
    Tensor<T, 2> out({static_cast<std::size_t>(rows), static_cast<std::size_t>(at->width)});
    if (at->active) std::copy_n(at->value, rows * at->width, out.data());
    else std::fill_n(out.data(), rows * at->width, T(1));
    return out;
}

namespace graph {

/// What the other rooms of the library see of a graph, beyond what it offers to all: files, metrics, checks, several
/// ranks. Internal: records and their fields change without notice.
struct Inspect {
    template <class T> static Store<T>& store(Graph<T>& g) { return g.store_; }
    template <class T> static const Store<T>& store(const Graph<T>& g) { return g.store_; }
    template <class T> static const Array<NodeRecord<T>>& nodes(const Graph<T>& g) { return g.nodes_; }
};

}  // namespace graph
}}  // namespace isogloss
