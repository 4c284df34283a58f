/// @file graph/pass.hpp  What a node sees while it runs: forward once, backward once per quantity.
#pragma once

#include <isogloss/graph/store.hpp>
#include <isogloss/kernel/packed.hpp>
#include <isogloss/kernel/rows.hpp>
#include <type_traits>
#include <utility>

namespace isogloss {

/// Steps 0 … n-1, or n-1 … 0, for a range-based for.
class Steps {
public:
    struct Iterator {
        Index at, by;
        Index operator*() const { return at; }
        Iterator& operator++() {
            at += by;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return at != other.at; }
    };
    Steps(Index first, Index past, Index by) : first_(first), past_(past), by_(by) {}
    Iterator begin() const { return {first_, by_}; }
    Iterator end() const { return {past_, by_}; }

private:
    Index first_, past_, by_;
};

/// What both directions share: sizes of the current pass and access to values.
///
/// A sequence's values at step t are [B, width], all of them [T·B, width], row-major, T and B being those
/// of the current pass. `at` gives an xtensor expression, `data` the bare pointer.
template <class T> class Pass {
public:
    Pass(graph::Store<T>& store, int node) : store_(store), node_(node) {}

    Index time() const { return store_.time; }
    Index batch() const { return share_ < 0 ? store_.batch : share_; }  ///< B, or the part's share of it
    Index rows() const { return store_.rows(); }                        ///< T·B
    bool training() const { return store_.training; }
    Steps steps() const { return {0, store_.time, 1}; }
    Steps steps_back() const { return {store_.time - 1, -1, -1}; }
    const std::string& name() const { return store_.node_names[static_cast<std::size_t>(node_)]; }

    T* data(Seq<T> a, Index t = 0) const { return store_.value(a.id, t) + first_ * a.width; }
    T* data(Previous<T> a, Index t = 0) const { return store_.value(a.of.id, t - 1) + first_ * a.of.width; }
    /// This part's rows of a node's own array [B, width].
    T* share(T* a, Index width) const { return a + first_ * width; }
    auto at(Seq<T> a) const { return matrix_view(data(a), rows(), a.width); }
    auto at(Seq<T> a, Index t) const { return matrix_view(data(a, t), batch(), a.width); }
    auto at(Previous<T> a, Index t) const { return matrix_view(data(a, t), batch(), a.of.width); }

    const Token* data(Tokens x, Index t = 0) const {
        return store_.at(store_.tokens, x.id).value + t * store_.batch + first_;
    }
    MatrixRef<T> values(Weight<T> w) const { return store_.at(store_.parameters, w.id).values(); }

    /// Rows [B, width] of a mask's group, or null where no mask is active in this pass.
    const T* data(Mask m, Index group = 0) const {
        if (m.id < 0) return nullptr;
        const auto& r = store_.at(store_.masks, m.id);
        return r.active ? r.value + (group * store_.batch + first_) * r.width : nullptr;
    }

    /// The random numbers of this node in this pass: a function of the graph's seed, the step counter
    /// and the node's name.
    Random random() const { return {store_.seed, stream_of(name()), store_.step}; }

    /// d(asked loss) / d(this loss): what a loss multiplies its derivatives with; 0 when it is not asked for.
    double upstream(Loss<T> l) const { return store_.at(store_.losses, l.id).upstream; }
    /// Loss of every position [T, B], where the loss keeps one.
    double* by_token(Loss<T> l) const { return store_.at(store_.losses, l.id).by_token; }

    /// The head behind logits.
    const graph::LogitsRecord<T>& head(Logits<T> o) const { return store_.at(store_.logits, o.id); }
    Parameter<T>& parameter(int id) const { return store_.at(store_.parameters, id); }

protected:
    /// c = beta c + a b, where b is the matrix of a term (or its transpose). The few rows of one step go
    /// through the packed matrix when there are enough steps to pay for packing it; see kernel::Packed.
    void multiply(graph::Source<T>& s, MatrixRef<const T> a, MatrixRef<const T> b, T beta,
                  MatrixRef<T> c) const {
        constexpr Index worth_packing = 4;
        if (!s.packed || store_.time < worth_packing || a.rows < 2) return gemm<T>(T(1), a, b, beta, c);
        pack(s, b);
        if (beta == T(0)) std::fill_n(c.data, c.rows * c.cols, T(0));
        kernel::Packed<T>::add_product(a, s.packed, c);
    }

    /// Packs the matrix of a term unless that is done in this pass.
    void pack(graph::Source<T>& s, MatrixRef<const T> matrix) const {
        if (s.packed_at == store_.pass) return;
        kernel::Packed<T>::pack(matrix, s.packed);
        s.packed_at = store_.pass;
    }

    /// Calls f for the parts that threads() share, or for `whole`. Parts are worth it where the matrices
    /// stay in a core's own cache, which every part reads: then a step is short, and meeting after each of
    /// them would cost more than reading them twice. `ready(u, s)` is called before that for every term of
    /// the node's units that is computed step by step.
    template <class Self, class Ready, class F>
    void share_batch(const Self& whole, Ready&& ready, F&& f) const {
        constexpr Index near_bytes = Index{2} << 20, worth_a_thread = 4;
        Index bytes = 0;
        const auto each = [&](auto&& visit) {
            for (auto& u : store_.units)
                if (u.node == node_)
                    for (auto& s : u.sources)
                        if (s.when != graph::Source<T>::When::sequence) visit(u, s);
        };
        each([&](auto& u, auto& s) { bytes += s.width * u.width * Index{sizeof(T)}; });
        const Index most = bytes <= near_bytes ? store_.batch / worth_a_thread : 1;
        if (piece_count(store_.batch, 1, most) == 1) return f(whole);
        each(ready);
        parallel(store_.batch, 1, most, [&](Index first, Index last, Index) {
            Self part = whole;
            part.first_ = first, part.share_ = last - first;
            f(std::as_const(part));
        });
    }

    graph::Store<T>& store_;
    int node_;
    Index first_ = 0, share_ = -1;  // rows of the batch that a part has; -1: all
};

/// Handed to a node's `forward`.
template <class T> class Forward : public Pass<T> {
public:
    using Pass<T>::Pass;

    /// Z = b + Σ a W over the terms known for the whole sequence, all steps in one product each.
    void affine(Units<T> z) const;
    /// z_t += Σ a W over the terms with a previous or current input.
    void affine(Units<T> z, Index t) const;

    /// Calls f(part) so that threads share the batch: each has a part, a Forward of some of its rows, runs a
    /// whole loop over the steps with it and meets the others only at the end. Where that does not pay, f
    /// is called once with all rows. Within f use `part` alone, its affine(z, t) and its data.
    template <class F> void over_batch(F&& f) const {
        this->share_batch(
            *this,
            [&](auto&, auto& s) {
                if (s.packed) this->pack(s, this->store_.at(this->store_.parameters, s.weight).values());
            },
            f);
    }

    /// Sets the value of a loss, in nats, and how many positions counted.
    void set(Loss<T> l, double value, Index predicted) const {
        auto& r = this->store_.at(this->store_.losses, l.id);
        r.value = value;
        r.predicted = predicted;
    }
    /// Sets the plain cross-entropy Σ -log p(y_t) within a loss, in nats, for perplexities.
    void set_cross_entropy(Loss<T> l, double nats) const {
        this->store_.at(this->store_.losses, l.id).cross_entropy = nats;
    }
    /// For a loss that has its gradient ready in the forward pass: the adjoint of a, all zero, to put it in,
    /// or null where another node has put its own there. It counts once backward finds it `prepared`.
    T* stage_adjoint(Seq<T> a) const {
        auto& s = this->store_.at(this->store_.seqs, a.id);
        if (s.staged_by >= 0) return nullptr;
        s.staged_by = this->node_;
        s.unset[0] = true;
        T* adjoint = this->store_.adjoint(a.id, 0);
        return adjoint;
    }
    double value(Loss<T> l) const { return this->store_.at(this->store_.losses, l.id).value; }
    Index predicted(Loss<T> l) const { return this->store_.at(this->store_.losses, l.id).predicted; }

private:
    void accumulate(const graph::UnitsRecord<T>& u, graph::Source<T>& s, Index first, Index count,
                    T beta) const;
};

/// Handed to a node's `backward`, written once for both quantities: for Gradient `chain(d)` is d and
/// `affine_backward` uses W; for Modulus `chain(d)` is d² and `affine_backward` uses W∘W, into buffers of its own. A cell that
/// lets one unit reach another by two paths at once must square their sum by hand.
template <class T, class Quantity = Gradient> class Backward : public Pass<T> {
public:
    using Pass<T>::Pass;
    static constexpr bool is_gradient = std::is_same_v<Quantity, Gradient>;
    static constexpr int quantity = is_gradient ? 0 : 1;

    /// What has flowed back into a sequence so far, at step t or all steps; zero where nothing has. Add to
    /// it, never overwrite it, unless the sequence is the node's own and nobody else reads it.
    T* adjoint_data(Seq<T> a, Index t = 0) const {
        return this->store_.adjoint(a.id, quantity, t) + this->first_ * a.width;
    }
    /// Whether what this node's forward pass put into the adjoint of a is still there; it counts from now on.
    bool commit(Seq<T> a) const requires(is_gradient) {
        auto& s = this->store_.at(this->store_.seqs, a.id);
        if (!s.unset[0] || std::exchange(s.staged_by, -1) != this->node_) return false;
        s.unset[0] = false;
        return true;
    }
    /// Takes that back.
    void discard(Seq<T> a) const { this->store_.at(this->store_.seqs, a.id).unset[quantity] = true; }
    auto adjoint(Seq<T> a) const { return matrix_view(adjoint_data(a), this->rows(), a.width); }
    auto adjoint(Seq<T> a, Index t) const { return matrix_view(adjoint_data(a, t), this->batch(), a.width); }

    /// A local derivative as this quantity needs it: d for Gradient, d² for Modulus. Takes an xtensor
    /// expression (by value, so that it does not dangle), a SIMD register or a number.
    template <class D> static auto chain(D d) {
        if constexpr (is_gradient) return d;
        else if constexpr (requires { d.dimension(); }) return square(std::move(d));
        else return d * d;
    }

    /// Carries the adjoint of z_t into its previous and current inputs.
    void affine_backward(Units<T> z, Index t) const;
    /// As Forward::over_batch; within f use the part's affine_backward(z, t) and its data, and no other adjoints than
    /// those of units computed step by step and of their inputs.
    template <class F> void over_batch(F&& f) const {
        this->share_batch(
            *this,
            [&](auto& u, auto& s) {
                if (s.packed) this->pack(s, t(matrix(s)));
                // Cleared now, so that no part clears what another has added.
                this->store_.adjoint(u.seq, quantity);
                this->store_.adjoint(s.seq, quantity);
            },
            f);
    }

    /// Carries the adjoint of all z into the inputs known for the whole sequence and, for Gradient, into
    /// every weight and the bias: one product each.
    void affine_backward(Units<T> z) const;

    /// The gradient of a weight as a matrix to add to.
    MatrixRef<T> gradient(Weight<T> w) const {
        return this->store_.at(this->store_.parameters, w.id).dense_gradient();
    }
    /// One row of it, marked as touched; for weights declared with lookup().
    T* gradient_row(Weight<T> w, Index row) const {
        return this->store_.at(this->store_.parameters, w.id).gradient_row(row);
    }

private:
    MatrixRef<const T> matrix(const graph::Source<T>& s) const {
        const auto& p = this->store_.at(this->store_.parameters, s.weight);
        return {is_gradient ? p.value : s.squared, p.rows, p.cols};
    }
    void into_input(const graph::UnitsRecord<T>& u, graph::Source<T>& s, Index first, Index count, T* target,
                    T beta) const;
    void into_weight(const graph::UnitsRecord<T>& u, const graph::Source<T>& s) const;
};

// --- products -------------------------------------------------------------------------------------

template <class T> void Forward<T>::affine(Units<T> z) const {
    auto& store = this->store_;
    auto& u = store.at(store.units, z.id);
    T* out = store.value(u.seq);
    T beta = 0;
    if (u.bias >= 0) {
        const T* b = store.at(store.parameters, u.bias).value;
        for (Index r = 0; r < this->rows(); ++r) std::copy_n(b, u.width, out + r * u.width);
        beta = 1;
    }
    for (auto& s : u.sources)
        if (s.when == graph::Source<T>::When::sequence) {
            accumulate(u, s, 0, this->rows(), beta);
            beta = 1;
        }
    if (beta == T(0)) std::fill_n(out, this->rows() * u.width, T(0));
}

template <class T> void Forward<T>::affine(Units<T> z, Index t) const {
    for (auto& u = this->store_.at(this->store_.units, z.id); auto& s : u.sources)
        if (s.when != graph::Source<T>::When::sequence)
            accumulate(u, s, t * this->store_.batch + this->first_, this->batch(), T(1));
}

// Rows [first, first + count) of z, counted over time and batch.
template <class T> void Forward<T>::accumulate(const graph::UnitsRecord<T>& u, graph::Source<T>& s,
                                               Index first, Index count, T beta) const {
    auto& store = this->store_;
    const Index back = s.when == graph::Source<T>::When::previous ? store.batch : 0;
    const T* in = store.value(s.seq) + (first - back) * s.width;
    const MatrixRef<T> out(store.value(u.seq) + first * u.width, count, u.width);
    const MatrixRef<const T> w = store.at(store.parameters, s.weight).values();
    if (s.tokens >= 0) {
        const Token* x = store.at(store.tokens, s.tokens).value + first;
        for (Index r = 0; r < count; ++r)
            gemm<T>(T(1), {in + r * s.width, 1, s.width}, w.rows_from(x[r] * s.width, s.width), beta,
                    out.rows_from(r, 1));
        return;
    }
    const auto* m = s.mask >= 0 ? &store.at(store.masks, s.mask) : nullptr;
    if (!m || !m->active) return this->multiply(s, {in, count, s.width}, w, beta, out);
    const Index block = u.width / m->groups, batch = std::min(count, store.batch);
    T* masked = this->share(s.masked, s.width);
    for (Index g = 0; g < m->groups; ++g) {
        kernel::multiply_rows(count, batch, s.width, in,
                              this->share(m->value + g * store.batch * s.width, s.width), masked);
        if (m->groups == 1) this->multiply(s, {masked, count, s.width}, w, beta, out);
        else
            gemm<T>(T(1), {masked, count, s.width}, w.columns(g * block, block), beta,
                    out.columns(g * block, block));
    }
}

template <class T, class Quantity> void Backward<T, Quantity>::affine_backward(Units<T> z, Index t) const {
    auto& store = this->store_;
    auto& u = store.at(store.units, z.id);
    for (auto& s : u.sources) {
        using When = typename graph::Source<T>::When;
        if (s.when == When::sequence || (s.when == When::previous && t == 0))
            continue;  // the start is not trained
        T* target = store.adjoint(s.seq, quantity, s.when == When::previous ? t - 1 : t);
        into_input(u, s, t * store.batch + this->first_, this->batch(), this->share(target, s.width), T(1));
    }
}

template <class T, class Quantity> void Backward<T, Quantity>::affine_backward(Units<T> z) const {
    auto& store = this->store_;
    auto& u = store.at(store.units, z.id);
    store.adjoint(u.seq, quantity);  // zero where nothing flowed back
    for (auto& s : u.sources) {
        if (s.when == graph::Source<T>::When::sequence) {
            const T beta = store.begin_adjoint(s.seq, quantity);
            into_input(u, s, 0, this->rows(), store.adjoint(s.seq, quantity), beta);
        }
        if constexpr (is_gradient) into_weight(u, s);
    }
    if constexpr (is_gradient)
        if (u.bias >= 0) {
            auto& b = store.at(store.parameters, u.bias);
            kernel::add_column_sums(this->rows(), u.width, store.adjoint(u.seq, 0), b.dense_gradient().data);
        }
}

// target = beta target + dz Wᵀ over rows [first, first + count), counted over time and batch.
template <class T, class Quantity>
void Backward<T, Quantity>::into_input(const graph::UnitsRecord<T>& u, graph::Source<T>& s, Index first,
                                       Index count, T* target, T beta) const {
    auto& store = this->store_;
    const MatrixRef<const T> dz(store.adjoint(u.seq, quantity) + first * u.width, count, u.width);
    const MatrixRef<const T> w = matrix(s);
    if (s.tokens >= 0) {
        const Token* x = store.at(store.tokens, s.tokens).value + first;
        for (Index r = 0; r < count; ++r)
            gemm<T>(T(1), dz.rows_from(r, 1), t(w.rows_from(x[r] * s.width, s.width)), beta,
                    {target + r * s.width, 1, s.width});
        return;
    }
    const auto* m = s.mask >= 0 ? &store.at(store.masks, s.mask) : nullptr;
    if (!m || !m->active) return this->multiply(s, dz, t(w), beta, {target, count, s.width});
    if (beta == T(0)) std::fill_n(target, count * s.width, T(0));
    const Index block = u.width / m->groups, batch = std::min(count, store.batch);
    T* masked = this->share(s.masked, s.width);
    for (Index g = 0; g < m->groups; ++g) {
        if (m->groups == 1) this->multiply(s, dz, t(w), T(0), {masked, count, s.width});
        else
            gemm<T>(T(1), dz.columns(g * block, block), t(w.columns(g * block, block)), T(0),
                    {masked, count, s.width});
        kernel::add_multiplied_rows<!is_gradient>(count, batch, s.width, masked,
                                                  this->share(m->value + g * store.batch * s.width, s.width),
                                                  target);
    }
}

template <class T, class Quantity>
void Backward<T, Quantity>::into_weight(const graph::UnitsRecord<T>& u, const graph::Source<T>& s) const {
    auto& store = this->store_;
    auto& p = store.at(store.parameters, s.weight);
    const Index back = s.when == graph::Source<T>::When::previous ? store.batch : 0;
    const T* in = store.value(s.seq) - back * s.width;
    const MatrixRef<const T> dz(store.adjoint(u.seq, quantity), this->rows(), u.width);
    if (s.tokens >= 0) {
        const auto g = p.dense_gradient();
        const Token* x = store.at(store.tokens, s.tokens).value;
        for (Index r = 0; r < this->rows(); ++r)
            gemm<T>(T(1), t(MatrixRef<const T>(in + r * s.width, 1, s.width)), dz.rows_from(r, 1), T(1),
                    g.rows_from(x[r] * s.width, s.width));
        return;
    }
    const T beta = p.begin_product();
    const MatrixRef<T> g(p.gradient, p.rows, p.cols);
    const auto* m = s.mask >= 0 ? &store.at(store.masks, s.mask) : nullptr;
    if (!m || !m->active) return gemm<T>(T(1), t(MatrixRef<const T>(in, this->rows(), s.width)), dz, beta, g);
    const Index block = u.width / m->groups;
    for (Index k = 0; k < m->groups; ++k) {
        kernel::multiply_rows(this->rows(), store.batch, s.width, in, m->value + k * store.batch * s.width,
                              s.masked);
        gemm<T>(T(1), t(MatrixRef<const T>(s.masked, this->rows(), s.width)), dz.columns(k * block, block),
                beta, g.columns(k * block, block));
    }
}

}  // namespace isogloss
