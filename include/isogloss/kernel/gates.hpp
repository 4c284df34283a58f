/// @file kernel/gates.hpp  Row kernels of the recurrent cells: gates and state update in one pass.
///
/// All arrays are [rows, n] or, for gates side by side, [rows, gates · n]; a record holds those of one step.
/// Backward kernels are written once for both quantities: with `squared` every local derivative enters
/// squared. An adjoint in a record …Adjoints is written or added to as documented there.
#pragma once

#include <cmath>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/threads.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// d, or d² for the modulus.
template <bool squared, class L> L chain(L d) {
    if constexpr (squared) return d * d;
    else return d;
}

/// One step of an LSTM: c = f c₋ + i g, h = o tanh c. Backward kernels read it as left by the forward kernel.
template <class T> struct LstmRows {
    T* z;             ///< [rows, 4 n] = (i, f, g, o): sums before the forward kernel, activations after it
    const T* before;  ///< c₋
    T *c, *tanh_c, *h;

    LstmRows row(Index r, Index n) const {
        return {z + r * 4 * n, before + r * n, c + r * n, tanh_c + r * n, h + r * n};
    }
};
template <class T> struct LstmAdjoints {
    const T* h;
    T* c;  ///< of c from step t+1 on entry, of c₋ on exit
    T* z;  ///< [rows, 4 n], written

    LstmAdjoints row(Index r, Index n) const { return {h + r * n, c + r * n, z + r * 4 * n}; }
};

/// One step of a GRU: reset = r ∘ h₋, q = tanh of its sum, h = z h₋ + (1 - z) q.
template <class T> struct GruRows {
    T* gates;         ///< [rows, 2 n] = (z, r): sums before gru_gates_forward, activations after it
    const T* before;  ///< h₋
    T* reset;
    T* q;  ///< sum before gru_state_forward, candidate after it
    T* h;

    GruRows row(Index r, Index n) const {
        return {gates + r * 2 * n, before + r * n, reset + r * n, q + r * n, h + r * n};
    }
};
template <class T> struct GruAdjoints {
    const T *h, *reset;
    T *gates, *q;  ///< written
    T* before;     ///< added to

    GruAdjoints row(Index r, Index n) const {
        return {h + r * n, reset + r * n, gates + r * 2 * n, q + r * n, before + r * n};
    }
};

/// One micro-step of a recurrent highway layer: s = h t + s₋ (1 - t).
template <class T> struct HighwayRows {
    T* z;             ///< [rows, 2 n] = (h, t): sums before the forward kernel, activations after it
    const T* before;  ///< s₋
    T* s;

    HighwayRows row(Index r, Index n) const { return {z + r * 2 * n, before + r * n, s + r * n}; }
};
template <class T> struct HighwayAdjoints {
    const T* s;
    T* z;       ///< [rows, 2 n], written
    T* before;  ///< added to

    HighwayAdjoints row(Index r, Index n) const { return {s + r * n, z + r * 2 * n, before + r * n}; }
};

/// One step of a quasi-recurrent layer: c = f c₋ + (1 - f) z, h = o c.
template <class T> struct QrnnRows {
    T* z;             ///< [rows, 3 n] = (z, f, o): sums before the forward kernel, activations after it
    const T* before;  ///< c₋
    T *c, *h;

    QrnnRows row(Index r, Index n) const { return {z + r * 3 * n, before + r * n, c + r * n, h + r * n}; }
};
template <class T> struct QrnnAdjoints {
    const T* h;
    T* c;  ///< of c from step t+1 on entry, of c₋ on exit
    T* z;  ///< [rows, 3 n], written

    QrnnAdjoints row(Index r, Index n) const { return {h + r * n, c + r * n, z + r * 3 * n}; }
};

/// One round of a mogrifier: y = 2 g y₋, g = σ of its sum.
template <class T> struct MogrifyRows {
    T* g;             ///< sum before the forward kernel, gate after it
    const T* before;  ///< y₋
    T* y;

    MogrifyRows row(Index r, Index n) const { return {g + r * n, before + r * n, y + r * n}; }
};
template <class T> struct MogrifyAdjoints {
    const T* y;
    T* g;       ///< written
    T* before;  ///< added to

    MogrifyAdjoints row(Index r, Index n) const { return {y + r * n, g + r * n, before + r * n}; }
};

/// The equations element by element, in double, against which the kernels below are tested.
namespace plain {

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <class T> void lstm_forward(Index n, const LstmRows<T>& a) {
    for (Index j = 0; j < n; ++j) {
        const double i = sigmoid(a.z[j]), f = sigmoid(a.z[n + j]), g = std::tanh(double(a.z[2 * n + j])),
                     o = sigmoid(a.z[3 * n + j]), c = f * a.before[j] + i * g;
        a.z[j] = T(i), a.z[n + j] = T(f), a.z[2 * n + j] = T(g), a.z[3 * n + j] = T(o);
        a.c[j] = T(c), a.tanh_c[j] = T(std::tanh(c)), a.h[j] = T(o * std::tanh(c));
    }
}
template <bool squared, class T> void lstm_backward(Index n, const LstmRows<T>& a, const LstmAdjoints<T>& d) {
    for (Index j = 0; j < n; ++j) {
        const double i = a.z[j], f = a.z[n + j], g = a.z[2 * n + j], o = a.z[3 * n + j], tanh_c = a.tanh_c[j];
        const double dc = d.c[j] + chain<squared>(o * (1 - tanh_c * tanh_c)) * d.h[j];
        d.z[j] = T(chain<squared>(g * i * (1 - i)) * dc);
        d.z[n + j] = T(chain<squared>(a.before[j] * f * (1 - f)) * dc);
        d.z[2 * n + j] = T(chain<squared>(i * (1 - g * g)) * dc);
        d.z[3 * n + j] = T(chain<squared>(tanh_c * o * (1 - o)) * d.h[j]);
        d.c[j] = T(chain<squared>(f) * dc);
    }
}

template <class T> void gru_forward(Index n, const GruRows<T>& a) {
    for (Index j = 0; j < n; ++j) {
        const double z = sigmoid(a.gates[j]), r = sigmoid(a.gates[n + j]), q = std::tanh(double(a.q[j]));
        a.gates[j] = T(z), a.gates[n + j] = T(r), a.reset[j] = T(r * a.before[j]);
        a.q[j] = T(q), a.h[j] = T(z * a.before[j] + (1 - z) * q);
    }
}
template <bool squared, class T> void gru_backward(Index n, const GruRows<T>& a, const GruAdjoints<T>& d) {
    for (Index j = 0; j < n; ++j) {
        const double z = a.gates[j], r = a.gates[n + j], q = a.q[j], before = a.before[j];
        d.gates[j] = T(chain<squared>((before - q) * z * (1 - z)) * d.h[j]);
        d.gates[n + j] = T(chain<squared>(before * r * (1 - r)) * d.reset[j]);
        d.q[j] = T(chain<squared>((1 - z) * (1 - q * q)) * d.h[j]);
        d.before[j] = T(d.before[j] + chain<squared>(z) * d.h[j] + chain<squared>(r) * d.reset[j]);
    }
}

template <class T> void highway_forward(Index n, const HighwayRows<T>& a) {
    for (Index j = 0; j < n; ++j) {
        const double h = std::tanh(double(a.z[j])), t = sigmoid(a.z[n + j]);
        a.z[j] = T(h), a.z[n + j] = T(t), a.s[j] = T(h * t + a.before[j] * (1 - t));
    }
}
template <bool squared, class T>
void highway_backward(Index n, const HighwayRows<T>& a, const HighwayAdjoints<T>& d) {
    for (Index j = 0; j < n; ++j) {
        const double h = a.z[j], t = a.z[n + j];
        d.z[j] = T(chain<squared>((1 - h * h) * t) * d.s[j]);
        d.z[n + j] = T(chain<squared>((h - a.before[j]) * t * (1 - t)) * d.s[j]);
        d.before[j] = T(d.before[j] + chain<squared>(1 - t) * d.s[j]);
    }
}

template <class T> void qrnn_forward(Index n, const QrnnRows<T>& a) {
    for (Index j = 0; j < n; ++j) {
        const double z = std::tanh(double(a.z[j])), f = sigmoid(a.z[n + j]), o = sigmoid(a.z[2 * n + j]),
                     c = f * a.before[j] + (1 - f) * z;
        a.z[j] = T(z), a.z[n + j] = T(f), a.z[2 * n + j] = T(o), a.c[j] = T(c), a.h[j] = T(o * c);
    }
}
template <bool squared, class T> void qrnn_backward(Index n, const QrnnRows<T>& a, const QrnnAdjoints<T>& d) {
    for (Index j = 0; j < n; ++j) {
        const double z = a.z[j], f = a.z[n + j], o = a.z[2 * n + j], dc = d.c[j] + chain<squared>(o) * d.h[j];
        d.z[j] = T(chain<squared>((1 - f) * (1 - z * z)) * dc);
        d.z[n + j] = T(chain<squared>((a.before[j] - z) * f * (1 - f)) * dc);
        d.z[2 * n + j] = T(chain<squared>(a.c[j] * o * (1 - o)) * d.h[j]);
        d.c[j] = T(chain<squared>(f) * dc);
    }
}

template <class T> void mogrify_forward(Index n, const MogrifyRows<T>& a) {
    for (Index j = 0; j < n; ++j) {
        const double g = sigmoid(a.g[j]);
        a.g[j] = T(g), a.y[j] = T(2 * g * a.before[j]);
    }
}
template <bool squared, class T>
void mogrify_backward(Index n, const MogrifyRows<T>& a, const MogrifyAdjoints<T>& d) {
    for (Index j = 0; j < n; ++j) {
        const double g = a.g[j];
        d.g[j] = T(chain<squared>(2 * g * (1 - g) * a.before[j]) * d.y[j]);
        d.before[j] = T(d.before[j] + chain<squared>(2 * g) * d.y[j]);
    }
}

}  // namespace plain

/// Calls f(r) for every row; threads() share the rows.
template <class F> void over_rows(Index rows, Index n, F&& f) {
    constexpr Index worth_sharing = 2000;  // numbers of one gate
    parallel(rows, 1, rows * n < worth_sharing ? 1 : rows, [&f](Index first, Index last, Index) {
        for (Index r = first; r < last; ++r) f(r);
    });
}

/// Calls f(group, a) for the lane groups of every row, a being that row of a record; threads() share the rows.
template <class T, class A, class Record, class F>
void sweep_rows(Index rows, Index n, const Record& all, F&& f) {
    over_rows(rows, n, [&](Index r) {
        const auto a = all.row(r, n);
        sweep<T, A>(0, n, [&](auto at) { f(at, a); });
    });
}
/// The same with a record of adjoints: f(group, a, d).
template <class T, class A, class Record, class Adjoints, class F>
void sweep_rows(Index rows, Index n, const Record& all, const Adjoints& adjoints, F&& f) {
    over_rows(rows, n, [&](Index r) {
        const auto a = all.row(r, n);
        const auto d = adjoints.row(r, n);
        sweep<T, A>(0, n, [&](auto at) { f(at, a, d); });
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

/// Activations, c, tanh c and h from the sums z and c₋.
template <class T, class A = Architecture> void lstm_forward(Index rows, Index n, const LstmRows<T>& all) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, [=](auto at, const auto& a) {
        const L i = sigmoid(at.load(a.z)), f = sigmoid(at.load(a.z + n)),
                g = tanh_lanes(at.load(a.z + 2 * n)), o = sigmoid(at.load(a.z + 3 * n));
        const L cell = f * at.load(a.before) + i * g, squashed = tanh_lanes(cell);
        at.store(a.z, i);
        at.store(a.z + n, f);
        at.store(a.z + 2 * n, g);
        at.store(a.z + 3 * n, o);
        at.store(a.c, cell);
        at.store(a.tanh_c, squashed);
        at.store(a.h, o * squashed);
    });
}

/// The adjoints of z and c₋ from those of h and c.
template <bool squared, class T, class A = Architecture>
void lstm_backward(Index rows, Index n, const LstmRows<T>& all, const LstmAdjoints<T>& adjoints) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, adjoints, [=](auto at, const auto& a, const auto& d) {
        const L one(T(1));
        const L i = at.load(a.z), f = at.load(a.z + n), g = at.load(a.z + 2 * n), o = at.load(a.z + 3 * n),
                squashed = at.load(a.tanh_c), out = at.load(d.h);
        const L cell = at.load(d.c) + chain<squared>(o * (one - squashed * squashed)) * out;
        at.store(d.z, chain<squared>(g * i * (one - i)) * cell);
        at.store(d.z + n, chain<squared>(at.load(a.before) * f * (one - f)) * cell);
        at.store(d.z + 2 * n, chain<squared>(i * (one - g * g)) * cell);
        at.store(d.z + 3 * n, chain<squared>(squashed * o * (one - o)) * out);
        at.store(d.c, chain<squared>(f) * cell);
    });
}

/// Activations of the gates, and r ∘ h₋, from the sums.
template <class T, class A = Architecture>
void gru_gates_forward(Index rows, Index n, const GruRows<T>& all) {
    sweep_rows<T, A>(rows, n, all, [=](auto at, const auto& a) {
        const auto r = sigmoid(at.load(a.gates + n));
        at.store(a.gates, sigmoid(at.load(a.gates)));
        at.store(a.gates + n, r);
        at.store(a.reset, r * at.load(a.before));
    });
}

/// The candidate and h from the candidate's sum and the gates.
template <class T, class A = Architecture>
void gru_state_forward(Index rows, Index n, const GruRows<T>& all) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, [=](auto at, const auto& a) {
        const L z = at.load(a.gates), q = tanh_lanes(at.load(a.q));
        at.store(a.q, q);
        at.store(a.h, z * at.load(a.before) + (L(T(1)) - z) * q);
    });
}

/// The adjoints of q and of z's sum from that of h; adds to that of h₋ its contribution through the leak.
template <bool squared, class T, class A = Architecture>
void gru_state_backward(Index rows, Index n, const GruRows<T>& all, const GruAdjoints<T>& adjoints) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, adjoints, [=](auto at, const auto& a, const auto& d) {
        const L one(T(1));
        const L z = at.load(a.gates), q = at.load(a.q), out = at.load(d.h);
        at.store(d.gates, chain<squared>((at.load(a.before) - q) * z * (one - z)) * out);
        at.store(d.q, chain<squared>((one - z) * (one - q * q)) * out);
        at.store(d.before, at.load(d.before) + chain<squared>(z) * out);
    });
}

/// The adjoint of r's sum from that of reset; adds to that of h₋ its contribution through the reset product.
template <bool squared, class T, class A = Architecture>
void gru_gates_backward(Index rows, Index n, const GruRows<T>& all, const GruAdjoints<T>& adjoints) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, adjoints, [=](auto at, const auto& a, const auto& d) {
        const L r = at.load(a.gates + n), out = at.load(d.reset);
        at.store(d.gates + n, chain<squared>(at.load(a.before) * r * (L(T(1)) - r)) * out);
        at.store(d.before, at.load(d.before) + chain<squared>(r) * out);
    });
}

/// Activations and s from the sums.
template <class T, class A = Architecture>
void highway_forward(Index rows, Index n, const HighwayRows<T>& all) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, [=](auto at, const auto& a) {
        const L h = tanh_lanes(at.load(a.z)), t = sigmoid(at.load(a.z + n));
        at.store(a.z, h);
        at.store(a.z + n, t);
        at.store(a.s, h * t + at.load(a.before) * (L(T(1)) - t));
    });
}

/// The adjoint of z from that of s; adds to that of s₋ its contribution through the carry.
template <bool squared, class T, class A = Architecture>
void highway_backward(Index rows, Index n, const HighwayRows<T>& all, const HighwayAdjoints<T>& adjoints) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, adjoints, [=](auto at, const auto& a, const auto& d) {
        const L one(T(1));
        const L h = at.load(a.z), t = at.load(a.z + n), out = at.load(d.s);
        at.store(d.z, chain<squared>((one - h * h) * t) * out);
        at.store(d.z + n, chain<squared>((h - at.load(a.before)) * t * (one - t)) * out);
        at.store(d.before, at.load(d.before) + chain<squared>(one - t) * out);
    });
}

/// Activations, c and h from the sums z and c₋.
template <class T, class A = Architecture> void qrnn_forward(Index rows, Index n, const QrnnRows<T>& all) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, [=](auto at, const auto& a) {
        const L z = tanh_lanes(at.load(a.z)), f = sigmoid(at.load(a.z + n)),
                o = sigmoid(at.load(a.z + 2 * n));
        const L cell = f * at.load(a.before) + (L(T(1)) - f) * z;
        at.store(a.z, z);
        at.store(a.z + n, f);
        at.store(a.z + 2 * n, o);
        at.store(a.c, cell);
        at.store(a.h, o * cell);
    });
}

/// The adjoints of z and c₋ from those of h and c.
template <bool squared, class T, class A = Architecture>
void qrnn_backward(Index rows, Index n, const QrnnRows<T>& all, const QrnnAdjoints<T>& adjoints) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, adjoints, [=](auto at, const auto& a, const auto& d) {
        const L one(T(1));
        const L z = at.load(a.z), f = at.load(a.z + n), o = at.load(a.z + 2 * n), out = at.load(d.h);
        const L cell = at.load(d.c) + chain<squared>(o) * out;
        at.store(d.z, chain<squared>((one - f) * (one - z * z)) * cell);
        at.store(d.z + n, chain<squared>((at.load(a.before) - z) * f * (one - f)) * cell);
        at.store(d.z + 2 * n, chain<squared>(at.load(a.c) * o * (one - o)) * out);
        at.store(d.c, chain<squared>(f) * cell);
    });
}

/// The gate, and y, from the sum.
template <class T, class A = Architecture>
void mogrify_forward(Index rows, Index n, const MogrifyRows<T>& all) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, [=](auto at, const auto& a) {
        const L g = sigmoid(at.load(a.g));
        at.store(a.g, g);
        at.store(a.y, L(T(2)) * g * at.load(a.before));
    });
}

/// The adjoint of the gate's sum from that of y; adds to that of y₋.
template <bool squared, class T, class A = Architecture>
void mogrify_backward(Index rows, Index n, const MogrifyRows<T>& all, const MogrifyAdjoints<T>& adjoints) {
    using L = Lanes<T, A>;
    sweep_rows<T, A>(rows, n, all, adjoints, [=](auto at, const auto& a, const auto& d) {
        const L one(T(1));
        const L g = at.load(a.g), twice = g + g, out = at.load(d.y);
        at.store(d.g, chain<squared>(twice * (one - g) * at.load(a.before)) * out);
        at.store(d.before, at.load(d.before) + chain<squared>(twice) * out);
    });
}

}}}  // namespace isogloss::kernel
