/// @file node/concatenate.hpp  Concatenation of sequences.
#pragma once

#include <concepts>
#include <isogloss/graph/node.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// y_t = [a_t b_t …]: concatenation of two or more sequences.
///
/// Shapes   a [T, B, n_a], b [T, B, n_b], …;  y [T, B, n_a + n_b + …].  A sequence may be given several times
/// Gradient each input receives its own columns of y's
/// Modulus  likewise
template <class T> struct Concatenate {
    struct Options {};
    Options options;
    std::vector<Seq<T>> inputs;
    Seq<T> y;

    template <std::same_as<Seq<T>>... More> Seq<T> setup(Setup<T>& s, Seq<T> a, Seq<T> b, More... more) {
        inputs = {a, b, more...};
        Index width = 0;
        for (const Seq<T>& input : inputs) width += input.width;
        return y = s.sequence("y", width);
    }

    void forward(Forward<T>& p) {
        T* out = p.data(y);
        for (const Seq<T>& input : inputs) {
            const T* in = p.data(input);
            for (Index r = 0; r < p.rows(); ++r)
                std::copy_n(in + r * input.width, input.width, out + r * y.width);
            out += input.width;
        }
    }

    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        const T* from = p.adjoint_data(y);
        for (const Seq<T>& input : inputs) {
            T* to = p.adjoint_data(input);
            for (Index r = 0; r < p.rows(); ++r)
                kernel::add(input.width, from + r * y.width, to + r * input.width);
            from += input.width;
        }
    }
};

}}  // namespace isogloss
