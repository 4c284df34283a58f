/// @file update/riemannian/edge_metric.hpp  The metric of a network on a sparse graph.
#pragma once

#include <isogloss/graph/store.hpp>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/kernel/transpose.hpp>
#include <isogloss/node/edges.hpp>
#include <isogloss/update/riemannian/metric.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The metric of transition weights of Glnn, Gnn, LeakyRnn and SparseRnn that are selected by symbols, or are the same
/// at every step. For each unit j and symbol x, over the inputs i, k of j (including the always-on 0), with sums over t
/// with x_t = x,
///
///     G_i = Σ a_i^{t-1} B_j^t,   M_ik = Σ a_i^{t-1} a_k^{t-1} Φ_j^t
///
/// the step is, with ε added to the diagonal,
///
///     full             Δ = -M⁻¹ G
///     quasi-diagonal   Δ_i = -(G_i - G_0 M_0i/M_00) / (M_ii - M_0i²/M_00)
///                      Δ_0 = -G_0/M_00 - Σ_i (M_0i/M_00) Δ_i
///     diagonal         Δ_i = -G_i / M_ii
///
/// where B is the derivative of the loss, Φ = B² for RUOP, the modulus for RBPM.
///
/// In LeakyRnn and SparseRnn edges are shared by the symbols and each symbol has its own bias ρ: the metric is an arrow
/// matrix, whose symbol block is eliminated by a Schur complement; the quasi-diagonal form keeps the diagonal
/// of the complement. Where a sequence u makes the biases, u P + b, there is one b for all steps: it and P have a
/// UnitMetric, to whose step of b this one adds -Σ_i (M_0i/M_00) Δ_i, so that the affine changes of activities leave all
/// steps the same. Weights of constant inputs and of unseen symbols do not move.
///
/// Positions are sorted by symbol and transposed block by block, so that a sum runs over contiguous memory
/// and stays in a register.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (23)-(28), (34)-(35).
template <class T> class EdgeMetric final : public Metric<T> {
public:
    /// Throws UsageError when some of these weights are not in `group`, or memory does not suffice.
    EdgeMetric(graph::Store<T>& store, const Parameters<T>& group, const EdgeRecord<T>& record,
               UnitModulus modulus, MetricForm form)
        : Metric<T>(store, message("riemannian: '", record.name, "'"),
                    form_on_graph(form, record.edges.count(), record.edges.units), modulus),
          record_(record),
          edges_(record.edges),
          tau_(this->serve(group, record.tau)),
          rho_(this->serve(group, record.rho)) {
        if (tau_ < 0 || (!gated() && rho_ < 0))
            throw UsageError("riemannian: the group lacks parameters of '", record.name,
                             "', whose metric covers all but start values; include them");
        const Index N = edges_.units, A = symbols();
        Index most = 0;
        at_.push_back(0);
        for (Index j = 0; j < N; ++j) {
            const Index m = inputs(j);
            most = std::max(most, m);
            at_.push_back(at_.back() + (full() ? m * m : m));
        }
        const auto name = [&](const char* what) { return message(what, "/", record.name); };
        this->take_sums(name("m00"), m00, A, N);
        this->take_sums(name("cross"), cross, A, edges_.count());
        this->take_sums(name("square"), square, gated() ? A : 1, at_.back());
        block_ = std::clamp<Index>(4096 / N / lanes * lanes, 4 * lanes, 128);
        for (auto* rows : {&gathered_, &activities_, &moduli_}) this->take(*rows, N, block_);
        this->take(scaled_, block_);
        ends_.resize(A + 1);
        position_.resize(store.capacity_rows());
        this->take(slopes_, gated() ? 1 : A, most), this->take(factor_, most, most);
        for (auto* by_input : {&step_, &diagonal_}) this->take(*by_input, most);
    }

    std::vector<T> m00, cross;  ///< M_00 [A, N]; M_0i [A, edges]
    std::vector<T> square;      ///< by unit: M_ii, or, if full, the lower triangle of M_ik, [A or 1, end]

    /// Inputs of unit j.
    Index inputs(Index j) const { return edges_.first[j + 1] - edges_.first[j]; }
    /// The squares of unit j; symbol 0 where edges are shared.
    const T* squares(Index symbol, Index j) const { return square.data() + symbol * at_.back() + at_[j]; }
    /// A; 1 without symbols
    Index symbols() const { return by_symbol() ? store_[record_.tokens].vocabulary : 1; }

    void add(double weight) override {
        const bool rbpm = this->wants_modulus();
        const Index N = edges_.units, A = symbols();
        const T c = static_cast<T>(weight);
        const T *before = store_.value(record_.activity.id, -1),
                *flow = store_.adjoint(record_.potential.id, rbpm);
        sort();
        for (Index x = 0, r = 0; x < A; ++x)
            for (const Index end = ends_[x]; r < end;) {
                const Index count = std::min(block_, end - r), padded = (count + lanes - 1) / lanes * lanes;
                gather(r, count, [&](Index i, T* out) { std::copy_n(before + i * N, N, out); });
                kernel::pack_transposed(N, count, padded, gathered_.data(), N, activities_.data());
                gather(r, count, [&](Index i, T* out) {
                    const T* B = flow + i * N;
                    for (Index j = 0; j < N; ++j) out[j] = c * this->modulus(B[j]);
                });
                kernel::pack_transposed(N, count, padded, gathered_.data(), N, moduli_.data());
                add_block(x, padded);
                r += count;
            }
    }

    void direction(std::span<const typename Metric<T>::Slot> group, double scale,
                   const Damping& damping) override {
        const Index N = edges_.units, E = edges_.count();
        const T part = static_cast<T>(scale);
        const typename Metric<T>::Slot tau = group[tau_];
        for (Index j = 0; j < N; ++j)
            if (!gated()) direction({j, 0, symbols()}, group[rho_], tau, part, damping);
            else
                for (Index x = 0; x < symbols(); ++x) {  // a row of tau: N biases, then the edges
                    const T* G = tau.gradient + x * (N + E);
                    T* delta = tau.direction + x * (N + E);
                    direction({j, x, 1}, {G, delta}, {G + N, delta + N}, part, damping);
                }
    }

private:
    using L = kernel::Lanes<T>;
    static constexpr Index lanes = 64 / Index{sizeof(T)};

    // Positions t·B + b by symbol; those of symbol x end at ends_[x], by a counting sort.
    void sort() {
        const Token* x = by_symbol() ? store_[record_.tokens].value : nullptr;
        const auto symbol = [x](Index r) { return x ? std::size_t(x[r]) : 0; };
        std::fill(ends_.begin(), ends_.end(), Index{0});
        for (Index r = 0; r < store_.rows(); ++r) ++ends_[symbol(r) + 1];
        for (std::size_t v = 1; v < ends_.size(); ++v) ends_[v] += ends_[v - 1];  // where they begin
        for (Index r = 0; r < store_.rows(); ++r) position_[ends_[symbol(r)]++] = r;
    }

    template <class F> void gather(Index r, Index count, F&& row) {
        for (Index k = 0; k < count; ++k) row(position_[r + k], gathered_.data() + k * edges_.units);
    }

    void add_block(Index symbol, Index count) {
        const Index N = edges_.units;
        T *of_m00 = m00.data() + symbol * N, *of_cross = cross.data() + symbol * edges_.count(),
          *of_square = square.data() + (gated() ? symbol : 0) * at_.back();
        T* scaled = scaled_.data();
        for (Index j = 0; j < N; ++j) {
            const T* phi = moduli_.data() + j * count;
            of_m00[j] += sum(count, [&](auto at) { return at.load(phi); });
            const Index first = edges_.first[j], m = inputs(j);
            T* M = of_square + at_[j];
            for (Index k = 0; k < m; ++k) {
                const T* v = input(first + k, count);
                of_cross[first + k] += sum(count, [&](auto at) {
                    const L product = at.load(v) * at.load(phi);
                    at.store(scaled, product);
                    return product;
                });
                for (Index l = full() ? 0 : k; l <= k; ++l) {
                    const T* other = input(first + l, count);
                    M[full() ? k * m + l : k] +=
                        sum(count, [&](auto at) { return at.load(scaled) * at.load(other); });
                }
            }
        }
    }
    const T* input(Index edge, Index count) const { return activities_.data() + edges_.from[edge] * count; }

    // Σ f over lane groups of a padded row.
    template <class F> static T sum(Index count, F&& f) {
        kernel::LaneSum<T> sum;
        kernel::sweep_sums<T>(0, count, [&](auto at, Index r) { sum.part[r] += f(at); });
        return sum.total();
    }

    // A unit with its biases: that of symbol x if gated, else those of all symbols, with x = 0.
    struct Unit {
        Index j, x, biases;
    };

    // The step of one unit, whose biases are N apart in `bias`. They are eliminated from the systems of the
    // inputs (one for all, or one for each), and follow from the solution.
    void direction(const Unit& u, const typename Metric<T>::Slot& bias, const typename Metric<T>::Slot& edge,
                   T part, const Damping& damping) {
        const Index N = edges_.units, first = edges_.first[u.j], m = inputs(u.j);
        const T epsilon = damp(u, damping);
        const T *M00 = m00.data() + u.x * N + u.j, *slopes = slopes_.data();
        T* step = step_.data();
        find_slopes(u, epsilon);
        for (Index k = 0; k < m; ++k) {
            step[k] = part * edge.gradient[first + k];
            for (Index x = 0; x < biases_beside(u); ++x)
                step[k] -= slopes[x * m + k] * (part * bias.gradient[x * N + u.j]);
        }
        if (full()) solve_all(u, epsilon);
        else solve_each(u, epsilon);
        for (Index k = 0; k < m; ++k) edge.direction[first + k] = -step[k];
        for (Index x = 0; x < u.biases; ++x) {
            T& delta = bias.direction[x * N + u.j];  // without symbols: that of a UnitMetric
            if (by_symbol()) delta = -detail::ratio(part * bias.gradient[x * N + u.j], M00[x * N] + epsilon);
            for (Index k = 0; k < m && x < biases_beside(u); ++k) delta += slopes[x * m + k] * step[k];
        }
    }

    // Number of biases coupled with the inputs.
    Index biases_beside(const Unit& u) const { return form_ == MetricForm::diagonal ? 0 : u.biases; }
    const T* crosses(const Unit& u, Index x) const {
        return cross.data() + (u.x + x) * edges_.count() + edges_.first[u.j];
    }
    T damp(const Unit& u, const Damping& damping) const {
        const Index m = inputs(u.j);
        const T* M = squares(u.x, u.j);
        T trace = 0;
        for (Index x = 0; x < u.biases; ++x) trace += m00[(u.x + x) * edges_.units + u.j];
        for (Index k = 0; k < m; ++k) trace += M[full() ? k * m + k : k];
        return damping.epsilon(trace, u.biases + m);
    }
    // M_0i / M_00 [biases, inputs].
    void find_slopes(const Unit& u, T epsilon) {
        const Index m = inputs(u.j);
        for (Index x = 0; x < biases_beside(u); ++x) {
            const T diagonal = m00[(u.x + x) * edges_.units + u.j] + epsilon;
            for (Index k = 0; k < m; ++k) slopes_[x * m + k] = detail::ratio(crosses(u, x)[k], diagonal);
        }
    }
    // Entry (k, l) of the inputs' matrix after elimination of the biases.
    T eliminated(const Unit& u, T entry, Index k, Index l) const {
        for (Index x = 0; x < biases_beside(u); ++x) entry -= slopes_[x * inputs(u.j) + k] * crosses(u, x)[l];
        return entry;
    }
    void solve_each(const Unit& u, T epsilon) {
        const T* M = squares(u.x, u.j);
        for (Index k = 0; k < inputs(u.j); ++k) {
            T& step = step_[k];
            const T diagonal = M[k] + epsilon;
            step = detail::quasi_diagonal(step, eliminated(u, diagonal, k, k), diagonal);
        }
    }
    void solve_all(const Unit& u, T epsilon) {
        const Index m = inputs(u.j);
        const T* M = squares(u.x, u.j);
        T* left = factor_.data();
        for (Index k = 0; k < m; ++k) {
            diagonal_[k] = M[k * m + k] + epsilon;
            for (Index l = 0; l <= k; ++l)
                left[k * m + l] = eliminated(u, l < k ? M[k * m + l] : diagonal_[k], k, l);
        }
        // for a constant input only rounding is left, which is no direction
        for (Index k = 0; k < m; ++k)
            if (!(left[k * m + k] > detail::redundant<T> * diagonal_[k])) {
                for (Index l = 0; l < m; ++l) left[std::max(k, l) * m + std::min(k, l)] = 0;
                step_[k] = 0;
            }
        detail::solve_symmetric(m, left, step_.data());
    }

    bool gated() const { return record_.rho.id < 0; }
    bool by_symbol() const { return record_.tokens.id >= 0; }

    using Metric<T>::store_, Metric<T>::full, Metric<T>::form_;
    const EdgeRecord<T>& record_;
    const Edges& edges_;
    int tau_, rho_;          // indices in the group
    std::vector<Index> at_;  // where each unit's squares begin
    Index block_;            // positions at a time
    std::vector<T> gathered_, activities_, moduli_, scaled_;
    std::vector<Index> ends_, position_;
    std::vector<T> slopes_, factor_, diagonal_, step_;  // of one unit
};

}}  // namespace isogloss
