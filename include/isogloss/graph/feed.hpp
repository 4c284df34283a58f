/// @file graph/feed.hpp  The inputs of a pass.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <isogloss/error.hpp>
#include <isogloss/graph/node.hpp>
#include <iterator>
#include <span>
#include <type_traits>
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

/// The sizes of an array of N dimensions, the third of which is `width`. Throws UsageError unless it is that, row-major
/// without gaps.
template <std::size_t N, class A> std::array<Index, N> sizes_of(const A& a, Index width) {
    std::array<Index, N> sizes{};
    bool fits = a.dimension() == N;
    std::ptrdiff_t stride = 1;
    for (std::size_t k = N; fits && k-- > 0; stride *= sizes[k]) {
        sizes[k] = static_cast<Index>(a.shape()[k]);
        fits = (k < 2 || sizes[k] == width) &&
               (sizes[k] <= 1 || static_cast<std::ptrdiff_t>(a.strides()[k]) == stride);
    }
    if (!fits)
        throw UsageError("forward: a feed is not an array [time, batch", N == 3 ? message(", ", width) : "",
                         "], row-major without gaps; xt::eval(expression) makes one");
    return sizes;
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
        const auto [time, batch] = detail::sizes_of<2>(array, 0);
        block = {array.data() + array.data_offset(), time, batch};
    }
    template <detail::StridedArray<T> A> Feed(Seq<T> to, const A& array) : seq(to) {
        const auto sizes = detail::sizes_of<3>(array, to.width);
        values = array.data() + array.data_offset();
        block = {nullptr, sizes[0], sizes[1]};
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

/// Sets T and B of a pass by its first input, and that this one is given. A slip in the others would go unnoticed: an
/// input that is given twice or that no node reads.
template <class T, class H> void take_shape(Store<T>& store, const Array<NodeRecord<T>>& nodes,
                                            const H& handle, TokenBlock block, const void* data,
                                            std::vector<int> NodeRecord<T>::*inputs) {
    store.require_own(handle, "forward");
    auto& input = store[handle];
    bool read = std::ranges::any_of(
        nodes, [&](const auto& n) { return std::ranges::find(n.*inputs, handle.id) != (n.*inputs).end(); });
    if constexpr (std::is_same_v<H, Seq<T>>) read = read && input.node < 0;
    if (input.fed || !read)
        throw UsageError("forward: '", input.name, "' is given twice, is no input, or no node reads it");
    const Index time = block.time, batch = block.batch;
    const auto [most_time, most_batch] = store.capacity;
    if (!data || time < 1 || batch < 1 || time > most_time || batch > most_batch ||
        (store.time > 0 && (store.time != time || store.batch != batch)))
        throw UsageError("forward: input '", input.name, "' has ", time, " steps and ", batch, " columns",
                         data ? "" : " and no data", "; expected as many as the others, at most ", most_time,
                         " and ", most_batch);
    store.time = time, store.batch = batch;
    input.fed = true;
}

/// Copies the inputs of a pass into the graph and sets the size of the pass; refuses what does not fit.
template <class T>
void take_inputs(Store<T>& store, const Array<NodeRecord<T>>& nodes, std::span<const Feed<T>> feeds) {
    store.time = store.batch = 0;
    for (auto& x : store.tokens) x.fed = false;
    for (auto& s : store.seqs) s.fed = false;
    for (const auto& f : feeds) {
        if (f.seq.id >= 0 || f.values) {
            take_shape(store, nodes, f.seq, f.block, f.values, &NodeRecord<T>::input_seqs);
            std::copy_n(f.values, store.rows() * f.seq.width, store[f.seq].value);
        } else if (f.tokens.id >= 0 || f.block.data) {  // neither: an argument that was omitted
            take_shape(store, nodes, f.tokens, f.block, f.block.data, &NodeRecord<T>::input_tokens);
            TokensRecord& x = store[f.tokens];
            for (Index r = 0; r < store.rows(); ++r) {
                const Token v = f.block.data[r];
                if (v < 0 ? (v != not_predicted || x.read_by_node) : v >= x.vocabulary)
                    throw DataError("forward: input '", x.name, "' holds token ", v, " at step ",
                                    r / store.batch, ", column ", r % store.batch, "; expected 0 to ",
                                    x.vocabulary - 1,
                                    x.read_by_node ? "" : ", or -1 where nothing is predicted");
                x.value[r] = v;
            }
        }
    }
    if (store.batch > store.columns_in_batch() - store.first_column)
        throw UsageError("forward: ", store.batch, " columns from column ", store.first_column,
                         " on exceed the batch of ", store.all_columns, " columns set by shard()");
}

}  // namespace graph
}}  // namespace isogloss
