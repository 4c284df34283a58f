/// @file update/riemannian/table_metric.hpp  The metric of a word table: looked up, in a softmax head, or both.
#pragma once

#include <array>
#include <isogloss/graph/graph.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/loss/softmax_loss.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/update/riemannian/metric.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Sums of the metric of a table E [V, n] over positions. Row v of E has up to two roles. In a softmax head
/// o = E h + b it holds the weights into the unit o_v, and with the losses of the head, of weights a_k and inverse
/// temperatures s_k (FisherTerm), the Fisher metric of their predictions has the entries
///
///     H_ii,v = Σ h_i² q_v,   H_0i,v = Σ h_i q_v,   H_00,v = Σ q_v,   q = Σ_k a_k p_k (1 - p_k),   p_k = softmax(s_k o)
///
/// Looked up, y = m ∘ E[x], it holds the weights from the one-hot unit x = v into n linear units: their metric is
/// diagonal, and as the weight e_vj is multiplied by the mask m_j,
///
///     L_j,v = Σ_{x = v} m_j² Φ_j,      Φ_j = (∂l/∂y_j)² for RUOP, the modulus of y_j for RBPM
///
/// A tied table is the pull-back of both under E ↦ (E, E), whose metric is the sum: H_ii,v + L_i,v. The step is
/// quasi-diagonal in the head's bias,
///
///     Δ_iv = -(G_iv - G_0v H_0i/H_00) / (H_ii + L_i - H_0i²/H_00),   Δ_0v = -G_0v/H_00 - Σ_i (H_0i/H_00) Δ_iv
///
/// with ε_v added to H_ii + L_i and H_00, relative to the mean of the first over i; without a bias, or in the diagonal
/// form, it divides by H_ii + L_i. For the cross-entropy H is the Hessian. For the augmented loss the terms are a and
/// c/τ² at temperature τ, with the soft target held fixed, so that the use of a table as one has no metric. Positions
/// without a target do not count. A head without a loss that has terms has that of the cross-entropy, at all positions.
///
/// Invariance   A relabelling of words or of hidden units, and a change of sign of one, permute or reflect the step. A
///              table with one role has that of its units: affine changes h ↦ D h + c of the states with diagonal D are
///              absorbed by E and b, and the step by its quasi-diagonal form. Tied, E cannot absorb them, for it is looked
///              up too; what remains of them is h ↦ h + c, absorbed by b alone.
/// Memory       one table of the size of E; two with a bias
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (17)-(21) for the head, called writing
///          weights there, and (23)-(24) for Φ. Where ε is added is our reading of it; the sum for tied tables is ours.
template <class T> class TableMetric final : public Metric<T> {
public:
    struct Options {
        UnitModulus modulus = UnitModulus::ruop;
        MetricForm form = MetricForm::quasi_diagonal;  ///< full means quasi-diagonal here
        std::vector<double> words = {};  ///< factor ≥ 0 of the absolute part of ε, by word; none: 1 for each
        Index budget = Index{1} << 20;  ///< bytes of the blocks of rows
    };
    /// A table of the group, with the bias of its head where that is in the group. Throws UsageError for a use of the table
    /// that is neither a lookup of Embedding nor one head, if `words` do not fit, and when memory does not suffice.
    TableMetric(graph::Store<T>& store, const Parameters<T>& group, Weight<T> table, Options options)
        : Metric<T>(store, message("riemannian: table '", store[table].name, "'"), options.form,
                    options.modulus),
          options_(std::move(options)),
          words_(table.rows),
          width_(table.cols),
          table_(this->serve(group, table)) {
        Index known = 0;
        for (const auto* record : store.template all<detail::LookupRecord<T>>())
            if (record->table.id == table.id) lookups_.push_back(*record), ++known;
        const Index looked_up = known;
        for (const auto& head : store.logits)
            if (head.table.id == table.id) head_ = &head, ++known;
        const bool one = known <= looked_up + 1;
        for (const auto* loss : store.template all<detail::HeadLoss>())
            if (loss->soft_targets == table.id) ++known;
        const std::string& name = store[table].name;
        if (table_ < 0 || known != store[table].uses() || !one)
            throw UsageError("riemannian: found ", store[table].uses(), " uses of '", name,
                             "', expected lookups and at most one head; train it by another update");
        if (!options_.words.empty() && std::ssize(options_.words) != words_)
            throw UsageError("riemannian: found ", options_.words.size(), " frequencies for '", name, "' of ",
                             words_, " words");
        this->take_sums(message("square/", name), square, words_, width_);
        if (!head_) return;
        bias_ = this->serve(group, head_->bias);
        if (with_bias()) this->take_sums(message("cross/", name), cross, words_, width_);
        this->take_sums(message("whole/", name), m00, 1, words_);  // H_00, by its name in a checkpoint
        rows_ = std::clamp<Index>(options_.budget / ((words_ + 2 * width_) * Index{sizeof(T)}), 1,
                                  store.capacity_rows());
        this->take(logits_, rows_ + 2, words_), this->take(hidden_, 2 * rows_, width_);
    }

    std::vector<T> square, cross, m00;  ///< H_ii + L_i [V, n]; of a head: H_0i [V, n] with a bias, H_00 [V]

    void add(double weight) override {
        const T c = static_cast<T>(weight);
        for (const auto& lookup : lookups_) add_lookup(lookup, c);
        if (!head_) return;
        const BlasOnOneThread blas;
        bool any = false;
        store_.template each<detail::HeadLoss>([&](const detail::HeadLoss& loss) {
            const double upstream = std::abs(store_.losses[loss.loss].upstream);
            if (&store_.logits[loss.logits] != head_ || upstream == 0) return;
            any = true;
            add_head(loss.terms, loss.targets, weight * upstream);
        });
        if (!any) add_head(std::array{FisherTerm{}}, -1, weight);
    }

    void direction(std::span<const typename Metric<T>::Slot> group, double scale,
                   const Damping& damping) override {
        const Index n = width_;
        const T part = static_cast<T>(scale);
        const auto& table = group[table_];
        const typename Metric<T>::Slot bias =
            bias_ >= 0 ? group[bias_] : typename Metric<T>::Slot{nullptr, nullptr};
        for (Index v = 0; v < words_; ++v) {
            const T *H = square.data() + v * n, *G = table.gradient + v * n;
            T* delta = table.direction + v * n;
            const T epsilon = damp(damping, v), H00 = head_ ? m00[v] + epsilon : T(0);
            const T inverse = H00 >= std::numeric_limits<T>::min() ? 1 / H00 : T(0);
            const T G0 = bias.gradient ? part * bias.gradient[v] : T(0);
            T delta0 = -G0 * inverse;
            if (with_bias() && !store_[head_->table].is_frozen(v)) {
                const T* H0 = cross.data() + v * n;
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
    bool with_bias() const { return bias_ >= 0 && options_.form != MetricForm::diagonal; }

    // ε of a word.
    T damp(Damping damping, Index v) const {
        const T* H = square.data() + v * width_;
        T trace = 0;
        for (Index i = 0; i < width_; ++i) trace += H[i];
        if (!options_.words.empty()) damping.absolute *= options_.words[v];
        return damping.epsilon(trace, width_);
    }

    void add_lookup(const detail::LookupRecord<T>& lookup, T weight) {
        const Index n = width_, batch = store_.batch;
        const Token* x = store_[lookup.tokens].value;
        const T* flow = store_.adjoint(lookup.y.id, this->wants_modulus());
        const auto* record = lookup.mask.id >= 0 ? &store_[lookup.mask] : nullptr;
        const T* mask = record && record->active ? record->value : nullptr;
        for (Index r = 0; r < store_.rows(); ++r) {
            T* row = square.data() + x[r] * n;
            const T* m = mask ? mask + r % batch * n : nullptr;
            const T k = lookup.word_scale ? lookup.word_scale[r] : T(1);
            for (Index j = 0; j < n; ++j) {
                const T factor = m ? k * m[j] : k;
                row[j] += weight * factor * factor * this->modulus(flow[r * n + j]);
            }
        }
    }

    void add_head(std::span<const FisherTerm> terms, int targets, double weight) {
        const Index n = width_;
        const T* h = store_.value(head_->hidden.id);
        const Token* y = targets >= 0 ? store_.tokens[targets].value : nullptr;
        Index count = 0;
        for (Index r = 0; r < store_.rows(); ++r) {
            if (!y || y[r] >= 0) {
                T *row = hidden_.data() + count * n, *squared = hidden_.data() + (rows_ + count) * n;
                for (Index i = 0; i < n; ++i) row[i] = h[r * n + i], squared[i] = row[i] * row[i];
                ++count;
            }
            if (count < rows_ && r + 1 < store_.rows()) continue;
            add_block(count, terms, static_cast<T>(weight));
            count = 0;
        }
    }

    void add_block(Index count, std::span<const FisherTerm> terms, T weight) {
        if (count == 0) return;
        const Index V = words_, n = width_;
        const MatrixRef<T> z(logits_.data(), count, V), h(hidden_.data(), count, n),
            squared(hidden_.data() + rows_ * n, count, n);
        T *p = logits_.data() + rows_ * V, *q = p + V;
        graph::logits<T>(h, store_[head_->table].values(),
                         head_->bias.id >= 0 ? store_[head_->bias].value : nullptr, z);
        for (Index r = 0; r < count; ++r) {
            std::fill_n(q, V, T(0));
            for (const FisherTerm& term : terms) {
                std::copy_n(z.row(r), V, p);
                kernel::softmax(V, p, static_cast<T>(term.inverse_temperature));
                const T a = static_cast<T>(term.weight);
                for (Index v = 0; v < V; ++v) q[v] += a * p[v] * (1 - p[v]);
            }
            std::copy_n(q, V, z.row(r));
        }
        gemm<T>(weight, t(MatrixRef<const T>(z)), squared, T(1), {square.data(), V, n});
        if (with_bias()) gemm<T>(weight, t(MatrixRef<const T>(z)), h, T(1), {cross.data(), V, n});
        if (weight != T(1)) kernel::scale(count * V, weight, z.data);
        kernel::add_column_sums(count, V, z.data, m00.data());
    }

    using Metric<T>::store_;
    Options options_;
    Index words_, width_, rows_ = 1;
    int table_, bias_ = -1;                         // indices in the group; bias: or -1
    const graph::LogitsRecord<T>* head_ = nullptr;  // null: only looked up
    std::vector<detail::LookupRecord<T>> lookups_;
    std::vector<T> logits_, hidden_;
};

}}  // namespace isogloss
