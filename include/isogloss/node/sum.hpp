/// @file node/sum.hpp  Sums: of sequences, and of losses.
#pragma once

#include <isogloss/graph/graph.hpp>

namespace isogloss {

/// y_t = a_t + b_t, for residual and branching models.
///
/// Shapes   a, b, y [T, B, n].  Errors  unequal widths.
template <class T> struct Sum {
    struct Options {};
    Options options;
    Seq<T> a, b, y;

    Seq<T> setup(Setup<T>& s, Seq<T> left, Seq<T> right) {
        if (left.width != right.width)
            s.fail(message("'", s.name_of(left), "' has width ", left.width, ", '", s.name_of(right),
                           "' has width ", right.width, "; only sequences of equal width can be added"));
        a = left;
        b = right;
        return y = s.sequence("y", a.width);
    }
    void forward(Forward<T>& p) { noalias(p.at(y)) = p.at(a) + p.at(b); }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        // One and the same sequence twice is reached by two paths at once: for moduli 2² rather than 1² + 1².
        const T weight = a.id == b.id && !p.is_gradient ? T(2) : T(1);
        for (const Seq<T>& part : {a, b}) noalias(p.adjoint(part)) += weight * p.adjoint(y);
    }
};

/// l = w_a l_a + w_b l_b: several losses trained at once. Chain it for more than two.
///
/// Options  weights  w_a and w_b, any finite numbers, default 1 and 1
/// The number of predicted positions is the larger of the two; there is no loss by position.
template <class T> struct TotalLoss {
    struct Options {
        double weights[2] = {1, 1};
    };
    Options options;
    Loss<T> a, b, l;

    Loss<T> setup(Setup<T>& s, Loss<T> left, Loss<T> right) {
        for (const double w : options.weights)
            if (!std::isfinite(w)) s.fail(message("found weight ", w, ", expected a finite number"));
        a = left;
        b = right;
        l = s.loss(false);
        s.part(l, a, options.weights[0]);
        s.part(l, b, options.weights[1]);
        return l;
    }
    void forward(Forward<T>& p) {
        p.set(l, options.weights[0] * p.value(a) + options.weights[1] * p.value(b),
              std::max(p.predicted(a), p.predicted(b)));
    }
    template <class Quantity> void backward(Backward<T, Quantity>&) {
    }  // its parts know their weights as seeds
};

}  // namespace isogloss
