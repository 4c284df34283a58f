/// What the C++ library of emscripten 3.1.6 (libc++ 13, in Debian 12) lacks of C++20 and isogloss uses; force-included:
/// em++ -include packaging/emscripten/libcxx13.hpp. Newer ones have it, and this file is empty for them.
#pragma once

#include <version>

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 14000
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <ranges>

namespace std {  // the standard forbids it, except to those who complete its library

template <class To, class From> constexpr To bit_cast(const From& from) {
    return __builtin_bit_cast(To, from);
}

inline to_chars_result to_chars(char* first, char* last, double x, chars_format, int digits) {
    const int length = snprintf(first, size_t(last - first), "%.*g", digits, x);
    return length < last - first ? to_chars_result{first + length, {}}
                                 : to_chars_result{last, errc::value_too_large};
}

// The shortest that is read as the same number.
template <class T>
enable_if_t<is_floating_point_v<T>, to_chars_result> to_chars(char* first, char* last, T x) {
    for (int digits = 1;; ++digits) {
        const auto result = to_chars(first, last, double(x), chars_format::general, digits);
        char text[40] = {};
        std::copy(first, result.ptr, text);
        if (digits == 17 || result.ec != errc{} || T(strtod(text, nullptr)) == x) return result;
    }
}

template <class Array> unique_ptr<Array> make_unique_for_overwrite(size_t n) {
    return unique_ptr<Array>(new remove_extent_t<Array>[n]);
}

namespace ranges {

template <class Range, class F> constexpr bool any_of(Range&& range, F f) {
    return std::any_of(range.begin(), range.end(), ref(f));
}
template <class Range, class F> constexpr bool all_of(Range&& range, F f) {
    return std::all_of(range.begin(), range.end(), ref(f));
}
template <class Range, class F> constexpr bool none_of(Range&& range, F f) {
    return std::none_of(range.begin(), range.end(), ref(f));
}
template <class Range, class F> constexpr auto count_if(Range&& range, F f) {
    return std::count_if(range.begin(), range.end(), ref(f));
}
template <class Range, class Value, class Member = identity>
constexpr auto count(Range&& range, const Value& value, Member of = {}) {
    return std::count_if(range.begin(), range.end(), [&](auto&& x) { return invoke(of, x) == value; });
}
template <class Range, class Value, class Member = identity>
constexpr auto find(Range&& range, const Value& value, Member of = {}) {
    return std::find_if(range.begin(), range.end(), [&](auto&& x) { return invoke(of, x) == value; });
}
template <class Range, class To> constexpr auto copy(Range&& range, To to) {
    return std::copy(range.begin(), range.end(), to);
}
template <class A, class B> constexpr bool equal(A&& a, B&& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}
template <class A, class B> constexpr auto mismatch(A&& a, B&& b) {
    const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    struct {
        decltype(at.first) in1;
        decltype(at.second) in2;
    } const found{at.first, at.second};
    return found;
}
template <class Range, class Less = std::less<>, class Key> void stable_sort(Range&& range, Less, Key key) {
    std::stable_sort(range.begin(), range.end(), [&](auto&& a, auto&& b) { return key(a) < key(b); });
}

}  // namespace ranges
}  // namespace std
#endif
