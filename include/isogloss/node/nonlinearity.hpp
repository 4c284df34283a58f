/// @file node/nonlinearity.hpp  An activation function of every unit.
#pragma once

#include <algorithm>
#include <isogloss/graph/node.hpp>
#include <isogloss/kernel/activation.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// y_t = s(x_t) by unit: what makes a multilayer perceptron of Linear layers, which without it are one affine map.
///
///     auto h = g.add<Nonlinearity>("h", {.activation = Activation::relu}, g.add<Linear>("map", {.units = 50}, x));
///
/// Shapes   x, y [T, B, n]
/// Options  activation  s, an Activation, default tanh: tanh; logistic, 1 / (1 + exp(-x)); relu, max(0, x), whose
///                      derivative at 0 is 0; identity
/// Gradient dx = s'(x) ∘ dy, from y alone.  Modulus  with s'(x)²
template <class T> struct Nonlinearity {
    struct Options {
        Activation activation = Activation::tanh;
    };
    Options options;
    Seq<T> x, y;

    Seq<T> setup(Setup<T>& s, Seq<T> in) {
        x = in;
        return y = s.sequence("y", x.width);
    }
    void forward(Forward<T>& p) {
        kernel::activate(options.activation, p.rows() * x.width, p.data(x), p.data(y));
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        const Index n = p.rows() * x.width;
        const T *a = p.data(y), *from = p.adjoint_data(y);
        T *to = p.adjoint_data(x), part[kernel::chunk];  // the kernel overwrites, others may have added to x
        for (Index first = 0; first < n; first += kernel::chunk) {
            const Index count = std::min(kernel::chunk, n - first);
            kernel::activation_backward<!Backward<T, Quantity>::is_gradient>(options.activation, count,
                                                                             a + first, from + first, part);
            kernel::add(count, part, to + first);
        }
    }
};

}}  // namespace isogloss
