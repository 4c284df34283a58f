// Word vectors in word2vec's two formats and GloVe's, each input read as all of them.
#include <algorithm>
#include <cstring>
#include <isogloss/geometry/neighbours.hpp>
#include <isogloss/io/word_vectors.hpp>

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

using Reader = io::WordVectors (*)(const std::filesystem::path&);

bool read_as(Reader read, const std::string& path) {
    return fuzz::accepted([&] {
        const io::WordVectors v = read(path);
        io::require_storable(v, io::WordVectorFormat::word2vec_text);
        const auto spaced = [](const std::string& word) { return word.find_first_of(" \t") != word.npos; };
        static constexpr std::pair<io::WordVectorFormat, Reader> formats[] = {
            {io::WordVectorFormat::word2vec_text, io::read_word2vec_text},
            {io::WordVectorFormat::word2vec_binary, io::read_word2vec_binary},
            {io::WordVectorFormat::glove_text, io::read_glove_text}};
        for (const auto& [format, again] : formats) {
            // Text alone can store words with spaces, and GloVe's not as the first.
            if (format == io::WordVectorFormat::word2vec_binary &&
                std::ranges::any_of(v.words.words(), spaced))
                continue;
            if (format == io::WordVectorFormat::glove_text && spaced(v.words[0])) continue;
            io::write_word_vectors(fuzz::other_file(), v, format);
            FUZZ_REQUIRE(same(v, again(fuzz::other_file())));
        }
        fuzz::accepted(
            [&] { FUZZ_REQUIRE(std::ssize(nearest(v.words, v.values, v.dimension, v.words[0], 2)) <= 2); });
    });
}

}  // namespace

std::string fuzz::fresh(Dice& dice) {
    io::WordVectors v;
    v.dimension = static_cast<Index>(1 + dice.below(4));
    for (const char* word : {"the", "of", "\xC3\xA9", "12"})
        if (v.words.size() < static_cast<Index>(1 + dice.below(5))) v.words.insert(word);
    if (v.words.size() == 0) v.words.insert("x");
    const auto format = static_cast<io::WordVectorFormat>(dice.below(3));
    if (format != io::WordVectorFormat::word2vec_binary && dice.chance(0.3)) v.words.insert(". .");
    static const float numbers[] = {0, 1, -0.5f, 0.1f, 1e-40f, 3e38f};
    for (Index i = 0; i < v.words.size() * v.dimension; ++i) v.values.push_back(dice.pick(numbers));
    io::write_word_vectors(other_file(), v, format);
    return contents(other_file());
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    const auto end = input.find('\n');
    if (end == std::string::npos) return dice.chance(0.3) ? blind(input) : "";
    const auto header = io::word2vec_header(std::string_view(input).substr(0, end));
    if (!header || !is_binary(input)) {
        const auto rows = mutate_lines(header ? input.substr(end + 1) : input, dice);
        return dice.chance(header ? 0.8 : 0.1) ? with_header(rows)
               : header                        ? input.substr(0, end + 1) + rows
                                               : rows;
    }
    // Binary: records, as far as the header is right.
    std::vector<std::string> records;
    const auto n = static_cast<std::size_t>(std::clamp<Index>(header->dimension, 1, 64)) * 4;
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
    const bool text = read_as(io::read_word2vec_text, path), binary = read_as(io::read_word2vec_binary, path),
               glove = read_as(io::read_glove_text, path);
    const bool any = read_as([](const auto& p) { return io::read_word_vectors(p); }, path);
    FUZZ_REQUIRE(!any || text || binary || glove);
    return text || binary || glove;
}
