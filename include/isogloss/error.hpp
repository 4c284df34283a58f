/// @file error.hpp  What the library throws, and how a message is built.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace isogloss {

/// Base of every exception thrown by the library. A message says who, what was found, what was
/// expected and what to do, and starts with "isogloss: ".
class Error : public std::runtime_error {
public:
    explicit Error(const std::string& what) : std::runtime_error("isogloss: " + what) {}
};

/// A model that cannot be built or run as asked: shapes, names, options, wiring. Thrown from the
/// line the user wrote.
class UsageError : public Error {
    using Error::Error;
};

/// Content that is not what it should be: a text, a token out of range, a vocabulary. Names file and
/// line where there are any.
class DataError : public Error {
    using Error::Error;
};

/// A file that cannot be opened, read, written, or that is cut, damaged or foreign.
class FileError : public Error {
    using Error::Error;
};

/// A value that is not finite, or a computation that lost its meaning.
class NumericError : public Error {
    using Error::Error;
};

/// Joins its arguments into one string; the way all messages are put together. Throws std::bad_alloc where
/// memory ends, rather than to return a part of the text.
template <class... Parts> std::string message(const Parts&... parts) {
    std::ostringstream out;
    out.exceptions(std::ios_base::badbit);  // otherwise a stream keeps to itself what fails within it
    (out << ... << parts);
    return out.str();
}

}  // namespace isogloss
