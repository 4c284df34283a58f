/// @file node/concatenate.hpp  Concatenation of sequences.
#pragma once

#include <array>
#include <concepts>
#include <isogloss/graph/graph.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// y_t = [a_t b_t …]: concatenation of two or more sequences.
///
/// Shapes   a [T, B, n_a], b [T, B, n_b], …;  y [T, B, n_a + n_b + …].  A sequence may be given several times
/// Gradient each input receives its own columns of y's
/// Modulus  likewise
/// Errors   more than most_inputs sequences
template <class T> struct Concatenate {
    struct Options {};
    Options options;
    static constexpr std::size_t most_inputs = 64;  ///< maximum number of inputs
    std::array<Seq<T>, most_inputs> inputs;
    std::size_t count = 0;
    Seq<T> y;

    template <std::same_as<Seq<T>>... More> Seq<T> setup(Setup<T>& s, Seq<T> a, Seq<T> b, More... more) {
        static_assert(2 + sizeof...(More) <= most_inputs, "isogloss: Concatenate takes at most 64 sequences");
        for (const Seq<T>& input : {a, b, more...}) inputs[count++] = input;
        Index width = 0;
        for (std::size_t i = 0; i < count; ++i) width += inputs[i].width;
        return y = s.sequence("y", width);
    }

    void forward(Forward<T>& p) {
        T* out = p.data(y);
        for (std::size_t i = 0; i < count; out += inputs[i++].width) {
            const T* in = p.data(inputs[i]);
            for (Index r = 0; r < p.rows(); ++r)
                std::copy_n(in + r * inputs[i].width, inputs[i].width, out + r * y.width);
        }
    }

    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        const T* from = p.adjoint_data(y);
        for (std::size_t i = 0; i < count; from += inputs[i++].width) {
            T* to = p.adjoint_data(inputs[i]);
            for (Index r = 0; r < p.rows(); ++r)
                kernel::add(inputs[i].width, from + r * y.width, to + r * inputs[i].width);
        }
    }
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
