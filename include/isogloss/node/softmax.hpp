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

/// Logits whose matrix is the embedding table: o_t = E h_t (+ b), or E (h_t P) (+ b).
///
/// Shapes   h [T, B, n];  E [V, m];  P [n, m] and b [1, V] if enabled;  o [T, B, V], never stored
/// Options  bias        whether to add b, default false; it starts at 0
///          projection  whether to multiply h by P first, default false; without it unequal widths are an
///                      error
///          init        start values of P, default uniform(0.1)
/// The table's gradient is the sum of the lookup's and the head's.
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
        if (h.width != E.cols && !options.projection)
            s.fail("the input has width ", h.width, ", the table '", s.name_of(E), "' ", E.cols,
                   "; set the units of the layer below to that, or {.projection = true}");
        if (options.projection) {
            projected = s.units("projected", E.cols).init(options.init).from("P", h);
            s.open(*projected);
        }
        const auto b = options.bias ? s.weight("b", 1, E.rows, constant(0)) : Weight<T>{};
        return s.logits(projected ? projected->z : h, E, b);
    }
    void forward(Forward<T>& p) {
        if (projected) p.affine(*projected);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        if (projected) p.affine_backward(*projected);
    }
};

}}  // namespace isogloss
