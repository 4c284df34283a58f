/// @file io/tensor_view.hpp  A named tensor as bytes, independent of any array library: the contents of files.
#pragma once

#include <concepts>
#include <cstddef>
#include <isogloss/error.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/types.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io {

/// Scalar type of the elements of a stored tensor: those of the safetensors format that fill whole bytes, but for rare
/// floats of 8 bits. `boolean`, floats of 16 and fewer bits, and `c64` (complex, two floats) have no C++ type here: they
/// can be held and copied as bytes.
enum class DType {
    boolean,
    u8,
    i8,
    f8_e5m2,
    f8_e4m3,
    u16,
    i16,
    f16,
    bf16,
    u32,
    i32,
    f32,
    c64,
    u64,
    i64,
    f64
};

namespace detail {

/// Name of a scalar type in files and messages, and the bytes of one element.
struct DTypeInfo {
    std::string_view name;  ///< as spelled in safetensors: "F32", "I64" …
    Index bytes;            ///< 1, 2, 4 or 8
};

}  // namespace detail

/// Name and size of a scalar type.
inline detail::DTypeInfo info(DType dtype) {
    constexpr detail::DTypeInfo all[] = {{"BOOL", 1},    {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1},
                                         {"F8_E4M3", 1}, {"U16", 2}, {"I16", 2}, {"F16", 2},
                                         {"BF16", 2},    {"U32", 4}, {"I32", 4}, {"F32", 4},
                                         {"C64", 8},     {"U64", 8}, {"I64", 8}, {"F64", 8}};
    return all[static_cast<std::size_t>(dtype)];
}

/// The scalar type of this name ("F32"), or nothing if there is none.
inline std::optional<DType> dtype_named(std::string_view name) {
    for (int i = 0; i <= static_cast<int>(DType::f64); ++i)
        if (info(static_cast<DType>(i)).name == name) return static_cast<DType>(i);
    return std::nullopt;
}

/// A C++ type whose values can be stored: float, double, std::byte, integers of 1, 2, 4 or 8 bytes. Not bool
/// and char, whose size or signedness is platform-dependent.
template <class T>
concept Storable = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::byte> ||
    (std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>);

/// The stored type of a C++ type: by size and signedness, so that `long` and `long long` are both I64.
template <Storable T> constexpr DType dtype_of() {
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::f32 : DType::f64;
    else if constexpr (sizeof(T) == 1) return is_signed ? DType::i8 : DType::u8;
    else if constexpr (sizeof(T) == 2) return is_signed ? DType::i16 : DType::u16;
    else if constexpr (sizeof(T) == 4) return is_signed ? DType::i32 : DType::u32;
    else return is_signed ? DType::i64 : DType::u64;
}

/// Maximum number of dimensions of a stored tensor; the limit of NumPy 1.
inline constexpr std::size_t max_dimensions = 32;

/// Bytes of a tensor with these sizes, 1 element for []; nothing if a size is negative, there are more
/// than `max_dimensions`, or the product of the sizes overflows an Index, even if another size is 0.
inline std::optional<Index> bytes_of(DType dtype, std::span<const Index> shape) {
    if (shape.size() > max_dimensions) return std::nullopt;
    return product_of(shape, info(dtype).bytes);
}

/// The specification of a tensor: its name, scalar type and sizes.
struct TensorSpec {
    std::string name;          ///< any UTF-8 but "__metadata__"
    DType dtype = DType::f32;  ///< scalar type
    std::vector<Index> shape;  ///< sizes ≥ 0, row-major; [] is a scalar
};

/// A named tensor as a non-owning view of bytes, row-major and little-endian.
struct TensorView {
    std::string name;                  ///< any UTF-8 but "__metadata__"
    DType dtype = DType::f32;          ///< scalar type
    std::vector<Index> shape;          ///< sizes ≥ 0, row-major; [] is a scalar
    std::span<const std::byte> bytes;  ///< bytes_of(dtype, shape) of them; need not be aligned
};

/// A view of numbers as a named tensor; the numbers must outlive the view.
///
///     tensor_view<float>("E", {V, n}, table);      // table: std::vector<float>, std::span<const float> …
///     tensor_view<std::uint64_t>("step", {}, {&step, 1});
///
/// Throws DataError if the number of `values` does not match the shape.
template <Storable T>
TensorView tensor_view(std::string name, std::vector<Index> shape, std::span<const T> values) {
    const auto bytes = bytes_of(dtype_of<T>(), shape);
    if (!bytes || static_cast<std::size_t>(*bytes) != values.size_bytes())
        throw DataError("tensor '", name, "': shape ", dimensions_text(shape), " does not fit its ",
                        values.size(), " values");
    return {std::move(name), dtype_of<T>(), std::move(shape), std::as_bytes(values)};
}

/// A view of characters as a tensor of bytes [length]; the characters must outlive the view.
inline TensorView text_view(std::string name, std::string_view characters) {
    return {std::move(name),
            DType::u8,
            {static_cast<Index>(characters.size())},
            std::as_bytes(std::span(characters.data(), characters.size()))};
}

}}}  // namespace isogloss::io
