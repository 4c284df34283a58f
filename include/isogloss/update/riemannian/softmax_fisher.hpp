/// @file update/riemannian/softmax_fisher.hpp  The Fisher metric of a softmax head.
#pragma once

#include <isogloss/graph/graph.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/update/riemannian/metric.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Sums of the Fisher matrix of a softmax head o = E h + b over positions, for each word v:
///
///     H_ii,v = Σ h_i² q_v,   H_0i,v = Σ h_i q_v,   H_00,v = Σ q_v,      q = p (1 - p),  p = softmax(o)
///
/// the entries that couple one word's weights with each other and with its bias; for the cross-entropy the
/// Fisher matrix is the Hessian. The step is quasi-diagonal,
///
///     Δ_iv = -(G_iv - G_0v H_0i/H_00) / (H_ii - H_0i²/H_00),   Δ_0v = -G_0v/H_00 - Σ_i (H_0i/H_00) Δ_iv
///
/// with ε_v added to H_ii and H_00; diagonal without a bias, or on request. A relative ε is relative to the
/// mean of H_ii over i. Rows are processed in blocks within `budget` bytes.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (17)-(21), on the weights of the
///          softmax, called writing weights there. Where ε is added is our reading of the source.
template <class T> class SoftmaxFisher final : public Metric<T> {
public:
    struct Options {
        MetricForm form = MetricForm::quasi_diagonal;  ///< full means quasi-diagonal here
        Tokens targets = {};             ///< positions without a target do not count; none: all count
        std::vector<double> units = {};  ///< factor ≥ 0 of the absolute part of ε, by word; none: 1 for each
        Index budget = Index{1} << 20;
    };
    /// The head's parameters that are in `group`. Throws UsageError when the table is not, or `units` do not fit.
    SoftmaxFisher(graph::Store<T>& store, const Parameters<T>& group, const graph::LogitsRecord<T>& head,
                  Options options)
        : Metric<T>(store, message("riemannian: head '", head.name, "'"), options.form),
          head_(head),
          options_(std::move(options)),
          width_(head.table.cols),
          table_(detail::place(store, group, head.table)),
          bias_(detail::place(store, group, head.bias)) {
        const std::string& name = this->parameter(head.table).name;
        if (table_ < 0 || (!options_.units.empty() && std::ssize(options_.units) != head.vocabulary))
            throw UsageError("riemannian: head '", head.name, "' needs its table in the group, and ",
                             head.vocabulary, " frequencies or none");
        const Index V = head.vocabulary, n = width_;
        rows_ =
            std::clamp<Index>(options_.budget / ((V + 2 * n) * Index{sizeof(T)}), 1, store.capacity_rows());
        this->take_sums(message("square/", name), square, V, n);
        this->take_sums(message("cross/", name), cross, V, n);
        this->take_sums(message("whole/", name), m00, 1, V);  // H_00, by its name in a checkpoint
        this->take(logits_, rows_, V), this->take(hidden_, 2 * rows_, n);
    }

    std::vector<T> square, cross, m00;  ///< H_ii [V, n], H_0i [V, n], H_00 [V]

    void add(double weight) override {
        const BlasOnOneThread blas;
        const Index n = width_;
        const T* h = store_.value(head_.hidden.id);
        const Token* y = options_.targets.id >= 0 ? store_[options_.targets].value : nullptr;
        Index count = 0;
        for (Index r = 0; r < store_.rows(); ++r) {
            if (!y || y[r] >= 0) {
                T *row = hidden_.data() + count * n, *squared = hidden_.data() + (rows_ + count) * n;
                for (Index i = 0; i < n; ++i) row[i] = h[r * n + i], squared[i] = row[i] * row[i];
                ++count;
            }
            if (count < rows_ && r + 1 < store_.rows()) continue;
            add_block(count, static_cast<T>(weight));
            count = 0;
        }
    }

    void direction(std::span<const typename Metric<T>::Slot> group, double scale,
                   const Damping& damping) override {
        const Index n = width_;
        const T part = static_cast<T>(scale);
        const auto& table = group[table_];
        const typename Metric<T>::Slot bias =
            bias_ >= 0 ? group[bias_] : typename Metric<T>::Slot{nullptr, nullptr};
        const bool with_bias = bias.gradient && options_.form != MetricForm::diagonal;
        for (Index v = 0; v < head_.vocabulary; ++v) {
            const T *H = square.data() + v * n, *H0 = cross.data() + v * n, *G = table.gradient + v * n;
            T* delta = table.direction + v * n;
            const T epsilon = damp(damping, v), H00 = m00[v] + epsilon;
            const T inverse = H00 >= std::numeric_limits<T>::min() ? 1 / H00 : T(0);
            const T G0 = bias.gradient ? part * bias.gradient[v] : T(0);
            T delta0 = -G0 * inverse;
            if (with_bias) {
                for (Index i = 0; i < n; ++i) {
                    const T slope = H0[i] * inverse, diagonal = H[i] + epsilon;
                    delta[i] =
                        -detail::quasi_diagonal(part * G[i] - slope * G0, diagonal - slope * H0[i], diagonal);
                }
                for (Index i = 0; i < n; ++i) delta0 -= H0[i] * inverse * delta[i];
            } else {
                for (Index i = 0; i < n; ++i) delta[i] = detail::ratio(-part * G[i], H[i] + epsilon);
            }
            if (bias.gradient) bias.direction[v] = delta0;
        }
    }

private:
    // ε of a word.
    T damp(Damping damping, Index v) const {
        const T* H = square.data() + v * width_;
        T trace = 0;
        for (Index i = 0; i < width_; ++i) trace += H[i];
        if (!options_.units.empty()) damping.absolute *= options_.units[v];
        return damping.epsilon(trace, width_);
    }

    void add_block(Index count, T weight) {
        if (count == 0) return;
        const Index V = head_.vocabulary, n = width_;
        const MatrixRef<T> z(logits_.data(), count, V), h(hidden_.data(), count, n),
            squared(hidden_.data() + rows_ * n, count, n);
        graph::logits<T>(h, store_[head_.table].values(),
                         head_.bias.id >= 0 ? store_[head_.bias].value : nullptr, z);
        for (Index r = 0; r < count; ++r) {
            T* p = z.row(r);
            kernel::softmax(V, p, T(1));
            for (Index v = 0; v < V; ++v) p[v] *= 1 - p[v];
        }
        gemm<T>(weight, t(MatrixRef<const T>(z)), squared, T(1), {square.data(), V, n});
        gemm<T>(weight, t(MatrixRef<const T>(z)), h, T(1), {cross.data(), V, n});
        if (weight != T(1)) kernel::scale(count * V, weight, z.data);
        kernel::add_column_sums(count, V, z.data, m00.data());
    }

    using Metric<T>::store_;
    const graph::LogitsRecord<T>& head_;
    Options options_;
    Index width_, rows_ = 1;
    int table_, bias_;  // indices in the group; bias: or -1
    std::vector<T> logits_, hidden_;
};

}}  // namespace isogloss
