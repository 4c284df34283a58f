/// @file vocabulary_text.hpp  A vocabulary as text: written, read back strictly, saved to a file.
#pragma once

#include <charconv>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/text/file.hpp>
#include <isogloss/text/lines.hpp>
#include <isogloss/text/output_file.hpp>
#include <isogloss/text/vocabulary_core.hpp>
#include <isogloss/types.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace isogloss {

/// Takes lines `key<TAB>value` from a written vocabulary, one after the other, and refuses whatever
/// to_text would not have written. Every message names the line.
class VocabularyParser {
public:
    /// `written` and `name` must outlive the parser.
    VocabularyParser(std::string_view written, const std::string& name) : left_(written), name_(name) {}

    /// The next line, cut at its only tab.
    std::pair<std::string_view, std::string_view> pair(const char* expected) {
        ++line_;
        const auto end = left_.find('\n');
        if (end == std::string_view::npos)
            refuse("the text ends ", left_.empty() ? "before" : "within", " the line with ", expected,
                   "; it is cut");
        const std::string_view line = left_.substr(0, end);
        left_.remove_prefix(end + 1);
        const auto tab = line.find('\t');
        if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos)
            refuse("found ", shown(line), ", expected ", expected, ", with one tab");
        return {line.substr(0, tab), line.substr(tab + 1)};
    }

    /// The value of the next line, whose key must be `key`.
    std::string_view value(const char* key) {
        const auto [found, value] = pair(key);
        if (found != key) refuse("found ", shown(found), ", expected '", key, "'");
        return value;
    }

    /// A number ≥ 0 in the one spelling that to_text uses.
    std::int64_t number(std::string_view digits) const {
        std::int64_t n = -1;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
        if (error != std::errc() || end != digits.data() + digits.size() || n < 0 ||
            std::to_string(n) != digits)
            refuse("found ", shown(digits), ", expected a whole number, 0 or more");
        return n;
    }

    /// The word behind its escaped spelling.
    std::string word(std::string_view spelling) const {
        std::string out;
        for (std::size_t i = 0; i < spelling.size(); ++i) {
            if (spelling[i] != '\\') {
                out += spelling[i];
            } else if (spelling.substr(i + 1, 1) == "\\") {
                out += spelling[++i];
            } else {
                unsigned byte = 0;
                const char* const from = spelling.data() + i + 2;
                if (spelling.substr(i + 1, 1) != "x" || spelling.size() - i < 4 ||
                    std::from_chars(from, from + 2, byte, 16).ptr != from + 2)
                    refuse(shown(spelling), " has a backslash that is neither `\\\\` nor `\\xHH`");
                out += static_cast<char>(byte);
                i += 3;
            }
        }
        if (escaped(out) != spelling) refuse(shown(spelling), " should be written ", shown(out));
        return out;
    }

    /// Throws unless everything has been read.
    void finish() {
        ++line_;
        if (!left_.empty()) refuse("there is more text after the last type; expected the end");
    }

    /// Throws DataError "name:line: what".
    template <class... Parts> [[noreturn]] void refuse(const Parts&... what) const {
        throw DataError(message(place(), ": ", what...));
    }
    /// "name:line".
    std::string place() const { return name_ + ":" + std::to_string(line_); }

private:
    std::string_view left_;
    const std::string& name_;
    Index line_ = 0;
};

inline std::string Vocabulary::to_text() const {
    std::string out = "isogloss-vocabulary\t1\n";
    out += level_ == Level::word ? "level\tword\n" : "level\tcharacter\n";
    out += eos_per_line_ ? "eos_per_line\ttrue\n" : "eos_per_line\tfalse\n";
    out += "unk\t" + escaped(unk_name_) + "\neos\t" + escaped(eos_name_) + "\n";
    out += "types\t" + std::to_string(size()) + "\n";
    for (std::size_t i = 0; i < counts_.size(); ++i)
        out += escaped(words()[i]) + "\t" + std::to_string(counts_[i]) + "\n";
    return out;
}

inline Vocabulary Vocabulary::from_text(std::string_view written, const std::string& name) {
    VocabularyParser in(written, name);
    if (!written.starts_with("isogloss-vocabulary\t"))
        throw DataError(
            message(name, ":1: this is no vocabulary; expected the line 'isogloss-vocabulary<TAB>1'"));
    if (const auto version = in.value("isogloss-vocabulary"); version != "1")
        in.refuse("found version ", shown(version), ", this library reads version 1");
    const auto one_of = [&in](const char* key, std::string_view yes, std::string_view no) {
        const auto found = in.value(key);
        if (found != yes && found != no)
            in.refuse("found ", key, " ", shown(found), ", expected '", yes, "' or '", no, "'");
        return found == yes;
    };
    VocabularyOptions options;
    options.level = one_of("level", "word", "character") ? Level::word : Level::character;
    options.eos_per_line = one_of("eos_per_line", "true", "false");
    options.unk = in.word(in.value("unk"));
    options.eos = in.word(in.value("eos"));
    if (options.eos.empty()) in.refuse("there is no name for line ends");
    Vocabulary v;
    v.set_options(options, in.place());
    const std::int64_t types = in.number(in.value("types"));
    for (std::int64_t i = 0; i < types; ++i) {
        const auto [spelling, count] = in.pair("the next word and its count");
        v.append(in.word(spelling), in.number(count), in.place());
    }
    in.finish();
    v.finish(name);
    return v;
}

inline void Vocabulary::save(const std::string& path) const {
    OutputFile out(path);
    out.write(to_text());
    out.commit();
}

inline Vocabulary Vocabulary::load(const std::string& path) {
    return from_text(InputFile(path).read_all(), path);
}

}  // namespace isogloss
