/// @file update/riemannian/unit_metric.hpp  The metric of one layer of declared units.
#pragma once

#include <isogloss/graph/graph.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/update/riemannian/metric.hpp>
#include <string>
#include <utility>
#include <vector>

namespace isogloss {

/// Decayed sums of M = Σ Φ_j z zᵀ for a layer of units z = Σ a W + b, and the step M⁻¹ G. For each weight
/// matrix W [m, n]:
///
///     M_ii = (a∘a)ᵀ Φ [m, n],   M_0i = aᵀ Φ [m, n],   M_00 = 1ᵀ Φ [n]       or, full, all entries: [n, m +
///     1, m + 1]
///
/// An input that a token selects has an M for each symbol. Used by Riemannian.
template <class T> class UnitMetric {
public:
    /// `weights[k]` and `bias`: places of the sources' weights and of the bias in a group, -1: not in it.
    /// Throws UsageError where a full matrix is asked for an input selected by tokens or masked by gate, and
    /// where there is no memory.
    UnitMetric(graph::Store<T>& store, graph::UnitsRecord<T>& units, std::vector<int> weights, int bias,
               UnitModulus modulus, MetricForm form)
        : store_(store),
          units_(units),
          weights_(std::move(weights)),
          bias_(bias),
          modulus_(modulus),
          form_(form) {
        const Index n = units.width;
        Index widest = 0;
        for (std::size_t k = 0; k < weights_.size(); ++k) {
            if (weights_[k] < 0) continue;
            const auto& s = units.sources[k];
            const Index size = store.at(store.parameters, s.weight).size();
            widest = std::max(widest, s.width);
            inputs_ += s.width;
            if (form == MetricForm::full) {
                if (s.tokens >= 0 || (s.mask >= 0 && store.at(store.masks, s.mask).groups > 1))
                    throw UsageError(
                        message("riemannian: units '", units.name,
                                "' have inputs chosen by a token or masked gate by gate; their metric is "
                                "quasi_diagonal or diagonal"));
                continue;
            }
            resize(square_.emplace_back(), {size}), resize(cross_.emplace_back(), {quasi() ? size : 0});
        }
        resize(whole_, {n}), resize(inverse_, {n});
        const Index rows = store.capacity_rows();
        resize(phi_, {rows, n});
        if (form == MetricForm::full) {
            const Index m = order();
            resize(matrix_, {n, m, m});
            resize(input_, {rows, m}), resize(scaled_, {rows, m}), resize(side_, {rows, m});
            resize(work_, {m, m}), resize(right_, {m});
        } else {
            resize(input_, {rows, widest}), resize(scaled_, {rows, widest});
        }
    }

    /// M ← keep M + share Σ Φ z zᵀ over the positions of the last pass.
    void refresh(double keep, double share) {
        if (modulus_ == UnitModulus::rbpm && !store_.moduli)
            throw UsageError(
                "riemannian: RBPM needs backward<Modulus>(loss) before step(); see wants_modulus()");
        const Index n = units_.width, rows = store_.rows();
        const T* flow = store_.adjoint(units_.seq, modulus_ == UnitModulus::rbpm);
        const bool rbpm = modulus_ == UnitModulus::rbpm;
        for (Index i = 0; i < rows * n; ++i) phi_[std::size_t(i)] = rbpm ? flow[i] : flow[i] * flow[i];
        const T k = static_cast<T>(keep), c = static_cast<T>(share);
        if (form_ == MetricForm::full) return refresh_full(k, c);
        std::vector<T>& sums = right_;
        sums.assign(std::size_t(n), T(0));
        kernel::add_column_sums(rows, n, phi_.data(), sums.data());
        for (std::size_t j = 0; j < sums.size(); ++j) whole_[j] = k * whole_[j] + c * sums[j];
        std::size_t at = 0;
        for (std::size_t s = 0; s < weights_.size(); ++s)
            if (weights_[s] >= 0) refresh(units_.sources[s], k, c, square_[at], cross_[at]), ++at;
    }

    /// Writes the directions -M⁻¹ (per · gradient) of its parameters. Added to the diagonal is `damping`
    /// times the mean of a unit's diagonal, and `floor`; at least the smallest normal number.
    template <class Group> void direct(const Group& group, std::vector<std::vector<T>>& delta, double per,
                                       double damping, double floor) {
        const Index n = units_.width;
        const T share = static_cast<T>(per), least = static_cast<T>(floor);
        const T* G0 = bias_ >= 0 ? group[std::size_t(bias_)].dense_gradient().data : nullptr;
        if (form_ == MetricForm::full)
            return direct_full(group, delta, share, static_cast<T>(damping), least, G0);
        // the mean of the diagonal over a unit's weights and bias
        std::vector<T>&eps = right_, &d0 = work_, &inverse = inverse_;
        eps.assign(whole_.begin(), whole_.end());
        Index count = 1;
        for (const auto& M : square_) {
            for (std::size_t i = 0; i < M.size(); i += std::size_t(n))
                for (std::size_t j = 0; j < std::size_t(n); ++j) eps[j] += M[i + j];
            count += std::ssize(M) / n;
        }
        for (T& e : eps)
            e = std::max(static_cast<T>(damping) * e / static_cast<T>(count) + least,
                         std::numeric_limits<T>::min() * 1024);
        d0.assign(std::size_t(n), T(0));
        for (std::size_t j = 0; j < std::size_t(n); ++j) inverse[j] = 1 / (whole_[j] + eps[j]);
        std::size_t at = 0;
        for (std::size_t s = 0; s < weights_.size(); ++s) {
            if (weights_[s] < 0) continue;
            auto& p = group[std::size_t(weights_[s])];
            const T *G = p.dense_gradient().data, *M = square_[at].data(), *M0 = cross_[at].data();
            T* out = delta[std::size_t(weights_[s])].data();
            const bool with_bias = quasi() && G0 && units_.sources[s].tokens < 0;
            for (Index i = 0; i < p.rows; ++i, G += n, M += n, M0 += with_bias ? n : 0, out += n)
                if (with_bias) direct_row(n, share, G, G0, M, M0, eps.data(), inverse.data(), out, d0.data());
                else
                    for (Index j = 0; j < n; ++j) out[j] = -share * G[j] / (M[j] + eps[std::size_t(j)]);
            ++at;
        }
        if (G0)
            for (std::size_t j = 0; j < std::size_t(n); ++j)
                delta[std::size_t(bias_)][j] = -share * G0[j] * inverse[j] - d0[j];
    }

    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        const auto name = [&](const char* what, std::size_t k) { return message(what, k, "/", units_.name); };
        const Index n = units_.width;
        v.array(name("whole", 0), whole_.data(), 1, n);
        for (std::size_t k = 0; k < square_.size(); ++k) {
            v.array(name("square", k), square_[k].data(), std::ssize(square_[k]) / n, n);
            if (quasi()) v.array(name("cross", k), cross_[k].data(), std::ssize(cross_[k]) / n, n);
        }
        if (!matrix_.empty()) v.array(name("matrix", 0), matrix_.data(), n, std::ssize(matrix_) / n);
    }

private:
    void resize(std::vector<T>& numbers, std::initializer_list<Index> sizes) const {
        const std::string who = message("riemannian: units '", units_.name, "'");
        const Index bytes = bytes_of(who, sizes, sizeof(T));
        within_memory(who, bytes, [&] { numbers.resize(std::size_t(bytes) / sizeof(T)); });
    }
    bool quasi() const { return form_ == MetricForm::quasi_diagonal; }
    Index order() const { return inputs_ + (bias_ >= 0); }

    // The quasi-diagonal steps of one input into all units, and their part in those of the biases; no
    // branches, so that several units are worked out at once.
    static void direct_row(Index n, T share, const T* __restrict G, const T* __restrict G0,
                           const T* __restrict M, const T* __restrict M0, const T* __restrict eps,
                           const T* __restrict inverse, T* __restrict out, T* __restrict d0) {
        for (Index j = 0; j < n; ++j) {
            const T slope = M0[j] * inverse[j], whole = M[j] + eps[j], left = whole - slope * M0[j];
            const T step = -share * (G[j] - slope * G0[j]) / left;
            out[j] = left > kernel::redundant<T> * whole ? step : T(0);
            d0[j] += slope * out[j];
        }
    }

    // Inputs of a source, masked by a group of its mask, as [rows, width].
    const T* inputs(const graph::Source<T>& s, Index group) {
        const Index back = s.when == graph::Source<T>::When::previous ? store_.batch : 0;
        const T* in = store_.value(s.seq) - back * s.width;
        const auto* m = s.mask >= 0 ? &store_.at(store_.masks, s.mask) : nullptr;
        if (!m || !m->active) return in;
        kernel::multiply_rows(store_.rows(), store_.batch, s.width, in,
                              m->value + group * store_.batch * s.width, input_.data());
        return input_.data();
    }

    void refresh(const graph::Source<T>& s, T keep, T share, std::vector<T>& square, std::vector<T>& cross) {
        const Index n = units_.width, rows = store_.rows(), m = s.width;
        const MatrixRef<const T> phi(phi_.data(), rows, n);
        if (s.tokens >= 0) {
            kernel::scale(std::ssize(square), keep, square.data());
            kernel::scale(std::ssize(cross), keep, cross.data());
            const T* in = inputs(s, 0);
            const Token* x = store_.at(store_.tokens, s.tokens).value;
            for (Index r = 0; r < rows; ++r)
                for (Index i = 0; i < m; ++i)
                    for (Index j = 0; j < n; ++j) {
                        const std::size_t e = std::size_t((x[r] * m + i) * n + j);
                        const T v = in[r * m + i], scaled = share * v * phi_[std::size_t(r * n + j)];
                        square[e] += v * scaled;
                        if (quasi()) cross[e] += scaled;
                    }
            return;
        }
        const bool masked = s.mask >= 0 && store_.at(store_.masks, s.mask).active;
        const Index groups = masked ? store_.at(store_.masks, s.mask).groups : 1, block = n / groups;
        for (Index g = 0; g < groups; ++g) {
            const T* in = inputs(s, g);
            for (Index i = 0; i < rows * m; ++i) scaled_[std::size_t(i)] = in[i] * in[i];
            const auto part = phi.columns(g * block, block);
            gemm<T>(share, t(MatrixRef<const T>(scaled_.data(), rows, m)), part, keep,
                    MatrixRef<T>(square.data(), m, n).columns(g * block, block));
            if (quasi())
                gemm<T>(share, t(MatrixRef<const T>(in, rows, m)), part, keep,
                        MatrixRef<T>(cross.data(), m, n).columns(g * block, block));
        }
    }

    void refresh_full(T keep, T share) {
        const Index n = units_.width, rows = store_.rows(), m = order();
        std::vector<T>& side = side_;
        Index first = 0;
        for (std::size_t k = 0; k < weights_.size(); ++k) {
            if (weights_[k] < 0) continue;
            const auto& s = units_.sources[k];
            const T* in = inputs(s, 0);
            for (Index r = 0; r < rows; ++r)
                std::copy_n(in + r * s.width, s.width, side.data() + r * m + first);
            first += s.width;
        }
        if (bias_ >= 0)
            for (Index r = 0; r < rows; ++r) side[std::size_t(r * m + first)] = 1;
        for (Index j = 0; j < n; ++j) {
            for (Index r = 0; r < rows; ++r)
                for (Index i = 0; i < m; ++i)
                    scaled_[std::size_t(r * m + i)] =
                        phi_[std::size_t(r * n + j)] * side[std::size_t(r * m + i)];
            gemm<T>(share, t(MatrixRef<const T>(scaled_.data(), rows, m)), {side.data(), rows, m}, keep,
                    {matrix_.data() + j * m * m, m, m});
        }
    }

    template <class Group> void direct_full(const Group& group, std::vector<std::vector<T>>& delta, T share,
                                            T damping, T floor, const T* G0) {
        const Index n = units_.width, m = order();
        for (Index j = 0; j < n; ++j) {
            std::copy_n(matrix_.data() + j * m * m, m * m, work_.data());
            T trace = 0;
            for (Index i = 0; i < m; ++i) trace += work_[std::size_t(i * m + i)];
            for (Index i = 0; i < m; ++i)
                work_[std::size_t(i * m + i)] += std::max(damping * trace / static_cast<T>(m) + floor,
                                                          std::numeric_limits<T>::min() * 1024);
            const auto each = [&](auto&& f) {
                Index i = 0;
                for (const int k : weights_)
                    if (k >= 0)
                        for (Index row = 0; row < group[std::size_t(k)].rows; ++row, ++i)
                            f(i, k, row * n + j);
                if (G0) f(i, bias_, j);
            };
            each([&](Index i, int k, Index e) {
                right_[std::size_t(i)] = share * group[std::size_t(k)].dense_gradient().data[e];
            });
            kernel::solve_symmetric(m, work_.data(), right_.data());
            each([&](Index i, int k, Index e) {
                delta[std::size_t(k)][std::size_t(e)] = -right_[std::size_t(i)];
            });
        }
    }

    graph::Store<T>& store_;
    graph::UnitsRecord<T>& units_;
    std::vector<int> weights_;
    int bias_;
    UnitModulus modulus_;
    MetricForm form_;
    Index inputs_ = 0;
    std::vector<std::vector<T>> square_, cross_;  // M_ii and M_0i of each weight in the group
    std::vector<T> whole_, matrix_;               // M_00 [n]; full: [n, m, m]
    std::vector<T> inverse_, phi_, input_, scaled_, side_, work_, right_;
};

}  // namespace isogloss
