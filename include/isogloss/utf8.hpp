/// @file utf8.hpp  Characters: which bytes are UTF-8, and how a word is shown in a message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <isogloss/config.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Bytes that some programs write at the beginning of a text in UTF-8: no part of its first word.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Number of bytes of the UTF-8 sequence at the start of `s`, 1 … 4, or 0 if there is none: a stray
/// continuation byte, an overlong form, a surrogate, a number above U+10FFFF, a truncated sequence, or `s` empty.
///
/// Source   Unicode Standard, table 3-7, "Well-formed UTF-8 byte sequences".
inline std::size_t utf8_length(std::string_view s) {
    const auto at = [s](std::size_t i) -> unsigned {
        return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u;
    };
    const auto continues = [&at](std::size_t i) { return (at(i) & 0xC0u) == 0x80u; };
    const unsigned a = at(0), b = at(1);
    if (s.empty()) return 0;
    if (a < 0x80) return 1;
    if (a < 0xC2) return 0;
    if (a < 0xE0) return continues(1) ? 2 : 0;
    if (a < 0xF0) {
        const unsigned low = a == 0xE0 ? 0xA0 : 0x80, high = a == 0xED ? 0x9F : 0xBF;
        return b >= low && b <= high && continues(2) ? 3 : 0;
    }
    if (a > 0xF4) return 0;
    const unsigned low = a == 0xF0 ? 0x90 : 0x80, high = a == 0xF4 ? 0x8F : 0xBF;
    return b >= low && b <= high && continues(2) && continues(3) ? 4 : 0;
}

/// Position of the first byte that is NUL or not part of valid UTF-8; nothing if there is none.
inline std::optional<std::size_t> bad_byte(std::string_view s) {
    constexpr std::uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    for (std::size_t i = 0; i < s.size();) {
        if (s.size() - i >= 8) {  // eight plain bytes at a time: none above 0x7F, none 0
            std::uint64_t w;
            std::memcpy(&w, s.data() + i, 8);
            if (((w | (w - ones)) & highs) == 0) {
                i += 8;
                continue;
            }
        }
        const std::size_t n = s[i] == '\0' ? 0 : utf8_length(s.substr(i, 4));
        if (n == 0) return i;
        i += n;
    }
    return std::nullopt;
}

/// A word escaped for messages and for lines of a file: backslash as `\\\\`, a byte below 0x20 or 0x7F as `\\xHH`
/// (upper-case digits); everything else unchanged. With `backslash` false, so are backslashes.
inline std::string escaped(std::string_view word, bool backslash = true) {
    std::string out;
    for (const char c : word) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\\' && backslash) out += "\\\\";
        else if (byte < 0x20 || byte == 0x7F)
            out += {'\\', 'x', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
        else out += c;
    }
    return out;
}

/// A word or a name in quotes for a message: control bytes escaped, and truncated if longer than 80 bytes.
inline std::string in_quotes(std::string_view word) {
    std::size_t keep = std::min<std::size_t>(word.size(), 80);
    if (keep < word.size())  // not in the middle of a character
        while (keep > 0 && (static_cast<unsigned char>(word[keep]) & 0xC0u) == 0x80u) --keep;
    return "'" + escaped(word.substr(0, keep), false) + (keep < word.size() ? "…'" : "'");
}

}}  // namespace isogloss
