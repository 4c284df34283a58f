/// @file exact.hpp  Numbers in full, for files and options that are read again.
#pragma once

#include <charconv>
#include <string>
#include <type_traits>

namespace files {

/// The shortest decimal form that reads back as the same number, whatever the locale.
template <class V>
requires(std::is_arithmetic_v<V> && !std::is_same_v<V, bool>) std::string exact(V x) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, x).ptr};
}

}  // namespace files
