/// @file graph/feed.hpp  The inputs of a pass.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <isogloss/error.hpp>
#include <isogloss/graph/node.hpp>
#include <isogloss/sizes.hpp>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace detail {

/// An array of T that exposes its data, strides and shape, as those of xtensor do; no expression or list.
template <class A, class T>
concept StridedArray = requires(const A& a) {
    { a.data() + a.data_offset() } -> std::convertible_to<const T*>;
    { a.strides()[0] } -> std::convertible_to<std::ptrdiff_t>;
    { a.shape()[0] } -> std::convertible_to<std::size_t>;
    { a.dimension() } -> std::convertible_to<std::size_t>;
};

/// Throws UsageError unless the array has this shape (0: any size) and is contiguous in row-major order.
template <std::size_t N, class A> void require_shape(const A& a, const std::array<Index, N>& expected) {
    std::array<Index, 16> found{};
    const auto dimension = std::min<std::size_t>(a.dimension(), found.size());
    bool fits = dimension == N;
    for (std::size_t k = 0; k < dimension; ++k) {
        found[k] = static_cast<Index>(a.shape()[k]);
        fits = fits && (expected[k] == 0 || expected[k] == found[k]);
    }
    std::ptrdiff_t stride = 1;
    for (std::size_t k = N; fits && k-- > 0; stride *= found[k])
        fits = found[k] <= 1 || static_cast<std::ptrdiff_t>(a.strides()[k]) == stride;
    if (fits) return;
    throw UsageError("forward: a feed is an array ", dimensions_text(std::span(found).first(dimension)),
                     ", expected ",
                     N == 2 ? std::string("[time, batch]") : message("[time, batch, ", expected[N - 1], "]"),
                     ", row-major without gaps; xt::eval(expression) makes one");
}

}  // namespace detail

/// One input of a pass: `{x, batch.input}` for tokens, `{u, data, time, batch}` for a sequence; or an xtensor
/// array, `{x, words}` of Token [T, B] and `{u, values}` of T [T, B, width], which must outlive the call. Throws
/// UsageError for an array of another shape.
template <class T> struct Feed {
    Feed() = default;
    Feed(Tokens to, TokenBlock from) : tokens(to), block(from) {}
    Feed(Tokens to, std::span<const Token> column)
        : tokens(to), block{column.data(), std::ssize(column), 1} {}
    Feed(Seq<T> to, const T* data, Index time, Index batch)
        : seq(to), values(data), block{nullptr, time, batch} {}
    template <detail::StridedArray<Token> A> Feed(Tokens to, const A& array) : tokens(to) {
        detail::require_shape<2>(array, {0, 0});
        block = {array.data() + array.data_offset(), static_cast<Index>(array.shape()[0]),
                 static_cast<Index>(array.shape()[1])};
    }
    template <detail::StridedArray<T> A> Feed(Seq<T> to, const A& array) : seq(to) {
        detail::require_shape<3>(array, {0, 0, to.width});
        values = array.data() + array.data_offset();
        block = {nullptr, static_cast<Index>(array.shape()[0]), static_cast<Index>(array.shape()[1])};
    }
    /// Anything else is refused by the compiler, in a sentence.
    template <class A>
    requires(!std::convertible_to<const A&, TokenBlock> &&
             !std::convertible_to<const A&, std::span<const Token>> && !detail::StridedArray<A, Token>)
        Feed(Tokens, const A&) {
        static_assert(
            sizeof(A) == 0,
            "isogloss: tokens are fed as numbers of type Token, 32 bits: a vector or span of them, a "
            "TokenBlock {data, time, batch}, or an array [time, batch], of an expression "
            "xt::eval(expression)");
    }
    template <class A>
    requires(!detail::StridedArray<A, T>) Feed(Seq<T>, const A&) {
        static_assert(
            sizeof(A) == 0,
            "isogloss: a sequence is fed as numbers of the graph's scalar type: {input, data, time, "
            "batch}, or an array [time, batch, width], of an expression xt::eval(expression)");
    }

    Tokens tokens;
    Seq<T> seq;
    const T* values = nullptr;
    TokenBlock block;
};

namespace graph {

/// Copies the inputs of a pass into the graph and sets the size of the pass; refuses what does not fit.
template <class T> class Inputs {
public:
    Inputs(Store<T>& store, const Array<NodeRecord<T>>& nodes) : store_(store), nodes_(nodes) {}

    void take(std::span<const Feed<T>> feeds) {
        store_.time = store_.batch = 0;
        for (auto& x : store_.tokens) x.fed = false;
        for (auto& s : store_.seqs) s.fed = false;
        for (const auto& f : feeds) take(f);
        if (store_.batch > store_.columns_in_batch() - store_.first_column)
            throw UsageError("forward: ", store_.batch, " columns from column ", store_.first_column,
                             " on exceed the batch of ", store_.all_columns, " columns set by shard()");
    }

private:
    void take(const Feed<T>& f) {
        if (f.tokens.id >= 0) {
            store_.require_own(f.tokens, "forward");
            require_wanted(store_[f.tokens], f.tokens.id, &NodeRecord<T>::input_tokens);
            copy_tokens(store_[f.tokens], f);
        } else if (f.seq.id >= 0) {  // otherwise an argument that was omitted
            store_.require_own(f.seq, "forward");
            if (store_[f.seq].node < 0) require_wanted(store_[f.seq], f.seq.id, &NodeRecord<T>::input_seqs);
            copy_sequence(store_[f.seq], f);
        } else if (f.values || f.block.data) {  // data for an empty handle, which this refuses
            if (f.values) store_.require_own(f.seq, "forward");
            store_.require_own(f.tokens, "forward");
        }
    }

    // Requires that an input is given once and that a node reads it: else a slip would go unnoticed.
    void require_wanted(const auto& input, int id, std::vector<int> NodeRecord<T>::*inputs) const {
        if (input.fed)
            throw UsageError("forward: input '", input.name,
                             "' is given twice, expected once; is one of them meant for another?");
        for (const auto& n : nodes_)
            if (std::find((n.*inputs).begin(), (n.*inputs).end(), id) != (n.*inputs).end()) return;
        throw UsageError(
            "forward: input '", input.name,
            "' is given but no node of the graph reads it; hand its handle to the node that should, or leave "
            "it out");
    }

    // Sets T and B of the pass, or requires them to equal those of earlier inputs.
    void take_shape(const std::string& input, const Feed<T>& f, bool has_data) {
        const Index time = f.block.time, batch = f.block.batch;
        if (time < 1 || batch < 1 || time > store_.capacity.time || batch > store_.capacity.batch)
            throw UsageError("forward: input '", input, "' has ", time, " steps and ", batch,
                             " columns; the graph holds 1 to ", store_.capacity.time, " steps and 1 to ",
                             store_.capacity.batch,
                             " columns. Cut the batch or build the graph with larger capacities.");
        if (!has_data) throw UsageError("forward: input '", input, "' has no data: the pointer is null");
        if (store_.time == 0) {
            store_.time = time;
            store_.batch = batch;
        } else if (store_.time != time || store_.batch != batch) {
            throw UsageError("forward: input '", input, "' has ", time, " steps and ", batch,
                             " columns, another input has ", store_.time, " and ", store_.batch);
        }
    }

    void copy_sequence(SeqRecord<T>& s, const Feed<T>& f) {
        take_shape(s.name, f, f.values != nullptr);
        if (s.node >= 0)
            throw UsageError("forward: '", s.name, "' is computed by a node and cannot be an input");
        std::copy_n(f.values, store_.rows() * s.width, s.value);
        s.fed = true;
    }

    void copy_tokens(TokensRecord& x, const Feed<T>& f) {
        take_shape(x.name, f, f.block.data != nullptr);
        for (Index r = 0; r < store_.rows(); ++r) {
            const Token v = f.block.data[r];
            if (v < 0 ? (v != not_predicted || x.read_by_node) : v >= x.vocabulary)
                throw DataError("forward: input '", x.name, "' holds token ", v, " at step ",
                                r / store_.batch, ", column ", r % store_.batch, "; expected 0 to ",
                                x.vocabulary - 1, x.read_by_node ? "" : ", or -1 where nothing is predicted");
            x.value[r] = v;
        }
        x.fed = true;
    }

    Store<T>& store_;
    const Array<NodeRecord<T>>& nodes_;
};

}  // namespace graph
}}  // namespace isogloss
