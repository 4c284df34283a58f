#include <cstdint>
#include <isogloss/file/checksum.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using namespace isogloss::file;

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

TEST_CASE("Crc64 is CRC-64/XZ", "[file][checksum]") {
    REQUIRE(crc("123456789") == 0x995DC9BBDF1939FAu);  // the check value of the catalogue of CRCs
    REQUIRE(crc("") == 0);
}

TEST_CASE("Crc64 equals its definition at every length and however it is cut", "[file][checksum]") {
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

TEST_CASE("Bytes hash to the same number everywhere", "[file][checksum]") {
    // From a recomputation with whole numbers in Python; one for each way the last block is read.
    REQUIRE(hash_bytes("") == 0xe220a8397b1dcdafu);
    REQUIRE(hash_bytes("a") == 0x967afb186792d511u);
    REQUIRE(hash_bytes("ab") == 0x0482c71e4a681c0cu);
    REQUIRE(hash_bytes("abc") == 0x7b86a316ab628023u);
    REQUIRE(hash_bytes("word") == 0xbc3237ec81eb9410u);
    REQUIRE(hash_bytes("language") == 0x0ba705b44b7449d8u);
    REQUIRE(hash_bytes("gradients") == 0x20b15608d68c5e33u);
    REQUIRE(hash_bytes("a longer string of bytes") == 0x1c034569e4238353u);
    REQUIRE(hash_bytes("the", 7) == 0x98bb193d8617bb14u);
}

TEST_CASE("Every byte of a string counts, and its length", "[file][checksum]") {
    std::set<std::uint64_t> seen;
    std::size_t made = 0;
    for (std::size_t n = 0; n <= 20; ++n) {
        const std::string zeros(n, '\0');
        seen.insert(hash_bytes(zeros));
        ++made;
        for (std::size_t i = 0; i < n; ++i)
            for (int bit = 0; bit < 8; ++bit, ++made) {
                std::string changed = zeros;
                changed[i] = static_cast<char>(1 << bit);
                seen.insert(hash_bytes(changed));
            }
    }
    REQUIRE(seen.size() == made);
}

TEST_CASE("A token stream hashes to the same number however it is cut", "[file][checksum]") {
    const std::vector<Token> tokens{3, 1, 4, 1, 5, 9, 2, 6};
    for (std::size_t cut = 0; cut <= tokens.size(); ++cut) {
        TokenHash hash;
        hash.add(std::span(tokens).first(cut));
        hash.add(std::span(tokens).subspan(cut));
        REQUIRE(hash.value() == 0xee45c12c1fe3e669u);  // recomputed in Python
    }
    TokenHash other;
    other.add(std::vector<Token>{10000});
    REQUIRE(other.value() == 0xf8e5a3deb0494b1cu);
}

TEST_CASE("Any changed, moved, added or missing token changes the hash", "[file][checksum]") {
    const auto of = [](const std::vector<Token>& tokens) {
        TokenHash hash;
        hash.add(tokens);
        return hash.value();
    };
    std::set<std::uint64_t> seen{of({}),     of({0}),    of({0, 0}), of({0, 0, 0}), of({1}),
                                 of({1, 0}), of({0, 1}), of({1, 1}), of({1, 2, 3}), of({3, 2, 1})};
    REQUIRE(seen.size() == 10);
}

TEST_CASE("Checksums are printed with 16 digits", "[file][checksum]") {
    REQUIRE(hex16(0) == "0000000000000000");
    REQUIRE(hex16(0x0123456789abcdefu) == "0123456789abcdef");
    REQUIRE(hex16(~std::uint64_t{0}) == "ffffffffffffffff");
}
