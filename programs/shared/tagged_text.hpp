/// @file tagged_text.hpp  Tagged sentences: CoNLL-U (form and universal or language-specific tag), or CoNLL-2003 (word
/// and entity).
#pragma once

#include <cstddef>
#include <isogloss/error.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace tagged {

namespace ig = isogloss;

/// Words and tags of a text, sentence by sentence.
struct Text {
    std::vector<std::string> words;
    std::vector<ig::Token> tags;
    std::vector<std::size_t> starts;  ///< of the sentences, and the end
};

/// Numbers of tags, by name, in the order of first occurrence.
struct Tags {
    std::vector<std::string> names;
    std::map<std::string, ig::Token> numbers;
    ig::Token number(const std::string& name) {
        const auto [at, is_new] = numbers.emplace(name, static_cast<ig::Token>(names.size()));
        if (is_new) names.push_back(name);
        return at->second;
    }
};

/// A word with a to z for A to Z.
inline std::string lower(std::string word) {
    for (char& c : word)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return word;
}

/// Throws DataError for an empty tag, and in the format "conll" for one that is not O, I-TYPE or B-TYPE, the
/// tags of IOB1 and IOB2.
inline void require_tag(const std::string& tag, const std::string& format, const std::string& path,
                        ig::Index line) {
    const bool entity = tag.size() > 2 && (tag[0] == 'I' || tag[0] == 'B') && tag[1] == '-';
    if (format == "conll" ? entity || tag == "O" : !tag.empty()) return;
    throw ig::DataError(ig::message(path, ":", line, ": found the tag ", ig::in_quotes(tag), ", expected ",
                                    format == "conll" ? "O, I-TYPE or B-TYPE, as in IOB1 and IOB2; convert "
                                                        "tags of other schemes"
                                                      : "one that is not empty"));
}

/// Reads a file in the format "conllu", or "xpos" for the tags of its fifth column, whose columns end at tabs, or
/// "conll", where any number of blanks lies between two. Throws DataError with file and line for a line that has not enough columns, an empty word or a
/// tag that require_tag() refuses, and for a file without a word.
inline Text read_tagged(const std::string& path, const std::string& format, Tags& tags) {
    const bool conllu = format != "conll";
    const std::size_t column = format == "xpos" ? 4 : 3;
    Text out;
    out.starts.push_back(0);
    ig::file::LineReader lines(path);
    const auto end_sentence = [&] {
        if (out.words.size() > out.starts.back()) out.starts.push_back(out.words.size());
    };
    for (std::string_view line; lines.next(line);) {
        if (line.empty()) {
            end_sentence();
            continue;
        }
        if ((conllu && line[0] == '#') || line.starts_with("-DOCSTART-")) continue;
        std::vector<std::string> columns{""};
        for (const char c : line)
            if (c != '\t' && (conllu || c != ' ')) columns.back() += c;
            else if (conllu || !columns.back().empty()) columns.emplace_back();
        if (!conllu && columns.back().empty()) columns.pop_back();  // blanks at the end
        if (columns.empty()) {
            end_sentence();
            continue;
        }
        if (columns.size() <= column)
            throw ig::DataError(ig::message(path, ":", lines.line(), ": found ", columns.size(),
                                            " columns, expected at least ", column + 1, "; is the format '",
                                            format, "' right?"));
        if (conllu && columns[0].find_first_not_of("0123456789") != std::string::npos) continue;
        out.words.push_back(columns[conllu ? 1 : 0]);
        if (out.words.back().empty())
            throw ig::DataError(ig::message(path, ":", lines.line(), ": the word is empty"));
        require_tag(columns[column], format, path, lines.line());
        out.tags.push_back(tags.number(columns[column]));
    }
    end_sentence();
    if (out.words.empty()) throw ig::DataError(ig::message(path, ": it contains no tagged word"));
    return out;
}

/// An entity of a sentence: its first word, the word after its last, its type.
struct Entity {
    std::size_t first, end;
    std::string type;
    friend bool operator<(const Entity& a, const Entity& b) {
        return std::tie(a.first, a.end, a.type) < std::tie(b.first, b.end, b.type);
    }
};

/// The entities of tags in IOB1 or IOB2: I-X continues or begins an entity, B-X begins a new one.
inline std::vector<Entity> entities(const Text& text, const std::vector<ig::Token>& tags, const Tags& names) {
    std::vector<Entity> out;
    for (std::size_t s = 0; s + 1 < text.starts.size(); ++s) {
        bool open = false;
        for (std::size_t i = text.starts[s]; i < text.starts[s + 1]; ++i) {
            const std::string& tag = names.names[std::size_t(tags[i])];
            if (tag == "O" || tag.size() < 3) {
                open = false;
                continue;
            }
            const std::string type = tag.substr(2);
            if (open && tag[0] == 'I' && out.back().type == type) out.back().end = i + 1;
            else out.push_back({i, i + 1, type});
            open = true;
        }
    }
    return out;
}

}  // namespace tagged
