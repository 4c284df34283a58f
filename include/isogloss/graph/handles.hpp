/// @file graph/handles.hpp  Tiny typed names for what a graph holds. Copy them freely; they own nothing.
///
/// `graph` is the serial number, unique in the process, of the graph that created the handle; `kind` names it in
/// messages.
#pragma once

#include <cstdint>
#include <isogloss/types.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Tokens [T, B]; values below `vocabulary`.
struct Tokens {
    static constexpr const char* kind = "tokens";
    int id = -1;
    Index vocabulary = 0;
    std::uint64_t graph = 0;
};

/// A sequence of vectors [T, B, width].
template <class T> struct Seq {
    static constexpr const char* kind = "sequence";
    int id = -1;
    Index width = 0;
    std::uint64_t graph = 0;
};

/// A trained matrix [rows, cols]. Using a handle twice shares the parameter.
template <class T> struct Weight {
    static constexpr const char* kind = "weight";
    int id = -1;
    Index rows = 0, cols = 0;
    std::uint64_t graph = 0;
    bool operator==(const Weight&) const = default;
};

/// Logits [T, B, vocabulary] that are never stored: hidden states, table and bias, from which losses and
/// probabilities are computed block by block.
template <class T> struct Logits {
    static constexpr const char* kind = "logits";
    int id = -1;
    Index vocabulary = 0;
    std::uint64_t graph = 0;
};

/// A scalar: summed over time and batch, in nats.
template <class T> struct Loss {
    static constexpr const char* kind = "loss";
    int id = -1;
    std::uint64_t graph = 0;
};

/// Declared affine maps z = Σₖ aₖ Wₖ + b, `width` of them side by side: "units" in the sense of the
/// Riemannian metrics. Can be used wherever the sequence z [T, B, width] of their sums can.
template <class T> struct Units {
    int id = -1;
    Seq<T> z;
    operator Seq<T>() const { return z; }
};

namespace graph {

/// A sequence one step back: at step t its value at t-1, at the first step the carried state.
template <class T> struct Previous { Seq<T> of; };

/// The same of a sequence that is known before the time loop.
template <class T> struct Shifted { Seq<T> of; };

/// A weight [n, m] used as a matrix [m, n].
template <class T> struct Transposed { Weight<T> of; };

/// A sequence at the current step, computed within the time loop.
template <class T> struct Current { Seq<T> of; };

}  // namespace graph

/// A dropout mask [groups, B, width], drawn once per training pass: 0 or 1/keep.
struct Mask {
    int id = -1;
};

/// The two quantities that flow backward.
struct Gradient {};  ///< ∂l/∂x: local derivatives and matrices enter unchanged
struct Modulus {};   ///< Φ: local derivatives and matrices enter squared (Ollivier's backpropagated metric)

}}  // namespace isogloss
