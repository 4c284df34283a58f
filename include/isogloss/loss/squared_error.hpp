/// @file loss/squared_error.hpp  The squared error of a sequence of real numbers.
#pragma once

#include <cmath>
#include <initializer_list>
#include <isogloss/graph/node.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace detail {
/// What losses of real numbers share: the target of a prediction, and the positions that have one.
template <class T> struct RealTarget {
    Seq<T> y;
    Tokens where;
    Loss<T> l;

    /// `predictions` are what must have the width of the target.
    Loss<T> setup(Setup<T>& s, std::initializer_list<Seq<T>> predictions, Seq<T> target, Tokens positions) {
        y = target, where = positions;
        for (const Seq<T>& h : predictions)
            if (h.width != y.width)
                s.fail("'", s.name_of(h), "' has width ", h.width, ", expected ", y.width, " of '",
                       s.name_of(y), "'");
        return l = s.loss();
    }
    /// Calls f(k, r) for the numbers k of the positions r with a target.
    template <class F> void each(const Pass<T>& p, F&& f) const {
        const Token* x = where.id < 0 ? nullptr : p.data(where);
        for (Index r = 0; r < p.rows(); ++r)
            for (Index k = r * y.width; (!x || x[r] != not_predicted) && k < (r + 1) * y.width; ++k) f(k, r);
    }
    /// Sets the loss to the sum of cost(k) over these numbers.
    template <class F> void forward(Forward<T>& p, F&& cost) const {
        double total = 0;
        Index count = 0;
        each(p, [&](Index k, Index r) {
            const double nats = cost(k);
            p.by_token(l)[r] += nats, total += nats, ++count;
        });
        p.set(l, total, count / y.width);
    }
};
}  // namespace detail

/// l = Σ_t ½ |h_t - y_t|², in nats, over all positions with a target: the negative log-density of y_t about the mean
/// h_t with unit variance, without its constant ½ n log 2π.
///
/// Shapes    h, y [T, B, n] real numbers;  where, if given, [T, B] tokens: a position that is not_predicted has no target
/// Gradient  ∂l/∂h_t = h_t - y_t. The target y is data: none flows into it
/// Modulus   Φ(h_i) = 1, the Fisher information of the mean
/// Errors    widths of h and y differ
/// PyTorch's MSELoss is 2 l / (N n), with N positions.
template <class T> struct SquaredError {
    struct Options {};
    Options options;
    Seq<T> h;
    detail::RealTarget<T> target;

    Loss<T> setup(Setup<T>& s, Seq<T> prediction, Seq<T> y, Tokens where = {}) {
        h = prediction;
        return target.setup(s, {h}, y, where);
    }
    void forward(Forward<T>& p) {
        const T *mean = p.data(h), *y = p.data(target.y);
        target.forward(p, [=](Index k) {
            const double d = static_cast<double>(mean[k]) - static_cast<double>(y[k]);
            return d * d / 2;
        });
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        const T *mean = p.data(h), *y = p.data(target.y);
        const T upstream = static_cast<T>(p.upstream(target.l));
        T* to = p.adjoint_data(h);
        target.each(p, [=](Index k, Index) {
            to[k] += Backward<T, Quantity>::is_gradient ? upstream * (mean[k] - y[k]) : std::abs(upstream);
        });
    }
};

}}  // namespace isogloss
