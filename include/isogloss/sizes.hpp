/// @file sizes.hpp  Products of sizes checked for overflow, and errors when out of memory.
#pragma once

#include <initializer_list>
#include <isogloss/error.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Sizes as a message shows them: "[3, 4]", "[]" for a scalar.
inline std::string dimensions_text(std::span<const Index> shape) {
    std::string out = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
    return out + "]";
}

/// `unit` times the product of sizes; nothing if a size is negative or the product without zero sizes exceeds what a
/// pointer can address.
inline std::optional<Index> product_of(std::span<const Index> sizes, Index unit = 1) {
    constexpr Index most = std::numeric_limits<std::ptrdiff_t>::max();
    bool none = false;
    for (const Index n : sizes) {
        if (n < 0 || (n > 0 && unit > most / n)) return std::nullopt;
        if (n > 0) unit *= n;
        else none = true;
    }
    return none ? 0 : unit;
}

/// The bytes of an array of these sizes, with elements of `unit` bytes. Throws E, naming `who` as the caller,
/// if a size is negative or the number of bytes exceeds what a pointer can address.
template <class E = UsageError>
Index bytes_of(std::string_view who, std::initializer_list<Index> sizes, std::size_t unit) {
    const std::span<const Index> shape(sizes.begin(), sizes.size());
    const auto bytes = product_of(shape, static_cast<Index>(unit));
    if (!bytes)
        throw E(who, ": found the sizes ", dimensions_text(shape), " of ", unit,
                " bytes each, expected sizes of at least 0 and at most 2^",
                std::numeric_limits<std::ptrdiff_t>::digits, " - 1 bytes together");
    return *bytes;
}

/// The elements of an array of these sizes; throws E as bytes_of.
template <class E = UsageError>
Index elements_of(std::string_view who, std::initializer_list<Index> sizes, std::size_t unit = 8) {
    return bytes_of<E>(who, sizes, unit) / static_cast<Index>(unit);
}

/// Runs f and returns its result. If memory runs out or a container size exceeds its limit, throws E, whose
/// message names `who`, a string or a function that returns one, and the bytes requested, if known (not
/// negative).
template <class E = UsageError, class Who, class F>
decltype(auto) within_memory(const Who& who, Index bytes, F&& f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {
    }
    std::string name;
    if constexpr (std::is_invocable_v<Who>) name = who();
    else name = who;
    if (bytes < 0) throw E(name, ": needs more memory than this machine has; use smaller sizes");
    throw E(name, ": needs ", bytes, " bytes, which are not available; use smaller sizes");
}

}}  // namespace isogloss
