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

namespace detail {

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

}  // namespace detail

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
        const std::size_t n = s[i] == '\0' ? 0 : detail::utf8_length(s.substr(i, 4));
        if (n == 0) return i;
        i += n;
    }
    return std::nullopt;
}

namespace detail {
inline std::string byte_in_hex(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return {'\\', 'x', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
}
inline bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }
}  // namespace detail

/// A word escaped for the lines of a file, without loss: backslash as `\\\\`, a byte below 0x20 or 0x7F as `\\xHH`
/// (upper-case digits); everything else unchanged.
inline std::string escaped(std::string_view word) {
    std::string out;
    for (const char c : word) {
        if (c == '\\') out += "\\\\";
        else if (detail::is_control(c)) out += detail::byte_in_hex(c);
        else out += c;
    }
    return out;
}

/// A word for a terminal, a message or a figure: `\\xHH` for each byte of what would be obeyed or not be seen. These are
/// control characters (below U+0020, U+007F to U+009F), the space without width, the separators of lines and
/// paragraphs, what turns the direction of a text (U+200B, U+2028 to U+202E, U+2066 to U+2069), and bytes that are no UTF-8.
inline std::string shown(std::string_view word) {
    const auto obeyed = [](std::string_view c) {
        const auto within = [c](std::string_view first, std::string_view last) {
            return first <= c && c <= last;
        };
        if (c.size() == 1) return detail::is_control(c[0]) || detail::utf8_length(c) == 0;
        if (c.size() == 2) return within("\xC2\x80", "\xC2\x9F");
        return c == "\u200B" || within("\u2028", "\u202E") || within("\u2066", "\u2069");
    };
    std::string out;
    while (!word.empty()) {
        const auto character = word.substr(0, std::max<std::size_t>(1, detail::utf8_length(word)));
        if (obeyed(character))
            for (const char c : character) out += detail::byte_in_hex(c);
        else out += character;
        word.remove_prefix(character.size());
    }
    return out;
}

/// A word or a name in quotes for a message: as shown(), and truncated if longer than 80 bytes.
inline std::string in_quotes(std::string_view word) {
    std::size_t keep = std::min<std::size_t>(word.size(), 80);
    if (keep < word.size())  // not in the middle of a character
        while (keep > 0 && (static_cast<unsigned char>(word[keep]) & 0xC0u) == 0x80u) --keep;
    return "'" + shown(word.substr(0, keep)) + (keep < word.size() ? "…'" : "'");
}

}}  // namespace isogloss
