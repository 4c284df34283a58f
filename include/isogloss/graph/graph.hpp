/// @file graph/graph.hpp  The graph: built once, run many times.
#pragma once

#include <cmath>
#include <cstdint>
#include <isogloss/graph/node.hpp>
#include <isogloss/graph/parameters.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace isogloss {

/// How a graph is laid out.
struct GraphOptions {
    Index time = 1;                  ///< T ≥ 1: most steps in one pass
    Index batch = 1;                 ///< B ≥ 1: most columns in one pass
    std::uint64_t seed = 1;          ///< of start values and dropout masks
    Index budget = Index{32} << 20;  ///< bytes a loss may take for blocks of logits, > 0; see FusedSoftmax.
                                     ///< 20 bytes of each of the T·B positions count: for a text of millions
                                     ///< of steps in one pass raise it, or blocks shrink to single rows
};

/// How a weight made with Graph::weight is kept.
struct WeightOptions {
    bool unit_rows = false;  ///< every row has norm 1, at the start and after every update
};

/// What a graph carries from one pass to the next, as a copy.
template <class T> struct Carried { std::vector<std::vector<T>> values; };

/// One input of a pass: `{x, batch.input}` for tokens, `{u, data, time, batch}` for a sequence.
template <class T> struct Feed {
    Feed() = default;
    Feed(Tokens to, TokenBlock from) : tokens(to), block(from) {}
    Feed(Tokens to, std::span<const Token> column)
        : tokens(to), block{column.data(), std::ssize(column), 1} {}
    Feed(Seq<T> to, const T* data, Index time, Index batch)
        : seq(to), values(data), block{nullptr, time, batch} {}

    Tokens tokens;
    Seq<T> seq;
    const T* values = nullptr;
    TokenBlock block;
};

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
/// - Memory is taken while the graph is built; forward, backward and updates allocate nothing.
/// - T and B are capacities: any pass may be smaller, down to one token.
/// - Recurrent nodes go on where the last pass that ran them ended, row by row, until reset().
/// - Gradients are sums over time and batch; backward adds to them, an update's step() clears its own.
/// - A graph is not copied or moved, and handles belong to the graph that gave them.
///
/// Everything that cannot be built, sizes for which there is no memory included, throws UsageError from the
/// line that asked for it and leaves the graph as it was; tokens out of range throw DataError before anything
/// runs; a loss that is not finite throws NumericError, which names the input or weight that was not, if any.
/// Handles of another graph, or of one that is gone, throw UsageError.
template <class T> class Graph {
public:
    explicit Graph(GraphOptions options);
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    // --- building ---------------------------------------------------------------------------------

    /// An input of tokens [T, B] with values 0 … vocabulary-1, or not_predicted where only losses read it.
    Tokens tokens(const std::string& name, Index vocabulary);

    /// An input of vectors [T, B, width].
    Seq<T> input(const std::string& name, Index width);

    /// A trained matrix [rows, cols].
    Weight<T> weight(const std::string& name, Index rows, Index cols, const Init& init,
                     WeightOptions options = {});

    /// Adds a node and returns what its setup returns. The inputs must fit that setup's parameters.
    template <template <class> class Node, class... Inputs>
    auto add(const std::string& name, typename Node<T>::Options options, Inputs... inputs);

    // --- running ----------------------------------------------------------------------------------

    /// Runs what the loss needs, in the order of building, on the given inputs; returns the loss summed
    /// over time and batch, in nats. In training mode a step begins: masks are drawn anew.
    double forward(Loss<T> l, const Feed<T>& a, const Feed<T>& b = {}, const Feed<T>& c = {},
                   const Feed<T>& d = {});
    double forward(Loss<T> l, std::span<const Feed<T>> inputs);  ///< any number of inputs, see above
    /// The same up to a sequence or to logits; nothing is returned, see value() and probabilities().
    void forward(Seq<T> to, const Feed<T>& a, const Feed<T>& b = {}, const Feed<T>& c = {});
    void forward(Logits<T> to, const Feed<T>& a, const Feed<T>& b = {},
                 const Feed<T>& c = {});  ///< see above

    /// Carries a quantity backward from the loss that the last forward pass computed. Gradient adds to
    /// the gradients of the weights; Modulus fills the moduli of the sequences (the first call takes their
    /// memory) and is refused when a node on the way cannot carry it. With `down_to`, nodes up to the one
    /// that made that sequence do not run: enough for the gradients of what comes after it.
    template <class Quantity = Gradient> void backward(Loss<T> l, Seq<T> down_to = {});
    /// Runs again what comes after the node that made `from` in the last forward pass, which was for this
    /// loss, on the same inputs: the loss after a change of weights behind `from` alone. Not for nodes that
    /// carry states.
    double forward_again(Loss<T> l, Seq<T> from);

    /// Forgets the carried states: the next pass starts from zero.
    void reset();
    /// What is carried now, as a copy; `carry` puts it back.
    Carried<T> carried() const;
    void carry(const Carried<T>& states);  ///< see carried()

    // --- modes ------------------------------------------------------------------------------------

    /// Training draws dropout masks and lets losses prepare their gradients; evaluation does neither.
    void training(bool on) { store_.training = on; }
    bool training() const { return store_.training; }  ///< true at the start
    /// In checking mode every pass stops at the first input or node with a value or adjoint that is not
    /// finite and throws NumericError naming it, step and batch row.
    void checking(bool on) { checking_ = on; }
    bool checking() const { return checking_; }  ///< false at the start
    /// Counts training passes; masks are a function of it. Set it to repeat or resume.
    std::uint64_t training_step() const { return store_.step; }
    void training_step(std::uint64_t n) { store_.step = n; }  ///< see above
    /// Seed of start values and masks.
    std::uint64_t seed() const { return store_.seed; }

    // --- looking ----------------------------------------------------------------------------------

    Capacity capacity() const { return store_.capacity; }
    /// Parameters whose names match a pattern with '*'; none at all is an error.
    Parameters<T> parameters(std::string_view pattern = "*");
    /// One parameter by its exact name.
    Parameter<T>& parameter(std::string_view name);
    /// The handle of a parameter by its exact name, for sharing one that a node made.
    Weight<T> weight(std::string_view name);

    /// Views [rows, cols] of a weight and its gradient, and [T·B, width] of a sequence's value, adjoint and
    /// modulus after the last pass. Views go stale with the next pass of another size.
    auto value(Weight<T> w) { return view(record(w).values()); }
    auto gradient(Weight<T> w) { return view(record(w).dense_gradient()); }   ///< see above
    auto value(Seq<T> a) { return view(own(a), store_.value(a.id)); }         ///< see above
    auto adjoint(Seq<T> a) { return view(own(a), store_.adjoint(a.id, 0)); }  ///< see above
    auto modulus(Seq<T> a) {
        return view(own(a), (require_moduli(), store_.adjoint(a.id, 1)));
    }  ///< see above

    /// The dropout mask of a full name, such as "lstm1.mask", as the last pass had it, a copy of [groups · B,
    /// width]: row g B + b is that of gate g in column b, B being the columns of that pass. Entries are 0 or
    /// 1/keep, and 1 where no mask was active: in evaluation, or with keep = 1. Throws UsageError for other
    /// names, and where the last pass left its node out.
    Tensor<T, 2> mask(std::string_view name) const;

    double value(Loss<T> l) const { return loss(l).value; }
    /// The plain cross-entropy Σ -log p(y_t) within a loss, in nats, whatever is added to it and however it
    /// is weighted there: what a perplexity is made of. Throws UsageError for a loss that has none.
    double cross_entropy(Loss<T> l) const;
    /// Positions that counted in a loss: targets other than not_predicted.
    Index predicted(Loss<T> l) const { return loss(l).predicted; }
    /// The loss of each position [T, B] in nats, 0 where nothing is predicted.
    auto by_token(Loss<T> l) const;

    /// softmax(o / temperature) after a forward pass that reached o, for positions [first, first + count)
    /// counted over time and batch, into out [count, V]. The only place where probabilities exist as an
    /// array; ask for the rows that are wanted.
    void probabilities(Logits<T> o, Index first, MatrixRef<T> out, double temperature = 1);
    Tensor<T, 2> probabilities(Logits<T> o, double temperature = 1);  ///< all positions, [T·B, V]

    /// Bytes of the arena: weights, gradients, activations.
    std::size_t memory() const { return store_.arena.size(); }
    /// Whether no node has written beyond the ends of its blocks; for tests.
    bool guards_intact() const { return store_.arena.guards_intact(); }

    /// The insides, for files and updates.
    graph::Store<T>& store() { return store_; }

private:
    template <class Build> auto all_or_nothing(const char* kind, const std::string& name, Build&& build);

    template <class H> void check_owner(const H& h, const char* what) const;
    auto view(MatrixRef<T> m) { return matrix_view(m.data, m.rows, m.cols); }
    auto view(Seq<T> a, T* data) { return matrix_view(data, store_.rows(), a.width); }
    Seq<T> own(Seq<T> a) const { return check_owner(a, "sequence"), a; }
    Parameter<T>& record(Weight<T> w) { return check_owner(w, "weight"), store_.at(store_.parameters, w.id); }
    const graph::LossRecord& loss(Loss<T> l) const {
        return check_owner(l, "loss"), store_.losses[std::size_t(l.id)];
    }
    void require_moduli() const {
        if (!store_.moduli)
            throw UsageError("modulus: none computed yet; call backward<Modulus>(loss) first");
    }

    // Inputs of a node, by kind of handle.
    void note(graph::NodeRecord<T>& n, Tokens x) {
        check_owner(x, "tokens");
        n.input_tokens.push_back(x.id);
    }
    void note(graph::NodeRecord<T>& n, Seq<T> a) {
        check_owner(a, "sequence");
        n.input_seqs.push_back(a.id);
        if (const int from = store_.at(store_.seqs, a.id).node; from >= 0) n.inputs.push_back(from);
    }
    void note(graph::NodeRecord<T>& n, Units<T> u) { note(n, u.z); }
    void note(graph::NodeRecord<T>&, Weight<T> w) { check_owner(w, "weight"); }
    void note(graph::NodeRecord<T>& n, Logits<T> o) {
        check_owner(o, "logits");
        n.inputs.push_back(store_.at(store_.logits, o.id).node);
    }
    void note(graph::NodeRecord<T>& n, Loss<T> l) {
        check_owner(l, "loss");
        n.inputs.push_back(store_.at(store_.losses, l.id).node);
    }

    void feed(const Feed<T>& f);
    template <class Each> void run(int node, Each&& for_each_feed);
    void run_nodes(int first, int last);
    void require_ran(const graph::LossRecord& l, const char* what) const;
    double finish(const graph::LossRecord& l);
    void set_upstream(int asked);
    void enable_moduli();
    void check_forward(const graph::NodeRecord<T>& n, int id);
    template <class Quantity> void check_backward(const graph::NodeRecord<T>& n, int id);
    std::string not_finite_before() const;
    void refuse_non_finite(int seq, const T* data, int node, const char* what);

    graph::Store<T> store_;
    std::vector<graph::NodeRecord<T>> nodes_;
    int ran_ = -1;  // node that the last forward pass was for
    bool checking_ = false;
};

}  // namespace isogloss

#include <isogloss/graph/build.hpp>
#include <isogloss/graph/run.hpp>
