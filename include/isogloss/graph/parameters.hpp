/// @file graph/parameters.hpp  A trained matrix with its gradient, rows held at norm 1, groups chosen by name.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/matrix_ref.hpp>
#include <limits>
#include <memory>
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

/// Throws UsageError for a call that reads or writes parameters, given as records or pointers to them, while the
/// values of one are temporary, see Parameter::temporary. `call`: what is refused, a verb.
template <class Records>
void require_lasting(const Records& parameters, std::string_view who, std::string_view call) {
    const auto check = [&](const auto& p) {
        if (!p.temporary->empty())
            throw UsageError(who, ": ", call, " while the values of '", p.name, "' are those of a ",
                             *p.temporary, ", which restores others; ", call, " after it has done so");
    };
    for (const auto& p : parameters) {
        if constexpr (requires { p->temporary; }) check(*p);
        else check(p);
    }
}

/// Throws UsageError for a call that needs the gradients of a graph without any.
[[noreturn]] inline void refuse_gradients(std::string_view who) {
    throw UsageError(who, ": the graph was built for evaluation alone and has no gradients; build one with ",
                     "GraphOptions::gradients = true, on weights of its own");
}
}  // namespace graph

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
    bool trained = true;  ///< false: frozen, see WeightOptions::trained and Parameters::trained
    /// The name of an object that keeps the lasting values and restores them, if the present ones are its own for a
    /// while (WeightDrop, DynamicUpdate): a checkpoint neither saves nor loads the matrix then. Else empty. Never null;
    /// the records of one matrix in all graphs on it share the name.
    std::shared_ptr<std::string_view> temporary = std::make_shared<std::string_view>();
    Condition condition = Condition::empty;
    int staged_by = -1;  ///< node that wrote a staged gradient
    /// Batch columns and predicted positions over which a gradient that counts is the sum, see adds(); 0 if it was
    /// written by hand.
    Index columns = 0, predicted = 0;
    /// How many backward passes have added to a gradient that counts, and the forward pass (Store::forward_pass) of the
    /// last one; 0 passes if it was written by hand or summed elsewhere.
    std::uint64_t passes = 0, last_pass = 0;
    Array<Index> touched = {};     ///< capacity `rows`, reserved when the first lookup is declared
    Array<std::uint8_t> hit = {};  ///< by row: whether listed in `touched`
    Index lookups = 0;             ///< declared uses as a lookup table
    std::vector<int> users = {};   ///< the node of each declared use
    /// The first node with a declared use, and the first with one other than lookup; `unused` if there is none. A
    /// backward pass that is past the former adds nothing more; past the latter, only rows.
    int first_node = unused, first_product = unused;
    static constexpr int unused = std::numeric_limits<int>::max();

    /// Records a use by a node, for lookup of rows or in a product.
    void used_by(int node, bool lookup = false) {
        users.push_back(node);
        first_node = std::min(first_node, node);
        if (!lookup) first_product = std::min(first_product, node);
    }
    Index uses() const { return std::ssize(users); }  ///< how many there are
    Index size() const { return rows * cols; }
    /// Whether it takes gradients: not if it is frozen, nor in a graph without gradients.
    bool is_trained() const { return trained && gradient; }
    MatrixRef<T> values() const { return {value, rows, cols}; }
    /// Whether a gradient counts.
    bool counts() const { return condition == Condition::rows || condition == Condition::dense; }
    /// Call before sums over so many columns and predicted positions are added to the gradient, by the backward pass of
    /// that forward pass.
    void adds(Index more_columns, Index more_predicted, std::uint64_t forward_pass = 0) {
        const bool more = counts();
        columns = more_columns + (more ? columns : 0);
        predicted = more_predicted + (more ? predicted : 0);
        passes = 1 + (more ? passes : 0);
        last_pass = forward_pass;
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
        if (!trained && gradient)
            throw UsageError(
                who, ": the weight '", name, "' is frozen and has no gradient; train it again by ",
                "Parameters::trained(true), or leave it out of the group of an update: make that ",
                "after freezing");
        if (!trained)
            throw UsageError(who, ": the weight '", name,
                             "' is not trained and has no gradient; leave it out, or make it with ",
                             "WeightOptions::trained = true");
        if (!gradient) graph::refuse_gradients(who);
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

    void clear_gradient() {
        forget_rows();
        condition = Condition::empty;
        columns = predicted = 0;
        passes = 0;
    }

private:
    void forget_rows() {
        for (const Index i : touched) hit[i] = 0;
        touched.clear();
    }
};

// --- rows of norm 1 -------------------------------------------------------------------------------

/// Divides one row of a parameter by its Euclidean norm. Throws NumericError for a row that is zero or
/// not finite.
template <class T> void normalise_row(Parameter<T>& p, Index row) {
    const double norm = kernel::normalise(p.cols, p.value + row * p.cols);
    if (!(norm > 0) || !std::isfinite(norm))
        throw NumericError("weight '", p.name, "': row ", row, " has norm ", norm,
                           " and cannot be brought to norm 1; start from values that are not all zero");
}

/// Throws NumericError if a step would make a row that is held at norm 1 zero or not finite, that is without a
/// direction. moved(i) is element i of the parameter after the step; nothing is changed.
template <class T, class Moved> void require_directions(const Parameter<T>& p, Moved&& moved) {
    using Condition = typename Parameter<T>::Condition;
    if (!p.unit_rows) return;
    const auto check = [&](Index row) {
        T part[kernel::chunk];
        double squares = 0;
        for (Index first = 0, count; first < p.cols; first += count) {
            count = std::min(kernel::chunk, p.cols - first);
            for (Index k = 0; k < count; ++k) part[k] = moved(row * p.cols + first + k);
            squares += kernel::sum_of_squares(count, part);
        }
        if (!(squares > 0) || !std::isfinite(squares))
            throw NumericError("update: the step takes row ", row, " of '", p.name, "' to the norm ",
                               std::sqrt(squares),
                               ", which cannot be brought back to 1; nothing was changed. Lower the "
                               "learning rate or the clipping threshold");
    };
    if (p.condition == Condition::dense)
        for (Index i = 0; i < p.rows; ++i) check(i);
    else if (p.condition == Condition::rows)
        for (const Index i : p.touched) check(i);
}

/// Normalises every row, as for a new weight.
template <class T> void normalise_rows(Parameter<T>& p) {
    for (Index i = 0; i < p.rows; ++i) normalise_row(p, i);
}

// --- groups ---------------------------------------------------------------------------------------

/// Whether a name matches a pattern in which '*' stands for any run of characters.
inline bool matches(std::string_view pattern, std::string_view name) {
    std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = n;
        } else if (p < pattern.size() && pattern[p] == name[n]) {
            ++p;
            ++n;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            n = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

/// What an update divides the raw sums of per-token derivatives by.
enum class Divisor {
    none,    ///< 1: the sums themselves
    batch,   ///< batch columns: summed over time, averaged over the batch
    tokens,  ///< predicted positions: averaged over both
};

/// What gradients are sums over.
struct SummedOver {
    Index columns = 0, predicted = 0;  ///< batch columns, predicted positions
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

    /// The columns and predicted positions of all backward passes that reached the group since its gradients were
    /// cleared (of the member with most, if they were not cleared or reached together), or what was set; of the last backward
    /// pass where no gradient counts or it was not made by one.
    SummedOver summed_over() const {
        SummedOver most;
        for (const auto* p : members_)
            if (p->counts())
                most = {std::max(most.columns, p->columns), std::max(most.predicted, p->predicted)};
        return most.columns > 0 ? most : SummedOver{store_->columns, store_->predicted};
    }
    /// Sets the columns and predicted positions, at least 0, by which updates divide, where they are not those of the
    /// backward passes since the gradients were cleared, which are counted: for gradients summed elsewhere, or if passes
    /// share their columns (the segments of a text one after another, several losses of one batch). A later backward pass
    /// adds its own to them.
    void summed_over(Index columns, Index predicted) const {
        require("summed_over", "columns", columns, 0);
        require("summed_over", "predicted", predicted, 0);
        store_->columns = columns, store_->predicted = predicted;
        for (auto* p : members_) p->columns = columns, p->predicted = predicted;
    }
    /// Whether a backward pass of gradients ran after the last forward pass of the graph.
    bool carried() const { return store_->carried(0); }
    /// The number of the last forward pass of the graph, from 1; 0: none.
    std::uint64_t forward_pass() const { return store_->forward_pass; }
    /// Whether the gradient of a member was made by the backward pass after the last forward pass of the graph, alone.
    bool is_of_last_pass(const Parameter<T>& p) const {
        return p.passes == 1 && p.last_pass == forward_pass();
    }
    /// The first trained member of which the last backward pass ran a use and the last backward<Modulus> none, as it
    /// stopped before; null if there is none.
    const Parameter<T>* without_modulus() const {
        const auto left_out = [&](const Parameter<T>* p) {
            const auto used_after = [&](int stop) {
                return std::any_of(p->users.begin(), p->users.end(), [&](int node) { return node > stop; });
            };
            return p->trained && used_after(store_->stopped_at[0]) && !used_after(store_->stopped_at[1]);
        };
        const auto found = std::find_if(members_.begin(), members_.end(), left_out);
        return found == members_.end() ? nullptr : *found;
    }
    /// Whether they are parameters of the graph with this store.
    bool are_of(const graph::Store<T>& store) const { return store_.get() == &store; }
    /// The value of a divisor: see summed_over(); at least 1.
    double divisor(Divisor d) const {
        switch (d) {
            case Divisor::batch:
                return static_cast<double>(std::max<Index>(summed_over().columns, 1));
            case Divisor::tokens:
                return static_cast<double>(std::max<Index>(summed_over().predicted, 1));
            default:
                return 1;
        }
    }

    /// Throws UsageError, beginning with `who`, if a gradient of the group counts: for callers that would lose it.
    void require_no_gradients(std::string_view who) const {
        for (const auto* p : members_)
            if (p->counts())
                throw UsageError(
                    who, ": the gradient of '", p->name,
                    "' already counts and would be lost; step() or clear_gradients() first (one that ",
                    "was read by Graph::gradient counts, too)");
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
    /// false: freezes the weights of the group. Passes compute no gradient of them; a present one is cleared, but
    /// its memory, allocated with the graph, remains (WeightOptions::trained = false allocates none). true: trains
    /// them again; those that are trained keep their gradients. An update holds the weights that are trained when it
    /// is made: make it afterwards. Throws
    /// UsageError for true, and changes nothing, if there is no memory for a gradient.
    void trained(bool on) const {
        for (const auto* p : members_)
            if (on && !p->gradient)
                throw UsageError("trained: the weight '", p->name,
                                 "' was made without memory for a gradient; make it with ",
                                 "WeightOptions::trained = true, in a graph with gradients");
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
