/// @file node/lstm.hpp  The long short-term memory layer.
#pragma once

#include <isogloss/kernel/gates.hpp>
#include <isogloss/node/mogrifier.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Long short-term memory.
///
///     (i, f, g, o) = x_t W + h_{t-1} U + b        i, f, o through σ, g through tanh
///     c_t = f ∘ c_{t-1} + i ∘ g
///     h_t = o ∘ tanh(c_t)
///
/// With rounds > 0 the two sums read x and h_{t-1} after they have gated one another, see Mogrifier; c is not gated.
///
/// Shapes   x [T, B, m];  W [m, 4 n];  U [n, 4 n];  b [1, 4 n], gates in the order i, f, g, o;  h [T, B, n]
/// Options  units        n ≥ 1
///          keep         probability of keeping a unit, 2⁻³² to 1, default 1; masks according to `scheme`
///          scheme       DropoutScheme, default tied
///          init         start values of W and U, default uniform(0.1)
///          forget_bias  start value of the forget part of b, default 0; the rest of b starts at 0
///          rounds       of a Mogrifier, 0 to 8, default 0
///          rank         of its matrices, ≥ 0; default 0: full
/// Source   Hochreiter, Schmidhuber 1997 with the forget gate of Gers et al. 2000; no peepholes.
///          Equations and dropout as in Inan, Khosravi, Socher 2017.
template <class T> struct Lstm {
    struct Options {
        Index units = 0;
        double keep = 1;
        DropoutScheme scheme = DropoutScheme::tied;
        Init init = uniform(0.1);
        double forget_bias = 0;
        Index rounds = 0;
        Index rank = 0;
    };
    Options options;
    RecurrentDropout<T> dropout;
    Mogrifier<T> mogrifier;
    Units<T> z;
    Seq<T> c, h, squashed;
    T* dc = nullptr;  // [B, n]: adjoint of the current step's c

    Seq<T> setup(Setup<T>& s, Seq<T> x) {
        s.require("units", options.units, 1);
        const Index n = options.units;
        dropout.setup(s, options.keep, options.scheme, x.width, n, 4);
        h = s.recurrent("h", n);
        c = s.recurrent("c", n);
        squashed = s.sequence("tanh_c", n);
        mogrifier.setup(s, options, dropout, x, h);
        auto sum = s.units("z", 4 * n).init(options.init);
        mogrifier.input(s, sum, "W", dropout.input);
        mogrifier.state(s, sum, "U", dropout.state);
        z = sum.bias("b", per_block({0, options.forget_bias, 0, 0}));
        s.open(c);
        if (s.gradients()) dc = s.scratch({s.capacity().batch, n});
        return dropout.output(s, h);
    }
    void forward(Forward<T>& p) {
        p.affine(z);
        mogrifier.forward(p);
        p.over_batch([&](const Forward<T>& part) {
            for (const Index t : part.steps()) {
                mogrifier.forward(part, t);
                part.affine(z, t);
                kernel::lstm_forward(part.batch(), h.width, at(part, t));
            }
        });
        dropout.forward(p);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        dropout.backward(p);
        std::fill_n(dc, p.batch() * h.width, T(0));
        mogrifier.begin_backward(p);
        const bool read = p.is_reached(c);  // by another node, such as a penalty
        p.over_batch([&](const Backward<T, Quantity>& part) {
            for (const Index t : part.steps_back()) {
                if (read)
                    kernel::add(part.batch() * h.width, part.adjoint_data(c, t), part.part_of(dc, h.width));
                kernel::lstm_backward<!Backward<T, Quantity>::is_gradient, T>(
                    part.batch(), h.width, at(part, t),
                    {part.adjoint_data(h, t), part.part_of(dc, h.width), part.adjoint_data(z, t)});
                part.affine_backward(z, t);
                mogrifier.backward(part, t);
            }
        });
        p.affine_backward(z);
        mogrifier.backward(p);
    }

private:
    kernel::LstmRows<T> at(const Pass<T>& p, Index t) const {
        return {p.data(z, t), p.data(c, t - 1), p.data(c, t), p.data(squashed, t), p.data(h, t)};
    }
};

}}  // namespace isogloss
