/// @file sizes.hpp  Sizes multiplied without overflow, and memory that there is not.
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

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// Sizes as a message shows them: "[3, 4]", "[]" for a scalar.
inline std::string dimensions_text(std::span<const Index> shape) {
    std::string out = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
    return out + "]";
}

/// `unit` times the product of sizes; nothing where a size is negative or they multiply beyond what an Index
/// can count, even if another size is 0.
inline std::optional<Index> product_of(std::span<const Index> sizes, Index unit = 1) {
    bool none = false;
    for (const Index n : sizes) {
        if (n < 0 || (n > 0 && unit > std::numeric_limits<Index>::max() / n)) return std::nullopt;
        if (n > 0) unit *= n;
        else none = true;
    }
    return none ? 0 : unit;
}

/// The bytes of an array of these sizes, of elements of `unit` bytes. Throws E, which names `who` asks for
/// it, where a size is negative or the bytes are more than an Index can count.
template <class E = UsageError>
Index bytes_of(std::string_view who, std::initializer_list<Index> sizes, std::size_t unit) {
    const std::span<const Index> shape(sizes.begin(), sizes.size());
    const auto bytes = product_of(shape, static_cast<Index>(unit));
    if (!bytes)
        throw E(who, ": found the sizes ", dimensions_text(shape), " of ", unit,
                " bytes each, expected sizes of at least 0 and at most 2^63 - 1 bytes together");
    return *bytes;
}

/// The elements of an array of these sizes; throws E as bytes_of.
template <class E = UsageError>
Index elements_of(std::string_view who, std::initializer_list<Index> sizes, std::size_t unit = 8) {
    return bytes_of<E>(who, sizes, unit) / static_cast<Index>(unit);
}

/// Runs f and returns what it returns. Where memory ends, or a size is beyond what memory can have, it throws
/// E and says that `who`, a text or a function that returns one, asks for so many bytes, where their number
/// is known (not negative).
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
    if (bytes < 0) throw E(name, ": asks for more memory than this machine gives; make the sizes smaller");
    throw E(name, ": asks for ", bytes, " bytes, which this machine does not give; make the sizes smaller");
}

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
