/// @file update/muon.hpp  Momentum, orthogonalised.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/linalg.hpp>
#include <isogloss/subnormals.hpp>
#include <isogloss/update/rule.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of Muon.
struct MuonOptions {
    double rate = 0.02;                ///< η ≥ 0
    double momentum = 0.95;            ///< μ in [0, 1), rounded to T too
    double clip = 0;                   ///< maximum norm of the whole group's gradient, ≥ 0; 0: no clipping
    double weight_decay = 0;           ///< λ ≥ 0, decoupled: w ← w - η λ w
    Index gates = 1;                   ///< k ≥ 1: a matrix is k of equal width side by side, as in Lstm (4)
    Divisor divisor = Divisor::batch;  ///< what raw sums are divided by before clipping
};

/// Momentum whose singular values are brought near 1, for the matrices between layers: every direction of a step is
/// about as long as any other, whatever the size of the gradient.
///
///     m ← μ m + g;   X = (g + μ m) / ‖g + μ m‖;   five times  X ← a X + (b A + c A²) X,  A = X Xᵀ
///     W ← W - η ( √max(1, n / r) X + λ W )            W [r, n],  a, b, c = 3.4445, -4.7750, 2.0315
///
/// with g divided and clipped as in Sgd. Singular values of X end between 0.68 and 1.21, but for those that were below
/// 0.002 at the beginning. Each of k gates has an X of its own, n its width. Only matrices: biases, tables and a softmax
/// head belong into another group, which another update trains, such as Adam.
///
/// Memory   two copies of the group, one of its largest matrix, and two squares of the shorter side
/// Errors   UsageError: options out of range, parameters that are no matrices, are looked up, or whose width is no
///          multiple of k, and as Rule::begin_step. NumericError, with nothing changed: as Adam
/// Source   Jordan, Jin, Boza, You, Cesista, Newhouse, Bernstein 2024, "Muon". Departures: the scale is by the width of the
///          output, n here, where W is applied from the right; all in T, where the source has bfloat16.
template <class T> class Muon : public Rule<T, MuonOptions> {
public:
    /// Throws UsageError for options out of range.
    Muon(Parameters<T> group, MuonOptions options) : Rule<T, MuonOptions>("muon", std::move(group), options) {
        require("muon", "momentum", static_cast<double>(static_cast<T>(options.momentum)), 0, Exclusive{1});
        require("muon", "gates", options.gates, 1);
        Index most = 0, side = 0;
        for (const Parameter<T>* p : group_) {
            const Index n = p->cols / options.gates;
            if (p->rows < 2 || n < 2 || n * options.gates != p->cols || p->lookups > 0)
                throw UsageError("muon: found '", p->name, "' [", p->rows, ", ", p->cols, "]",
                                 p->lookups > 0 ? ", a table that is looked up" : "",
                                 ", expected matrices of ", options.gates,
                                 " gates, each of two rows and columns or more; train it by another update");
            most = std::max(most, p->rows * n), side = std::max(side, std::min(p->rows, n));
        }
        detail::allocate_per_parameter("muon", group_, 2 * sizeof(T), [&](const Parameter<T>& p) {
            momentum_.emplace_back(p.size(), T(0));
            step_.emplace_back(p.size(), T(0));
        });
        within_memory("muon", bytes_of("muon", {most + 2 * side * side}, sizeof(T)),
                      [&] { copy_.resize(most), square_.resize(side * side), sum_.resize(side * side); });
    }

    /// One step; returns the norm of the gradient before clipping.
    double step() {
        const SubnormalsAreZero flush;
        const BlasOnOneThread blas;
        const double d = this->begin_step(), norm = direction_norm(group_, d, 0);
        const T mu = static_cast<T>(options_.momentum), eta = static_cast<T>(options_.rate),
                factor = static_cast<T>(clip_factor(norm, options_.clip) / d),
                decay = static_cast<T>(options_.weight_decay);
        double longest = 1;
        for (std::size_t k = 0; k < group_.size(); ++k) {
            Parameter<T>& p = group_[k];
            if (!p.trained) continue;
            const T *g = p.dense_gradient().data, *m = momentum_[k].data();
            for (Index i = 0; i < p.size(); ++i)
                step_[k][i] = factor * g[i] + mu * (mu * m[i] + factor * g[i]);
            const Index n = p.cols / options_.gates;
            const double scale = std::sqrt(std::max(1.0, double(n) / double(p.rows)));
            longest = std::max(longest, scale);
            for (Index first = 0; first < p.cols; first += n)
                orthogonalise({step_[k].data() + first, p.rows, n, p.cols}, static_cast<T>(scale));
        }
        const auto moved = [&](std::size_t k, Index i) {
            const T w = group_[k].value[i];
            return w - eta * (step_[k][i] + decay * w);
        };
        step_all(group_, 2 * longest * options_.rate, moved, [&](std::size_t k, Index first, Index last) {
            for (Index i = first; i < last; ++i) {
                momentum_[k][i] = mu * momentum_[k][i] + factor * group_[k].gradient[i];
                group_[k].value[i] = moved(k, i);
            }
        });
        return norm;
    }

    /// Shows its state to a visitor (see io/checkpoint.hpp): the rate, and m.
    template <class Visitor> void visit(Visitor& v) {
        Rule<T, MuonOptions>::visit(v);
        for (std::size_t k = 0; k < momentum_.size(); ++k)
            v.array(message("momentum/", group_[k].name), momentum_[k].data(), group_[k].rows,
                    group_[k].cols);
    }

private:
    // X becomes `scale` times its orthogonal factor, about; 0 stays 0.
    void orthogonalise(MatrixRef<T> X, T scale) {
        double squares = 0;
        for (Index i = 0; i < X.rows; ++i) squares += kernel::sum_of_squares(X.cols, X.row(i));
        if (squares == 0) return;
        if (!std::isfinite(squares))
            throw NumericError(
                "muon: the momentum is not finite; nothing was changed. Lower the momentum, or clip");
        const double inverse = 1 / std::sqrt(squares);
        for (Index i = 0; i < X.rows; ++i)
            for (Index j = 0; j < X.cols; ++j) X.row(i)[j] = static_cast<T>(inverse * double(X.row(i)[j]));
        const bool wide = X.rows <= X.cols;
        const Index side = std::min(X.rows, X.cols);
        const MatrixRef<T> A(square_.data(), side, side), B(sum_.data(), side, side),
            Y(copy_.data(), X.rows, X.cols);
        for (int k = 1; k <= 5; ++k) {
            const T last = k == 5 ? scale : T(1);
            for (Index i = 0; i < X.rows; ++i) std::copy_n(X.row(i), X.cols, Y.row(i));
            gemm<T>(T(1), wide ? Y : t(Y), wide ? t(Y) : Y, T(0), A);
            std::copy_n(A.data, side * side, B.data);
            gemm<T>(T(2.0315), A, A, T(-4.7750), B);
            gemm<T>(last, wide ? B : Y, wide ? Y : B, last * T(3.4445), X);
        }
    }

    using Rule<T, MuonOptions>::group_, Rule<T, MuonOptions>::options_;
    Array<Array<T>> momentum_, step_;  // m; g + μ m, then X
    Array<T> copy_, square_, sum_;     // X, A, b A + c A²
};

}}  // namespace isogloss
