/// @file node/mogrifier.hpp  Rounds in which the input and the state of a recurrent cell gate one another.
#pragma once

#include <isogloss/kernel/gates.hpp>
#include <isogloss/node/dropout.hpp>
#include <optional>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Before a cell reads x_t and h_{t-1} they scale each other in turn, in rounds i = 1 … r:
///
///     x^i = 2 σ(h^{i-1} Q_i) ∘ x^{i-2}        i odd        x^{-1} = x_t
///     h^i = 2 σ(x^{i-1} R_i) ∘ h^{i-2}        i even       h^0 = h_{t-1}
///
/// The cell reads the x and h of the highest index wherever it multiplies them by a matrix.
///
/// Shapes   Q_i [n, m];  R_i [m, n];  at a rank k > 0 each is a product, of Qi_left [n, k] and Qi_right [k, m], and
///          of Ri_left [m, k] and Ri_right [k, n]
/// Options of the cell, which declares it in setup
///          rounds  r, 0 to 8, default 0
///          rank    k ≥ 0; default 0: full
///          init    start values of all of them
///          keep    h is masked where a matrix multiplies it, as if h_{t-1} were masked before the rounds; under the
///                  scheme gal each matrix masks what it multiplies, x too, by a mask of its own
/// Source   Melis, Kočiský, Blunsom 2020, "Mogrifier LSTM", eqs. (1)-(2); matrices act from the right here.
template <class T> struct Mogrifier {
    struct Round {
        std::optional<Units<T>> low = {};  // products with the left factor
        Units<T> gate = {};
        Seq<T> before = {}, after = {};  // x^{i-2} and x^i, or the same of h
        Index back = 0;                  // 1 where `before` is h_{t-1}
    };
    std::vector<Round> rounds;
    Seq<T> x, h;     // of the highest index
    Index back = 1;  // 1 where that is h_{t-1}, else 0

    /// Adds x W or h U, of the rounds so far, to units.
    UnitsBuilder<T>& input(Setup<T>& s, UnitsBuilder<T>& sum, const std::string& w, Mask mask) const {
        return rounds.empty() ? sum.from(w, x, mask) : sum.from(w, s.current(x), mask);
    }
    UnitsBuilder<T>& state(Setup<T>& s, UnitsBuilder<T>& sum, const std::string& w, Mask mask) const {
        return back ? sum.from(w, s.previous(h), mask) : sum.from(w, s.current(h), mask);
    }

    template <class Options> void setup(Setup<T>& s, const Options& options,
                                        const RecurrentDropout<T>& dropout, Seq<T> in, Seq<T> recurrent) {
        s.require("rounds", options.rounds, 0, 8);
        s.require("rank", options.rank, 0);
        x = in, h = recurrent;
        for (Index i = 1; i <= options.rounds; ++i) {
            const bool odd = i % 2 == 1;
            const std::string name = message(odd ? "Q" : "R", i);
            Seq<T>& scaled = odd ? x : h;
            Round r{.before = scaled, .back = odd ? 0 : back};
            Mask mask = odd ? dropout.state : Mask{};
            if (options.scheme == DropoutScheme::gal)
                mask = s.mask(name + "_mask", (odd ? h : x).width, options.keep);
            const auto first = [&](const std::string& units, Index width, const std::string& w) {
                auto sum = s.units(message(units, i), width).init(options.init);
                return odd ? state(s, sum, w, mask) : input(s, sum, w, mask);
            };
            if (options.rank > 0) {
                r.low = first("low", options.rank, name + "_left");
                r.gate = s.units(message("gate", i), scaled.width)
                             .init(options.init)
                             .from(name + "_right", s.current(*r.low));
            } else {
                r.gate = first("gate", scaled.width, name);
            }
            scaled = r.after = s.sequence(message(odd ? "x" : "h", i), scaled.width);
            if (!odd) back = 0;
            rounds.push_back(r);
        }
    }
    /// Before the loop over steps.
    void forward(const Forward<T>& p) const {
        for (const auto& r : rounds) {
            if (r.low) p.affine(*r.low);
            p.affine(r.gate);
        }
    }
    /// At step t, before the cell.
    void forward(const Forward<T>& p, Index t) const {
        for (const auto& r : rounds) {
            if (r.low) p.affine(*r.low, t);
            p.affine(r.gate, t);
            kernel::mogrify_forward(p.batch(), r.after.width, at(p, r, t));
        }
    }
    /// Before the loop over steps back, outside over_batch: the adjoint of the cell's input is cleared once.
    template <class Quantity> void begin_backward(const Backward<T, Quantity>& p) const {
        if (!rounds.empty()) p.adjoint_data(rounds[0].before);
    }
    /// At step t, after the cell and its units have added to the adjoints of x and h.
    template <class Quantity> void backward(const Backward<T, Quantity>& p, Index t) const {
        for (std::size_t i = rounds.size(); i-- > 0;) {
            const Round& r = rounds[i];
            kernel::mogrify_backward<!Backward<T, Quantity>::is_gradient, T>(
                p.batch(), r.after.width, at(p, r, t),
                {p.adjoint_data(r.after, t), p.adjoint_data(r.gate, t),
                 p.adjoint_data(r.before, t - r.back)});
            p.affine_backward(r.gate, t);
            if (r.low) p.affine_backward(*r.low, t);
        }
    }
    /// After the loop.
    template <class Quantity> void backward(const Backward<T, Quantity>& p) const {
        for (const auto& r : rounds) {
            p.affine_backward(r.gate);
            if (r.low) p.affine_backward(*r.low);
        }
    }

private:
    static kernel::MogrifyRows<T> at(const Pass<T>& p, const Round& r, Index t) {
        return {p.data(r.gate, t), p.data(r.before, t - r.back), p.data(r.after, t)};
    }
};

}}  // namespace isogloss
