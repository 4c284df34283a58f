/// @file node/rhn.hpp  The recurrent highway layer.
#pragma once

#include <isogloss/array.hpp>
#include <isogloss/kernel/gates.hpp>
#include <isogloss/node/dropout.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Recurrent highway network: D micro-steps per time step, coupled carry gate.
///
///     s_0 = y_{t-1}
///     (h, g) = 1[l = 1] x_t W + s_{l-1} R_l + b_l       h through tanh, g through σ
///     s_l = h ∘ g + s_{l-1} ∘ (1 - g),  l = 1 … D;      y_t = s_D
///
/// Shapes   x [T, B, m];  W [m, 2 n];  R1 … RD [n, 2 n];  b1 … bD [1, 2 n], parts in the order h, g;
///          y [T, B, n];  n = units, D = depth
/// Options  units           n ≥ 1
///          depth           D, 1 to 1000, default 1
///          keep            probability of keeping a unit, 2⁻³² to 1, default 1; the state mask is the same for all
///                          l and t and applies where s is multiplied by a matrix; the carry is not masked
///          scheme          DropoutScheme, default recurrent, as published; under tied the output has the
///                          same mask; under gal h and g have separate masks
///          init            start values of W and R, default uniform(0.04)
///          transform_bias  start value of the g part of the biases, default -2
/// Source   Zilly et al. 2016, eqs. (6)-(9) with coupled gates, and the constants of its published experiments.
template <class T> struct Rhn {
    struct Options {
        Index units = 0;
        Index depth = 1;
        double keep = 1;
        DropoutScheme scheme = DropoutScheme::recurrent;
        Init init = uniform(0.04);
        double transform_bias = -2;
    };
    static constexpr Index most_depth = 1000;
    Options options;
    RecurrentDropout<T> dropout;
    Array<Units<T>> z;
    Array<Seq<T>> s;  // s_1 … s_D; s_D is carried over

    Seq<T> setup(Setup<T>& u, Seq<T> x) {
        u.require("units", options.units, 1);
        const Index n = options.units;
        u.require("depth", options.depth, 1, most_depth);
        dropout.setup(u, options.keep, options.scheme, x.width, n, 2);
        for (Index l = 1; l < options.depth; ++l) s.push_back(u.sequence(message("s", l), n));
        s.push_back(u.recurrent(message("s", options.depth), n));
        for (Index l = 1; l <= options.depth; ++l) {
            auto layer = u.units(message("z", l), 2 * n).init(options.init);
            if (l == 1) layer.from("W", x, dropout.input).from("R1", u.previous(s.back()), dropout.state);
            else layer.from(message("R", l), u.current(s[l - 2]), dropout.state);
            z.push_back(layer.bias(message("b", l), per_block({0, options.transform_bias})));
            u.open(s[l - 1]);
        }
        return dropout.output(u, s.back());
    }
    void forward(Forward<T>& p) {
        for (const auto& units : z) p.affine(units);
        p.over_batch([&](const Forward<T>& part) {
            for (const Index t : part.steps())
                for (std::size_t l = 0; l < z.size(); ++l) {
                    part.affine(z[l], t);
                    kernel::highway_forward(part.batch(), s[l].width, at(part, l, t));
                }
        });
        dropout.forward(p);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        dropout.backward(p);
        p.over_batch([&](const Backward<T, Quantity>& part) {
            for (const Index t : part.steps_back())
                for (std::size_t l = z.size(); l-- > 0;) {
                    T* before = l > 0 ? part.adjoint_data(s[l - 1], t) : part.adjoint_data(s.back(), t - 1);
                    kernel::highway_backward<!Backward<T, Quantity>::is_gradient, T>(
                        part.batch(), s[l].width, at(part, l, t),
                        {part.adjoint_data(s[l], t), part.adjoint_data(z[l], t), before});
                    part.affine_backward(z[l], t);
                }
        });
        for (const auto& units : z) p.affine_backward(units);
    }

private:
    kernel::HighwayRows<T> at(const Pass<T>& p, std::size_t l, Index t) const {
        return {p.data(z[l], t), l > 0 ? p.data(s[l - 1], t) : p.data(s.back(), t - 1), p.data(s[l], t)};
    }
};

}}  // namespace isogloss
