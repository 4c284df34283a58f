/// @file array.hpp  Arrays whose sizes and subscripts may be signed, as `Index` is.
#pragma once

#include <concepts>
#include <isogloss/types.hpp>
#include <span>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// A std::vector whose sizes and subscripts may be of any integer type, so that no call site needs a cast. It
/// converts from and to std::vector, without a copy when moved, and to std::span. As with std::vector, the
/// behaviour is undefined for a subscript out of range.
template <class T> struct Array : std::vector<T> {
    using Base = std::vector<T>;
    using Base::assign, Base::Base;
    Array(Base v) : Base(std::move(v)) {}
    template <std::integral I> explicit Array(I n, const T& value = T()) : Base(std::size_t(n), value) {}

    template <std::integral I> decltype(auto) operator[](I i) { return Base::operator[](std::size_t(i)); }
    template <std::integral I> decltype(auto) operator[](I i) const {
        return Base::operator[](std::size_t(i));
    }
    template <std::integral I> void reserve(I n) { Base::reserve(std::size_t(n)); }
    template <std::integral I> void resize(I n, const T& value = T()) { Base::resize(std::size_t(n), value); }
    template <std::integral I> void assign(I n, const T& value) { Base::assign(std::size_t(n), value); }
};

/// A std::span with a subscript of any integer type; see Array.
template <class T> struct ArrayView : std::span<T> {
    using Base = std::span<T>;
    using Base::Base;
    constexpr ArrayView(Base s) : Base(s) {}
    template <std::integral I> constexpr T& operator[](I i) const { return Base::operator[](std::size_t(i)); }
};

}}  // namespace isogloss
