/// @file loss/total.hpp  Weighted sums of losses.
#pragma once

#include <isogloss/graph/graph.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// l = w_a l_a + w_b l_b: losses trained jointly. Chain it for more than two.
///
/// Options  weights  w_a and w_b, any finite numbers, default 1 and 1
/// The number of predicted positions is the larger of the two; there is no loss per position.
template <class T> struct TotalLoss {
    struct Options {
        double weights[2] = {1, 1};
    };
    Options options;
    Loss<T> a, b, l;

    Loss<T> setup(Setup<T>& s, Loss<T> left, Loss<T> right) {
        for (const double w : options.weights)
            if (!std::isfinite(w)) s.fail("found weight ", w, ", expected a finite number");
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
    // The parts apply their weights themselves: see Pass::upstream.
    template <class Quantity> void backward(Backward<T, Quantity>&) {}
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
