/// @file node/sum.hpp  Sums of sequences.
#pragma once

#include <algorithm>
#include <concepts>
#include <isogloss/graph/node.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// y_t = a_t + b_t + …, for residual and branching models.
///
/// Shapes   a, b, …, y [T, B, n], two or more.  A sequence may be given several times
/// Gradient each input receives y's.  Modulus  likewise; one given k times, which is k a, receives k² times y's
/// Errors   unequal widths
template <class T> struct Sum {
    struct Options {};
    Options options;
    std::vector<Seq<T>> inputs;
    Seq<T> y;

    template <std::same_as<Seq<T>>... More> Seq<T> setup(Setup<T>& s, Seq<T> a, Seq<T> b, More... more) {
        inputs = {a, b, more...};
        for (const Seq<T>& input : inputs)
            if (input.width != a.width)
                s.fail("'", s.name_of(a), "' has width ", a.width, ", '", s.name_of(input), "' ",
                       input.width);
        return y = s.sequence("y", a.width);
    }
    void forward(Forward<T>& p) {
        noalias(p.at(y)) = p.at(inputs[0]) + p.at(inputs[1]);
        for (std::size_t i = 2; i < inputs.size(); ++i) noalias(p.at(y)) += p.at(inputs[i]);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        for (const Seq<T>& input : inputs) {
            const auto times =
                std::count_if(inputs.begin(), inputs.end(), [&](auto& i) { return i.id == input.id; });
            const T weight = p.is_gradient ? T(1) : static_cast<T>(times);  // added k times: k², not k 1²
            noalias(p.adjoint(input)) += weight * p.adjoint(y);
        }
    }
};

}}  // namespace isogloss
