/// @file node/linear.hpp  An affine map of every position.
#pragma once

#include <isogloss/graph/node.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// y_t = x_t W + b
///
/// Shapes   x [T, B, m];  W [m, units];  b [1, units];  y [T, B, units]
/// Options  units  width of y, ≥ 1
///          bias   whether to add b, default true
///          init   start values of W, default uniform(0.1); b starts at 0
template <class T> struct Linear {
    struct Options {
        Index units = 0;
        bool bias = true;
        Init init = uniform(0.1);
    };
    Options options;
    Units<T> z;

    Seq<T> setup(Setup<T>& s, Seq<T> x) {
        s.require("units", options.units, 1);
        auto units = s.units("z", options.units).init(options.init).from("W", x);
        if (options.bias) units.bias("b");
        z = units;
        return z;
    }
    void forward(Forward<T>& p) { p.affine(z); }
    template <class Quantity> void backward(Backward<T, Quantity>& p) { p.affine_backward(z); }
};

}}  // namespace isogloss
