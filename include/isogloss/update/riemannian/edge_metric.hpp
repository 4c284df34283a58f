/// @file update/riemannian/edge_metric.hpp  Sums of the metric of the networks on a sparse graph.
#pragma once

#include <isogloss/graph/store.hpp>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/kernel/transpose.hpp>

namespace isogloss {

/// Sums of the metric of each unit j and symbol x over its inputs i, k, the always-on 0 among them:
///
///     M_ik = Σ a_i^{t-1} a_k^{t-1} Φ_j^t      over t with x_t = x
///
/// Positions are sorted by symbol and turned, block by block, so that a sum runs over numbers side by side
/// and stays in a register; where edges are shared by the symbols their squares are summed over all of them.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eq. (26).
template <class T> class EdgeMetric {
public:
    /// `full`: all pairs of inputs, else the squares alone. `rbpm`: Φ is the modulus, else B².
    EdgeMetric(graph::Store<T>& store, const graph::EdgesRecord& edges, bool full, bool rbpm)
        : store_(store), edges_(edges), full_(full), rbpm_(rbpm) {
        const Index N = edges.units, A = symbols();
        at_.push_back(0);
        for (Index j = 0; j < N; ++j) {
            const Index m = inputs(j);
            at_.push_back(at_.back() + (full ? m * m : m));
        }
        const std::string who = message("riemannian: '", edges.name, "'");
        within_memory(who, bytes_of(who, {A, N + edges.edges() + at_.back()}, sizeof(T)), [&] {
            whole.resize(std::size_t(A * N)), cross.resize(std::size_t(A * edges.edges()));
            square.resize(std::size_t((edges.rho < 0 ? A : 1) * at_.back()));
        });
        start.resize(std::size_t(N));
        block_ = std::clamp<Index>(4096 / N / lanes * lanes, 4 * lanes, 128);
        for (auto* rows : {&gathered_, &activity_, &modulus_}) rows->resize(std::size_t(N * block_));
        scaled_.resize(std::size_t(block_));
        ends_.resize(std::size_t(A + 1));
        position_.resize(std::size_t(store.capacity_rows()));
    }

    std::vector<T> whole, cross;  ///< M_00 [A, N]; M_0i [A, edges]
    std::vector<T> square;        ///< by unit: M_ii, or when full the lower triangle of M_ik, [A or 1, end]
    std::vector<T> start;         ///< Φ^{-1} [N], of the start values

    Index inputs(Index j) const {
        return edges_.first[std::size_t(j) + 1] - edges_.first[std::size_t(j)];
    }  ///< of unit j
    const T* squares(Index symbol, Index j) const {
        return square.data() + symbol * at_.back() + at_[std::size_t(j)];
    }  ///< of unit j; symbol 0 where edges are shared
    Index symbols() const { return store_.at(store_.tokens, edges_.tokens).vocabulary; }  ///< A

    void clear() {
        for (auto* sums : {&whole, &cross, &square, &start}) std::fill(sums->begin(), sums->end(), T(0));
    }

    /// Adds the last passes times `weight`.
    void add(double weight) {
        const Index N = edges_.units, A = symbols();
        const T c = static_cast<T>(weight);
        const T *before = store_.value(edges_.activity, -1), *flow = store_.adjoint(edges_.potential, rbpm_);
        sort();
        for (Index x = 0, r = 0; x < A; ++x)
            for (const Index end = ends_[std::size_t(x)]; r < end;) {
                const Index count = std::min(block_, end - r), padded = (count + lanes - 1) / lanes * lanes;
                gather(r, count, [&](Index i, T* out) { std::copy_n(before + i * N, N, out); });
                kernel::pack_transposed(N, count, padded, gathered_.data(), N, activity_.data());
                gather(r, count, [&](Index i, T* out) {
                    const T* B = flow + i * N;
                    for (Index j = 0; j < N; ++j) out[j] = c * (rbpm_ ? B[j] : B[j] * B[j]);
                });
                kernel::pack_transposed(N, count, padded, gathered_.data(), N, modulus_.data());
                add_block(x, padded);
                r += count;
            }
        flow = store_.adjoint(edges_.potential, rbpm_, -1);
        for (Index b = 0; b < store_.batch; ++b)
            if (!(store_.value(edges_.started, -1)[b] > 0))
                for (Index j = 0; j < N; ++j) {
                    const T v = flow[b * N + j];
                    start[std::size_t(j)] += c * (rbpm_ ? v : v * v);
                }
    }

private:
    using L = kernel::Lanes<T>;
    static constexpr Index lanes = std::max<Index>(kernel::lane_count<L>, kernel::Square<T>::side);

    // Positions t·B + b by symbol; those of symbol x end at ends_[x].
    void sort() {
        const Token* x = store_.at(store_.tokens, edges_.tokens).value;
        std::fill(ends_.begin(), ends_.end(), Index{0});
        for (Index r = 0; r < store_.rows(); ++r) ++ends_[std::size_t(x[r]) + 1];
        for (std::size_t v = 1; v < ends_.size(); ++v) ends_[v] += ends_[v - 1];  // so far where they begin
        for (Index r = 0; r < store_.rows(); ++r) position_[std::size_t(ends_[std::size_t(x[r])]++)] = r;
    }

    template <class F> void gather(Index r, Index count, F&& row) {
        for (Index k = 0; k < count; ++k)
            row(position_[std::size_t(r + k)], gathered_.data() + k * edges_.units);
    }

    void add_block(Index symbol, Index count) {
        const Index N = edges_.units;
        T *of_whole = whole.data() + symbol * N, *of_cross = cross.data() + symbol * edges_.edges(),
          *of_square = square.data() + (edges_.rho < 0 ? symbol : 0) * at_.back();
        T* scaled = scaled_.data();
        for (Index j = 0; j < N; ++j) {
            const T* phi = modulus_.data() + j * count;
            of_whole[j] += sum(count, [&](auto at) { return at.load(phi); });
            const Index first = edges_.first[std::size_t(j)], m = inputs(j);
            T* M = of_square + at_[std::size_t(j)];
            for (Index k = 0; k < m; ++k) {
                const T* v = input(first + k, count);
                of_cross[first + k] += sum(count, [&](auto at) {
                    const L product = at.load(v) * at.load(phi);
                    at.store(scaled, product);
                    return product;
                });
                for (Index l = full_ ? 0 : k; l <= k; ++l) {
                    const T* other = input(first + l, count);
                    M[full_ ? k * m + l : k] +=
                        sum(count, [&](auto at) { return at.load(scaled) * at.load(other); });
                }
            }
        }
    }
    const T* input(Index edge, Index count) const {
        return activity_.data() + edges_.from[std::size_t(edge)] * count;
    }

    // Σ f over lane groups of a padded row.
    template <class F> static T sum(Index count, F&& f) {
        L total(T(0));
        for (Index i = 0; i < count; i += kernel::lane_count<L>) total += f(kernel::Full<T, L>{i});
        return kernel::lane_sum(total);
    }

    graph::Store<T>& store_;
    const graph::EdgesRecord& edges_;
    bool full_, rbpm_;
    std::vector<Index> at_;  // where each unit's squares begin
    Index block_;            // positions at a time
    std::vector<T> gathered_, activity_, modulus_, scaled_;
    std::vector<Index> ends_, position_;
};

}  // namespace isogloss
