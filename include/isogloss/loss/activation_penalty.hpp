/// @file loss/activation_penalty.hpp  A penalty on large and on quickly changing activations.
#pragma once

#include <isogloss/graph/node.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Activation regularisation and temporal activation regularisation of a sequence.
///
///     l = Σ_t (1/n) (size |h_t|² + change |h_t - h_{t-1}|²)
///
/// h before the first step is the last one of the previous pass, held constant, and 0 after a reset. TotalLoss
/// adds the penalty to another loss; it is summed over all positions, including those without a target, so
/// `size` and `change` are in nats per position.
///
/// Shapes    h [T, B, n]
/// Options   size    α ≥ 0, default 0
///           change  β ≥ 0, default 0
/// Modulus   0: a penalty predicts nothing
/// Source    Merity, McCann, Socher 2017, "Revisiting activation regularization for language RNNs", section 3,
///           with squares in place of norms as in the code published with Merity, Keskar, Socher 2018.
///           Departures: both terms use the given sequence (there, the masked one for the first and the
///           unmasked one for the second), and the change from one pass to the next is penalised
template <class T> struct ActivationPenalty {
    struct Options {
        double size = 0, change = 0;
    };
    Options options;
    Seq<T> h, kept;  // kept: a copy of h, whose node may carry no state over
    Loss<T> l;

    Loss<T> setup(Setup<T>& s, Seq<T> sequence) {
        s.require("size", options.size, 0.0);
        s.require("change", options.change, 0.0);
        h = sequence;
        if (options.change > 0) kept = s.recurrent("kept", h.width);
        return l = s.loss(false);
    }
    void forward(Forward<T>& p) {
        double size = kernel::sum_of_squares(p.rows() * h.width, p.data(h)), change = 0;
        if (options.change > 0) {
            noalias(p.at(kept)) = p.at(h);
            const T *now = p.data(kept), *before = p.data(kept, -1);
            for (Index i = 0; i < p.rows() * h.width; ++i) {
                const double d = static_cast<double>(now[i]) - static_cast<double>(before[i]);
                change += d * d;
            }
        }
        p.set(l, (options.size * size + options.change * change) / static_cast<double>(h.width), 0);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        if constexpr (Backward<T, Quantity>::is_gradient) {
            const double scale = 2 * p.upstream(l) / static_cast<double>(h.width);
            const auto size = static_cast<T>(scale * options.size),
                       change = static_cast<T>(scale * options.change);
            const Index n = p.rows() * h.width, step = p.batch() * h.width;
            T* to = p.adjoint_data(h);
            const T* now = p.data(h);
            for (Index i = 0; i < n; ++i) to[i] += size * now[i];
            if (options.change == 0) return;
            const T* before = p.data(kept, -1);
            for (Index i = 0; i < n; ++i) {
                const T d = change * (now[i] - before[i]);
                to[i] += d;
                if (i >= step) to[i - step] -= d;
            }
        }
    }
};

}}  // namespace isogloss
