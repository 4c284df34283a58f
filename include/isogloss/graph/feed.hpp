/// @file graph/feed.hpp  The inputs of a pass.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <isogloss/error.hpp>
#include <isogloss/graph/handles.hpp>
#include <isogloss/sizes.hpp>
#include <iterator>
#include <span>

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

    Tokens tokens;
    Seq<T> seq;
    const T* values = nullptr;
    TokenBlock block;
};

}}  // namespace isogloss
