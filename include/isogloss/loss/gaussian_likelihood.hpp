/// @file loss/gaussian_likelihood.hpp  The likelihood of real numbers under a Gaussian whose scale is learned.
#pragma once

#include <isogloss/elementary.hpp>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/loss/squared_error.hpp>
#include <numbers>
#include <optional>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// l = Σ_t Σ_j ½ log 2π + s_tj + ½ (y_tj - h_tj)² exp(-2 s_tj), in nats, over all positions t with a target: the
/// negative log-density of independent Gaussians of mean h and standard deviation exp(s). It may be negative.
///
///     g.add<GaussianLikelihood>("loss", {}, h, y)         s_j is a weight "loss.log_scale", one number per dimension
///     g.add<GaussianLikelihood>("loss", {}, h, s, y)      s is predicted, as by a Linear of its own
///
/// Shapes    h, s, y [T, B, n] real numbers;  where, if given last, [T, B] tokens: a position that is not_predicted has
///           no target;  log_scale [1, n]
/// Options   scale  start value of exp(s) where it is a weight, > 0, default 1
/// Gradient  ∂l/∂h = (h - y) exp(-2 s),  ∂l/∂s = 1 - (h - y)² exp(-2 s). The target y is data: none flows into it
/// Modulus   Φ(h) = exp(-2 s),  Φ(s) = 2: their Fisher information; mean and scale do not mix in it
/// Errors    widths differ; scale out of range
/// The density has no upper bound: where h can be exact, s falls for ever.
/// Source    Nix, Weigend 1994, "Estimating the mean and variance of the target probability distribution".
///           PyTorch's GaussianNLLLoss(full=True) is l / (N n) with N positions, given the variance exp(2 s).
template <class T> struct GaussianLikelihood {
    struct Options {
        double scale = 1;
    };
    Options options;
    Seq<T> h, s;
    std::optional<Units<T>> own;  // s, if it is a weight
    detail::RealTarget<T> target;

    Loss<T> setup(Setup<T>& g, Seq<T> mean, Seq<T> y, Tokens where = {}) {
        g.require("scale", options.scale, 1e-100, 1e100);
        own = g.units("s", mean.width).bias("log_scale", constant(kernel::elementary::log(options.scale)));
        return setup(g, mean, own->z, y, where);
    }
    Loss<T> setup(Setup<T>& g, Seq<T> mean, Seq<T> log_scale, Seq<T> y, Tokens where = {}) {
        h = mean, s = log_scale;
        return target.setup(g, {h, s}, y, where);
    }
    void forward(Forward<T>& p) {
        if (own) p.affine(*own);
        const T *mean = p.data(h), *scale = p.data(s), *y = p.data(target.y);
        target.forward(p, [=](Index k) {
            const double d = static_cast<double>(mean[k]) - static_cast<double>(y[k]),
                         log_scale = static_cast<double>(scale[k]), e = d * kernel::exp_lanes(-log_scale);
            return kernel::elementary::log(2 * std::numbers::pi) / 2 + log_scale + e * e / 2;
        });
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        constexpr bool gradient = Backward<T, Quantity>::is_gradient;
        const T *mean = p.data(h), *scale = p.data(s), *y = p.data(target.y);
        const T upstream = static_cast<T>(p.upstream(target.l)), phi = std::abs(upstream);
        T *to_mean = p.adjoint_data(h), *to_scale = p.adjoint_data(s);
        target.each(p, [=](Index k, Index) {
            const T inverse = kernel::exp_lanes(-scale[k]), e = (mean[k] - y[k]) * inverse;
            to_mean[k] += gradient ? upstream * e * inverse : phi * inverse * inverse;
            to_scale[k] += gradient ? upstream * (1 - e * e) : 2 * phi;
        });
        if (own) p.affine_backward(*own);
    }
};

}}  // namespace isogloss
