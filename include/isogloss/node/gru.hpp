/// @file node/gru.hpp  The gated recurrent unit.
#pragma once

#include <isogloss/kernel/gates.hpp>
#include <isogloss/node/mogrifier.hpp>
#include <optional>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Gated recurrent unit.
///
///     (z, r) = σ(x_t W + h_{t-1} U + b)
///     q = tanh(x_t Wq + (r ∘ h_{t-1}) Uq + bq)
///     h_t = z ∘ h_{t-1} + (1 - z) ∘ q            z = 1 keeps the state, z = 0 replaces it
///
/// With reset_after, r multiplies the product, which has a bias of its own, as in PyTorch and cuDNN:
///
///     q = tanh(x_t Wq + bq + r ∘ (h_{t-1} Uq + cq))
///
/// With rounds > 0 all matrices multiply x and h_{t-1} after they have gated one another, see Mogrifier. The leak
/// z ∘ h_{t-1} takes the state itself, as c of Lstm is not gated, so that |h| stays below 1.
///
/// Shapes   x [T, B, m];  W [m, 2 n];  U [n, 2 n];  b [1, 2 n], gates in the order z, r;
///          Wq [m, n];  Uq [n, n];  bq and cq [1, n];  h [T, B, n]; n = units
/// Options  units        n ≥ 1
///          keep         probability of keeping a unit, 2⁻³² to 1, default 1; masks according to `scheme`, applied
///                       where h_{t-1} or r ∘ h_{t-1} is multiplied by a matrix; the leak z ∘ h_{t-1} is not masked
///          scheme       DropoutScheme, default tied
///          init         start values of the matrices, default uniform(0.1)
///          update_bias  start value of the z part of b, default 0; above 0, units begin by keeping their state for
///                       longer. The rest of b, bq and cq start at 0
///          reset_after  default false
///          rounds       of a Mogrifier, 0 to 8, default 0
///          rank         of its matrices, ≥ 0; default 0: full
/// Source   Cho et al. 2014; other texts swap z and 1 - z. reset_after: Appleyard, Kocisky, Blunsom 2016, "Optimizing
///          performance of recurrent neural networks on GPUs". The rounds, published for an LSTM, are transferred.
template <class T> struct Gru {
    struct Options {
        Index units = 0;
        double keep = 1;
        DropoutScheme scheme = DropoutScheme::tied;
        Init init = uniform(0.1);
        double update_bias = 0;
        bool reset_after = false;
        Index rounds = 0;
        Index rank = 0;
    };
    Options options;
    RecurrentDropout<T> dropout;
    Mogrifier<T> mogrifier;
    Mask candidate_input, candidate_state;
    Units<T> gates, candidate;
    std::optional<Units<T>> recurrent;  // h_{t-1} Uq + cq, with reset_after
    Seq<T> h, reset;                    // r ∘ h_{t-1}, or r ∘ recurrent

    Seq<T> setup(Setup<T>& s, Seq<T> x) {
        s.require("units", options.units, 1);
        const Index n = options.units;
        dropout.setup(s, options.keep, options.scheme, x.width, n, 2);
        if (options.scheme == DropoutScheme::gal) {
            candidate_input = s.mask("candidate_input_mask", x.width, options.keep);
            candidate_state = s.mask("candidate_mask", n, options.keep);
        } else {
            candidate_state = dropout.state;
        }
        h = s.recurrent("h", n);
        reset = s.sequence("reset", n);
        mogrifier.setup(s, options, dropout, x, h);
        auto both = s.units("gates", 2 * n).init(options.init);
        mogrifier.input(s, both, "W", dropout.input);
        mogrifier.state(s, both, "U", dropout.state);
        gates = both.bias("b", per_block({options.update_bias, 0}));
        auto sum = s.units("candidate", n).init(options.init);
        mogrifier.input(s, sum, "Wq", candidate_input);
        if (options.reset_after) {
            auto product = s.units("recurrent", n).init(options.init);
            recurrent = mogrifier.state(s, product, "Uq", candidate_state).bias("cq");
        } else {
            sum.from("Uq", s.current(reset), candidate_state);
            s.open(reset);
        }
        candidate = sum.bias("bq");
        return dropout.output(s, h);
    }
    void forward(Forward<T>& p) {
        p.affine(gates);
        p.affine(candidate);
        if (recurrent) p.affine(*recurrent);
        mogrifier.forward(p);
        const Index n = h.width;
        p.over_batch([&](const Forward<T>& part) {
            for (const Index t : part.steps()) {
                mogrifier.forward(part, t);
                part.affine(gates, t);
                if (recurrent) part.affine(*recurrent, t);
                kernel::gru_gates_forward(part.batch(), n, at(part, t, true));
                if (recurrent) kernel::add(part.batch() * n, part.data(reset, t), part.data(candidate, t));
                part.affine(candidate, t);
                kernel::gru_state_forward(part.batch(), n, at(part, t));
            }
        });
        dropout.forward(p);
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        constexpr bool squared = !Backward<T, Quantity>::is_gradient;
        dropout.backward(p);
        const Index n = h.width;
        p.adjoint_data(
            candidate);  // cleared before parts write to it, which with reset_after no step of it does
        mogrifier.begin_backward(p);
        p.over_batch([&](const Backward<T, Quantity>& part) {
            for (const Index t : part.steps_back()) {
                T* const q = part.adjoint_data(candidate, t);
                // With reset_after the reset product is a term of the candidate's sum.
                kernel::GruAdjoints<T> adjoints{part.adjoint_data(h, t),
                                                recurrent ? q : part.adjoint_data(reset, t),
                                                part.adjoint_data(gates, t), q, part.adjoint_data(h, t - 1)};
                kernel::gru_state_backward<squared>(part.batch(), n, at(part, t), adjoints);
                part.affine_backward(candidate, t);
                adjoints.before = recurrent ? part.adjoint_data(*recurrent, t)
                                            : part.adjoint_data(mogrifier.h, t - mogrifier.back);
                kernel::gru_gates_backward<squared>(part.batch(), n, at(part, t, true), adjoints);
                part.affine_backward(gates, t);
                if (recurrent) part.affine_backward(*recurrent, t);
                mogrifier.backward(part, t);
            }
        });
        p.affine_backward(gates);
        p.affine_backward(candidate);
        if (recurrent) p.affine_backward(*recurrent);
        mogrifier.backward(p);
    }

private:
    // `gated`: with what r multiplies, which with reset_after or rounds is not h_{t-1}.
    kernel::GruRows<T> at(const Pass<T>& p, Index t, bool gated = false) const {
        const T* before = !gated      ? p.data(h, t - 1)
                          : recurrent ? p.data(*recurrent, t)
                                      : p.data(mogrifier.h, t - mogrifier.back);
        return {p.data(gates, t), before, p.data(reset, t), p.data(candidate, t), p.data(h, t)};
    }
};

}}  // namespace isogloss
