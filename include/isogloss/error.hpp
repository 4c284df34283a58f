/// @file error.hpp  What the library throws, and how a message is built.
#pragma once

#include <charconv>
#include <cmath>
#include <isogloss/config.hpp>
#include <limits>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Concatenates its arguments into one string, as in all messages. Throws std::bad_alloc when out of memory,
/// rather than returning part of the text.
template <class... Parts> std::string message(const Parts&... parts) {
    std::ostringstream out;
    out.imbue(std::locale::classic());      // names in files are made of it too: 1000, in no locale 1,000
    out.exceptions(std::ios_base::badbit);  // otherwise the stream hides failures within it
    (out << ... << parts);
    return out.str();
}

/// Base of every exception thrown by the library. A message says who, what was found, what was
/// expected and what to do, and starts with "isogloss: ".
class Error : public std::runtime_error {
public:
    /// Builds the text from the parts with message().
    template <class... Parts> explicit Error(const Parts&... parts)
        : std::runtime_error(message("isogloss: ", parts...)) {}
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

/// The text of an exception without the beginning of those of the library, "isogloss: ", to be part of another
/// message. `what`: as of std::exception::what(); the result refers to it.
inline std::string_view cause_of(std::string_view what) {
    constexpr std::string_view beginning = "isogloss: ";
    return what.substr(what.starts_with(beginning) ? beginning.size() : 0);
}

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

/// One bound of a range of numbers: a number, which is inclusive, or an Exclusive.
template <class V> struct Bound {
    V value;
    bool exclusive = false;
    constexpr Bound(V included) : value(included) {}
    constexpr Bound(Exclusive e) : value(static_cast<V>(e.bound)), exclusive(true) {}
};

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
void require(std::string_view who, std::string_view option, V value, std::type_identity_t<Bound<V>> low,
             std::type_identity_t<Bound<V>> high = std::numeric_limits<V>::max()) {
    bool finite = true;
    if constexpr (std::is_floating_point_v<V>) finite = std::isfinite(value);
    if (finite && (low.exclusive ? value > low.value : value >= low.value) &&
        (high.exclusive ? value < high.value : value <= high.value))
        return;
    const bool limited = high.value < std::numeric_limits<V>::max();
    const std::string found = message(who, ": found ", option, " = ", detail::in_full(value), ", expected ");
    if (limited && !low.exclusive && !high.exclusive) throw E(found, low.value, " to ", high.value);
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
