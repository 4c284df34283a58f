/// @file node/dense_edges.hpp  Dense transition matrices of a graph with many edges, laid out for SIMD lanes.
#pragma once

#include <isogloss/graph/setup.hpp>
#include <isogloss/kernel/simd.hpp>
#include <isogloss/node/edges.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The weights of a network on a graph as matrices [N, N], one for each row of weights, zero where there is
/// no edge. With at least a quarter of all edges, vectorised products with whole matrices are several times as
/// fast as a loop over edges; in passes too short to repay the copy of the rows they are not used. Rebuilt for
/// each direction: by source, W[i, j], forward and by target, W[j, i], backward.
template <class T> class DenseEdges {
public:
    /// `rows`: number of rows of weights, one per symbol or one for all.
    void setup(Setup<T>& s, const Edges& e, Index rows) {
        const Index N = e.units;
        const Index positions = s.capacity().time * s.capacity().batch;
        if (4 * (e.count() / N) < N || N < 8 || positions / 4 < rows) return;
        units_ = N, rows_ = rows;
        weights_ = s.scratch({rows, N, N});
        if (!s.gradients()) return;
        gradient_ = s.scratch({rows, N, N});
        seen_ = s.template scratch<std::uint8_t>(rows);
    }

    /// Whether a pass over this many positions uses the matrices.
    bool applies(Index positions) const { return units_ > 0 && positions >= 4 * rows_; }

    /// For forward; weights(x) are the weights of row x by edge.
    template <class Weights> void by_source(const Edges& e, Weights&& weights) {
        scatter(e, weights, [N = units_](Index i, Index j, T w, T* W) { W[i * N + j] = w; });
    }
    /// For backward; also zeroes the gradients.
    template <class Weights> void by_target(const Edges& e, Weights&& weights) {
        scatter(e, weights, [N = units_](Index i, Index j, T w, T* W) { W[j * N + i] = w; });
        std::fill_n(gradient_, rows_ * units_ * units_, T(0));
        std::fill_n(seen_, rows_, std::uint8_t{0});
    }
    /// For a modulus: squared weights; the caller handles the loops unless `loops`.
    template <class Weights> void squares_by_target(const Edges& e, bool loops, Weights&& weights) {
        scatter(e, weights, [N = units_, loops](Index i, Index j, T w, T* W) {
            W[j * N + i] = i == j && !loops ? T(0) : w * w;
        });
    }

    /// V_j = start_j + bias_j + Σ_i W_ij a_i; start may be null.
    void potential(Index row, const T* start, const T* bias, const T* a, T* V) const {
        const Index N = units_;
        const T* W = weights_ + row * N * N;
        kernel::sweep<T>(0, N, [&](auto at) {
            L even = at.load(bias), odd(T(0));
            if (start) even = even + at.load(start);
            Index i = 0;
            for (; i + 1 < N; i += 2) {
                even += L(a[i]) * at.load(W + i * N);
                odd += L(a[i + 1]) * at.load(W + (i + 1) * N);
            }
            if (i < N) even += L(a[i]) * at.load(W + i * N);
            at.store(V, even + odd);
        });
    }
    /// back_i += Σ_j W_ij flow_j; with `a` also accumulates the gradient, W'_ij += a_i flow_j.
    void back(Index row, const T* flow, const T* a, T* back) {
        const Index N = units_;
        const T* W = weights_ + row * N * N;
        T* dW = gradient_ + row * N * N;
        if (a) seen_[row] = 1;
        kernel::sweep<T>(0, N, [&](auto at) {
            L sum = at.load(back);
            for (Index j = 0; j < N; ++j) sum += L(flow[j]) * at.load(W + j * N);
            at.store(back, sum);
            if (!a) return;
            const L z = at.load(a);
            for (Index j = 0; j < N; ++j) at.store(dW + j * N, at.load(dW + j * N) + L(flow[j]) * z);
        });
    }
    /// Adds the gradients accumulated by `back` to gradients(x), those of row x by edge.
    template <class Gradients> void collect(const Edges& e, Gradients&& gradients) const {
        const Index N = units_;
        for (Index x = 0; x < rows_; ++x) {
            if (!seen_[x]) continue;
            T* to = gradients(x);
            const T* dW = gradient_ + x * N * N;
            e.for_each([&](Index edge, Index i, Index j) { to[edge] += dW[j * N + i]; });
        }
    }

private:
    using L = kernel::Lanes<T>;

    template <class Weights, class Put> void scatter(const Edges& e, Weights& weights, Put put) {
        for (Index x = 0; x < rows_; ++x) {
            const T* w = weights(x);
            T* W = weights_ + x * units_ * units_;
            std::fill_n(W, units_ * units_, T(0));
            e.for_each([&](Index edge, Index i, Index j) { put(i, j, w[edge], W); });
        }
    }

    Index units_ = 0, rows_ = 0;
    T *weights_ = nullptr, *gradient_ = nullptr;  // [rows, N, N]
    std::uint8_t* seen_ = nullptr;                // rows that have a gradient
};

}}  // namespace isogloss
