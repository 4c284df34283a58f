/// @file kernel/gates.hpp  Row kernels of the recurrent cells: gates and state update in one pass.
///
/// All arrays are [rows, n] or, for gates side by side, [rows, gates · n]. Backward kernels are written
/// once for both quantities: with `squared` every local derivative enters squared. Adjoint arrays named
/// d… are read and written in place as their comments say.
#pragma once

#include <isogloss/kernel/simd.hpp>
#include <isogloss/threads.hpp>

namespace isogloss::kernel {

template <bool squared, class L> L chain(L d) {
    if constexpr (squared) return d * d;
    else return d;
}

/// Calls a copy of f, f(first, last), for the share of the rows that each thread has.
template <class F> void over_rows(Index rows, Index n, F&& f) {
    constexpr Index worth_sharing = 2000;  // numbers of one gate
    parallel(rows, 1, rows * n < worth_sharing ? 1 : rows, [&f](Index first, Index last, Index) {
        auto own = f;
        own(first, last);
    });
}

/// h = tanh(z)
template <class T, class A = Architecture> void tanh_forward(Index n, const T* z, T* h) {
    sweep<T, A>(0, n, [&](auto at) { at.store(h, tanh_lanes(at.load(z))); });
}

/// dz = chain(1 - h²) dh
template <bool squared, class T, class A = Architecture>
void tanh_backward(Index n, const T* h, const T* dh, T* dz) {
    using L = Lanes<T, A>;
    sweep<T, A>(0, n, [&](auto at) {
        const L v = at.load(h);
        at.store(dz, chain<squared>(L(T(1)) - v * v) * at.load(dh));
    });
}

/// z [rows, 4 n] = (i, f, g, o): sums on entry, activations on exit; c = f c₋ + i g, tc = tanh c, h = o tc.
template <class T, class A = Architecture>
void lstm_forward(Index rows, Index n, T* z, const T* before, T* c, T* tc, T* h) {
    using L = Lanes<T, A>;
    over_rows(rows, n, [=](Index first, Index last) mutable {
        z += first * 4 * n, before += first * n, c += first * n, tc += first * n, h += first * n;
        for (Index r = first; r < last; ++r, z += 4 * n, before += n, c += n, tc += n, h += n)
            sweep<T, A>(0, n, [&](auto at) {
                const L i = sigmoid(at.load(z)), f = sigmoid(at.load(z + n)),
                        g = tanh_lanes(at.load(z + 2 * n)), o = sigmoid(at.load(z + 3 * n));
                const L cell = f * at.load(before) + i * g, squashed = tanh_lanes(cell);
                at.store(z, i);
                at.store(z + n, f);
                at.store(z + 2 * n, g);
                at.store(z + 3 * n, o);
                at.store(c, cell);
                at.store(tc, squashed);
                at.store(h, o * squashed);
            });
    });
}

/// dz [rows, 4 n] from dh; dc holds the adjoint of c_t that came from step t+1 and leaves as that of c_{t-1}.
template <bool squared, class T, class A = Architecture>
void lstm_backward(Index rows, Index n, const T* z, const T* before, const T* tc, const T* dh, T* dc, T* dz) {
    using L = Lanes<T, A>;
    const L one(T(1));
    over_rows(rows, n, [=](Index first, Index last) mutable {
        z += first * 4 * n, before += first * n, tc += first * n, dh += first * n, dc += first * n,
            dz += first * 4 * n;
        for (Index r = first; r < last; ++r, z += 4 * n, before += n, tc += n, dh += n, dc += n, dz += 4 * n)
            sweep<T, A>(0, n, [&](auto at) {
                const L i = at.load(z), f = at.load(z + n), g = at.load(z + 2 * n), o = at.load(z + 3 * n),
                        squashed = at.load(tc), out = at.load(dh);
                const L cell = at.load(dc) + chain<squared>(o * (one - squashed * squashed)) * out;
                at.store(dz, chain<squared>(g * i * (one - i)) * cell);
                at.store(dz + n, chain<squared>(at.load(before) * f * (one - f)) * cell);
                at.store(dz + 2 * n, chain<squared>(i * (one - g * g)) * cell);
                at.store(dz + 3 * n, chain<squared>(squashed * o * (one - o)) * out);
                at.store(dc, chain<squared>(f) * cell);
            });
    });
}

/// gates [rows, 2 n] = (z, r): sums on entry, activations on exit; reset = r ∘ h₋.
template <class T, class A = Architecture>
void gru_gates_forward(Index rows, Index n, T* gates, const T* before, T* reset) {
    over_rows(rows, n, [=](Index first, Index last) mutable {
        gates += first * 2 * n, before += first * n, reset += first * n;
        for (Index r = first; r < last; ++r, gates += 2 * n, before += n, reset += n)
            sweep<T, A>(0, n, [&](auto at) {
                const auto keep = sigmoid(at.load(gates + n));
                at.store(gates, sigmoid(at.load(gates)));
                at.store(gates + n, keep);
                at.store(reset, keep * at.load(before));
            });
    });
}

/// q [rows, n]: sum on entry, candidate tanh(q) on exit; h = z h₋ + (1 - z) q.
template <class T, class A = Architecture>
void gru_state_forward(Index rows, Index n, const T* gates, T* q, const T* before, T* h) {
    using L = Lanes<T, A>;
    over_rows(rows, n, [=](Index first, Index last) mutable {
        gates += first * 2 * n, q += first * n, before += first * n, h += first * n;
        for (Index r = first; r < last; ++r, gates += 2 * n, q += n, before += n, h += n)
            sweep<T, A>(0, n, [&](auto at) {
                const L z = at.load(gates), candidate = tanh_lanes(at.load(q));
                at.store(q, candidate);
                at.store(h, z * at.load(before) + (L(T(1)) - z) * candidate);
            });
    });
}

/// From dh: dq and the z half of dgates; adds to dbefore what h₋ gets through the leak.
template <bool squared, class T, class A = Architecture>
void gru_state_backward(Index rows, Index n, const T* gates, const T* q, const T* before, const T* dh,
                        T* dgates, T* dq, T* dbefore) {
    using L = Lanes<T, A>;
    const L one(T(1));
    over_rows(rows, n, [=](Index first, Index last) mutable {
        gates += first * 2 * n, q += first * n, before += first * n, dh += first * n, dgates += first * 2 * n,
            dq += first * n, dbefore += first * n;
        for (Index r = first; r < last;
             ++r, gates += 2 * n, q += n, before += n, dh += n, dgates += 2 * n, dq += n, dbefore += n)
            sweep<T, A>(0, n, [&](auto at) {
                const L z = at.load(gates), candidate = at.load(q), out = at.load(dh);
                at.store(dgates, chain<squared>((at.load(before) - candidate) * z * (one - z)) * out);
                at.store(dq, chain<squared>((one - z) * (one - candidate * candidate)) * out);
                at.store(dbefore, at.load(dbefore) + chain<squared>(z) * out);
            });
    });
}

/// From dreset: the r half of dgates; adds to dbefore what h₋ gets through the reset product.
template <bool squared, class T, class A = Architecture>
void gru_gates_backward(Index rows, Index n, const T* gates, const T* before, const T* dreset, T* dgates,
                        T* dbefore) {
    using L = Lanes<T, A>;
    over_rows(rows, n, [=](Index first, Index last) mutable {
        gates += first * 2 * n, before += first * n, dreset += first * n, dgates += first * 2 * n,
            dbefore += first * n;
        for (Index r = first; r < last;
             ++r, gates += 2 * n, before += n, dreset += n, dgates += 2 * n, dbefore += n)
            sweep<T, A>(0, n, [&](auto at) {
                const L keep = at.load(gates + n), d = at.load(dreset);
                at.store(dgates + n, chain<squared>(at.load(before) * keep * (L(T(1)) - keep)) * d);
                at.store(dbefore, at.load(dbefore) + chain<squared>(keep) * d);
            });
    });
}

/// z [rows, 2 n] = (h, t): sums on entry, activations on exit; s = h t + s₋ (1 - t).
template <class T, class A = Architecture>
void highway_forward(Index rows, Index n, T* z, const T* before, T* s) {
    using L = Lanes<T, A>;
    over_rows(rows, n, [=](Index first, Index last) mutable {
        z += first * 2 * n, before += first * n, s += first * n;
        for (Index r = first; r < last; ++r, z += 2 * n, before += n, s += n)
            sweep<T, A>(0, n, [&](auto at) {
                const L h = tanh_lanes(at.load(z)), gate = sigmoid(at.load(z + n));
                at.store(z, h);
                at.store(z + n, gate);
                at.store(s, h * gate + at.load(before) * (L(T(1)) - gate));
            });
    });
}

/// dz from ds; adds to dbefore what s₋ gets through the carry.
template <bool squared, class T, class A = Architecture>
void highway_backward(Index rows, Index n, const T* z, const T* before, const T* ds, T* dz, T* dbefore) {
    using L = Lanes<T, A>;
    const L one(T(1));
    over_rows(rows, n, [=](Index first, Index last) mutable {
        z += first * 2 * n, before += first * n, ds += first * n, dz += first * 2 * n, dbefore += first * n;
        for (Index r = first; r < last; ++r, z += 2 * n, before += n, ds += n, dz += 2 * n, dbefore += n)
            sweep<T, A>(0, n, [&](auto at) {
                const L h = at.load(z), gate = at.load(z + n), out = at.load(ds);
                at.store(dz, chain<squared>((one - h * h) * gate) * out);
                at.store(dz + n, chain<squared>((h - at.load(before)) * gate * (one - gate)) * out);
                at.store(dbefore, at.load(dbefore) + chain<squared>(one - gate) * out);
            });
    });
}

}  // namespace isogloss::kernel
