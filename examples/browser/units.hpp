// units.hpp  A text as a keyboard sees it: words, punctuation marks, ends of paragraphs.
#pragma once

#include <isogloss/utf8.hpp>
#include <string>
#include <string_view>

namespace keyboard {

/// Reads the units of a text one after the other, and allocates nothing.
///
/// A word is a run of letters, digits and _, with single apostrophes and hyphens inside; a mark is another character, or up
/// to three equal ones (... --); an empty line ends a paragraph, which is the unit "\n". Upper and lower case differ. A word
/// of more than 40 bytes is cut.
class Units {
public:
    static constexpr std::size_t longest = 40;  ///< bytes of a unit
    static constexpr std::string_view paragraph = "\n";

    explicit Units(std::string_view text) : rest_(text) {}

    /// The next unit, empty at the end.
    std::string_view next() {
        int lines = 0;
        while (!rest_.empty()) {
            const std::size_t n = space(rest_);
            if (n == 0) break;
            if (rest_[0] == '\n') ++lines;
            rest_.remove_prefix(n);
        }
        if (lines > 1 && begun_) {
            begun_ = false;
            return paragraph;
        }
        begun_ = true;
        std::size_t n = 0;
        while (n < rest_.size()) {
            const std::size_t more = of_word(rest_.substr(n)), joint = n > 0 ? joins(rest_.substr(n)) : 0;
            const std::size_t step = more > 0 ? more : joint;
            if (step == 0 || n + step > longest) break;
            if (more == 0 && of_word(rest_.substr(n + joint)) == 0) break;
            n += step;
        }
        if (n == 0 && !rest_.empty()) {
            n = length(rest_);
            if (n == 1)
                while (n < 3 && n < rest_.size() && rest_[n] == rest_[0]) ++n;
        }
        const auto unit = rest_.substr(0, n);
        rest_.remove_prefix(n);
        return unit;
    }
    /// What is left of the text.
    std::string_view rest() const { return rest_; }

    /// Whether a unit is a word: else a mark or the end of a paragraph.
    static bool is_word(std::string_view unit) { return of_word(unit) > 0; }
    /// Whether a sentence ends with this unit.
    static bool ends_sentence(std::string_view unit) {
        return unit == paragraph || unit.ends_with('.') || unit.ends_with('!') || unit.ends_with('?') ||
               unit == "…";
    }

private:
    static bool general_punctuation(std::string_view s) {  // U+2000 to U+206F, as of quotes and dashes
        return s.size() > 2 && s[0] == '\xE2' && (s[1] == '\x80' || s[1] == '\x81');
    }
    // Bytes of the character at the start; 1 for a byte that is none.
    static std::size_t length(std::string_view s) {
        const std::size_t n = isogloss::detail::utf8_length(s.substr(0, 4));
        return n > 0 ? n : 1;
    }
    static std::size_t space(std::string_view s) {
        const auto c = static_cast<unsigned char>(s[0]);
        if (c <= ' ' || c == 0x7F) return 1;
        if (s.starts_with("\xC2\xA0")) return 2;
        if (s.starts_with(isogloss::byte_order_mark)) return 3;
        return 0;
    }
    // Bytes of the character at the start if it is one of a word, else 0.
    static std::size_t of_word(std::string_view s) {
        if (s.empty() || space(s) > 0) return 0;
        const char c = s[0];
        if (static_cast<unsigned char>(c) < 0x80)
            return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        const bool mark = general_punctuation(s) || s.starts_with("«") || s.starts_with("»") ||
                          s.starts_with("¿") || s.starts_with("¡") || s.starts_with("\xE3\x80");
        return mark ? 0 : length(s);
    }
    static std::size_t joins(std::string_view s) {
        if (s[0] == '\'' || s[0] == '-') return 1;
        return s.starts_with("’") ? 3 : 0;
    }

    std::string_view rest_;
    bool begun_ = false;  // a unit of this paragraph has been read
};

/// Puts units together as they are written: no space before a comma or within brackets.
class Writer {
public:
    void add(std::string_view unit) {
        if (unit == Units::paragraph) {
            text_ += "\n\n";
            open_ = false, glue_ = true;
            return;
        }
        constexpr std::string_view closing = ".,;:!?)]}", opening = "([{";
        const bool quote = unit == "\"";
        const bool left = (unit.size() <= 3 && closing.find(unit[0]) != closing.npos) || unit == "’" ||
                          unit == "”" || unit == "»" || unit == "…" || (quote && open_);
        if (!text_.empty() && !glue_ && !left) text_ += ' ';
        text_ += unit;
        if (quote) open_ = !open_;
        glue_ = opening.find(unit[0]) != opening.npos || unit == "“" || unit == "‘" || unit == "«" ||
                (quote && open_);
    }
    const std::string& text() const { return text_; }

private:
    std::string text_;
    bool open_ = false, glue_ = false;  // within quotes; nothing goes before the next unit
};

}  // namespace keyboard
