/// @file graph/pass.hpp  What a node sees while it runs: forward once, backward once per quantity.
#pragma once

#include <isogloss/graph/affine.hpp>
#include <isogloss/graph/store.hpp>
#include <type_traits>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Steps 0 … n-1, or n-1 … 0, for a range-based for.
struct Steps {
    struct Iterator {
        Index at, by;
        Index operator*() const { return at; }
        void operator++() { at += by; }
        bool operator!=(const Iterator& other) const { return at != other.at; }
    };
    Iterator begin() const { return {first, by}; }
    Iterator end() const { return {past, by}; }

    Index first, past, by;
};

/// What both directions share: sizes of the current pass and access to values.
///
/// A sequence's values at step t are [B, width], all of them [T·B, width], row-major, T and B being those
/// of the current pass. `at` gives an xtensor expression, `data` the raw pointer.
template <class T> class Pass {
public:
    Pass(graph::Store<T>& store, int node) : store_(store), node_(node) {}

    Index time() const { return store_.time; }
    Index batch() const { return columns_ < 0 ? store_.batch : columns_; }  ///< B, or the columns of a part
    Index rows() const { return store_.rows(); }                            ///< T·B
    bool training() const { return store_.training; }
    /// The precision of the matrix products of this pass, for product(); not within over_batch.
    Precision precision() const { return store_.products(); }
    /// Entries of dl/dz below ε in absolute value are sampled in this pass, see FusedSoftmax; 0: none.
    double epsilon() const { return store_.sampled_below(); }
    Steps steps() const { return {0, store_.time, 1}; }
    Steps steps_back() const { return {store_.time - 1, -1, -1}; }
    const std::string& name() const { return store_.node_names[node_]; }

    T* data(Seq<T> a, Index t = 0) const { return store_.value(a.id, t) + first_ * a.width; }
    T* data(graph::Previous<T> a, Index t = 0) const {
        return store_.value(a.of.id, t - 1) + first_ * a.of.width;
    }
    /// This part's rows of a node's own array [B, width].
    T* part_of(T* a, Index width) const { return a + first_ * width; }
    auto at(Seq<T> a) const { return matrix_view(data(a), rows(), a.width); }
    auto at(Seq<T> a, Index t) const { return matrix_view(data(a, t), batch(), a.width); }
    auto at(graph::Previous<T> a, Index t) const { return matrix_view(data(a, t), batch(), a.of.width); }

    const Token* data(Tokens x, Index t = 0) const { return store_[x].value + t * store_.batch + first_; }
    MatrixRef<T> values(Weight<T> w) const { return store_[w].values(); }

    /// Rows [B, width] of a mask's group, or null where no mask is active in this pass.
    const T* data(Mask m, Index group = 0) const {
        if (m.id < 0) return nullptr;
        const auto& r = store_[m];
        return r.active ? r.value + (group * store_.batch + first_) * r.width : nullptr;
    }

    /// Row r of this pass, and the number of rows, counted over all columns of the batch of which the pass may be
    /// a part (Graph::shard): index random numbers by these.
    Index row_in_batch(Index r) const { return store_.row_in_batch(r); }
    Index rows_in_batch() const { return store_.time * store_.columns_in_batch(); }  ///< see above

    /// The random numbers of this node in this pass: a function of the graph's seed, the step counter
    /// and the node's name.
    Random random() const { return {store_.seed, stream_of(name()), store_.step}; }

    /// d(requested loss) / d(this loss): the factor of this loss's derivatives; 0 if it does not contribute.
    double upstream(Loss<T> l) const { return store_[l].upstream; }
    /// Loss of every position [T, B], if the loss keeps one.
    double* by_token(Loss<T> l) const { return store_[l].by_token; }

    /// The head behind logits.
    const graph::LogitsRecord<T>& head(Logits<T> o) const { return store_[o]; }
    Parameter<T>& parameter(Weight<T> w) const { return store_[w]; }
    /// Whether a weight takes gradients. If not, none is computed: Backward::gradient refuses it.
    bool is_trained(Weight<T> w) const { return store_[w].is_trained(); }

protected:
    /// Calls f for the parts of the batch that threads() work on, or for `all`. Splitting pays if the matrices,
    /// which every part reads, stay in a core's own cache: then a step is short, and synchronising after each step
    /// would cost more than reading the matrices twice. Before a split, `ready(u, s)` is called for every term of
    /// the node's units that is computed step by step.
    template <class Self, class Ready, class F>
    void split_batch(const Self& all, Ready&& ready, F&& f) const {
        constexpr Index near_bytes = Index{2} << 20, worth_a_thread = 4;
        Index bytes = 0;
        const auto each = [&](auto&& visit) {
            for (auto& u : store_.units)
                if (u.node == node_)
                    for (auto& s : u.sources)
                        if (s.by_step()) visit(u, s);
        };
        each([&](auto& u, auto& s) { bytes += s.input.width * u.width * Index{sizeof(T)}; });
        const Index most = bytes <= near_bytes ? store_.batch / worth_a_thread : 1;
        if (piece_count(store_.batch, 1, most) == 1) return f(all);
        each(ready);
        parallel(store_.batch, 1, most, [&](Index first, Index last, Index) {
            Self part = all;
            part.first_ = first, part.columns_ = last - first;
            f(std::as_const(part));
        });
    }

    graph::Store<T>& store_;
    int node_;
    Index first_ = 0, columns_ = -1;  // columns of the batch in this part; -1: all
};

/// Passed to a node's `forward`.
template <class T> class Forward : public Pass<T> {
public:
    using Pass<T>::Pass;

    /// Z = b + Σ a W over the terms known for the whole sequence, each one product for all steps; without such
    /// terms the bias, or 0. Every pass calls it for all its units, before the loop over steps.
    void affine(Units<T> z) const;
    /// z_t += Σ a W over the terms with a previous or current input. A pass in which a node leaves out this or
    /// affine(z) is refused with UsageError.
    void affine(Units<T> z, Index t) const;

    /// Calls f(part) so that threads share the batch: each gets a part, a Forward over some of its rows, runs a
    /// whole loop over the steps on it and synchronises only at the end. If that does not pay, f is called once
    /// with all rows. Within f use only `part`, its affine(z, t) and its data.
    template <class F> void over_batch(F&& f) const {
        this->split_batch(
            *this,
            [&](auto&, auto& s) {
                if (s.memory) graph::pack<T>(this->store_, s, s.matrix(this->store_[s.weight].values()));
            },
            f);
    }

    /// Sets the value of a loss, in nats, and how many positions counted.
    void set(Loss<T> l, double value, Index predicted) const {
        auto& r = this->store_[l];
        r.value = value;
        r.predicted = predicted;
    }
    /// Sets the plain cross-entropy Σ -log p(y_t) within a loss, in nats, for perplexities.
    void set_cross_entropy(Loss<T> l, double nats) const { this->store_[l].cross_entropy = nats; }
    /// For a loss that computes its gradient in the forward pass: the adjoint of a, all zero, to store it in, or
    /// null if another node has stored its own there. It counts once backward commits it (Backward::commit).
    T* stage_adjoint(Seq<T> a) const {
        auto& s = this->store_[a];
        if (s.staged_by >= 0) return nullptr;
        s.staged_by = this->node_;
        s.unset[0] = true;
        T* adjoint = this->store_.adjoint(a.id, 0);
        return adjoint;
    }
    double value(Loss<T> l) const { return this->store_[l].value; }
    Index predicted(Loss<T> l) const { return this->store_[l].predicted; }
};

/// Passed to a node's `backward`, written once for both quantities: for Gradient `chain(d)` is d and
/// `affine_backward` uses W; for Modulus `chain(d)` is d² and `affine_backward` uses W∘W, into separate buffers. A
/// cell in which one unit reaches another by two parallel paths must square their sum explicitly.
template <class T, class Quantity = Gradient> class Backward : public Pass<T> {
public:
    using Pass<T>::Pass;
    static constexpr bool is_gradient = std::is_same_v<Quantity, Gradient>;
    static constexpr int quantity = is_gradient ? 0 : 1;

    /// The adjoint accumulated in a sequence so far, at step t or all steps; zero if nothing was added. Add to
    /// it, never overwrite it, unless the sequence is internal to the node (see Setup::open).
    T* adjoint_data(Seq<T> a, Index t = 0) const {
        return this->store_.adjoint(a.id, quantity, t) + this->first_ * a.width;
    }
    /// Whether anything was added to the adjoint of a in this pass.
    bool is_reached(Seq<T> a) const { return !this->store_[a].unset[quantity]; }
    /// Whether what this node's forward pass staged in the adjoint of a is still there; if so, it now counts.
    bool commit(Seq<T> a) const requires(is_gradient) {
        auto& s = this->store_[a];
        if (!s.unset[0] || std::exchange(s.staged_by, -1) != this->node_) return false;
        s.unset[0] = false;
        return true;
    }
    /// Undoes commit().
    void discard(Seq<T> a) const { this->store_[a].unset[quantity] = true; }
    auto adjoint(Seq<T> a) const { return matrix_view(adjoint_data(a), this->rows(), a.width); }
    auto adjoint(Seq<T> a, Index t) const { return matrix_view(adjoint_data(a, t), this->batch(), a.width); }

    /// A local derivative as this quantity needs it: d for Gradient, d² for Modulus. Takes an xtensor
    /// expression (by value, so that it does not dangle), a SIMD register or a number.
    template <class D> static auto chain(D d) {
        if constexpr (is_gradient) return d;
        else if constexpr (requires { d.dimension(); }) return square(std::move(d));
        else return d * d;
    }

    /// Propagates the adjoint of z_t to its previous and current inputs.
    void affine_backward(Units<T> z, Index t) const;
    /// As Forward::over_batch; within f use the part's affine_backward(z, t) and its data, and only the adjoints
    /// of units computed step by step and of their inputs.
    template <class F> void over_batch(F&& f) const {
        this->split_batch(
            *this,
            [&](auto& u, auto& s) {
                if (s.memory) graph::pack<T>(this->store_, s, t(s.matrix(matrix(s))));
                // Cleared now, so that no part clears what another has added.
                this->store_.adjoint(u.z.id, quantity);
                this->store_.adjoint(s.input.id, quantity);
            },
            f);
    }

    /// Propagates the adjoint of all z to the inputs known for the whole sequence and, for Gradient, to
    /// every weight and the bias: one product each.
    void affine_backward(Units<T> z) const;

    /// The gradient of a weight as a matrix to add to. Throws UsageError if the weight is not trained; check
    /// is_trained() first.
    MatrixRef<T> gradient(Weight<T> w) const { return trained(w).dense_gradient(); }
    /// One row of it, and only that row is touched if the weight was declared with lookup(). Throws likewise, and for a
    /// row that the weight does not have.
    T* gradient_row(Weight<T> w, Index row) const {
        auto& p = trained(w);
        if (row < 0 || row >= p.rows)
            throw UsageError("node '", this->name(), "': found row ", row, " of the gradient of '", p.name,
                             "'");
        return p.lookups > 0 ? p.gradient_row(row) : p.dense_gradient().row(row);
    }

private:
    Parameter<T>& trained(Weight<T> w) const {
        auto& p = this->store_[w];
        if (!p.is_trained())
            throw UsageError("node '", this->name(), "': '", p.name,
                             "' is not trained; check p.is_trained(w)");
        return p;
    }
    MatrixRef<const T> matrix(const graph::Source<T>& s) const {
        const auto& p = this->store_[s.weight];
        return {is_gradient ? p.value : s.squared, p.rows, p.cols};
    }
    MatrixRef<const T> adjoint(const graph::UnitsRecord<T>& u) const {
        return {this->store_.adjoint(u.z.id, quantity), this->rows(), u.width};
    }
};

// --- affine maps ----------------------------------------------------------------------------------

template <class T> void Forward<T>::affine(Units<T> z) const {
    auto& store = this->store_;
    auto& u = store[z];
    T* out = store.value(u.z.id);
    u.begun = store.pass;
    T beta = 0;
    if (u.bias.id >= 0) {
        const T* b = store[u.bias].value;
        for (Index r = 0; r < this->rows(); ++r) std::copy_n(b, u.width, out + r * u.width);
        beta = 1;
    }
    for (auto& s : u.sources)
        if (!s.by_step()) {
            graph::add_term(store, u, s, 0, this->rows(), 0, beta);
            beta = 1;
        }
    if (beta == T(0)) std::fill_n(out, this->rows() * u.width, T(0));
}

template <class T> void Forward<T>::affine(Units<T> z, Index t) const {
    auto& store = this->store_;
    auto& u = store[z];
    if (this->first_ == 0) u.stepped = store.pass;  // one part of the batch writes
    for (auto& s : u.sources)
        if (s.by_step())
            graph::add_term(store, u, s, t * store.batch + this->first_, this->batch(), this->first_, T(1));
}

template <class T, class Quantity> void Backward<T, Quantity>::affine_backward(Units<T> z, Index t) const {
    auto& store = this->store_;
    for (auto& u = store[z]; auto& s : u.sources) {
        if (!s.by_step() || t < s.back()) continue;  // the state before the first step is not trained
        graph::add_term_to_input<!is_gradient>(
            store, u, s, adjoint(u), matrix(s), t * store.batch + this->first_, this->batch(), this->first_,
            T(1), this->part_of(store.adjoint(s.input.id, quantity, t - s.back()), s.input.width));
    }
}

template <class T, class Quantity> void Backward<T, Quantity>::affine_backward(Units<T> z) const {
    auto& store = this->store_;
    auto& u = store[z];
    const MatrixRef<const T> dz = adjoint(u);  // zero where nothing flowed back
    for (auto& s : u.sources) {
        if (!s.by_step()) {
            // A shifted product leaves out the last step, which is then cleared first.
            const T beta = s.back() == 1 ? T(1) : store.begin_adjoint(s.input.id, quantity);
            graph::add_term_to_input<!is_gradient>(store, u, s, dz, matrix(s), 0, this->rows(), 0, beta,
                                                   store.adjoint(s.input.id, quantity, -s.back()));
        }
        if constexpr (is_gradient)
            if (this->is_trained(s.weight)) graph::add_term_to_weight(store, u, s, dz);
    }
    if constexpr (is_gradient)
        if (u.bias.id >= 0 && this->is_trained(u.bias))
            kernel::add_column_sums(this->rows(), u.width, dz.data, store[u.bias].dense_gradient().data);
}

}}  // namespace isogloss
