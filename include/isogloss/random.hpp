/// @file random.hpp  A counter-based random generator: the same bits on every platform.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <isogloss/elementary.hpp>
#include <isogloss/error.hpp>
#include <isogloss/types.hpp>
#include <numbers>
#include <string_view>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Philox 4×32 with 10 rounds: a bijection of a 128-bit counter under a 64-bit key.
///
/// Source   Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t key) {
    auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(a)};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return counter;
}

/// FNV-1a of a name: gives each weight and each node a stream of its own, so that adding a node to a
/// model does not change the random numbers of the others.
inline std::uint32_t stream_of(std::string_view name) {
    std::uint32_t h = 2166136261u;
    for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
    return h;
}

/// Random numbers as a pure function of (seed, stream, step, position). There is no other state:
/// a stream can be read at any position, in any order, by any thread.
///
///     Random r(seed, stream_of("lstm1"), step);
///     double u = r.uniform(i);        // in (0, 1), always the same for the same four numbers
class Random {
public:
    Random(std::uint64_t seed, std::uint32_t stream, std::uint64_t step = 0)
        : seed_(seed), stream_(stream), step_(step) {}

    /// 32 random bits at a position ≥ 0.
    std::uint32_t bits(Index position) const {
        const auto i = static_cast<std::uint64_t>(position);
        return block(i >> 2)[i & 3];
    }

    /// Uniform in (0, 1), never 0 or 1: (bits + 1/2) / 2³².
    double uniform(Index position) const { return unit(bits(position)); }

    /// uniform(4 i) … uniform(4 i + 3), i ≥ 0, at the cost of one of them.
    std::array<double, 4> uniforms(Index i) const {
        const auto w = block(static_cast<std::uint64_t>(i));
        return {unit(w[0]), unit(w[1]), unit(w[2]), unit(w[3])};
    }

    /// Standard normal by Box and Muller from the block of four words at this position.
    double normal(Index position) const {
        const auto w = block(static_cast<std::uint64_t>(position));
        const double u = unit(w[0]), v = unit(w[1]);
        return std::sqrt(-2 * kernel::elementary::log(u)) * kernel::elementary::cosine_of_turns(v);
    }

    /// Uniform on 0 … n-1, n ≥ 1: ⌊n uniform(position)⌋, so that probabilities are 1/n up to 2⁻³², and of more than 2³²
    /// numbers only 2³² are drawn, which are evenly spaced.
    Index below(Index position, Index n) const {
        return static_cast<Index>(uniform(position) * static_cast<double>(n));
    }

private:
    static double unit(std::uint32_t bits) { return (bits + 0.5) * 0x1p-32; }
    // The step is 40 bits wide (a billion steps fit a thousand times over), the block number 56.
    std::array<std::uint32_t, 4> block(std::uint64_t i) const {
        return philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(step_),
                       static_cast<std::uint32_t>((i >> 32) << 8 | (step_ >> 32 & 0xff)), stream_},
                      seed_);
    }

    std::uint64_t seed_;
    std::uint32_t stream_;
    std::uint64_t step_;
};

/// A draw from a distribution: the k with Σ_{i<k} p_i ≤ u Σ p < Σ_{i≤k} p_i, for u in [0, 1).
///
///     Token next = sample(p, random.uniform(i));      // p: a std::vector, std::span, Tensor of one axis …
///
/// The p_i may sum to anything above 0, so entries can be set to 0 to rule them out; such a k is never drawn.
/// Throws NumericError if an entry is below 0 or not finite or all are 0, UsageError for any other u.
template <class Probabilities> Token sample(const Probabilities& p, double u) {
    require("sample", "u", u, 0, Exclusive{1});
    double mass = 0, least = 0;
    for (const auto q : p) mass += static_cast<double>(q), least = std::min(least, static_cast<double>(q));
    if (!(mass > 0 && std::isfinite(mass) && least == 0))
        throw NumericError("sample: found probabilities that sum to ", mass, ", the least of them ", least,
                           "; expected entries of at least 0 with a finite sum above 0");
    double left = u * mass;
    Token k = 0, drawn = 0;
    for (const auto q : p) {
        if (q != 0) {
            drawn = k;
            left -= static_cast<double>(q);
            if (left < 0) break;
        }
        ++k;
    }
    return drawn;  // the last one above 0, if rounding makes u Σ p reach the sum
}

}}  // namespace isogloss
