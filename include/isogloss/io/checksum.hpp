/// @file checksum.hpp  The checksum that files carry.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <isogloss/types.hpp>
#include <span>
#include <string_view>

namespace isogloss {

static_assert(std::endian::native == std::endian::little,
              "isogloss/io writes little-endian files by copying memory; this machine is big-endian.");

/// Running CRC-64/XZ of a stream of bytes: the same value however the stream is cut into pieces.
///
///     polynomial 0x42F0E1EBA9EA3693, reflected;  start and final exclusive or 0xFFFFFFFFFFFFFFFF
///     CRC of "123456789" = 0x995DC9BBDF1939FA
///
/// Certain to notice any change that lies within 64 consecutive bits, so any single changed byte; of other
/// accidental changes it misses one in 2⁶⁴. It is no protection against somebody who wants to deceive.
///
/// Source   ECMA-182 for the polynomial; Koopman, Chakravarty 2004 for what a CRC detects; Kounavis, Berry
///          2005 for eight tables read at once.
class Crc64 {
public:
    /// Appends bytes to the stream.
    void add(std::span<const std::byte> bytes) {
        const std::byte* p = bytes.data();
        std::size_t n = bytes.size();
        std::uint64_t crc = state_;
        for (; n >= 8; n -= 8, p += 8) {
            std::uint64_t w;
            std::memcpy(&w, p, 8);
            w ^= crc;
            crc = 0;
            for (std::size_t i = 0; i < 8; ++i) crc ^= tables[7 - i][w >> (8 * i) & 0xff];
        }
        for (; n > 0; --n, ++p) crc = tables[0][(crc ^ static_cast<std::uint64_t>(*p)) & 0xff] ^ (crc >> 8);
        state_ = crc;
    }

    /// Appends bytes to the stream.
    void add(std::string_view bytes) { add(std::as_bytes(std::span(bytes))); }

    /// The checksum of all bytes so far.
    std::uint64_t value() const { return ~state_; }

private:
    using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

    // tables[k][b]: what a byte b leaves in the register once k zero bytes have followed it.
    static constexpr Tables make_tables() {
        Tables t{};
        for (std::size_t b = 0; b < 256; ++b) {
            std::uint64_t crc = b;
            for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xC96C5795D7870F42u : 0u);
            t[0][b] = crc;
        }
        for (std::size_t k = 1; k < 8; ++k)
            for (std::size_t b = 0; b < 256; ++b) t[k][b] = t[0][t[k - 1][b] & 0xff] ^ (t[k - 1][b] >> 8);
        return t;
    }
    static const Tables tables;

    std::uint64_t state_ = ~std::uint64_t{0};
};

inline constexpr Crc64::Tables Crc64::tables = Crc64::make_tables();

}  // namespace isogloss
