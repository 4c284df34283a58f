/// @file error.hpp  What the library throws, and how a message is built.
#pragma once

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <isogloss/config.hpp>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace detail {

/// A part of a message, a text or a number, while the message is made. One type for all, so that a call of message()
/// costs no more to compile than its arguments.
class Part {
public:
    Part(std::string_view text) : text_(text) {}
    Part(const std::string& text) : text_(text) {}
    Part(const char* text) : text_(text) {}
    Part(char c) : text_(digits_, 1) { digits_[0] = c; }
    /// As a stream in the classic locale writes it: 0.1, 1e-05, in no locale 1,000.
    template <class V>
    requires std::is_arithmetic_v<V> Part(V value) {
        char* end = digits_;
        if constexpr (std::is_floating_point_v<V>)
            end = std::to_chars(digits_, digits_ + sizeof digits_, value, std::chars_format::general, 6).ptr;
        else end = std::to_chars(digits_, digits_ + sizeof digits_, +value).ptr;
        text_ = {digits_, static_cast<std::size_t>(end - digits_)};
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    std::string_view text() const { return text_; }

private:
    std::string_view text_;
    char digits_[24];
};

inline std::string joined(std::initializer_list<Part> parts) {
    std::size_t length = 0;
    for (const Part& part : parts) length += part.text().size();
    std::string text;
    text.reserve(length);
    for (const Part& part : parts) text += part.text();
    return text;
}

}  // namespace detail

/// Concatenates texts and numbers into one string, as in all messages.
template <class... Parts> std::string message(Parts... parts) { return detail::joined({parts...}); }

/// Base of every exception thrown by the library. A message says who, what was found, what was
/// expected and what to do.
class Error : public std::runtime_error {
public:
    /// Builds the text from the parts with message().
    template <class... Parts> explicit Error(Parts... parts)
        : std::runtime_error(detail::joined({beginning, parts...})) {}

    /// what() without its beginning, "isogloss: ": to be part of another message. Valid as long as the exception.
    std::string_view text() const { return what() + beginning.size(); }

private:
    static constexpr std::string_view beginning = "isogloss: ";
};

/// A model that cannot be built or run as asked: shapes, names, options, wiring. Thrown from the
/// line the user wrote.
class UsageError : public Error {
    using Error::Error;
};

/// Invalid content: a text, a token out of range, a vocabulary. Names file and line where there are any.
class DataError : public Error {
    using Error::Error;
};

/// A file that cannot be opened, read or written, or that is truncated, damaged or of another format.
class FileError : public Error {
    using Error::Error;
};

/// A value that is not finite, or a computation whose result is meaningless.
class NumericError : public Error {
    using Error::Error;
};

namespace detail {

/// The shortest text that reads back as the same number: 1.000000001 is not shown as 1.
template <class V> std::string in_full(V value) {
    if constexpr (std::is_floating_point_v<V>) {
        char text[64];
        const auto end = std::to_chars(text, text + sizeof text, value).ptr;
        return {text, end};
    } else {
        return message(value);
    }
}

}  // namespace detail

/// An exclusive bound of a range, for `require`: above 0, below 1.
struct Exclusive {
    double bound;
};

namespace detail {

/// One bound of a range of numbers: a number, which is inclusive, or an Exclusive.
template <class V> struct Bound {
    V value;
    bool exclusive = false;
    constexpr Bound(V included) : value(included) {}
    constexpr Bound(Exclusive e) : value(static_cast<V>(e.bound)), exclusive(true) {}
};

}  // namespace detail

/// Throws E (UsageError) unless `value` lies between `low` and `high`; without `high` there is no upper limit.
/// A value that is not finite is refused in every range. The message begins with `who` and `option`.
///
///     require("adam", "beta1", options.beta1, 0, Exclusive{1});
///     // adam: found beta1 = 1.5, expected at least 0 and below 1
///     require("rhn", "depth", options.depth, 1, 64);
///     // rhn: found depth = 0, expected 1 to 64
///     require<DataError>("softmax", "temperature", tau, Exclusive{0});
///     // softmax: found temperature = -1, expected a finite number above 0
template <class E = UsageError, class V>
void require(std::string_view who, std::string_view option, V value,
             std::type_identity_t<detail::Bound<V>> low,
             std::type_identity_t<detail::Bound<V>> high = std::numeric_limits<V>::max()) {
    bool finite = true;
    if constexpr (std::is_floating_point_v<V>) finite = std::isfinite(value);
    if (finite && (low.exclusive ? value > low.value : value >= low.value) &&
        (high.exclusive ? value < high.value : value <= high.value))
        return;
    const bool limited = high.value < std::numeric_limits<V>::max();
    const std::string found = message(who, ": found ", option, " = ", detail::in_full(value), ", expected ");
    if (limited && !low.exclusive && !high.exclusive) {
        if (low.value == high.value) throw E(found, low.value);
        throw E(found, low.value, " to ", high.value);
    }
    throw E(found, std::is_floating_point_v<V> && !limited ? "a finite number " : "",
            low.exclusive                             ? "above "
            : limited || !std::is_floating_point_v<V> ? "at least "
                                                      : "of at least ",
            low.value,
            !limited         ? std::string()
            : high.exclusive ? message(" and below ", high.value)
                             : message(" and at most ", high.value));
}

}}  // namespace isogloss
