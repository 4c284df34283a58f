/// @file types.hpp  Sizes, tokens and blocks of tokens: what every part of the library shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <isogloss/config.hpp>
#include <type_traits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Sizes, positions, shapes and counters. Signed, so that differences can be negative; of 64 bits also where a pointer has
/// 32, as in WebAssembly.
using Index = std::conditional_t<sizeof(std::ptrdiff_t) == 8, std::ptrdiff_t, std::int64_t>;

/// A word, character or symbol: its number in a vocabulary, 0 … V-1.
using Token = std::int32_t;

/// As a target: nothing is predicted at this position (Ollivier's χ_t = 0, or padding).
inline constexpr Token not_predicted = -1;

/// The callback of a function that was given none, such as `go_on` or `watch`: does nothing and says to go on.
struct NoCallback {
    template <class... Arguments> constexpr bool operator()(const Arguments&...) const { return true; }
};

/// How many time steps and how many batch columns a graph can hold at once.
struct Capacity {
    Index time = 1;   ///< T ≥ 1, steps
    Index batch = 1;  ///< B ≥ 1, columns
};

/// A view of tokens [T, B], row-major: step t of column b is data[t * batch + b]. Owns nothing.
struct TokenBlock {
    const Token* data = nullptr;
    Index time = 0;   ///< T
    Index batch = 0;  ///< B

    Token operator()(Index t, Index b) const { return data[t * batch + b]; }
    Index size() const { return time * batch; }
};

}}  // namespace isogloss
