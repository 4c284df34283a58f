/// @file node/sparse_recurrent.hpp  Recurrent units on a sparse random graph: what Glnn and its kin share.
#pragma once

#include <array>
#include <isogloss/elementary.hpp>
#include <isogloss/graph/node.hpp>
#include <isogloss/kernel/activation.hpp>
#include <isogloss/node/dense_edges.hpp>
#include <isogloss/node/edges.hpp>
#include <memory>
#include <optional>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of the networks on a sparse graph.
struct SparseRecurrentOptions {
    Index units = 0;  ///< N ≥ 1
    Index edges = 3;  ///< d, outgoing edges of each unit, including its self-loop: 1 ≤ d ≤ N
    Activation activation = Activation::tanh;
    std::uint64_t seed = 1;  ///< of the random graph
    double longest = 0;  ///< initial time scales 1/α_j: 0 for 1, 2, …, N, else ≥ 1 for 1 … longest, geometric
    Array<double> frequencies = {};  ///< f_y of the symbols; empty: all equal
    double spread = 1;               ///< half-width ≥ 0 of the distribution of u in the start values
    double bound = 0;                ///< c > 0: V is clipped to [-c, c]; 0: no bound
};

/// Start values of a row of transition weights [A, N + N d]; see SparseRecurrent.
class SparseStart {
public:
    SparseStart(const SparseRecurrentOptions& options, const Edges& edges, bool leak)
        : options_(options), from_(edges.from), target_(edges.count()), leak_(leak) {
        edges.for_each([&](Index e, Index, Index j) { target_[e] = j; });
    }

    /// Value in row `symbol` of A, column c.
    double operator()(const Random& random, Index A, Index, Index symbol, Index c) const {
        return of_symbol(random, A, symbol, c) + of_all(c);
    }
    /// The part of it that all symbols share: a loop, or what the logistic function adds to a bias.
    double of_all(Index c) const {
        const Index N = options_.units, j = c < N ? c : target_[c - N];
        const double loop = leak_ ? -alpha(j) : 1 - alpha(j);  // of the tanh network
        if (c < N) return logistic() ? -2 * loop : 0;
        return from_[c - N] == j ? (logistic() ? 4 * loop : loop) : 0;
    }
    /// The rest: random, centred over the symbols; 0 for an edge.
    double of_symbol(const Random& random, Index A, Index symbol, Index c) const {
        const Index N = options_.units;
        if (c >= N) return 0;
        const auto u = [&](Index y, Index k) {
            return options_.spread * (2 * random.uniform(y * N + k) - 1);
        };
        if (std::ssize(*mean_) != N) {
            mean_->assign(N, 0.0);
            for (Index y = 0; y < A; ++y)
                for (Index k = 0; k < N; ++k)
                    (*mean_)[k] += (options_.frequencies.empty() ? 1 / static_cast<double>(A)
                                                                 : options_.frequencies[y]) *
                                   u(y, k);
        }
        const double value = alpha(c) * (u(symbol, c) - (*mean_)[c]);
        return logistic() ? 2 * value : value;
    }

private:
    bool logistic() const { return options_.activation == Activation::logistic; }
    double alpha(Index j) const {
        using kernel::elementary::exp, kernel::elementary::log;
        const Index N = options_.units;
        return options_.longest == 0
                   ? 1 / static_cast<double>(j + 1)
                   : exp(log(options_.longest) *
                         (N == 1 ? 0.0 : -static_cast<double>(j) / static_cast<double>(N - 1)));
    }

    SparseRecurrentOptions options_;
    Array<Index> from_, target_;
    bool leak_;
    // Σ_y f_y u_{jy}, computed once for all copies of this functor.
    std::shared_ptr<Array<double>> mean_ = std::make_shared<Array<double>>();
};

/// Recurrent units on a sparse graph. With i → j ranging over the edges into unit j:
///
///     V_j^t = leak · V_j^{t-1} + τ_{0j} + Σ_{i→j} τ_{ij} a_i^{t-1},     a_j^t = s(V_j^t)
///
/// where the τ of step t are those of the symbol x_t (gated); in LeakyRnn and SparseRnn only τ_{0j} (called ρ) depends
/// on it.
/// After a reset V starts from the trained `start`; later passes continue from the end of the previous one.
///
/// With a leak and no bound V can grow until a = ±1 exactly: the unit is then constant, has no gradient and
/// does not recover. With a bound c the sum is clipped to [-c, c] at every step, with derivative 0 where it is
/// clipped; the next symbol may lead back.
///
/// Shapes   x [T, B] tokens below A, or a sequence u [T, B, m];  a [T, B, N];  N = units, d = edges
///          gated by tokens    tau [A, N + N d]: a row holds τ_{0j} for j = 0 … N-1, then the edges by target
///          gated by u         the row is u_t P + b: P [m, N + N d], b [1, N + N d]. After an Embedding this
///                             is the factored table for large alphabets
///          not gated          tau [1, N d], and rho [A, N] or, by u, ρ = u_t P + b: P [m, N], b [1, N]
///          start [1, N]
/// Start    loops -α_j, other edges 0, τ_{0jx} = α_j (u_{jx} - Σ_y f_y u_{jy}), u uniform on ±spread, V⁰ = 0;
///          α_j = 1/j or longest^{-(j-1)/(N-1)}. Without the leak the loop is 1 - α_j, which gives a unit the
///          same time scale in the linear range. Logistic: the equivalent network by a = (1 + tanh(V/2))/2.
/// Modulus  the recursion (24): leak and self-loop form one edge and are added before squaring.
/// Source   Ollivier 2013, "Riemannian metrics for neural networks II", eqs. (8)-(13), (22), (24), (25),
///          (29), (31)-(33); remark 1: leak and gates each without the other. Departures: a^t is the activity
///          after symbol x_t is read, as in the other cells, so the first symbol of a sequence is not
///          predicted; the start values are a reconstruction of lost formulas.
template <class T, bool leak, bool gated> struct SparseRecurrent {
    using Options = SparseRecurrentOptions;
    Options options;
    EdgeRecord<T> record;
    DenseEdges<T> dense;
    Tokens x;
    std::optional<Units<T>> rows;  // of transition weights, or of biases if not gated, for a sequence
    Weight<T> tau, rho, start;
    Seq<T> V, a, started;  // started: 1 from the first step after a reset, before which V is `start`

    Seq<T> setup(Setup<T>& s, Tokens symbols) {
        x = symbols;
        s.read(x);
        draw_edges(s);
        const Index N = options.units, E = record.edges.count();
        if (!options.frequencies.empty() && std::ssize(options.frequencies) != x.vocabulary)
            s.fail("found ", options.frequencies.size(), " frequencies for ", x.vocabulary, " symbols");
        const SparseStart values(options, record.edges, leak);
        if constexpr (gated) {
            tau = s.weight("tau", x.vocabulary, N + E, values);
            s.lookup(tau);
        } else {
            rho = s.weight("rho", x.vocabulary, N, values);
            s.lookup(rho);
            share_edges(s, values);
        }
        dense.setup(s, record.edges, gated ? x.vocabulary : 1);
        return declare(s);
    }

    Seq<T> setup(Setup<T>& s, Seq<T> u) {
        draw_edges(s);
        const Index N = options.units, E = record.edges.count();
        if (!options.frequencies.empty())
            s.fail("frequencies belong to symbols, and the input is a sequence; leave them empty");
        const SparseStart values(options, record.edges, leak);
        rows = s.units("rows", gated ? N + E : N)
                   .init([values](const Random& r, Index m, Index, Index i, Index e) {
                       return values.of_symbol(r, m, i, e);
                   })
                   .from("P", u)
                   .bias("b",
                         [values](const Random&, Index, Index, Index, Index e) { return values.of_all(e); });
        if constexpr (!gated) {
            rho = s.bias(*rows);
            share_edges(s, values);
            dense.setup(s, record.edges, 1);
        }
        return declare(s);
    }

    void forward(Forward<T>& p) {
        const Index N = options.units, B = p.batch();
        if (rows) p.affine(*rows);
        begin(p);
        const bool by_matrix = dense.applies(p.rows());
        if (by_matrix) dense.by_source(record.edges, [&](Index symbol) { return row_of(p, symbol).weight; });
        for (const Index t : p.steps())
            for (Index b = 0; b < B; ++b) {
                const T* before = p.data(a, t - 1) + b * N;
                const T* V0 = p.data(V, t - 1) + b * N;
                T* V1 = p.data(V, t) + b * N;
                const Row row = row_at(p, t, b);
                if (by_matrix) dense.potential(symbol(p, t, b), leak ? V0 : nullptr, row.bias, before, V1);
                else
                    for (Index j = 0, e = 0; j < N; ++j) {
                        T sum = leak ? V0[j] + row.bias[j] : row.bias[j];
                        for (const Index end = edges().first[j + 1]; e < end; ++e)
                            sum += row.weight[e] * before[edges().from[e]];
                        V1[j] = sum;
                    }
                if (options.bound > 0)
                    for (Index j = 0; j < N; ++j) V1[j] = std::clamp(V1[j], -bound(), bound());
                kernel::activate(options.activation, N, V1, p.data(a, t) + b * N);
            }
    }

    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        constexpr bool is_gradient = Backward<T, Quantity>::is_gradient;
        p.adjoint_data(a), p.adjoint_data(V);
        const bool by_matrix = dense.applies(p.rows());
        const auto weights = [&](Index symbol) { return row_of(p, symbol).weight; };
        if (by_matrix && is_gradient) dense.by_target(edges(), weights);
        else if (by_matrix) dense.squares_by_target(edges(), !leak, weights);
        T* shared = nullptr;  // the gradient of tau where one row serves all symbols
        if constexpr (is_gradient && !gated)
            if (p.is_trained(tau)) shared = p.gradient(tau).data;
        for (Index t = p.time() - 1; t >= -1; --t)
            for (Index b = 0; b < p.batch(); ++b) {
                flow_to_potential(p, t, b);
                if (t < 0) continue;
                if constexpr (is_gradient) gradient_step(p, t, b, by_matrix, shared);
                else modulus_step(p, t, b, by_matrix);
            }
        if constexpr (is_gradient) {
            if (by_matrix && p.is_trained(tau))
                dense.collect(edges(), [&](Index symbol) {
                    return shared ? shared : p.gradient_row(tau, symbol) + options.units;
                });
            for (Index b = 0; b < p.batch() && p.is_trained(start); ++b)
                if (!(p.data(started, -1)[b] > 0))
                    kernel::add(options.units, p.adjoint_data(V, -1) + b * options.units,
                                p.gradient(start).data);
        }
        if (rows) p.affine_backward(*rows);
    }

private:
    static constexpr Index unit_count = 64;  // units at a time

    // A row of transition weights: N biases, and the weights by edge.
    struct Row {
        const T *bias, *weight;
    };

    const Edges& edges() const { return record.edges; }

    void draw_edges(Setup<T>& s) {
        s.require("units", options.units, 1);
        s.require("edges", options.edges, 1, options.units);
        if (options.longest != 0) s.require("longest", options.longest, 1);
        s.require("spread", options.spread, 0);
        s.require("bound", options.bound, 0);
        double total = 0;
        for (const double f : options.frequencies) {
            s.require("a frequency", f, 0);
            total += f;
        }
        if (!options.frequencies.empty()) s.require("the sum of the frequencies", total, Exclusive{0});
        for (double& f : options.frequencies) f /= total;
        record.edges = random_edges(options.units, options.edges, options.seed);
    }

    // The weights of edges that all steps have in common.
    void share_edges(Setup<T>& s, const SparseStart& values) {
        tau = s.weight("tau", 1, record.edges.count(),
                       [values, N = options.units](const Random&, Index, Index, Index, Index e) {
                           return values.of_all(N + e);
                       });
        s.uses(tau);
    }

    Seq<T> declare(Setup<T>& s) {
        const Index N = options.units;
        start = s.weight("start", 1, N, constant(0));
        s.uses(start);
        a = s.recurrent("a", N);
        V = s.recurrent("V", N);
        s.open(V);
        started = s.recurrent("started", 1);
        record = {s.name(), std::move(record.edges), a, V, started, x, tau, rho, start};
        s.publish(record);
        return a;
    }

    // The state before the first step: carried over, or `start`.
    void begin(Forward<T>& p) {
        const Index N = options.units;
        for (Index b = 0; b < p.batch(); ++b) {
            if (p.data(started, -1)[b] > 0) continue;
            std::copy_n(p.values(start).data, N, p.data(V, -1) + b * N);
            kernel::activate(options.activation, N, p.data(V, -1) + b * N, p.data(a, -1) + b * N);
        }
        std::fill_n(p.data(started), p.rows(), T(1));
    }

    Row row_at(const Pass<T>& p, Index t, Index b) const {
        if (!rows) return row_of(p, p.data(x, t)[b]);
        const T* r = p.data(rows->z, t) + b * rows->z.width;
        return {r, gated ? r + options.units : p.values(tau).data};
    }
    Row row_of(const Pass<T>& p, Index symbol) const {
        if (!gated) return {p.values(rho).row(symbol), p.values(tau).data};
        const T* r = p.values(tau).row(symbol);
        return {r, r + options.units};
    }
    Index symbol(const Pass<T>& p, Index t, Index b) const { return gated ? p.data(x, t)[b] : 0; }

    void gradient_step(Backward<T, Gradient>& p, Index t, Index b, bool by_matrix, T* shared) {
        const Index N = options.units;
        const T* before = p.data(a, t - 1) + b * N;
        const T* flow = p.adjoint_data(V, t) + b * N;
        T* back = p.adjoint_data(a, t - 1) + b * N;
        T* d_bias = nullptr;  // null, like d_weight, where not trained
        if (rows) d_bias = p.adjoint_data(rows->z, t) + b * rows->z.width;
        else if (const auto w = gated ? tau : rho; p.is_trained(w))
            d_bias = p.gradient_row(w, p.data(x, t)[b]);
        if (d_bias) kernel::add(N, flow, d_bias);
        if (by_matrix) return dense.back(symbol(p, t, b), flow, p.is_trained(tau) ? before : nullptr, back);
        T* d_weight = !gated ? shared : d_bias ? d_bias + N : nullptr;
        const T* weight = row_at(p, t, b).weight;
        const Index* from = edges().from.data();
        for (Index j = 0, e = 0; j < N; ++j) {
            const T B_j = flow[j];
            for (const Index end = edges().first[j + 1]; e < end; ++e) {
                if (d_weight) d_weight[e] += before[from[e]] * B_j;
                back[from[e]] += weight[e] * B_j;
            }
        }
    }

    void modulus_step(Backward<T, Modulus>& p, Index t, Index b, bool by_matrix) {
        const Index N = options.units;
        const T* flow = p.adjoint_data(V, t) + b * N;
        T* back = p.adjoint_data(a, t - 1) + b * N;
        T* of_row = rows ? p.adjoint_data(rows->z, t) + b * rows->z.width : nullptr;
        if (of_row) kernel::add(N, flow, of_row);
        if (by_matrix) return dense.back(symbol(p, t, b), flow, nullptr, back);
        const T* weight = row_at(p, t, b).weight;
        // With a leak, the loop (a unit's first edge) is squared together with it in flow_to_potential.
        edges().for_each([&](Index e, Index i, Index j) {
            if (!(leak && e == edges().first[j])) back[i] += weight[e] * weight[e] * flow[j];
        });
        if (!of_row || !gated) return;
        const T* before = p.data(a, t - 1) + b * N;
        edges().for_each(
            [&](Index e, Index i, Index j) { of_row[N + e] += before[i] * before[i] * flow[j]; });
    }

    T bound() const { return static_cast<T>(options.bound); }

    // Adjoint or modulus of V_t before clipping, from that of a_t, which is complete, and through the leak
    // from that of V_{t+1}.
    template <class Quantity> void flow_to_potential(Backward<T, Quantity>& p, Index t, Index b) const {
        constexpr bool is_gradient = Backward<T, Quantity>::is_gradient;
        const Index N = options.units;
        const T* activity = p.data(a, t) + b * N;
        const T* in = p.adjoint_data(a, t) + b * N;
        T* out = p.adjoint_data(V, t) + b * N;
        for (Index j = 0; j < N; j += unit_count) {  // added to that of nodes that read V, such as a penalty
            const Index n = std::min(unit_count, N - j);
            std::array<T, unit_count> of_potential;
            std::copy_n(out + j, n, of_potential.data());
            kernel::activation_backward<!is_gradient>(options.activation, n, activity + j, in + j, out + j);
            kernel::add(n, of_potential.data(), out + j);
        }
        if (leak && t + 1 < p.time()) flow_through_leak<is_gradient>(p, t, b);
        if (!(options.bound > 0) || t < 0) return;
        const T* potential = p.data(V, t) + b * N;
        for (Index j = 0; j < N; ++j)
            if (std::abs(potential[j]) >= bound()) out[j] = 0;
    }

    // Adds the contribution of V_{t+1} through the leak.
    template <bool is_gradient, class Quantity>
    void flow_through_leak(Backward<T, Quantity>& p, Index t, Index b) const {
        const Index N = options.units;
        const T* activity = p.data(a, t) + b * N;
        T* out = p.adjoint_data(V, t) + b * N;
        const T* later = p.adjoint_data(V, t + 1) + b * N;
        if constexpr (is_gradient) {
            for (Index j = 0; j < N; ++j) out[j] += later[j];
        } else {
            const T* weight = row_at(p, t + 1, b).weight;
            const auto add = [&](auto slope) {
                for (Index j = 0; j < N; ++j) {
                    const T direct = 1 + slope(activity[j]) * weight[edges().first[j]];
                    out[j] += direct * direct * later[j];
                }
            };
            if (options.activation == Activation::tanh) add([](T v) { return 1 - v * v; });
            else add([&](T v) { return kernel::activation_slope(options.activation, v); });
        }
    }
};

}}  // namespace isogloss
