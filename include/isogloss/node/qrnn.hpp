/// @file node/qrnn.hpp  The quasi-recurrent layer.
#pragma once

#include <algorithm>
#include <isogloss/kernel/gates.hpp>
#include <isogloss/node/dropout.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Quasi-recurrent network: the gates are a convolution over the input, and the recurrence has no matrix.
///
///     (z, f, o) = x_t W + x_{t-1} V + b          z through tanh, f and o through σ
///     c_t = f ∘ c_{t-1} + (1 - f) ∘ z
///     h_t = o ∘ c_t
///
/// The products of all steps are computed at once. x_{t-1} of the first step is the last x of the previous pass, held
/// constant, and 0 after a reset.
///
/// Shapes   x [T, B, m];  W, V [m, 3 n];  b [1, 3 n], parts in the order z, f, o;  h [T, B, n]; n = units
/// Options  units        n ≥ 1
///          window       2, the default, or 1: without x_{t-1} V
///          keep         probability of keeping a unit, 2⁻³² to 1, default 1; masks according to `scheme`
///          scheme       DropoutScheme, default tied: h is masked; gal: a mask for each of z, f, o on x_t and
///                       x_{t-1}; UsageError for recurrent with keep < 1, as no matrix multiplies the state
///          init         start values of W and V, default uniform(0.1)
///          forget_bias  start value of the f part of b, default 0; above 0, units begin by keeping c for longer. The
///                       rest of b starts at 0
/// Source   Bradbury, Merity, Xiong, Socher 2017, "Quasi-recurrent neural networks", eqs. (2), (4): fo-pooling. Added:
///          the biases. Left out: zoneout of f, and windows above 2.
template <class T> struct Qrnn {
    struct Options {
        Index units = 0;
        Index window = 2;
        double keep = 1;
        DropoutScheme scheme = DropoutScheme::tied;
        Init init = uniform(0.1);
        double forget_bias = 0;
    };
    Options options;
    RecurrentDropout<T> dropout;
    Units<T> z;
    Seq<T> x, copy, c, h;  // copy: of x, with the last x of the previous pass before it
    T* dc = nullptr;       // [B, n]: adjoint of the current step's c

    Seq<T> setup(Setup<T>& s, Seq<T> in) {
        s.require("units", options.units, 1);
        s.require("window", options.window, 1, 2);
        if (options.scheme == DropoutScheme::recurrent && options.keep < 1)
            s.fail("keep = ", options.keep,
                   " has no effect under the scheme recurrent, as no matrix multiplies ",
                   "the state; use tied or gal, or Dropout before and after the node");
        x = in;
        const Index n = options.units;
        const bool gal = options.scheme == DropoutScheme::gal;
        dropout.setup(s, gal ? 1 : options.keep, DropoutScheme::tied, x.width, n, 1);
        const Mask mask = s.mask("input_mask", x.width, gal ? options.keep : 1, 3);
        c = s.recurrent("c", n);
        h = s.sequence("h", n);
        auto sum = s.units("z", 3 * n).init(options.init).from("W", x, mask);
        if (options.window == 2) {
            copy = s.recurrent("x", x.width);
            sum.from("V", s.shifted(copy), mask);
        }
        z = sum.bias("b", per_block({0, options.forget_bias, 0}));
        s.open(c);
        if (s.gradients()) dc = s.scratch({s.capacity().batch, n});
        return dropout.output(s, h);
    }
    void forward(Forward<T>& p) {
        if (options.window == 2) std::copy_n(p.data(x), p.rows() * x.width, p.data(copy));
        p.affine(z);
        p.over_batch([&](const Forward<T>& part) {
            for (const Index t : part.steps()) kernel::qrnn_forward(part.batch(), h.width, at(part, t));
        });
        dropout.forward(p);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        dropout.backward(p);
        std::fill_n(dc, p.batch() * h.width, T(0));
        const bool read = p.is_reached(c);     // by another node, such as a penalty
        p.adjoint_data(h), p.adjoint_data(z);  // cleared before parts write to them
        p.over_batch([&](const Backward<T, Quantity>& part) {
            for (const Index t : part.steps_back()) {
                if (read)
                    kernel::add(part.batch() * h.width, part.adjoint_data(c, t), part.part_of(dc, h.width));
                kernel::qrnn_backward<!Backward<T, Quantity>::is_gradient, T>(
                    part.batch(), h.width, at(part, t),
                    {part.adjoint_data(h, t), part.part_of(dc, h.width), part.adjoint_data(z, t)});
            }
        });
        p.affine_backward(z);
        if (options.window == 2) kernel::add(p.rows() * x.width, p.adjoint_data(copy), p.adjoint_data(x));
    }

private:
    kernel::QrnnRows<T> at(const Pass<T>& p, Index t) const {
        return {p.data(z, t), p.data(c, t - 1), p.data(c, t), p.data(h, t)};
    }
};

}}  // namespace isogloss
