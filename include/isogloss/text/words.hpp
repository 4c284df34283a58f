/// @file text/words.hpp  The words and the characters of a line.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <isogloss/file/checksum.hpp>
#include <string_view>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace text {

namespace detail {

/// True for the bytes that separate words: space, tab, vertical tab, form feed, carriage return and line
/// feed. Spaces beyond ASCII (U+00A0, U+3000 …) belong to words.
inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The first byte in [p, end) that separates words, or `end`.
inline const char* find_space(const char* p, const char* end) {
    constexpr std::uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    // Eight bytes at a time, without a branch for each: marks the bytes below 0x21. A mark above the lowest
    // may be false (the borrow of the subtraction); the lowest is right.
    while (end - p >= 8) {
        const std::uint64_t w = file::detail::word_at<std::uint64_t>(p);
        const std::uint64_t low = (w - ones * 0x21) & ~w & highs;
        if (low == 0) {
            p += 8;
        } else {
            p += std::countr_zero(low) / 8;
            if (is_space(*p)) return p;
            ++p;  // another control byte, which is part of the word
        }
    }
    while (p != end && !is_space(*p)) ++p;
    return p;
}

}  // namespace detail

/// Calls `use(std::string_view)` for each word: a maximal run of bytes without white space.
template <class Use> void for_each_word(std::string_view line, Use&& use) {
    const char *p = line.data(), *const end = p + line.size();
    for (;;) {
        while (p != end && detail::is_space(*p)) ++p;
        if (p == end) return;
        const char* const word = p;
        p = detail::find_space(word, end);
        use(std::string_view(word, p - word));
    }
}

/// Calls `use(std::string_view)` for each character (Unicode code point, 1 … 4 bytes) of valid UTF-8.
template <class Use> void for_each_character(std::string_view line, Use&& use) {
    while (!line.empty()) {
        const auto a = static_cast<unsigned char>(line[0]);
        const std::size_t n = a < 0x80 ? 1 : a < 0xE0 ? 2 : a < 0xF0 ? 3 : 4;
        use(line.substr(0, n));
        line.remove_prefix(std::min(n, line.size()));
    }
}

}}}  // namespace isogloss::text
