#include <isogloss/utf8.hpp>
//
#include "catch.hpp"

using namespace isogloss;

TEST_CASE("Well-formed UTF-8 is what the Unicode table says", "[core][utf8]") {
    // Written out from the definition of the encoding: every code point but the surrogates, nothing else.
    const auto encode = [](unsigned c) {
        std::string s;
        if (c < 0x80) return std::string{static_cast<char>(c)};
        if (c < 0x800) s += static_cast<char>(0xC0 | c >> 6);
        else if (c < 0x10000) s += static_cast<char>(0xE0 | c >> 12);
        else s += static_cast<char>(0xF0 | c >> 18);
        if (c >= 0x10000) s += static_cast<char>(0x80 | (c >> 12 & 0x3F));
        if (c >= 0x800) s += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        return s + static_cast<char>(0x80 | (c & 0x3F));
    };
    std::size_t wrong = 0;
    for (unsigned c = 0; c < 0x120000; ++c) {
        const std::string s = encode(c);
        const bool valid = c < 0x110000 && (c < 0xD800 || c > 0xDFFF);
        wrong += detail::utf8_length(s) != (valid ? s.size() : 0);
        if (s.size() > 1) wrong += detail::utf8_length(std::string_view(s).substr(0, s.size() - 1)) != 0;
    }
    REQUIRE(wrong == 0);
    // Overlong forms, stray continuation, bytes that never occur.
    for (const char* s :
         {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
          "\x80", "\xBF", "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xC3(", ""})
        REQUIRE(detail::utf8_length(s) == 0);
}

TEST_CASE("A bad byte is found wherever it stands", "[core][utf8]") {
    const std::string good = "Senj\u014D no Valkyria \u6226\u5834 \U0001F600 plain ASCII behind it";
    REQUIRE_FALSE(bad_byte(good));
    REQUIRE_FALSE(bad_byte(""));
    for (std::size_t i = 0; i <= 40; ++i)
        for (const char bad : {'\0', '\x80', '\xFF', '\xE9'}) {
            const std::string s = std::string(i, 'x') + bad + std::string(40 - i, 'y');
            REQUIRE(bad_byte(s) == i);
        }
}

TEST_CASE("A terminal obeys nothing of a word that is shown", "[core][utf8]") {
    REQUIRE(shown("plain \u00E9 \u4E2D \U0001F600 a\\b") == "plain \u00E9 \u4E2D \U0001F600 a\\b");
    REQUIRE(shown("\x1B[31m\x7F") == "\\x1B[31m\\x7F");
    REQUIRE(shown("\u0080\u009B\u009F\u00A0") == "\\xC2\\x80\\xC2\\x9B\\xC2\\x9F\u00A0");
    for (const char* c : {"\u200B", "\u2028", "\u2029", "\u202A", "\u202E", "\u2066", "\u2069"})
        REQUIRE(shown(c).substr(0, 7) == "\\xE2\\x8");
    for (const char* c : {"\u200A", "\u200C", "\u2027", "\u202F", "\u2065", "\u206A"}) REQUIRE(shown(c) == c);
    REQUIRE(shown("a\x9Bz\xE2\x80") ==
            "a\\x9Bz\\xE2\\x80");  // an eight-bit terminal obeys a byte that is no UTF-8
    REQUIRE(in_quotes("\u202Eevil") == "'\\xE2\\x80\\xAEevil'");
}

TEST_CASE("Words are written so that they can be read", "[core][utf8]") {
    REQUIRE(escaped("plain \u00E9") == "plain \u00E9");
    REQUIRE(escaped("a\\b\tc\nd\x7F") == "a\\\\b\\x09c\\x0Ad\\x7F");
    REQUIRE(in_quotes("E") == "'E'");
    REQUIRE(in_quotes(std::string_view("a\n\0\x7f", 4)) == "'a\\x0A\\x00\\x7F'");
    REQUIRE(in_quotes(std::string(500, 'w')) == "'" + std::string(80, 'w') + "…'");
    REQUIRE(in_quotes("a\\b\n") == "'a\\b\\x0A'");
    REQUIRE(in_quotes(std::string(80, 'x')) == "'" + std::string(80, 'x') + "'");
    REQUIRE(in_quotes(std::string(79, 'x') + "\u00E9y") == "'" + std::string(79, 'x') + "\u2026'");
}
