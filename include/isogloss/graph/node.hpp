/// @file graph/node.hpp  The contract of a node, and its type erasure behind one virtual call per pass.
///
/// A node is a plain struct template over the scalar type:
///
///     template <class T> struct MyCell {
///         struct Options { Index units; };               // named fields, defaults where they make sense
///         Options options;                               // filled in by Graph::add
///         Seq<T> setup(Setup<T>& s, Seq<T> x);           // its parameters are the wiring rule; declares
///                                                        // everything, returns the output handle
///         void forward(Forward<T>& p);                   // the whole sequence
///         template <class Quantity>
///         void backward(Backward<T, Quantity>& p);       // adds to adjoints, never overwrites
///     };
///
/// A node whose backward takes only Backward<T>& trains by gradient; a request for moduli is refused with
/// an error that names it.
#pragma once

#include <isogloss/graph/pass.hpp>
#include <isogloss/graph/setup.hpp>
#include <memory>
#include <type_traits>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// N has `Options` and a member `options` of that type.
template <class N>
concept HasOptions = requires(N n) {
    typename N::Options;
    n.options = std::declval<typename N::Options>();
};
/// N's setup accepts these inputs.
template <class N, class T, class... Inputs>
concept AcceptsInputs = requires(N n, Setup<T>& s, Inputs... inputs) {
    n.setup(s, inputs...);
};
/// And returns something.
template <class N, class T, class... Inputs>
concept ReturnsOutput = AcceptsInputs<N, T, Inputs...> && requires(N n, Setup<T>& s, Inputs... inputs) {
    requires !std::is_void_v<decltype(n.setup(s, inputs...))>;
};
/// N runs forward.
template <class N, class T>
concept HasForward = requires(N n, Forward<T>& p) {
    n.forward(p);
};
/// N propagates the gradient backward.
template <class N, class T>
concept HasBackward = requires(N n, Backward<T, Gradient>& p) {
    n.backward(p);
};
/// N propagates the modulus backward too.
template <class N, class T>
concept HasModulus = requires(N n, Backward<T, Modulus>& p) {
    n.backward(p);
};

namespace graph {

template <class T> struct AnyNode {
    virtual ~AnyNode() = default;
    virtual void forward(Forward<T>& p) = 0;
    virtual void backward(Backward<T, Gradient>& p) = 0;
    virtual void backward(Backward<T, Modulus>& p) = 0;
    virtual bool has_modulus() const = 0;
};

// Its functions are not inline, so that a compiled core keeps the bodies of nodes out of the files that use them.
template <class T, class N> struct NodeOf final : AnyNode<T> {
    N node{};
    void forward(Forward<T>& p) override;
    void backward(Backward<T, Gradient>& p) override;
    void backward(Backward<T, Modulus>& p) override;
    bool has_modulus() const override;
};
template <class T, class N> void NodeOf<T, N>::forward(Forward<T>& p) { node.forward(p); }
template <class T, class N> void NodeOf<T, N>::backward(Backward<T, Gradient>& p) { node.backward(p); }
template <class T, class N> void NodeOf<T, N>::backward(Backward<T, Modulus>& p) {
    if constexpr (HasModulus<N, T>) node.backward(p);
    else static_cast<void>(p);  // Graph::backward has already refused the pass
}
template <class T, class N> bool NodeOf<T, N>::has_modulus() const { return HasModulus<N, T>; }

/// A node with what the graph must know about it: what it reads and takes.
template <class T> struct NodeRecord {
    std::unique_ptr<AnyNode<T>> node = {};
    std::vector<int> inputs = {};  // nodes that must run before it
    std::vector<int> input_seqs = {}, input_tokens = {}, input_weights = {};
    std::size_t bytes = 0;  // taken from the arena by its setup
    bool needed = false;    // in the current pass
    bool staged = false;    // its gradient, by the last forward pass
};

}  // namespace graph
}}  // namespace isogloss
