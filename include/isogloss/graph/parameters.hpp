/// @file graph/parameters.hpp  A trained matrix with its gradient, rows held at norm 1, groups chosen by name.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/matrix_ref.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace graph {
template <class T> struct Store;
template <class T> class PackedMatrix;

/// The names of records, of what pointers point to, or names themselves: "a, b, c" or "none", for messages.
template <class Records> std::string names_of(const Records& records) {
    const auto name_of = [](const auto& r) -> const std::string& {
        if constexpr (requires { r.name; }) return r.name;
        else if constexpr (requires { r->name; }) return r->name;
        else return r;
    };
    std::string all;
    for (const auto& r : records) all += (all.empty() ? "" : ", ") + name_of(r);
    return all.empty() ? "none" : all;
}

/// Whose the values of a matrix are while it is lent, see Lease.
struct Loan {
    std::string_view owner = "";  ///< none: the values are its own
    bool may_stay = true;         ///< false: the owner restores others
};

/// Throws UsageError if parameters, given as records or pointers to them, are lent: for a call that reads them, unless
/// the values may stay; for one that writes them, in any case.
template <class Records>
void require_unlent(const Records& parameters, std::string_view who, bool writes = true) {
    const auto check = [&](const auto& p) {
        if (writes ? !p.loan->owner.empty() : !p.loan->may_stay)
            throw UsageError(who, ": the weight '", p.name, "' is lent to the ", p.loan->owner,
                             "; first end its scope, swap() or restore()");
    };
    for (const auto& p : parameters) {
        if constexpr (requires { p->loan; }) check(*p);
        else check(p);
    }
}
}  // namespace graph

/// What a gradient is a sum of: backward passes, each over batch columns and predicted positions. In double, whole
/// numbers are exact up to 2⁵³ and no sum overflows.
struct Provenance {
    double columns = 0, predicted = 0;
    double passes = 0;  ///< 0 if it was written by hand
    double last_pass =
        0;  ///< where it is one pass: the number of the forward pass before it, Store::forward_pass

    Provenance& operator+=(const Provenance& more) {
        columns += more.columns, predicted += more.predicted, passes += more.passes;
        last_pass = more.last_pass;
        return *this;
    }
};

/// A trained matrix with its gradient. The gradient buffer is a sum of raw per-token derivatives and is
/// in one of four conditions, so that no more of it than needed is cleared or read:
///
///     empty        zero everywhere; memory contents undefined
///     rows         zero except for the rows listed in `touched`; memory of other rows undefined
///     dense        every element counts
///     staged       written by a loss during a forward pass; counts once the
///                  backward pass of that loss commits it; the next forward pass discards it
template <class T> struct Parameter {
    enum class Condition { empty, rows, dense, staged };

    std::string name;
    Index rows = 0, cols = 0;
    T* value = nullptr;
    T* gradient = nullptr;
    bool unit_rows = false;  ///< every row is rescaled to norm 1 after each update
    /// The matrix and its transpose packed for multiplication from the left, if the graph is on packed weights
    /// (Graph::packed_weights) and uses them in such products; else null.
    const graph::PackedMatrix<T>*packed = nullptr, *packed_transpose = nullptr;
    bool trained = true;              ///< false: frozen, see WeightOptions::trained and Parameters::trained
    Array<std::uint8_t> frozen = {};  ///< by row: whether it is frozen, see freeze_rows(); empty: none is
    /// To whom the values are lent. Never null; the records of one matrix in all graphs on it share the loan.
    std::shared_ptr<graph::Loan> loan = std::make_shared<graph::Loan>();
    Condition condition = Condition::empty;
    int staged_by = -1;            ///< node that wrote a staged gradient
    Provenance provenance = {};    ///< of a gradient that counts
    Array<Index> touched = {};     ///< capacity `rows`, reserved when the first lookup is declared
    Array<std::uint8_t> hit = {};  ///< by row: whether listed in `touched`
    Index lookups = 0;             ///< declared uses as a lookup table
    std::vector<int> users = {};   ///< the node of each declared use

    void used_by(int node) { users.push_back(node); }
    Index uses() const { return std::ssize(users); }  ///< how many there are
    Index size() const { return rows * cols; }
    /// Whether it takes gradients: not if it is frozen, nor in a graph without gradients.
    bool is_trained() const { return trained && gradient; }
    MatrixRef<T> values() const { return {value, rows, cols}; }
    /// Whether a gradient counts.
    bool counts() const { return condition == Condition::rows || condition == Condition::dense; }
    /// Call before a backward pass adds to the gradient.
    void add_pass(const Provenance& pass) {
        if (!counts()) provenance = {};
        provenance += pass;
    }

    /// The gradient as a dense matrix to add to, whatever its condition was. Throws UsageError if there is none:
    /// the weight is not trained, or the graph has no gradients (GraphOptions::gradients).
    MatrixRef<T> dense_gradient() {
        require_gradient("gradient");
        switch (condition) {
            case Condition::dense:
                break;
            case Condition::rows:
                for (Index i = 0; i < rows; ++i)
                    if (!hit[i]) std::fill_n(gradient + i * cols, cols, T(0));
                forget_rows();
                break;
            default:
                std::fill_n(gradient, size(), T(0));
        }
        condition = Condition::dense;
        return {gradient, rows, cols};
    }

    /// Throws UsageError, whose message begins with `who`, unless it takes gradients.
    void require_gradient(std::string_view who) const {
        if (!is_trained())
            throw UsageError(who, ": the weight '", name, "' has no gradient: ",
                             trained ? "its graph was built for evaluation alone" : "it is frozen");
    }

    /// For a product that may overwrite: returns beta, 0 if nothing counts yet, else 1, and makes it dense.
    T begin_product() {
        if (condition == Condition::empty || condition == Condition::staged) {
            condition = Condition::dense;
            return T(0);
        }
        dense_gradient();
        return T(1);
    }

    /// One row of the gradient to add to; marks it touched. For trained weights only.
    T* gradient_row(Index i) {
        if (condition == Condition::staged) condition = Condition::empty;
        if (condition == Condition::empty) condition = Condition::rows;
        T* row = gradient + i * cols;
        if (condition == Condition::rows && !hit[i]) {
            hit[i] = 1;
            touched.push_back(i);
            std::fill_n(row, cols, T(0));
        }
        return row;
    }

    /// Freezes these rows and no others: a backward pass of gradients leaves theirs at 0, and no update moves them, by decay
    /// neither. As with `trained`, a checkpoint does not record it. Throws UsageError for a row that there is not.
    void freeze_rows(std::span<const Index> some) {
        for (const Index i : some)
            isogloss::require(message("freeze_rows: '", name, "'"), "row", i, 0, rows - 1);
        frozen.assign(some.empty() ? 0 : rows, std::uint8_t{0});
        for (const Index i : some) frozen[i] = 1;
        if (counts()) clear_frozen_rows(gradient);
    }
    bool is_frozen(Index row) const { return !frozen.empty() && frozen[row]; }  ///< see freeze_rows()
    /// Sets the frozen rows of a matrix of this size to 0.
    void clear_frozen_rows(T* matrix) const {
        for (Index i = 0; i < std::ssize(frozen); ++i)
            if (frozen[i]) std::fill_n(matrix + i * cols, cols, T(0));
    }

    void clear_gradient() {
        forget_rows();
        condition = Condition::empty;
        provenance = {};
    }

private:
    void forget_rows() {
        for (const Index i : touched) hit[i] = 0;
        touched.clear();
    }
};

// --- rows of norm 1 -------------------------------------------------------------------------------

namespace graph {
/// Divides one row of a parameter by its Euclidean norm. Throws NumericError for a row that is zero or
/// not finite.
template <class T> void normalise_row(Parameter<T>& p, Index row) {
    const double norm = kernel::normalise(p.cols, p.value + row * p.cols);
    if (!(norm > 0) || !std::isfinite(norm))
        throw NumericError("weight '", p.name, "': row ", row, " has norm ", norm, ", expected one above 0");
}
}  // namespace graph

/// Normalises every row, as for a new weight.
template <class T> void normalise_rows(Parameter<T>& p) {
    for (Index i = 0; i < p.rows; ++i) graph::normalise_row(p, i);
}

// --- groups ---------------------------------------------------------------------------------------

/// What an update divides the raw sums of per-token derivatives by.
enum class Divisor {
    none,    ///< 1: the sums themselves
    batch,   ///< batch columns: summed over time, averaged over the batch
    tokens,  ///< predicted positions: averaged over both
};

/// A group of parameters of one graph, in order of creation. Updates operate on such groups. It keeps alive what it
/// points to: an update may be used when its graph has been destroyed, as an optimizer of PyTorch without its module.
template <class T> class Parameters {
public:
    Parameters(graph::Store<T>& store, std::vector<Parameter<T>*> members)
        : store_(store.shared_from_this()), members_(std::move(members)) {}

    auto begin() const { return members_.begin(); }
    auto end() const { return members_.end(); }
    std::size_t size() const { return members_.size(); }
    Parameter<T>& operator[](std::size_t i) const { return *members_[i]; }

    /// Total number of elements.
    Index elements() const {
        Index n = 0;
        for (const auto* p : members_) n += p->size();
        return n;
    }

    /// What the gradients of the group are sums of, of those that count: in each of its numbers the largest.
    Provenance provenance() const {
        Provenance most;
        for (const auto* p : members_)
            if (const auto& one = p->provenance; p->counts())
                most = {std::max(most.columns, one.columns), std::max(most.predicted, one.predicted),
                        std::max(most.passes, one.passes), std::max(most.last_pass, one.last_pass)};
        return most;
    }
    /// Sets the columns and predicted positions, at least 0, by which updates divide, where they are not those of the
    /// backward passes since the gradients were cleared, which are counted: for gradients summed elsewhere, or if passes
    /// share their columns (the segments of a text one after another, several losses of one batch). A later backward pass
    /// adds its own to them.
    void summed_over(Index columns, Index predicted) const {
        require("summed_over", "columns", columns, 0);
        require("summed_over", "predicted", predicted, 0);
        for (auto* p : members_) {
            p->provenance.columns = static_cast<double>(columns);
            p->provenance.predicted = static_cast<double>(predicted);
        }
    }
    /// The value of a divisor, by provenance(); at least 1.
    double divisor(Divisor d) const {
        const Provenance p = provenance();
        return std::max(d == Divisor::none ? 1 : d == Divisor::batch ? p.columns : p.predicted, 1.0);
    }
    /// Whether they are parameters of the graph with this store.
    bool are_of(const graph::Store<T>& store) const { return store_.get() == &store; }

    /// Throws UsageError, beginning with `who`, if there is nothing to step by: if no backward pass has reached the group
    /// since its gradients were cleared, and none was written by hand.
    void require_gradients(std::string_view who) const {
        for (const auto* p : members_)
            if (p->counts() || p->provenance.passes > 0) return;
        throw UsageError(who, ": no backward pass has reached '", members_.front()->name,
                         "' or another weight of the group since the last step; call backward(loss) first");
    }
    /// Throws UsageError, beginning with `who`, if a gradient of the group counts: for callers that would lose it.
    void require_no_gradients(std::string_view who) const {
        for (const auto* p : members_)
            if (p->counts())
                throw UsageError(who, ": the gradient of '", p->name,
                                 "' already counts and would be lost; step() or clear_gradients() first");
    }
    /// Clears all gradients of the group.
    void clear_gradients() const {
        for (auto* p : members_) p->clear_gradient();
    }

    /// The trained members of the group: all but those frozen by WeightOptions or trained(false).
    Parameters trained() const {
        std::vector<Parameter<T>*> some;
        for (auto* p : members_)
            if (p->trained) some.push_back(p);
        return {*store_, std::move(some)};
    }
    /// The same for an object that trains them. Throws UsageError, beginning with `who`, if there is none, in a graph
    /// without gradients, and, where `unit_rows` is false, for rows held at norm 1.
    Parameters trained_for(std::string_view who, bool unit_rows = true) const {
        Parameters some = trained();
        for (const auto* p : some.size() > 0 ? some : *this) p->require_gradient(who);
        if (some.size() == 0) throw UsageError(who, ": the group of parameters is empty");
        for (const auto* p : some)
            if (p->unit_rows && !unit_rows)
                throw UsageError(who, ": found rows held at norm 1, of '", p->name, "'; exclude it");
        return some;
    }
    /// false: freezes the weights of the group. Passes compute no gradient of them; a present one is cleared, but
    /// its memory, allocated with the graph, remains (WeightOptions::trained = false allocates none). true: trains
    /// them again; those that are trained keep their gradients. An update skips those of its weights that were frozen
    /// later, and never has those that were frozen when it was made. Throws
    /// UsageError for true, and changes nothing, if there is no memory for a gradient.
    void trained(bool on) const {
        for (const auto* p : members_)
            if (on && !p->gradient)
                throw UsageError("trained: the weight '", p->name,
                                 "' was made without memory for a gradient");
        for (auto* p : members_) {
            if (p->trained == on) continue;  // and keeps its gradient
            p->trained = on;
            p->clear_gradient();
        }
    }

private:
    std::shared_ptr<graph::Store<T>> store_;
    std::vector<Parameter<T>*> members_;
};

}}  // namespace isogloss
