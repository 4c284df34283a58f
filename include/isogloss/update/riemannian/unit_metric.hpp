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
/// or, in the full form, all entries of every unit: [n, inputs + 1, inputs + 1]. Inputs are masked gate by
/// gate. An input whose weights are selected by a token has sums for each symbol and no coupling with the
/// bias. ε is relative to the mean of a unit's diagonal over those of its weights and bias that
/// are in the group.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks I" and "II", eqs. (23)-(28), (34)-(35).
template <class T> class UnitMetric final : public Metric<T> {
public:
    /// The units' parameters that are in `group`. Throws UsageError for the full form with an input selected
    /// by tokens or masked by gate, and when memory does not suffice.
    UnitMetric(graph::Store<T>& store, const Parameters<T>& group, const graph::UnitsRecord<T>& units,
               UnitModulus modulus, MetricForm form)
        : Metric<T>(store, message("riemannian: units '", units.name, "'"), form, modulus),
          units_(units),
          bias_(detail::place(store, group, units.bias)) {
        const auto name = [&](const char* what, std::size_t k) { return message(what, k, "/", units.name); };
        const Index n = units.width, rows = store.capacity_rows();
        Index widest = 0, all = bias_ >= 0;
        this->take_sums(name("whole", 0), m00_, 1, n);  // M_00, by its name in a checkpoint
        inputs_.reserve(units.sources.size());
        for (const auto& s : units.sources) {
            const int place = detail::place(store, group, s.weight);
            if (place < 0) continue;
            widest = std::max(widest, s.input.width), all += s.input.width;
            const std::size_t k = inputs_.size();
            auto& input = inputs_.emplace_back(Input{s, std::size_t(place), {}, {}});
            const Index of_weight = group[input.place].rows;
            if (full()) require_shared(s);
            else this->take_sums(name("square", k), input.square, of_weight, n);
            if (quasi()) this->take_sums(name("cross", k), input.cross, of_weight, n);
        }
        const Index width = full() ? all : widest;
        this->take(scaled_, rows, width);
        this->take(modulus_rows_, rows, n);
        for (auto* by_unit : {&unit_sums_, &epsilon_, &inverse_, &bias_part_}) this->take(*by_unit, n);
        if (!full()) return;
        this->take_sums(name("matrix", 0), matrix_, n, all * all);
        this->take(signals_, rows, all), this->take(factor_, all, all), this->take(solution_, all);
    }

    void clear(double keep) override {
        keep_ *= keep;
        if (keep == 0) Metric<T>::clear(0);
    }

    void add(double weight) override {
        this->require_passes();
        const Index n = units_.width, rows = store_.rows();
        const T* flow = store_.adjoint(units_.z.id, this->wants_modulus());
        for (Index i = 0; i < rows * n; ++i) modulus_rows_[i] = this->modulus(flow[i]);
        const double kept = std::exchange(keep_, 1);
        const T keep = static_cast<T>(kept), c = static_cast<T>(weight);
        if (full()) return add_full(keep, c);
        std::fill(unit_sums_.begin(), unit_sums_.end(), T(0));
        kernel::add_column_sums(rows, n, modulus_rows_.data(), unit_sums_.data());
        for (std::size_t j = 0; j < m00_.size(); ++j) m00_[j] = keep * m00_[j] + c * unit_sums_[j];
        for (auto& input : inputs_) {
            if (input.source.tokens.id >= 0) add_selected(input, kept, c);
            else add_products(input, keep, c);
        }
    }

    void direction(std::span<const typename Metric<T>::Slot> group, double scale,
                   const Damping& damping) override {
        if (full()) return solve_full(group, static_cast<T>(scale), damping);
        damp(damping);
        const Index n = units_.width;
        const T part = static_cast<T>(scale), *epsilon = epsilon_.data();
        const T* G0 = bias_ >= 0 ? group[bias_].gradient : nullptr;
        std::fill(bias_part_.begin(), bias_part_.end(), T(0));
        for (const auto& input : inputs_) {
            const bool with_bias = quasi() && G0 && input.source.tokens.id < 0;
            const T *G = group[input.place].gradient, *M = input.square.data(), *M0 = input.cross.data();
            T* delta = group[input.place].direction;
            for (Index first = 0; first < std::ssize(input.square); first += n)
                if (with_bias) beside_bias(n, part, G + first, G0, M + first, M0 + first, delta + first);
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

    using Metric<T>::store_, Metric<T>::full, Metric<T>::quasi;

    // Requires that all units have the same inputs at every position.
    void require_shared(const graph::Source<T>& s) const {
        if (s.tokens.id >= 0 || (s.mask.id >= 0 && store_[s.mask].groups > 1))
            throw UsageError("riemannian: units '", units_.name,
                             "' have inputs chosen by a token or masked gate by gate; their metric is "
                             "quasi_diagonal or diagonal");
    }

    void add_products(Input& input, T keep, T weight) {
        const graph::Term<T> term(store_, units_, input.source);
        const MatrixRef<const T> phi(modulus_rows_.data(), store_.rows(), units_.width);
        term.products(0, store_.rows(), [&](const graph::TermProduct<T>& q) {
            const MatrixRef<const T> in = term.input(q), squares(scaled_.data(), in.rows, in.cols);
            const auto add_to = [&](MatrixRef<const T> x, std::vector<T>& sums) {
                gemm<T>(weight, t(x), q.of(phi), keep,
                        term.matrix(q, MatrixRef<T>(sums.data(), in.cols, units_.width)));
            };
            for (Index i = 0; i < in.rows * in.cols; ++i) scaled_[i] = in.data[i] * in.data[i];
            add_to(squares, input.square);
            if (quasi()) add_to(in, input.cross);
        });
    }

    void add_selected(Input& input, double keep, T weight) {
        const graph::Term<T> term(store_, units_, input.source);
        const Index n = units_.width;
        this->decay(input.square, keep);
        this->decay(input.cross, keep);
        term.products(0, store_.rows(), [&](const graph::TermProduct<T>& q) {
            const T* in = term.input(q).data;
            for (Index i = 0; i < term.width(); ++i)
                for (Index j = 0; j < n; ++j) {
                    const std::size_t e = std::size_t((q.matrix_row + i) * n + j);
                    const T scaled = weight * in[i] * modulus_rows_[q.row * n + j];
                    input.square[e] += in[i] * scaled;
                    if (quasi()) input.cross[e] += scaled;
                }
        });
    }

    void add_full(T keep, T weight) {
        const Index n = units_.width, rows = store_.rows(), m = std::ssize(solution_);
        T* z = signals_.data();
        Index first = 0;
        for (const auto& input : inputs_) {
            const graph::Term<T> term(store_, units_, input.source);
            term.products(0, rows, [&](const graph::TermProduct<T>& q) {
                const MatrixRef<const T> in = term.input(q);
                for (Index r = 0; r < rows; ++r) std::copy_n(in.row(r), in.cols, z + r * m + first);
            });
            first += term.width();
        }
        if (bias_ >= 0)
            for (Index r = 0; r < rows; ++r) z[r * m + first] = 1;
        for (Index j = 0; j < n; ++j) {
            for (Index r = 0; r < rows; ++r)
                for (Index i = 0; i < m; ++i) scaled_[r * m + i] = modulus_rows_[r * n + j] * z[r * m + i];
            gemm<T>(weight, t(MatrixRef<const T>(scaled_.data(), rows, m)), {z, rows, m}, keep,
                    {matrix_.data() + j * m * m, m, m});
        }
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

    void solve_full(std::span<const typename Metric<T>::Slot> group, T part, const Damping& damping) {
        const Index n = units_.width, m = std::ssize(solution_);
        for (Index j = 0; j < n; ++j) {
            T* M = factor_.data();
            std::copy_n(matrix_.data() + j * m * m, m * m, M);
            T trace = 0;
            for (Index i = 0; i < m; ++i) trace += M[i * m + i];
            const T epsilon = damping.epsilon(trace, m);
            for (Index i = 0; i < m; ++i) M[i * m + i] += epsilon;
            const auto each = [&](auto&& f) {  // weights of unit j, in the order of the matrix
                Index i = 0;
                for (const auto& input : inputs_)
                    for (Index row = 0; row < input.source.input.width; ++row, ++i)
                        f(solution_[i], group[input.place], row * n + j);
                if (bias_ >= 0) f(solution_[i], group[bias_], j);
            };
            each([&](T& r, const typename Metric<T>::Slot& p, Index e) { r = part * p.gradient[e]; });
            detail::solve_symmetric(m, M, solution_.data());
            each([&](T& r, const typename Metric<T>::Slot& p, Index e) { p.direction[e] = -r; });
        }
    }

    const graph::UnitsRecord<T>& units_;
    std::vector<Input> inputs_;
    int bias_;                     // its index in the group, or -1
    double keep_ = 1;              // factor of the sums at the next add()
    std::vector<T> m00_, matrix_;  // M_00 [n]; full: [n, order, order]
    // while sums are added: Φ, an input times itself or Φ, all inputs side by side
    std::vector<T> modulus_rows_, scaled_, signals_, unit_sums_;
    // while directions are solved for, by unit; full: one unit's matrix and step
    std::vector<T> epsilon_, inverse_, bias_part_, factor_, solution_;
};

}}  // namespace isogloss
