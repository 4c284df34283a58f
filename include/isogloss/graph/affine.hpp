/// @file graph/affine.hpp  Affine maps z = Σ a W + b of sequences: their terms, and the products these consist of.
#pragma once

#include <algorithm>
#include <isogloss/graph/handles.hpp>
#include <isogloss/graph/packed_matrix.hpp>
#include <isogloss/graph/parameters.hpp>
#include <isogloss/kernel/packed.hpp>
#include <isogloss/linalg.hpp>
#include <string>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

template <class T> struct Store;
template <class T> struct MaskRecord;

/// One term a W. The input a is known for the whole sequence, as it is or one step back (`shifted`), or only step by
/// step: one step back (`previous`) or at the step itself (`current`).
template <class T> struct Source {
    enum class When { sequence, shifted, previous, current } when = When::sequence;
    Seq<T> input;
    Weight<T> weight = {};
    Tokens tokens = {};       // if given, W is a stack of matrices, one for each symbol
    bool transposed = false;  // the parameter is Wᵀ
    Mask mask = {};        // if given, multiplies the input; one group for each equal block of columns of z
    T* masked = nullptr;   // [T, B, width], the input multiplied by one group of the mask
    T* squared = nullptr;  // W∘W, for the modulus
    std::byte* memory = nullptr;  // terms computed step by step: for the matrix packed,
    PackedMatrix<T> packed = {};
    std::uint64_t packed_at = 0;  // the pass it was packed in

    bool by_step() const { return when == When::previous || when == When::current; }
    /// By how many steps the input is behind z.
    Index back() const { return when == When::shifted || when == When::previous ? 1 : 0; }
    /// W of the parameter, or of a part of it.
    template <class U> MatrixRef<U> matrix(MatrixRef<U> of_parameter) const {
        return transposed ? t(of_parameter) : of_parameter;
    }
};

template <class T> struct UnitsRecord {
    std::string name;
    Index width = 0;
    Seq<T> z;
    Weight<T> bias = {};  // empty for none
    int node = -1;
    std::uint64_t begun = 0;    // the last pass in which z was set to its bias or to 0
    std::uint64_t stepped = 0;  // the last in which a term computed step by step was added
    std::vector<Source<T>> sources = {};
};

/// One matrix product of a term: rows of the input times a matrix within the parameter, for a block of columns
/// of z. A term is one product, unless its tokens select a matrix for each row, or its mask has several groups.
template <class T> struct TermProduct {
    Index row, rows;        ///< positions t·B + b
    Index column, columns;  ///< of z, and of the parameter
    Index matrix_row;       ///< of the parameter: where the matrix begins
    const T* mask;          ///< [batch, width], or null

    /// The part of a matrix over all positions and columns of z.
    template <class U> MatrixRef<U> of(MatrixRef<U> z) const {
        return z.rows_from(row, rows).columns(column, columns);
    }
};

/// A term applied to the columns of the batch from `first_column` on; positions run over time and batch.
template <class T> class Term {
public:
    Term(Store<T>& store, const UnitsRecord<T>& units, const Source<T>& source, Index first_column = 0)
        : store_(store), units_(units), source_(source), column_(first_column) {
        if (source.mask.id >= 0 && store[source.mask].active) mask_ = &store[source.mask];
    }

    bool masked() const { return mask_ != nullptr; }
    Index width() const { return source_.input.width; }
    /// Whether a product uses the whole parameter, which may be packed for it.
    bool is_whole(const TermProduct<T>& q) const {
        return source_.tokens.id < 0 && q.columns == units_.width;
    }

    /// Calls f(TermProduct) for the products of positions [first, first + count), in order.
    template <class F> void products(Index first, Index count, F&& f) const {
        if (source_.tokens.id >= 0) {
            const Token* x = store_[source_.tokens].value;
            for (Index r = first; r < first + count; ++r)
                f(TermProduct<T>{r, 1, 0, units_.width, x[r] * width(), nullptr});
            return;
        }
        const Index groups = mask_ ? mask_->groups : 1, block = units_.width / groups;
        for (Index g = 0; g < groups; ++g)
            f(TermProduct<T>{first, count, g * block, block, 0,
                             mask_ ? mask_->value + (g * store_.batch + column_) * width() : nullptr});
    }

    /// The input of a product [rows, width], multiplied by its mask.
    MatrixRef<const T> input(const TermProduct<T>& q) const {
        const T* in = store_.value(source_.input.id) + (q.row - source_.back() * store_.batch) * width();
        if (!q.mask) return {in, q.rows, width()};
        kernel::multiply_rows(q.rows, batch(q), width(), in, q.mask, scratch());
        return {scratch(), q.rows, width()};
    }

    /// The matrix of a product [width, columns] within the parameter, or within its gradient or squares; and as it lies
    /// there, the transpose of a transposed one.
    template <class U> MatrixRef<U> matrix(const TermProduct<T>& q, MatrixRef<U> of_parameter) const {
        return source_.matrix(block(q, of_parameter));
    }
    template <class U> MatrixRef<U> block(const TermProduct<T>& q, MatrixRef<U> of_parameter) const {
        if (source_.transposed)
            return of_parameter.rows_from(q.column, q.columns).columns(q.matrix_row, width());
        return of_parameter.rows_from(q.matrix_row, width()).columns(q.column, q.columns);
    }

    /// Memory for the current rows, [rows, width]; for terms with a mask.
    T* scratch() const { return source_.masked + column_ * width(); }
    /// Rows of the mask in a product; the same mask serves every step.
    Index batch(const TermProduct<T>& q) const { return std::min(q.rows, store_.batch); }

private:
    Store<T>& store_;
    const UnitsRecord<T>& units_;
    const Source<T>& source_;
    const MaskRecord<T>* mask_ = nullptr;
    Index column_;
};

/// Packs the matrix of a term in the precision of the pass, unless already packed in this pass.
template <class T> void pack(const Store<T>& store, Source<T>& s, MatrixRef<const T> matrix) {
    if (s.packed_at == store.pass) return;
    s.packed.pack(matrix, store.products(), s.memory);
    s.packed_at = store.pass;
}

/// Least number of steps for which it pays to pack a matrix for the few rows of each step.
inline constexpr Index worth_packing = 4;

/// c = beta c + a b for a matrix b of a term, or its transpose; beta is 0 or 1. On packed weights all rows use the
/// packed matrix, if b is the `whole` of it. Otherwise the few rows of one step use a matrix packed for the pass, if
/// there are enough steps to pay for packing it; see kernel::Packed.
template <class T> void multiply(const Store<T>& store, Source<T>& s, bool whole, MatrixRef<const T> a,
                                 MatrixRef<const T> b, T beta, MatrixRef<T> c) {
    const Parameter<T>& p = store.parameters[s.weight.id];
    const auto* packed = !whole ? nullptr : s.transposed ? p.packed_transpose : p.packed;
    if (!packed && whole && s.memory && store.time >= worth_packing && a.rows >= 2) {
        pack(store, s, b);
        packed = &s.packed;
    }
    if (!packed) return product<T>(s.by_step() ? Precision::full : store.products(), a, b, beta, c);
    if (beta == T(0)) packed->product(a, nullptr, c);
    else packed->add_product(a, c);
}

/// z = beta z + a W for positions [first, first + count); positions of one step may be a part of the batch, which
/// begins at `first_column`.
template <class T> void add_term(Store<T>& store, const UnitsRecord<T>& u, Source<T>& s, Index first,
                                 Index count, Index first_column, T beta) {
    const Term<T> term(store, u, s, first_column);
    const MatrixRef<T> z(store.value(u.z.id), store.rows(), u.width);
    const MatrixRef<const T> W = store[s.weight].values();
    term.products(first, count, [&](const TermProduct<T>& q) {
        multiply(store, s, term.is_whole(q), term.input(q), term.matrix(q, W), beta, q.of(z));
    });
}

/// The adjoint of a term's input at positions [first, first + count), stored at `target`: = beta target + (dz Wᵀ)
/// ∘ mask. `W` is the parameter or, for the modulus (`squared`), its squares; the mask is then squared too.
template <bool squared, class T> void add_term_to_input(Store<T>& store, const UnitsRecord<T>& u,
                                                        Source<T>& s, MatrixRef<const T> dz,
                                                        MatrixRef<const T> W, Index first, Index count,
                                                        Index first_column, T beta, T* target) {
    const Term<T> term(store, u, s, first_column);
    const Index width = term.width();
    if (term.masked() && beta == T(0)) std::fill_n(target, count * width, T(0));
    term.products(first, count, [&](const TermProduct<T>& q) {
        T* out = q.mask ? term.scratch() : target + (q.row - first) * width;
        multiply(store, s, term.is_whole(q), q.of(dz), t(term.matrix(q, W)), q.mask ? T(0) : beta,
                 MatrixRef<T>(out, q.rows, width));
        if (q.mask) kernel::add_multiplied_rows<squared>(q.rows, term.batch(q), width, out, q.mask, target);
    });
}

/// The gradient of a term's weight over the whole sequence: += aᵀ dz, or = if nothing counts in it yet.
template <class T>
void add_term_to_weight(Store<T>& store, const UnitsRecord<T>& u, const Source<T>& s, MatrixRef<const T> dz) {
    const Term<T> term(store, u, s);
    Parameter<T>& p = store[s.weight];
    const bool by_token = s.tokens.id >= 0;  // adds to only some of the stack's matrices
    T beta = 1;
    if (by_token) p.dense_gradient();
    else beta = p.begin_product();
    const MatrixRef<T> gradient(p.gradient, p.rows, p.cols);
    term.products(0, store.rows(), [&](const TermProduct<T>& q) {
        const MatrixRef<const T> a = term.input(q), d = q.of(dz);
        const bool turned = s.transposed;
        product<T>(store.products(), t(turned ? d : a), turned ? a : d, beta, term.block(q, gradient));
    });
}

}}}  // namespace isogloss::graph
