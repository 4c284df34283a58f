/// @file update/riemannian/metric.hpp  Metrics on parameters, and the inversion of that of one unit.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/graph/graph.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/update/gradients.hpp>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The squared scale Φ attached to a unit at a position.
enum class UnitModulus {
    ruop,  ///< recurrent unitwise outer product: Φ = (∂l/∂V)²
    rbpm,  ///< recurrent backpropagated metric: Φ from backward<Modulus>
};

/// Which entries of a unit's metric M = Σ Φ z zᵀ over its inputs z (bias: z_0 = 1) are used.
enum class MetricForm {
    full,            ///< all, of networks on graphs; one linear system per unit. Elsewhere quasi-diagonal
    quasi_diagonal,  ///< M_ii, M_0i, M_00; linear in the inputs, invariant under affine changes of activities
    diagonal,        ///< M_ii; not invariant
    automatic,       ///< full for a network on a graph with few edges, see form_on_graph; else quasi-diagonal
};

/// The form of a network on a sparse graph: automatic is full, the form of the source, for at most 5 edges per
/// unit on average, else quasi-diagonal. Where it is full, a pass with its metric takes 1 to 12 % more time.
inline MetricForm form_on_graph(MetricForm form, Index edges, Index units) {
    if (form != MetricForm::automatic) return form;
    return edges <= 5 * units ? MetricForm::full : MetricForm::quasi_diagonal;
}

/// What is added to the diagonal of a unit's metric M before it is inverted:
///
///     ε = relative · mean diagonal of M + absolute
///
/// With a relative part ε is at least 1024 times the smallest normal number, so that no division is by 0. It is 0
/// without an absolute part for a unit without data, and may be 0 without a relative one; directions without data then
/// get a step of 0.
struct Damping {
    double relative = 0;  ///< ≥ 0
    double absolute = 0;  ///< ≥ 0

    /// ε of a unit whose diagonal has `count` entries that sum to `trace`.
    template <class T> T epsilon(T trace, Index count) const {
        if (relative == 0) return static_cast<T>(absolute);
        if (absolute == 0 && trace == T(0)) return T(0);
        return std::max(static_cast<T>(relative) * trace / static_cast<T>(count) + static_cast<T>(absolute),
                        std::numeric_limits<T>::min() * 1024);
    }
};

namespace detail {

/// The index of a parameter in a group; -1 if it is not in it, or an empty handle.
template <class T> int place(graph::Store<T>& store, const Parameters<T>& group, Weight<T> w) {
    if (w.id < 0) return -1;
    const auto found = std::find(group.begin(), group.end(), &store[w]);
    return found == group.end() ? -1 : static_cast<int>(found - group.begin());
}

}  // namespace detail

/// The metric of some parameters of a group: it owns its sums M over positions, and solves for the step
/// Δ = -(M + ε)⁻¹ G. With any metrics, Riemannian takes steps at a fixed rate and SearchStep tries several; both take one
/// of your own, which declares in its constructor what it serves and sums, as docs/riemannian.md shows.
template <class T> class Metric {
public:
    /// A parameter of a group as a metric sees it.
    struct Slot {
        const T* gradient;  ///< G
        T* direction;       ///< Δ, to be written
    };
    /// Sums, with their name in a checkpoint.
    struct Sums {
        std::string name;
        std::vector<T>* values;
        Index rows;
    };

    virtual ~Metric() = default;
    Metric(const Metric&) = delete;
    Metric& operator=(const Metric&) = delete;

    /// Multiplies the sums so far by `keep` ≥ 0: 0 starts anew, less than 1 decays an average.
    virtual void clear(double keep) {
        for (const auto& s : sums_) decay(*s.values, keep);
    }
    /// Adds the positions of the last passes times `weight`; ready() must hold.
    virtual void add(double weight) = 0;
    /// M ← keep M + weight S, with the sums S of passes elsewhere, in the order of sums().
    virtual void average(std::span<const T> given, double keep, double weight) {
        const T *next = given.data(), k = static_cast<T>(keep), c = static_cast<T>(weight);
        for (const auto& s : sums_)
            for (T& v : *s.values) {
                const T part = c * *next++;
                v = keep == 0 ? part : k * v + part;
            }
    }
    /// Whether some passes contain data that others do not, none of which should be left out of an average; and
    /// whether the last one did.
    virtual bool irregular() const { return false; }
    virtual bool due() const { return false; }
    /// Writes Δ = -(M + ε)⁻¹ (scale · G) of its parameters; `group` has a slot for each one of the group.
    virtual void direction(std::span<const Slot> group, double scale, const Damping& damping) = 0;

    const graph::Store<T>& store() const { return store_; }  ///< of the graph
    /// The indices in the group of the parameters of which it writes directions.
    const std::vector<int>& serves() const { return serves_; }
    /// Its state.
    const std::vector<Sums>& sums() const { return sums_; }
    /// Throws NumericError if a sum is not finite: squares of gradients may exceed the range of T where the
    /// gradients do not, and the direction would be 0.
    void check_sums() const {
        for (const auto& s : sums_)  // without memory for a message that is not needed
            if (const Index n = std::ssize(*s.values); kernel::first_non_finite(n, s.values->data()) < n)
                require_finite("riemannian", "the metric '" + s.name + "'", n, s.values->data());
    }
    /// Whether add() needs backward<Modulus>(l) after backward(l).
    bool wants_modulus() const { return modulus_ == UnitModulus::rbpm; }
    /// Whether what add() reads belongs together: the last forward pass was followed by backward(l), and for RBPM by
    /// backward<Modulus>(l), which went as far.
    bool ready() const {
        return store_.carried(0) &&
               (!wants_modulus() || (store_.carried(1) && store_.stopped_at[1] <= store_.stopped_at[0]));
    }

protected:
    /// `who` begins the messages about memory. `modulus` is that of the passes it reads.
    Metric(Graph<T>& g, std::string who, UnitModulus modulus = UnitModulus::ruop)
        : Metric(graph::Inspect::store(g), std::move(who), MetricForm::full, modulus) {}
    Metric(graph::Store<T>& store, std::string who, MetricForm form, UnitModulus modulus = UnitModulus::ruop)
        : store_(store),
          form_(form == MetricForm::automatic ? MetricForm::quasi_diagonal : form),
          modulus_(modulus),
          who_(std::move(who)) {}

    /// The index of a parameter in the group, and in the slots of direction(); -1 if it is not in it, or an empty handle.
    int serve(const Parameters<T>& group, Weight<T> w) {
        const int k = detail::place(store_, group, w);
        if (k >= 0) serves_.push_back(k);
        return k;
    }
    bool full() const { return form_ == MetricForm::full; }
    /// Φ from the gradient or modulus at a unit.
    T modulus(T flow) const { return wants_modulus() ? flow : flow * flow; }
    const Parameter<T>& parameter(Weight<T> w) const { return store_[w]; }
    static void decay(std::vector<T>& sums, double keep) {
        if (keep == 0) std::fill(sums.begin(), sums.end(), T(0));  // whatever they hold, NaN included
        else kernel::scale(std::ssize(sums), static_cast<T>(keep), sums.data());
    }
    /// Allocates [rows, cols] zeros. Throws UsageError if memory does not suffice.
    void take(std::vector<T>& numbers, Index rows, Index cols = 1) const {
        const Index bytes = bytes_of(who_, {rows, cols}, sizeof(T));
        within_memory(who_, bytes, [&] { numbers.resize(std::size_t(bytes) / sizeof(T)); });
    }
    /// The same for sums.
    void take_sums(std::string name, std::vector<T>& numbers, Index rows, Index cols) {
        take(numbers, rows, cols);
        sums_.push_back({std::move(name), &numbers, rows});
    }

    graph::Store<T>& store_;
    MetricForm form_;

private:
    UnitModulus modulus_;
    std::string who_;
    std::vector<Sums> sums_;
    std::vector<int> serves_;
};

/// The metrics of the parameters of one group.
template <class T> using Metrics = std::vector<std::unique_ptr<Metric<T>>>;

namespace detail {

/// Throws UsageError unless metrics are ready() and the gradients of their group are those of the last backward pass
/// alone, which is all that a metric sees; with `reached` it must have reached every one. Null: without gradients.
template <class T>
void require_passes(const Metrics<T>& metrics, const Parameters<T>* group, bool reached = false) {
    bool sound = std::all_of(metrics.begin(), metrics.end(), [](auto& m) { return m->ready(); });
    std::string_view name = "the group";
    if (group && !metrics.empty())
        for (const Parameter<T>* p : *group) {
            const auto& [columns, predicted, passes, last] = p->provenance;
            if (!p->trained || (passes == 0 && !reached)) continue;
            if (passes == 1 && last == double(metrics.front()->store().forward_pass)) continue;
            sound = false, name = p->name;
        }
    if (!sound)
        throw UsageError(
            "riemannian: the gradient of '", name, "' is not that of one backward(loss), and for RBPM ",
            "one backward<Modulus>(loss) as far, since the last forward pass; step, add or collect ",
            "after each, or give the metric of all by give_sums(), as DataParallel does");
}

/// The directions Δ of a group's parameters.
template <class T> class Directions {
public:
    Directions(std::string_view who, const Parameters<T>& group) : group_(group), slots_(group.size()) {
        allocate_per_parameter(who, group, sizeof(T),
                               [&](const Parameter<T>& p) { delta_.emplace_back(p.size()); });
    }
    const std::vector<T>& operator[](std::size_t k) const { return delta_[k]; }

    /// Δ = -(M + ε)⁻¹ (scale · G); returns their length in the metric, √(-G·Δ / d). Throws NumericError, naming
    /// `who`, if it is not finite.
    double solve(std::string_view who, const Metrics<T>& metrics, double scale, const Damping& damping,
                 double d) {
        for (std::size_t k = 0; k < group_.size(); ++k)
            slots_[k] = {group_[k].dense_gradient().data, delta_[k].data()};
        for (const auto& m : metrics) m->direction(slots_, scale, damping);
        for (std::size_t k = 0; k < group_.size(); ++k) group_[k].clear_frozen_rows(delta_[k].data());
        double slope = 0;
        for (std::size_t k = 0; k < group_.size(); ++k)
            slope -= kernel::dot(group_[k].size(), group_[k].gradient, delta_[k].data()) / d;
        require_finite(who, "the length of the direction; raise the damping", 1, &slope);
        return std::sqrt(std::max(slope, 0.0));
    }
    /// The norm of the longest one.
    double longest() const {
        double squares = 0;
        for (const auto& delta : delta_)
            squares = std::max(squares, kernel::sum_of_squares(std::ssize(delta), delta.data()));
        return std::sqrt(squares);
    }

private:
    Parameters<T> group_;
    std::vector<std::vector<T>> delta_;
    std::vector<typename Metric<T>::Slot> slots_;
};

/// The fraction of a diagonal entry, after elimination of another direction, below which the two count as
/// dependent: some units of rounding of the entry itself.
template <class T> inline constexpr T redundant = 64 * std::numeric_limits<T>::epsilon();

/// G / M, or 0 where M is 0.
template <class T> T ratio(T G, T M) {
    const T quotient = G / M;  // branch-free, so that loops are vectorised
    return M > 0 ? quotient : T(0);
}

/// The quasi-diagonal step of one weight, G / left, after the biases of its unit have been eliminated from
/// gradient and diagonal entry: with slope = M_0 / M_00,
///
///     G = G_i - slope G_0,   left = M_ii - slope M_0
///
/// 0 where only rounding is left of M_ii: the input is constant.
template <class T> T quasi_diagonal(T G, T left, T M_ii) {
    const T quotient = G / left;  // as above
    return left > redundant<T> * std::abs(M_ii) ? quotient : T(0);
}

/// Solves M r = G for a symmetric positive matrix M [m, m], reading its lower triangle, by Cholesky, in place:
/// M becomes its factor, G becomes r. Directions that depend on earlier ones (a pivot of rounding alone) get
/// r = 0, so that a matrix of any rank has a solution, unlike with LAPACK's potrf.
template <class T> void solve_symmetric(Index m, T* M, T* G) {
    for (Index i = 0; i < m; ++i) {
        T* row = M + i * m;
        const T diagonal = row[i];
        for (Index j = 0; j <= i; ++j) {
            const T* other = M + j * m;
            T sum = row[j];
            for (Index k = 0; k < j; ++k) sum -= row[k] * other[k];
            if (j < i) row[j] = other[j] > 0 ? sum / other[j] : T(0);
            else
                row[i] = sum > redundant<T> * static_cast<T>(m) * diagonal && sum > 0 ? std::sqrt(sum) : T(0);
        }
        T sum = G[i];
        for (Index k = 0; k < i; ++k) sum -= row[k] * G[k];
        G[i] = row[i] > 0 ? sum / row[i] : T(0);
    }
    for (Index i = m - 1; i >= 0; --i) {
        const T d = M[i * m + i];
        T sum = G[i];
        for (Index k = i + 1; k < m; ++k) sum -= M[k * m + i] * G[k];
        G[i] = d > 0 ? sum / d : T(0);
    }
}

}  // namespace detail
}}  // namespace isogloss
