#include <isogloss/text/words.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using namespace isogloss::text;

namespace {
std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> all;
    for_each_word(line, [&](std::string_view w) { all.emplace_back(w); });
    return all;
}
using Strings = std::vector<std::string>;
}  // namespace

TEST_CASE("Words are the runs between ASCII white space", "[text][words]") {
    REQUIRE(words_of("the  quick\tbrown\v\ffox \r") == Strings{"the", "quick", "brown", "fox"});
    REQUIRE(words_of(" \t ").empty());
    REQUIRE(words_of("").empty());
    // Other control bytes and other spaces belong to the word.
    REQUIRE(words_of("a\x01"
                     "b\x1F"
                     "c d\u00A0e\u3000f") == Strings{"a\x01"
                                                     "b\x1F"
                                                     "c",
                                                     "d\u00A0e\u3000f"});
}

TEST_CASE("The search for white space agrees with a look at every byte", "[text][words]") {
    // Every byte at every distance from the start and the end of a line, with false marks before and after.
    std::size_t wrong = 0;
    for (int c = 0; c < 256; ++c)
        for (std::size_t at = 0; at < 20; ++at)
            for (const char around : {'x', '!', '\x7F', '\x80', '\xA0', '\x01'}) {
                std::string line(20, around);
                line[at] = static_cast<char>(c);
                const bool space = c == ' ' || (c >= 9 && c <= 13);
                const char* const found = text::detail::find_space(line.data(), line.data() + line.size());
                wrong += found != line.data() + (space ? at : line.size());
            }
    REQUIRE(wrong == 0);
}

TEST_CASE("Characters are code points", "[text][words]") {
    Strings all;
    for_each_character("a \u00E9\u6226\U0001F600\t.", [&](std::string_view c) { all.emplace_back(c); });
    REQUIRE(all == Strings{"a", " ", "\u00E9", "\u6226", "\U0001F600", "\t", "."});
}
