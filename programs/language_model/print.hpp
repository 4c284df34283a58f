/// @file print.hpp  Numbers in human-readable form, and words as a shell reads them.
#pragma once

#include <algorithm>
#include <cctype>
#include <iomanip>
#include <isogloss/types.hpp>
#include <locale>
#include <sstream>
#include <string>

#include "../shared/exact.hpp"

namespace lm {

namespace ig = isogloss;

/// 1234567 as "1,234,567".
inline std::string grouped(ig::Index n) {
    std::string digits = std::to_string(n);
    for (auto at = static_cast<ig::Index>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
        digits.insert(static_cast<std::size_t>(at), ",");
    return digits;
}

/// A number with a fixed count of decimals.
inline std::string fixed(double x, int digits) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << std::fixed << std::setprecision(digits) << x;
    return out.str();
}

using files::exact;

/// A perplexity with two decimals; a very large one with its exponent, "5.09e+23".
inline std::string perplexity_in_words(double p) {
    if (p < 1e9) return fixed(p, 2);
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << std::setprecision(3) << p;
    return out.str();
}

/// A word of a command line as a shell reads it, in quotes where it needs them.
inline std::string shell_word(const std::string& word) {
    const std::string plain = "_./:=@%+,-";
    if (!word.empty() && std::ranges::all_of(word, [&](unsigned char c) {
            return std::isalnum(c) || c >= 0x80 || plain.find(static_cast<char>(c)) != std::string::npos;
        }))
        return word;
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

/// "1 line", "2 lines".
inline std::string counted(ig::Index n, const std::string& noun) {
    return grouped(n) + " " + noun + (n == 1 ? "" : "s");
}

/// Seconds as "1:02:03" or "2:03".
inline std::string clock_time(double seconds) {
    const auto s = static_cast<ig::Index>(seconds);
    const auto two = [](ig::Index n) { return (n < 10 ? "0" : "") + std::to_string(n); };
    return (s >= 3600 ? std::to_string(s / 3600) + ":" + two(s / 60 % 60) : std::to_string(s / 60)) + ":" +
           two(s % 60);
}

}  // namespace lm
