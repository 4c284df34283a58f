/// @file file/checksum.hpp  Checksums of files, and stable 64-bit hashes of bytes and of token streams.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <isogloss/types.hpp>
#include <span>
#include <string>
#include <string_view>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace file {

static_assert(std::endian::native == std::endian::little,
              "isogloss reads and writes little-endian files by copying memory; this machine is big-endian.");

namespace detail {

/// Spreads every input bit over all 64 output bits; a bijection (the finaliser of SplitMix64: Steele, Lea, Flood 2014).
inline std::uint64_t mix_bits(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/// The bytes of a number of type `Word`, of any alignment, as such a number.
template <class Word> std::uint64_t word_at(const char* p) {
    Word w;
    std::memcpy(&w, p, sizeof w);
    return w;
}

}  // namespace detail

/// 64-bit hash of a byte string: the same on every platform, in every run. Intended for words (a few
/// bytes) and for detecting accidental damage; not cryptographic.
///
///     h = seed ⊕ K₁·(length+1)
///     h ← rotl((h ⊕ w)·K₁, 29)·K₂   for each block w of 8 bytes but the last
///     result mix_bits((h ⊕ w)·K₁)   where the last block w holds the remaining 1 … 8 bytes
///
/// `seed` chains several strings. The empty string gives mix_bits(h).
inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed = 0) {
    constexpr std::uint64_t K1 = 0x9E3779B97F4A7C15u, K2 = 0xD1B54A32D192ED03u;
    const char* p = bytes.data();
    std::size_t n = bytes.size();
    std::uint64_t h = seed ^ (K1 * (static_cast<std::uint64_t>(n) + 1));
    for (; n > 8; n -= 8, p += 8) h = std::rotl((h ^ detail::word_at<std::uint64_t>(p)) * K1, 29) * K2;
    // The two 4-byte reads may overlap, the three 1-byte reads may coincide; the length distinguishes these cases.
    if (n >= 4) {
        h = (h ^ (detail::word_at<std::uint32_t>(p) | detail::word_at<std::uint32_t>(p + n - 4) << 32)) * K1;
    } else if (n > 0) {
        const auto byte = [p](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(p[i])}; };
        h = (h ^ (byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16)) * K1;
    }
    return detail::mix_bits(h);
}

/// Running 64-bit hash of a token stream: the fingerprint printed with a perplexity. Depends only on
/// the tokens and their order, not on how the stream was divided into pieces, nor on the platform.
///
///     h ← rotl(h ⊕ K₁·w, 29)·K₂ for each token w,   value = mix_bits(h ⊕ number of tokens)
///
/// Each step is a bijection of h and of w, so that changing any single token changes the value.
class TokenHash {
public:
    /// Appends tokens to the stream.
    void add(std::span<const Token> tokens) {
        std::uint64_t h = state_;
        for (const Token w : tokens) {
            h ^= static_cast<std::uint32_t>(w) * 0x9E3779B97F4A7C15u;
            h = std::rotl(h, 29) * 0xD1B54A32D192ED03u;
        }
        state_ = h;
        count_ += tokens.size();
    }

    /// The hash of all tokens so far.
    std::uint64_t value() const { return detail::mix_bits(state_ ^ static_cast<std::uint64_t>(count_)); }

private:
    std::uint64_t state_ = 0;
    std::size_t count_ = 0;
};

/// A 64-bit number as 16 lower-case hexadecimal digits, the printed form of checksums.
inline std::string hex16(std::uint64_t value) {
    std::string out(16, '0');
    for (std::size_t i = 16; i-- > 0; value >>= 4) out[i] = "0123456789abcdef"[value & 15];
    return out;
}

/// Running CRC-64/XZ of a byte stream: the same value however the stream is divided into pieces.
///
///     polynomial 0x42F0E1EBA9EA3693, reflected;  start and final exclusive or 0xFFFFFFFFFFFFFFFF
///     CRC of "123456789" = 0x995DC9BBDF1939FA
///
/// Certain to detect any change within 64 consecutive bits, hence any single changed byte; of other
/// accidental changes it misses one in 2⁶⁴. It does not protect against deliberate manipulation.
///
/// Source   ECMA-182 for the polynomial; Koopman, Chakravarty 2004 for what a CRC detects; Kounavis, Berry
///          2005 for slicing by eight tables.
class Crc64 {
public:
    /// Appends bytes to the stream.
    void add(std::span<const std::byte> bytes) {
        const std::byte* p = bytes.data();
        std::size_t n = bytes.size();
        std::uint64_t crc = state_;
        for (; n >= 8; n -= 8, p += 8) {
            const std::uint64_t w = detail::word_at<std::uint64_t>(reinterpret_cast<const char*>(p)) ^ crc;
            crc = 0;
            for (std::size_t i = 0; i < 8; ++i) crc ^= tables[7 - i][w >> (8 * i) & 0xff];
        }
        for (; n > 0; --n, ++p) crc = tables[0][(crc ^ static_cast<std::uint64_t>(*p)) & 0xff] ^ (crc >> 8);
        state_ = crc;
    }

    /// Appends bytes to the stream.
    void add(std::string_view bytes) { add(std::as_bytes(std::span(bytes.data(), bytes.size()))); }

    /// The checksum of all bytes so far.
    std::uint64_t value() const { return ~state_; }

private:
    using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

    // tables[k][b]: the register contribution of a byte b after k zero bytes have followed it.
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

}}}  // namespace isogloss::file
