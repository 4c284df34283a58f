/// @file node/reverse.hpp  Sequences reversed in time, each over its own length.
#pragma once

#include <algorithm>
#include <isogloss/graph/node.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Reverses each column of a sequence in time, over its own length: the input of a backward recurrent layer.
///
///     y_{t,b} = x_{L_b - 1 - t, b}    t < L_b;       y_{t,b} = 0    t ≥ L_b
///
/// L_b, the length of column b, follows from its targets: 1 + the last t with target_{t,b} ≠ not_predicted, 0
/// if there is none. Padding is never read, and applying the node twice gives x again, zero after its end:
///
///     auto back = g.add<Reverse>("back", {}, g.add<Lstm>("right", {.units = 50}, g.add<Reverse>("turn", {}, x, y)), y);
///     auto both = g.add<Concatenate>("both", {}, g.add<Lstm>("left", {.units = 50}, x), back);
///
/// A pass holds whole sentences, one per column: call Graph::reset() before it, or layers would carry over
/// the state of earlier sentences.
///
/// Shapes   x, y [T, B, n];  targets [T, B] tokens, the last of a sentence at its end
/// Gradient ∂l/∂x_{t,b} = ∂l/∂y_{L_b - 1 - t, b}, 0 after the end.  Modulus  likewise
template <class T> struct Reverse {
    struct Options {};
    Options options;
    Seq<T> x, y;
    Tokens targets;

    Seq<T> setup(Setup<T>& s, Seq<T> sequence, Tokens target) {
        x = sequence;
        targets = target;
        return y = s.sequence("y", x.width);
    }
    void forward(Forward<T>& p) {
        std::fill_n(p.data(y), p.rows() * y.width, T(0));
        each_row(p, [&](Index from, Index to) {
            std::copy_n(p.data(x) + from * x.width, x.width, p.data(y) + to * x.width);
        });
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        each_row(p, [&](Index from, Index to) {
            kernel::add(x.width, p.adjoint_data(y) + to * x.width, p.adjoint_data(x) + from * x.width);
        });
    }

private:
    // Calls f(row of x, row of y) for every step within the length of its column.
    template <class F> void each_row(const Pass<T>& p, F&& f) const {
        const Index B = p.batch();
        for (Index b = 0; b < B; ++b) {
            Index length = p.rows() / B;
            while (length > 0 && p.data(targets)[(length - 1) * B + b] == not_predicted) --length;
            for (Index t = 0; t < length; ++t) f((length - 1 - t) * B + b, t * B + b);
        }
    }
};

}}  // namespace isogloss
