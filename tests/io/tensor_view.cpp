#include <cstdint>
#include <isogloss/io/tensor_view.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using namespace isogloss::io;

TEST_CASE("Every scalar type has one name, and is found by it", "[io][tensor_view]") {
    for (int i = 0; i <= static_cast<int>(DType::f64); ++i) {
        const auto dtype = static_cast<DType>(i);
        REQUIRE(dtype_named(info(dtype).name) == dtype);
    }
    REQUIRE_FALSE(dtype_named("f32"));
    REQUIRE(info(DType::bf16).bytes == 2);
}

TEST_CASE("C++ types are stored by size and sign", "[io][tensor_view]") {
    STATIC_REQUIRE(dtype_of<float>() == DType::f32);
    STATIC_REQUIRE(dtype_of<double>() == DType::f64);
    STATIC_REQUIRE(dtype_of<std::byte>() == DType::u8);
    STATIC_REQUIRE(dtype_of<std::int8_t>() == DType::i8);
    STATIC_REQUIRE(dtype_of<std::uint16_t>() == DType::u16);
    STATIC_REQUIRE(dtype_of<Token>() == DType::i32);
    STATIC_REQUIRE(dtype_of<Index>() == DType::i64);
    STATIC_REQUIRE(dtype_of<unsigned long long>() == DType::u64);
    STATIC_REQUIRE(dtype_of<unsigned long>() == (sizeof(long) == 8 ? DType::u64 : DType::u32));
    STATIC_REQUIRE_FALSE(Storable<bool>);
    STATIC_REQUIRE_FALSE(Storable<char>);
    STATIC_REQUIRE_FALSE(Storable<long double>);
}

TEST_CASE("Sizes are counted without overflow", "[io][tensor_view]") {
    constexpr Index most = std::numeric_limits<Index>::max();
    const auto bytes = [](DType d, std::vector<Index> shape) { return bytes_of(d, shape); };
    REQUIRE(bytes(DType::f32, {}) == 4);
    REQUIRE(bytes(DType::f64, {3, 4}) == 96);
    REQUIRE(bytes(DType::u8, {5, 0, 7}) == 0);
    REQUIRE(bytes(DType::u8, {most}) == most);
    REQUIRE_FALSE(bytes(DType::u16, {most}));
    REQUIRE(bytes(DType::f8_e4m3, {3, 4}) == 12);
    REQUIRE(bytes(DType::c64, {3}) == 24);
    REQUIRE_FALSE(bytes(DType::u8, {Index{1} << 32, Index{1} << 31}));
    REQUIRE_FALSE(bytes(DType::u8, {most, most, 0}));
    REQUIRE_FALSE(bytes(DType::u8, {-1}));
    REQUIRE_FALSE(bytes(DType::u8, std::vector<Index>(33, 1)));
}

TEST_CASE("A view is as long as its shape says", "[io][tensor_view]") {
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    const auto view = tensor_view<float>("E", {2, 3}, values);
    REQUIRE(view.bytes.data() == reinterpret_cast<const std::byte*>(values.data()));
    REQUIRE(view.bytes.size() == 24);
    REQUIRE_THROWS_MATCHES(tensor_view<float>("E", {2, 2}, values), DataError,
                           says("'E'", "[2, 2]", "6 values"));
    REQUIRE_THROWS_MATCHES(tensor_view<float>("E", {-2, -3}, values), DataError, says("[-2, -3]"));
    REQUIRE(text_view("words", "ab\ncd").shape == std::vector<Index>{5});
}
