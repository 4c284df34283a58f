/// @file update/riemannian/writing.hpp  The Fisher metric of a softmax head, and its quasi-diagonal step.
#pragma once

#include <isogloss/graph/logits.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/update/riemannian/metric.hpp>
#include <isogloss/update/riemannian/search_step.hpp>

namespace isogloss {

/// Sums of the Fisher matrix of a head o = E h + b over predicted positions, for each word v:
///
///     H_ii,v = Σ h_i² q_v,   H_0i,v = Σ h_i q_v,   H_00,v = Σ q_v,      q = p (1 - p),  p = softmax(o)
///
/// the entries that couple one word's weights with each other and with its bias; for the cross-entropy the
/// Fisher matrix is the Hessian. Blocks of rows are worked through within `budget` bytes.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (18)-(19).
template <class T> class WritingMetric {
public:
    WritingMetric(graph::Store<T>& store, const graph::LogitsRecord<T>& head, Index budget = Index{1} << 20)
        : store_(store), head_(head), width_(store.at(store.parameters, head.table).cols) {
        const Index V = head.vocabulary, n = width_;
        rows_ = std::clamp<Index>(budget / ((V + 2 * n) * Index{sizeof(T)}), 1, store.capacity_rows());
        const std::string who = message("riemannian: head '", head.name, "'");
        within_memory(who, bytes_of(who, {V + rows_, V + 2 * n}, sizeof(T)), [&] {
            square.resize(std::size_t(V * n)), cross.resize(std::size_t(V * n)), whole.resize(std::size_t(V));
            logits_.resize(std::size_t(rows_ * V)), hidden_.resize(std::size_t(2 * rows_ * n));
        });
    }

    std::vector<T> square, cross, whole;  ///< H_ii [V, n], H_0i [V, n], H_00 [V]

    /// Everything times `factor` ≥ 0.
    void scale(double factor) {
        for (auto* sums : {&square, &cross, &whole})
            kernel::scale(std::ssize(*sums), static_cast<T>(factor), sums->data());
    }

    /// Adds the positions of the last pass that have a target in y, or all where y is null, times `weight`.
    void add(const Token* y, double weight) {
        const BlasOnOneThread blas;
        const Index V = head_.vocabulary, n = width_;
        const T* h = store_.value(head_.hidden);
        Index count = 0;
        for (Index r = 0; r < store_.rows(); ++r) {
            if (!y || y[r] >= 0) {
                T *row = hidden_.data() + count * n, *squared = hidden_.data() + (rows_ + count) * n;
                for (Index i = 0; i < n; ++i) row[i] = h[r * n + i], squared[i] = row[i] * row[i];
                ++count;
            }
            if (count < rows_ && r + 1 < store_.rows()) continue;
            block(count, static_cast<T>(weight), V, n);
            count = 0;
        }
    }

private:
    void block(Index count, T weight, Index V, Index n) {
        if (count == 0) return;
        const MatrixRef<T> z(logits_.data(), count, V), h(hidden_.data(), count, n),
            squared(hidden_.data() + rows_ * n, count, n);
        graph::logits<T>(h, store_.at(store_.parameters, head_.table).values(),
                         head_.bias >= 0 ? store_.at(store_.parameters, head_.bias).value : nullptr, z);
        for (Index r = 0; r < count; ++r) {
            T* p = z.row(r);
            kernel::softmax(V, p);
            for (Index v = 0; v < V; ++v) p[v] *= 1 - p[v];
        }
        gemm<T>(weight, t(MatrixRef<const T>(z)), squared, T(1), {square.data(), V, n});
        gemm<T>(weight, t(MatrixRef<const T>(z)), h, T(1), {cross.data(), V, n});
        if (weight != T(1)) kernel::scale(count * V, weight, z.data);
        kernel::add_column_sums(count, V, z.data, whole.data());
    }

    graph::Store<T>& store_;
    const graph::LogitsRecord<T>& head_;
    Index width_, rows_ = 1;
    std::vector<T> logits_, hidden_;
};

/// The head that a node's logits stand for, by the node's name. Throws UsageError when there is none.
template <class T> const graph::LogitsRecord<T>& head_of(Graph<T>& g, std::string_view node) {
    for (const auto& r : g.store().logits)
        if (r.name == node) return r;
    throw UsageError(message("riemannian: node '", node, "' is no softmax head"));
}

/// Quasi-diagonal Newton (natural) step of a softmax head. For each word v:
///
///     Δ_iv = -(G_iv - G_0v H_0i/H_00) / (H_ii - H_0i²/H_00),   Δ_0v = -G_0v/H_00 - Σ_i (H_0i/H_00) Δ_iv
///
/// with ε_v = f_v + machine epsilon added to H_ii and H_00, f_v the frequency of v, times `damping`.
/// Without a bias the head's step is the diagonal one.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (17)-(21); where ε enters is a
/// reading.
template <class T> class WritingStep final : public SearchStep<T> {
public:
    /// `frequencies`: f_v of every word, or none for 1/V each; `damping` ≥ 0 multiplies ε.
    WritingStep(Graph<T>& g, std::string_view head, Tokens targets, std::vector<double> frequencies = {},
                double damping = 1)
        : store_(g.store()),
          head_(head_of(g, head)),
          behind_{head_.hidden, store_.at(store_.parameters, head_.table).cols, store_.serial},
          targets_(targets),
          metric_(g.store(), head_) {
        const Index V = head_.vocabulary;
        if (targets.id < 0 || targets.graph != store_.serial)
            throw UsageError("riemannian: the targets are not tokens of this graph");
        if (frequencies.empty()) frequencies.assign(std::size_t(V), 1 / static_cast<double>(V));
        if (std::ssize(frequencies) != V)
            throw UsageError(message("riemannian: found ", frequencies.size(), " frequencies for a head of ",
                                     V, " words"));
        if (!(damping >= 0 && std::isfinite(damping)))
            throw UsageError(message("riemannian: found damping = ", damping, ", expected at least 0"));
        for (const double f : frequencies)
            epsilon_.push_back(static_cast<T>(damping * (f + std::numeric_limits<double>::epsilon())));
        this->member(store_.at(store_.parameters, head_.table));
        if (head_.bias >= 0) this->member(store_.at(store_.parameters, head_.bias));
    }

    void clear() override {
        SearchStep<T>::clear();
        metric_.scale(0);
    }
    void add(double weight) override {
        SearchStep<T>::add(weight);
        metric_.add(store_.at(store_.tokens, targets_.id).value, weight);
    }
    Seq<T> behind() const override { return behind_; }
    const WritingMetric<T>& metric() const { return metric_; }

private:
    void direct() override {
        const Index V = head_.vocabulary, n = store_.at(store_.parameters, head_.table).cols;
        auto& table = this->members_[0];
        for (Index v = 0; v < V; ++v) {
            const T eps = epsilon_[std::size_t(v)];
            const T *G = table.gradient.data() + v * n, *H = metric_.square.data() + v * n,
                    *H0 = metric_.cross.data() + v * n;
            T* delta = table.direction.data() + v * n;
            if (head_.bias < 0) {
                for (Index i = 0; i < n; ++i) delta[i] = -kernel::diagonal(G[i], H[i] + eps);
                continue;
            }
            auto& bias = this->members_[1];
            const T G0 = bias.gradient[std::size_t(v)], H00 = metric_.whole[std::size_t(v)] + eps;
            T delta0 = -kernel::diagonal(G0, H00);
            for (Index i = 0; i < n; ++i) {
                delta[i] = -kernel::quasi_diagonal(G[i], G0, H[i] + eps, H0[i], H00);
                if (H00 > 0) delta0 -= H0[i] / H00 * delta[i];
            }
            bias.direction[std::size_t(v)] = delta0;
        }
    }

    graph::Store<T>& store_;
    const graph::LogitsRecord<T>& head_;
    Seq<T> behind_;
    Tokens targets_;
    WritingMetric<T> metric_;
    std::vector<T> epsilon_;
};

/// Start values (30): every weight of a head 0, its biases log ν_v, so that the first model predicts each
/// word by its frequency among the targets. `counts`: how often each word is a target; a word that never is
/// counts as 1e-12 of the whole. Throws UsageError for a head without a bias or counts that do not fit.
template <class T>
void start_at_frequencies(Graph<T>& g, std::string_view head, const std::vector<double>& counts) {
    const auto& record = head_of(g, head);
    if (record.bias < 0) throw UsageError(message("start_at_frequencies: head '", head, "' has no bias"));
    double total = 0;
    for (const double c : counts) total += c;
    if (std::ssize(counts) != record.vocabulary || !(total > 0))
        throw UsageError(message("start_at_frequencies: found ", counts.size(), " counts that sum to ", total,
                                 ", expected ", record.vocabulary, " with a sum above 0"));
    auto& table = g.store().at(g.store().parameters, record.table);
    std::fill_n(table.value, table.size(), T(0));
    T* b = g.store().at(g.store().parameters, record.bias).value;
    for (std::size_t v = 0; v < counts.size(); ++v)
        b[v] = static_cast<T>(std::log(std::max(counts[v] / total, 1e-12)));
}

}  // namespace isogloss
