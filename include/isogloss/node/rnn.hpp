/// @file node/rnn.hpp  The simple recurrent layer.
#pragma once

#include <isogloss/kernel/activation.hpp>
#include <isogloss/node/dropout.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// h_t = s(x_t W + h_{t-1} U + b)
///
/// Shapes   x [T, B, m];  W [m, n];  U [n, n];  b [1, n];  h [T, B, n]; n = units
/// Options  units   n ≥ 1
///          keep    probability of keeping a unit, 2⁻³² to 1, default 1; masks according to `scheme`
///          scheme  DropoutScheme, default tied
///          init    start values of W and U, default uniform(0.1); b starts at 0
///          activation  s, an Activation, default tanh; h before the first step is 0 with any
/// Source   Elman 1990; dropout: see DropoutScheme.
template <class T> struct Rnn {
    struct Options {
        Index units = 0;
        double keep = 1;
        DropoutScheme scheme = DropoutScheme::tied;
        Init init = uniform(0.1);
        Activation activation = Activation::tanh;
    };
    Options options;
    RecurrentDropout<T> dropout;
    Units<T> z;
    Seq<T> h;

    Seq<T> setup(Setup<T>& s, Seq<T> x) {
        s.require("units", options.units, 1);
        const Index n = options.units;
        dropout.setup(s, options.keep, options.scheme, x.width, n, 1);
        h = s.recurrent("h", n);
        z = s.units("z", n)
                .init(options.init)
                .from("W", x, dropout.input)
                .from("U", s.previous(h), dropout.state)
                .bias("b");
        return dropout.output(s, h);
    }
    void forward(Forward<T>& p) {
        p.affine(z);
        p.over_batch([&](const Forward<T>& part) {
            for (const Index t : part.steps()) {
                part.affine(z, t);
                kernel::activate(options.activation, part.batch() * h.width, part.data(z, t),
                                 part.data(h, t));
            }
        });
        dropout.forward(p);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        dropout.backward(p);
        p.over_batch([&](const Backward<T, Quantity>& part) {
            for (const Index t : part.steps_back()) {
                kernel::activation_backward<!Backward<T, Quantity>::is_gradient>(
                    options.activation, part.batch() * h.width, part.data(h, t), part.adjoint_data(h, t),
                    part.adjoint_data(z, t));
                part.affine_backward(z, t);
            }
        });
        p.affine_backward(z);
    }
};

}}  // namespace isogloss
