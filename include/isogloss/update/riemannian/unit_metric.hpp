/// @file update/riemannian/unit_metric.hpp  The metric of one layer of declared units.
#pragma once

#include <isogloss/graph/graph.hpp>
#include <isogloss/update/riemannian/metric.hpp>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Sums M = Σ Φ_j z zᵀ for a layer of units z = Σ a W + b. For each weight matrix W [m, n]:
///
///     M_ii = (a∘a)ᵀ Φ [m, n],   M_0i = aᵀ Φ [m, n],   M_00 = 1ᵀ Φ [n]
///
/// Inputs are masked gate by gate. ε is relative to the mean of a unit's diagonal over those of its weights and bias
/// that are in the group.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks I" and "II", eqs. (23)-(28), (34)-(35).
template <class T> class UnitMetric final : public Metric<T> {
public:
    /// The units' parameters that are in `group`; every form but the diagonal one is quasi-diagonal here. Throws UsageError
    /// for weights that are selected by tokens or transposed, and when memory does not suffice.
    UnitMetric(graph::Store<T>& store, const Parameters<T>& group, const graph::UnitsRecord<T>& units,
               UnitModulus modulus, MetricForm form)
        : Metric<T>(store, message("riemannian: units '", units.name, "'"), form, modulus),
          units_(units),
          bias_(this->serve(group, units.bias)) {
        const auto name = [&](const char* what, std::size_t k) { return message(what, k, "/", units.name); };
        const Index n = units.width, rows = store.capacity_rows();
        Index widest = 0;
        this->take_sums(name("whole", 0), m00_, 1, n);  // M_00, by its name in a checkpoint
        inputs_.reserve(units.sources.size());
        for (const auto& s : units.sources) {
            const int place = this->serve(group, s.weight);
            if (place < 0) continue;
            widest = std::max(widest, s.input.width);
            const std::size_t k = inputs_.size();
            auto& input = inputs_.emplace_back(Input{s, std::size_t(place), {}, {}});
            const Index of_weight = group[input.place].rows;
            if (s.tokens.id >= 0 || s.transposed)
                throw UsageError("riemannian: '", units.name,
                                 "' has weights by token, or transposed; train them by another update");
            this->take_sums(name("square", k), input.square, of_weight, n);
            if (form != MetricForm::diagonal) this->take_sums(name("cross", k), input.cross, of_weight, n);
        }
        this->take(squares_, rows, widest);
        this->take(modulus_rows_, rows, n);
        for (auto* by_unit : {&unit_sums_, &epsilon_, &inverse_, &bias_part_}) this->take(*by_unit, n);
    }

    void clear(double keep) override {
        keep_ *= keep;
        if (keep == 0) Metric<T>::clear(0);
    }

    void add(double weight) override {
        const Index n = units_.width, rows = store_.rows();
        const T* flow = store_.adjoint(units_.z.id, this->wants_modulus());
        for (Index i = 0; i < rows * n; ++i) modulus_rows_[i] = this->modulus(flow[i]);
        const T keep = static_cast<T>(std::exchange(keep_, 1)), c = static_cast<T>(weight);
        std::fill(unit_sums_.begin(), unit_sums_.end(), T(0));
        kernel::add_column_sums(rows, n, modulus_rows_.data(), unit_sums_.data());
        for (std::size_t j = 0; j < m00_.size(); ++j) m00_[j] = keep * m00_[j] + c * unit_sums_[j];
        for (auto& input : inputs_) add_products(input, keep, c);
    }

    void direction(std::span<const typename Metric<T>::Slot> group, double scale,
                   const Damping& damping) override {
        damp(damping);
        const Index n = units_.width;
        const T part = static_cast<T>(scale), *epsilon = epsilon_.data();
        const T* G0 = bias_ >= 0 ? group[bias_].gradient : nullptr;
        std::fill(bias_part_.begin(), bias_part_.end(), T(0));
        for (const auto& input : inputs_) {
            const bool with_bias = !input.cross.empty() && G0;
            const T *G = group[input.place].gradient, *M = input.square.data(), *M0 = input.cross.data();
            T* delta = group[input.place].direction;
            for (Index first = 0; first < std::ssize(input.square); first += n)
                if (with_bias && !this->parameter(input.source.weight).is_frozen(first / n))
                    beside_bias(n, part, G + first, G0, M + first, M0 + first, delta + first);
                else
                    for (Index j = 0; j < n; ++j)
                        delta[first + j] = -detail::ratio(part * G[first + j], M[first + j] + epsilon[j]);
        }
        if (G0)
            for (std::size_t j = 0; j < std::size_t(n); ++j)
                group[bias_].direction[j] = -part * G0[j] * inverse_[j] - bias_part_[j];
    }

private:
    struct Input {
        const graph::Source<T>& source;
        std::size_t place;             // index of its weight in the group
        std::vector<T> square, cross;  // M_ii, M_0i
    };

    using Metric<T>::store_;

    void add_products(Input& input, T keep, T weight) {
        const graph::Term<T> term(store_, units_, input.source);
        const MatrixRef<const T> phi(modulus_rows_.data(), store_.rows(), units_.width);
        term.products(0, store_.rows(), [&](const graph::TermProduct<T>& q) {
            const MatrixRef<const T> in = term.input(q), squares(squares_.data(), in.rows, in.cols);
            const auto add_to = [&](MatrixRef<const T> x, std::vector<T>& sums) {
                gemm<T>(weight, t(x), q.of(phi), keep,
                        term.matrix(q, MatrixRef<T>(sums.data(), in.cols, units_.width)));
            };
            for (Index i = 0; i < in.rows * in.cols; ++i) squares_[i] = in.data[i] * in.data[i];
            add_to(squares, input.square);
            if (!input.cross.empty()) add_to(in, input.cross);
        });
    }

    // ε of every unit, and 1 / (M_00 + ε), or 0.
    void damp(const Damping& damping) {
        const auto n = std::size_t(units_.width);
        if (bias_ >= 0) epsilon_ = m00_;
        else std::fill(epsilon_.begin(), epsilon_.end(), T(0));
        Index count = bias_ >= 0;
        for (const auto& input : inputs_) {
            const auto& M = input.square;
            for (std::size_t i = 0; i < M.size(); i += n)
                for (std::size_t j = 0; j < n; ++j) epsilon_[j] += M[i + j];
            count += std::ssize(M) / units_.width;
        }
        for (std::size_t j = 0; j < n; ++j) {
            epsilon_[j] = damping.epsilon(epsilon_[j], count);
            inverse_[j] = detail::ratio(T(1), m00_[j] + epsilon_[j]);
        }
    }

    // The quasi-diagonal steps of one input into all units, and their contribution to those of the biases.
    void beside_bias(Index n, T part, const T* __restrict G, const T* __restrict G0, const T* __restrict M,
                     const T* __restrict M0, T* __restrict delta) {
        const T* __restrict epsilon = epsilon_.data(), * __restrict inverse = inverse_.data();
        T* __restrict bias_part = bias_part_.data();
        for (Index j = 0; j < n; ++j) {
            const T slope = M0[j] * inverse[j], diagonal = M[j] + epsilon[j];
            delta[j] =
                detail::quasi_diagonal(-part * (G[j] - slope * G0[j]), diagonal - slope * M0[j], diagonal);
            bias_part[j] += slope * delta[j];
        }
    }

    const graph::UnitsRecord<T>& units_;
    std::vector<Input> inputs_;
    int bias_;                                           // its index in the group, or -1
    double keep_ = 1;                                    // factor of the sums at the next add()
    std::vector<T> m00_;                                 // M_00 [n]
    std::vector<T> modulus_rows_, squares_, unit_sums_;  // while sums are added: Φ, inputs squared, Σ Φ
    std::vector<T> epsilon_, inverse_, bias_part_;       // while directions are solved for, by unit
};

}}  // namespace isogloss
