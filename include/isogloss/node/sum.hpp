/// @file node/sum.hpp  Sums of sequences.
#pragma once

#include <isogloss/graph/graph.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// y_t = a_t + b_t, for residual and branching models.
///
/// Shapes   a, b, y [T, B, n].  Errors  unequal widths.
template <class T> struct Sum {
    struct Options {};
    Options options;
    Seq<T> a, b, y;

    Seq<T> setup(Setup<T>& s, Seq<T> left, Seq<T> right) {
        if (left.width != right.width)
            s.fail("'", s.name_of(left), "' has width ", left.width, ", '", s.name_of(right), "' has width ",
                   right.width, "; only sequences of equal width can be added");
        a = left;
        b = right;
        return y = s.sequence("y", a.width);
    }
    void forward(Forward<T>& p) { noalias(p.at(y)) = p.at(a) + p.at(b); }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        // A sequence added to itself counts twice: its moduli are scaled by 2², not by 1² + 1².
        const T weight = a.id == b.id && !p.is_gradient ? T(2) : T(1);
        for (const Seq<T>& part : {a, b}) noalias(p.adjoint(part)) += weight * p.adjoint(y);
    }
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
