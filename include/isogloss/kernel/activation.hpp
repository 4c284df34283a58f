/// @file kernel/activation.hpp  Activation functions chosen at run time, with slopes as functions of the activity.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/kernel/gates.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// s(V) of a unit.
enum class Activation {
    tanh,      ///< slope 1 - a²
    logistic,  ///< 1 / (1 + exp(-V)), slope a (1 - a)
    relu,      ///< max(0, V), slope 1 where a > 0, else 0
    identity,  ///< slope 1
};

namespace kernel {

/// s and its slope by the formulas of the enumeration, in double.
namespace plain {

inline double activation(Activation s, double V) {
    return s == Activation::tanh       ? std::tanh(V)
           : s == Activation::logistic ? 1 / (1 + std::exp(-V))
           : s == Activation::relu     ? std::max(V, 0.0)
                                       : V;
}
inline double activation_slope(Activation s, double V) {
    const double a = activation(s, V);
    return s == Activation::tanh       ? 1 - a * a
           : s == Activation::logistic ? a * (1 - a)
           : s == Activation::relu     ? (V > 0 ? 1 : 0)
                                       : 1;
}

}  // namespace plain

/// a = s(V), n numbers.
template <class T, class A = Architecture> void activate(Activation s, Index n, const T* V, T* a) {
    switch (s) {
        case Activation::tanh:
            return tanh_forward<T, A>(n, V, a);
        case Activation::logistic:
            return sweep<T, A>(0, n, [&](auto at) { at.store(a, sigmoid(at.load(V))); });
        case Activation::relu:  // NaN stays
            for (Index i = 0; i < n; ++i) a[i] = V[i] < 0 ? T(0) : V[i];
            return;
        case Activation::identity:
            std::copy_n(V, n, a);
    }
}

/// s'(V) as a function of a = s(V).
template <class T> T activation_slope(Activation s, T a) {
    switch (s) {
        case Activation::tanh:
            return 1 - a * a;
        case Activation::logistic:
            return a * (1 - a);
        case Activation::relu:
            return a > 0 ? T(1) : T(0);
        default:
            return 1;
    }
}

/// dV = s' da, or s'² da when squared.
template <bool squared, class T>
void activation_backward(Activation s, Index n, const T* a, const T* da, T* dV) {
    if (s == Activation::tanh) return tanh_backward<squared>(n, a, da, dV);
    for (Index i = 0; i < n; ++i) {
        const T slope = activation_slope(s, a[i]);
        dV[i] = (squared ? slope * slope : slope) * da[i];
    }
}

}  // namespace kernel
}}  // namespace isogloss
