#include <cstdint>
#include <isogloss/io/checksum.hpp>
#include <string>
#include <string_view>

#include "catch.hpp"

using namespace isogloss;

namespace {
std::uint64_t crc(std::string_view bytes) {
    Crc64 c;
    c.add(bytes);
    return c.value();
}

// One bit after the other, straight from the definition.
std::uint64_t slow_crc(std::string_view bytes) {
    std::uint64_t state = ~std::uint64_t{0};
    for (const char c : bytes)
        for (int bit = 0; bit < 8; ++bit) {
            const std::uint64_t in = (static_cast<unsigned char>(c) >> bit & 1u) ^ (state & 1u);
            state = (state >> 1) ^ (in ? 0xC96C5795D7870F42u : 0u);
        }
    return ~state;
}
}  // namespace

TEST_CASE("Crc64 is CRC-64/XZ", "[io][checksum]") {
    REQUIRE(crc("123456789") == 0x995DC9BBDF1939FAu);  // the check value of the catalogue of CRCs
    REQUIRE(crc("") == 0);
}

TEST_CASE("Crc64 equals its definition at every length and however it is cut", "[io][checksum]") {
    std::string bytes;
    for (int i = 0; i < 67; ++i) {
        REQUIRE(crc(bytes) == slow_crc(bytes));
        for (std::size_t cut = 0; cut <= bytes.size(); cut += 5) {
            Crc64 c;
            c.add(std::string_view(bytes).substr(0, cut));
            c.add(std::string_view(bytes).substr(cut));
            REQUIRE(c.value() == slow_crc(bytes));
        }
        bytes += static_cast<char>(i * 37 + 11);
    }
}
