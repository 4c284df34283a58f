// Vocabularies as text.
#include <algorithm>
#include <isogloss/text/vocabulary.hpp>

#include "fuzz.hpp"

using namespace isogloss;

namespace {

// The number of types in its sixth line, right for the lines that follow.
std::string with_types(const std::string& text) {
    std::size_t at = 0;
    for (int i = 0; i < 5; ++i) {
        at = text.find('\n', at);
        if (at == std::string::npos) return text;
        ++at;
    }
    const auto end = text.find('\n', at);
    if (end == std::string::npos) return text;
    const auto lines = std::count(text.begin() + static_cast<std::ptrdiff_t>(end) + 1, text.end(), '\n');
    return text.substr(0, at) + "types\t" + std::to_string(lines) + text.substr(end);
}

}  // namespace

std::string fuzz::fresh(Dice& dice) {
    const bool words = dice.chance(0.5);
    return text::Vocabulary::from_words(
               {"a", "\\", words ? "caf\xC3\xA9" : "\xC3\xA9", "<unk>", words ? "<eos>" : "\n"},
               {9, 8, 7, 1, 0},
               {.level = words ? text::Level::word : text::Level::character,
                .eos_per_line = dice.chance(0.5)})
        .to_text();
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    std::size_t head = 0;  // its lines as a rule stay as they are
    if (dice.chance(0.85))
        for (int i = 0; i < 6 && head < input.size(); ++i)
            head = std::min(input.find('\n', head), input.size() - 1) + 1;
    auto changed = input.substr(0, head) + mutate_lines(input.substr(head), dice, '\t');
    if (!changed.ends_with('\n') && dice.chance(0.8)) changed += '\n';
    return dice.chance(0.9) ? with_types(changed) : changed;
}

bool fuzz::take(std::string_view input) {
    const auto v = text::Vocabulary::from_text(input);
    FUZZ_REQUIRE(v.to_text() == input);  // one spelling for each vocabulary
    FUZZ_REQUIRE(text::Vocabulary::load(as_file(input)) == v);
    FUZZ_REQUIRE(text::Vocabulary::from_text(v.to_text()).checksum() == v.checksum());
    FUZZ_REQUIRE(v.total() >= 0);
    std::vector<Token> all, again;
    for (Token t = 0; t < v.size(); ++t) {
        FUZZ_REQUIRE(v.find(v.word(t)) == t && v.count(t) >= 0 && v.count(t) <= v.total());
        if (!(v.eos_per_line() && t == v.eos())) all.push_back(t);  // a line end is spelled otherwise
    }
    const std::string text = v.decode(all);
    const bool read = accepted([&] { v.encode_prefix(text, again); });
    if (v.level() == text::Level::word) FUZZ_REQUIRE(read && again == all);
    return true;
}
