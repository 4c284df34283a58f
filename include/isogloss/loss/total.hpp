/// @file loss/total.hpp  Weighted sums of losses.
#pragma once

#include <algorithm>
#include <concepts>
#include <isogloss/graph/node.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// l = Σ_k w_k l_k: two or more losses trained jointly.
///
/// Options  weights  w_k, one finite number for each loss, default all 1
/// Errors   another number of weights; one that is not finite
/// The number of predicted positions is the largest of the parts. It has no cross-entropy and no loss per position: for
/// a perplexity ask a part, as in g.result(l_k).cross_entropy().
template <class T> struct TotalLoss {
    struct Options {
        std::vector<double> weights = {};
    };
    Options options;
    std::vector<Loss<T>> parts;
    Loss<T> l;

    template <std::same_as<Loss<T>>... More> Loss<T> setup(Setup<T>& s, Loss<T> a, Loss<T> b, More... more) {
        parts = {a, b, more...};
        auto& w = options.weights;
        if (w.empty()) w.assign(parts.size(), 1);
        if (w.size() != parts.size()) s.fail("found ", w.size(), " weights for ", parts.size(), " losses");
        for (const double weight : w) s.require("weight", weight, -1e300, 1e300);
        l = s.loss(false);
        for (std::size_t k = 0; k < parts.size(); ++k) s.part(l, parts[k], w[k]);
        return l;
    }
    void forward(Forward<T>& p) {
        double value = 0;
        Index predicted = 0;
        for (std::size_t k = 0; k < parts.size(); ++k) {
            value += options.weights[k] * p.value(parts[k]);
            predicted = std::max(predicted, p.predicted(parts[k]));
        }
        p.set(l, value, predicted);
    }
    // The parts apply their weights themselves: see Pass::upstream.
    template <class Quantity> void backward(Backward<T, Quantity>&) {}
};

}}  // namespace isogloss
