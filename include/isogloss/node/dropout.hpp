/// @file node/dropout.hpp  Dropout between nodes, and the dropout schemes of recurrent cells.
#pragma once

#include <isogloss/graph/node.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// y_t = m_t ∘ x_t with m = Bernoulli(keep) / keep; the identity in evaluation.
///
/// Shapes   x, y [T, B, n]
/// Options  keep         probability of keeping an entry, 2⁻³² to 1
///          variational  true: one mask [B, n] per training pass, the same at all steps; false (default): an
///                       independent mask at every step
template <class T> struct Dropout {
    struct Options {
        double keep = 1;
        bool variational = false;
    };
    Options options;
    Seq<T> x, y;
    Mask mask;              // the same at all steps
    T* steps = nullptr;     // [T, B, n]: independent masks
    bool dropping = false;  // in the last pass

    Seq<T> setup(Setup<T>& s, Seq<T> in) {
        x = in;
        y = s.sequence("y", x.width);
        s.require("keep", options.keep, 0x1p-32, 1);
        if (options.variational) mask = s.mask("mask", x.width, options.keep);
        else if (options.keep < 1 && s.gradients())
            steps = s.scratch({s.capacity().time, s.capacity().batch, x.width});
        return y;
    }
    void forward(Forward<T>& p) {
        dropping = p.training() && options.keep < 1;
        if (dropping && steps) {
            const Random random = p.random();
            for (Index r = 0; r < p.rows(); ++r)
                kernel::draw_mask(random, p.row_in_batch(r) * x.width, x.width, options.keep,
                                  steps + r * x.width);
        }
        if (const T* m = dropping_by(p))
            kernel::multiply_rows(p.rows(), steps ? p.rows() : p.batch(), x.width, p.data(x), m, p.data(y));
        else noalias(p.at(y)) = p.at(x);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        if (const T* m = dropping_by(p))
            kernel::add_multiplied_rows<!Backward<T, Quantity>::is_gradient>(
                p.rows(), steps ? p.rows() : p.batch(), x.width, p.adjoint_data(y), m, p.adjoint_data(x));
        else noalias(p.adjoint(x)) += p.adjoint(y);
    }

private:
    // The mask of the last forward pass, of all its rows or [B, n]; null if it dropped nothing.
    const T* dropping_by(const Pass<T>& p) const {
        if (!dropping) return nullptr;
        return steps ? steps : p.data(mask);
    }
};

/// Where a recurrent cell applies its masks. Each is drawn once per training pass for every batch column
/// and shared by all steps; cell states and additive carries are never masked.
enum class DropoutScheme {
    tied,  ///< one mask m on the state: m ∘ h, with the same m, enters the recurrence and the next layer
           ///< or head                                     [Inan, Khosravi, Socher 2017, section 5]
    gal,   ///< separate masks for every gate, one set on the input and one on the recurrent state; the
           ///< output is not masked (the layer above masks its input)         [Gal 2015, untied weights]
    recurrent,  ///< one mask on the recurrent state; input and output are not masked: add Dropout with
                ///< `variational` before and after the cell                             [Zilly et al. 2016]
};

/// The masks of one cell under a scheme: declared in setup, used by its units, applied to its output.
///
///     d.setup(s, options.keep, options.scheme, x.width, n, gates);
///     z = s.units("z", gates * n).from("W", x, d.input).from("U", s.previous(h), d.state).bias("b");
///     return d.output(s, h);          // h itself, or m ∘ h under the tied scheme
///     ...
///     d.forward(p);                   // after the time loop
///     d.backward(p);                  // before it
template <class T> struct RecurrentDropout {
    Mask input, state;
    Seq<T> h, y;
    bool masks_output = false;

    /// Declares the masks; with keep = 1 none of them is active.
    void setup(Setup<T>& s, double keep, DropoutScheme scheme, Index input_width, Index units, Index gates) {
        const bool gal = scheme == DropoutScheme::gal;
        state = s.mask("mask", units, keep, gal ? gates : 1);
        if (gal) input = s.mask("input_mask", input_width, keep, gates);
        masks_output = scheme == DropoutScheme::tied && keep < 1;
    }
    /// The output of the cell.
    Seq<T> output(Setup<T>& s, Seq<T> state_sequence) {
        h = state_sequence;
        s.open(h);
        y = masks_output ? s.sequence("y", h.width) : h;
        return y;
    }
    void forward(Forward<T>& p) const {
        if (!masks_output) return;
        if (const T* m = p.data(state))
            kernel::multiply_rows(p.rows(), p.batch(), h.width, p.data(h), m, p.data(y));
        else noalias(p.at(y)) = p.at(h);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) const {
        if (!masks_output) return;
        if (const T* m = p.data(state))
            kernel::add_multiplied_rows<!Backward<T, Quantity>::is_gradient>(
                p.rows(), p.batch(), h.width, p.adjoint_data(y), m, p.adjoint_data(h));
        else noalias(p.adjoint(h)) += p.adjoint(y);
    }
};

}}  // namespace isogloss
