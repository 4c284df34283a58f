/// @file node/softmax.hpp  Output heads: from hidden states to lazy logits over the vocabulary.
#pragma once

#include <isogloss/graph/node.hpp>
#include <optional>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Logits with a matrix of their own: o_t = W h_t + b.
///
/// Shapes   h [T, B, n];  W [V, n], row i belongs to word i;  b [1, V];  o [T, B, V], never stored
/// Options  vocabulary  V ≥ 1
///          bias        whether to add b, default true; it starts at 0
///          init        start values of W, default uniform(0.1)
/// Source   Inan, Khosravi, Socher 2017, eq. (2.3).
template <class T> struct Softmax {
    struct Options {
        Index vocabulary = 0;
        bool bias = true;
        Init init = uniform(0.1);
    };
    Options options;

    Logits<T> setup(Setup<T>& s, Seq<T> h) {
        s.require("vocabulary", options.vocabulary, 1);
        const auto W = s.weight("W", options.vocabulary, h.width, options.init);
        const auto b = options.bias ? s.weight("b", 1, options.vocabulary, constant(0)) : Weight<T>{};
        return s.logits(h, W, b);
    }
    void forward(Forward<T>&) {}  // the losses compute the product, block by block
    template <class Quantity> void backward(Backward<T, Quantity>&) {}
};

/// Logits whose matrix is the embedding table: o_t = E h_t (+ b), or E (h_t P) (+ b), or E (h_t Wᵀ) (+ b) with the weight W
/// of another node, such as that of a Linear between the table and the layers below:
///
///     auto x = g.add<Linear>("project", {.units = n, .bias = false}, g.add<Embedding>("embed", {}, words, E));
///     auto o = g.add<TiedSoftmax>("softmax", {}, g.add<Lstm>("lstm", {.units = n}, x), E, g.weight("project.W"));
///
/// Shapes   h [T, B, n];  E [V, m];  P [n, m] and b [1, V] if enabled;  W [m, n];  o [T, B, V], never stored
/// Options  bias        whether to add b, default false; it starts at 0
///          projection  whether to multiply h by P first, default false; without it or W unequal widths are an
///                      error
///          init        start values of P, default uniform(0.1)
/// The gradient of the table, and of W, is the sum of both uses.
/// Source   Inan, Khosravi, Socher 2017, eq. (4.5) with W = Lᵀ, b = 0.  Departure: the bias and the
/// projection.
template <class T> struct TiedSoftmax {
    struct Options {
        bool bias = false;
        bool projection = false;
        Init init = uniform(0.1);
    };
    Options options;
    std::optional<Units<T>> projected;

    Logits<T> setup(Setup<T>& s, Seq<T> h, Weight<T> E) {
        if (options.projection && !projected)
            projected = s.units("projected", E.cols).init(options.init).from("P", h);
        if (projected) s.open(*projected);
        else if (h.width != E.cols)
            s.fail("the input has width ", h.width, ", the table '", s.name_of(E), "' ", E.cols,
                   "; set the units of the layer below to that, or {.projection = true}");
        const auto b = options.bias ? s.weight("b", 1, E.rows, constant(0)) : Weight<T>{};
        return s.logits(projected ? projected->z : h, E, b);
    }
    Logits<T> setup(Setup<T>& s, Seq<T> h, Weight<T> E, Weight<T> W) {
        projected = s.units("projected", E.cols).from(s.transposed(W), h);
        return setup(s, h, E);
    }
    void forward(Forward<T>& p) {
        if (projected) p.affine(*projected);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        if (projected) p.affine_backward(*projected);
    }
};

}}  // namespace isogloss
