/// @file hash.hpp  Stable 64-bit hashes of bytes and of token streams.
#pragma once

#include <bit>
#include <cstdint>
#include <isogloss/types.hpp>
#include <span>
#include <string>
#include <string_view>

namespace isogloss {

/// Spreads every input bit over all 64 output bits; a bijection (the finaliser of SplitMix64).
///
/// Source   Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators".
inline std::uint64_t mix_bits(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/// Four bytes as a number, the first one lowest: the same on every byte order, and one load where that is
/// the machine's own.
inline std::uint64_t little_endian_32(const char* p) {
    const auto byte = [p](int i) { return std::uint64_t{static_cast<unsigned char>(p[i])}; };
    return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

/// Eight bytes as a number, the first one lowest.
inline std::uint64_t little_endian_64(const char* p) {
    const auto byte = [p](int i) { return std::uint64_t{static_cast<unsigned char>(p[i])}; };
    return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24 | byte(4) << 32 | byte(5) << 40 |
           byte(6) << 48 | byte(7) << 56;
}

/// 64-bit hash of a string of bytes: the same on every platform, in every run. Made for words (a few
/// bytes) and for checks against accidental damage; not for secrets.
///
///     h = seed ⊕ K₁·(length+1)
///     h ← rotl((h ⊕ w)·K₁, 29)·K₂   for each block w of 8 bytes but the last
///     result mix_bits((h ⊕ w)·K₁)   where the last block w holds the 1 … 8 bytes that are left
///
/// `seed` chains several strings. The empty string gives mix_bits(h).
inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed = 0) {
    constexpr std::uint64_t K1 = 0x9E3779B97F4A7C15u, K2 = 0xD1B54A32D192ED03u;
    const char* p = bytes.data();
    std::size_t n = bytes.size();
    std::uint64_t h = seed ^ (K1 * (static_cast<std::uint64_t>(n) + 1));
    for (; n > 8; n -= 8, p += 8) h = std::rotl((h ^ little_endian_64(p)) * K1, 29) * K2;
    // The two reads of four bytes overlap, the three of one may coincide; the length tells them apart.
    if (n >= 4) {
        h = (h ^ (little_endian_32(p) | little_endian_32(p + n - 4) << 32)) * K1;
    } else if (n > 0) {
        const auto byte = [p](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(p[i])}; };
        h = (h ^ (byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16)) * K1;
    }
    return mix_bits(h);
}

/// Running 64-bit hash of a token stream: the fingerprint that a perplexity is printed with. Depends on
/// the tokens and their order alone, not on how the stream was cut into pieces, nor on the platform.
///
///     h ← rotl(h ⊕ K₁·w, 29)·K₂ for each token w,   value = mix_bits(h ⊕ number of tokens)
///
/// Each step is a bijection of h and of w, so that any single changed token changes the value.
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
    std::uint64_t value() const { return mix_bits(state_ ^ static_cast<std::uint64_t>(count_)); }

private:
    std::uint64_t state_ = 0;
    std::size_t count_ = 0;
};

/// A 64-bit number as 16 lower-case hexadecimal digits, the way checksums are printed.
inline std::string hex16(std::uint64_t value) {
    std::string out(16, '0');
    for (std::size_t i = 16; i-- > 0; value >>= 4) out[i] = "0123456789abcdef"[value & 15];
    return out;
}

}  // namespace isogloss
