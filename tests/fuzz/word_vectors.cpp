// Word vectors in word2vec's two formats and GloVe's, each input read as all of them.
#include <algorithm>
#include <cstring>
#include <isogloss/geometry/neighbours.hpp>
#include <isogloss/io/word_vectors.hpp>
#include <sstream>

#include "fuzz.hpp"

using namespace isogloss;

namespace {

bool is_binary(const std::string& input) {
    return input.find('\0') != std::string::npos || input.find('\xBF') != std::string::npos;
}

// word2vec's first line, right for the rows that follow it as text.
std::string with_header(const std::string& rows) {
    const auto first = rows.substr(0, rows.find('\n'));
    const auto count = std::count(rows.begin(), rows.end(), '\n') + (rows.ends_with('\n') ? 0 : 1);
    return std::to_string(count) + " " + std::to_string(std::count(first.begin(), first.end(), ' ')) + "\n" +
           rows;
}

bool same(const io::WordVectors& a, const io::WordVectors& b) {
    return a.words.words() == b.words.words() && a.dimension == b.dimension &&
           a.values.size() == b.values.size() &&
           std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0;
}

using Format = io::WordVectorFormat;
constexpr Format formats[] = {Format::word2vec_text, Format::word2vec_binary, Format::glove_text};

// What one format or, without one, the guessed format accepts can be written and read again.
template <class... Name> bool read_as(const std::string& path, Name... name) {
    return fuzz::accepted([&] {
        const io::WordVectors v = io::read_word_vectors(path, name...);
        const auto spaced = [](const std::string& word) { return word.find_first_of(" \t") != word.npos; };
        const bool marked =
            v.words[0].starts_with(byte_order_mark);  // dropped by readers, so never written first
        if (!marked && std::ranges::none_of(v.words.words(), spaced))
            for (const Format format : formats) {
                io::write_word_vectors(fuzz::other_file(), v, format);
                FUZZ_REQUIRE(same(v, io::read_word_vectors(fuzz::other_file(), format)));
            }
        fuzz::accepted(
            [&] { FUZZ_REQUIRE(std::ssize(nearest(v.words, v.values, v.dimension, v.words[0], 2)) <= 2); });
    });
}

// word2vec's first line: the number of words and the dimension.
bool header(const std::string& line, Index& words, Index& dimension) {
    std::istringstream in(line);
    std::string more;
    return in >> words >> dimension && !(in >> more);
}

}  // namespace

std::string fuzz::fresh(Dice& dice) {
    io::WordVectors v;
    v.dimension = static_cast<Index>(1 + dice.below(4));
    for (const char* word : {"the", "of", "\xC3\xA9", "12"})
        if (v.words.size() < static_cast<Index>(1 + dice.below(5))) v.words.insert(word);
    if (v.words.size() == 0) v.words.insert("x");
    const auto format = dice.pick(formats);
    static const float numbers[] = {0, 1, -0.5f, 0.1f, 1e-40f, 3e38f};
    for (Index i = 0; i < v.words.size() * v.dimension; ++i) v.values.push_back(dice.pick(numbers));
    io::write_word_vectors(other_file(), v, format);
    return contents(other_file());
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    const auto end = input.find('\n');
    if (end == std::string::npos) return dice.chance(0.3) ? blind(input) : "";
    Index words = 0, dimension = 0;
    const bool headed = header(input.substr(0, end), words, dimension);
    if (!headed || !is_binary(input)) {
        auto rows = mutate_lines(headed ? input.substr(end + 1) : input, dice);
        if (dice.chance(0.1)) rows += (rows.ends_with('\n') ? ". . 1" : "\n. . 1");
        return dice.chance(headed ? 0.8 : 0.1) ? with_header(rows)
               : headed                        ? input.substr(0, end + 1) + rows
                                               : rows;
    }
    // Binary: records, as far as the header is right.
    std::vector<std::string> records;
    const auto n = static_cast<std::size_t>(std::clamp<Index>(dimension, 1, 64)) * 4;
    std::size_t at = end + 1;
    for (std::size_t space;
         (space = input.find(' ', at)) != std::string::npos && space + 1 + n <= input.size();) {
        const std::size_t next = std::min(
            input.size(), space + 1 + n + (input[std::min(space + 1 + n, input.size() - 1)] == '\n'));
        records.push_back(input.substr(at, next - at));
        at = next;
    }
    if (records.empty()) return "";
    std::string& record = dice.pick(records);
    switch (dice.below(5)) {
        case 0:
            records.push_back("n" + std::to_string(dice.below(99)) + " " +
                              record.substr(record.size() - std::min(record.size(), n)));
            break;
        case 1:
            records.erase(records.begin() + static_cast<std::ptrdiff_t>(dice.below(records.size())));
            break;
        case 2:
            if (record.ends_with('\n')) record.pop_back();
            else record += '\n';
            break;
        case 3:
            record = blind(record, record.size() + 4);
            break;
        default:
            record[dice.below(record.size())] ^= static_cast<char>(1 << dice.below(8));
    }
    std::string output = dice.chance(0.1)
                             ? number(dice) + " " + number(dice) + "\n"
                             : std::to_string(records.size()) + " " + std::to_string(n / 4) + "\n";
    for (const auto& r : records) output += r;
    return output;
}

bool fuzz::take(std::string_view input) {
    const std::string path = as_file(input);
    bool any = false;
    for (const Format format : formats) any = read_as(path, format) || any;
    const bool guessed = read_as(path);
    FUZZ_REQUIRE(!guessed || any);
    return any;
}
