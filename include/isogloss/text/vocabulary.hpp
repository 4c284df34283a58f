/// @file text/vocabulary.hpp  The words of a text, their numbers and their counts.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/file/output_file.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/text/vocabulary_builder.hpp>
#include <isogloss/text/words.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <isogloss/word_index.hpp>
#include <istream>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace text {

namespace detail {

/// The number in `digits`; -1 if there is none.
inline std::int64_t number_in(std::string_view digits) {
    std::int64_t n = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), n);
    return n;
}

/// The inverse of `escaped`.
inline std::string unescaped(std::string_view spelling) {
    std::string out;
    for (std::size_t i = 0; i < spelling.size(); ++i) {
        if (spelling[i] == '\\' && spelling.substr(i + 1, 1) == "x") {
            unsigned byte = 0;
            std::from_chars(spelling.data() + i + 2, spelling.data() + std::min(i + 4, spelling.size()), byte,
                            16);
            out += static_cast<char>(byte);
            i += 3;
        } else {
            if (spelling[i] == '\\') ++i;
            out += spelling.substr(std::min(i, spelling.size()), 1);
        }
    }
    return out;
}

}  // namespace detail

/// The types (distinct words or characters) of a text, numbered 0 … V-1 with their counts.
///
/// Order    descending count, ties by first occurrence in the text: the same text and options give the same
///          numbers on every platform. `unk` counts all tokens it replaces, and those spelled like it in the
///          text; `eos` likewise counts the lines. A type that never occurs (`unk` of a text without
///          unknown words) comes last.
/// Words    separated by ASCII white space, otherwise unchanged: no case folding, no splitting.
/// Options  see VocabularyOptions.
/// Errors   DataError with file and line for invalid text (see LineReader), for an empty text, for conflicting
///          options; FileError for files that cannot be read.
///
///     auto v = Vocabulary::from_file("train.txt", {.min_count = 2});
///     Token the = v["the"];                  // unk if it is unknown
///     v.word(the), v.count(the), v.size();
class Vocabulary {
public:
    /// An empty vocabulary: no types, no `unk`.
    Vocabulary() = default;
    /// The types that a VocabularyBuilder has counted and kept; throws as its `types`.
    explicit Vocabulary(const VocabularyBuilder& builder) {
        const CountedTypes kept = builder.types();
        *this = from_words(kept.words, kept.counts, builder.options());
    }

    /// Counts the types of one file in a streaming pass: memory grows with the types, not with the text.
    static Vocabulary from_file(const std::string& path, const VocabularyOptions& options = {}) {
        return from_files({path}, options);
    }
    /// Counts the types of several files, one after the other; the last line of each ends with its file.
    static Vocabulary from_files(const std::vector<std::string>& paths,
                                 const VocabularyOptions& options = {}) {
        VocabularyBuilder builder(options);
        for (const std::string& path : paths) {
            file::LineReader lines(path, {.max_line_bytes = options.max_line_bytes});
            builder.add(lines);
        }
        return Vocabulary(builder);
    }
    /// Counts the types of a stream; `name` denotes it in messages.
    static Vocabulary from_stream(std::istream& in, const std::string& name,
                                  const VocabularyOptions& options = {}) {
        VocabularyBuilder builder(options);
        file::LineReader lines(in, name, {.max_line_bytes = options.max_line_bytes});
        builder.add(lines);
        return Vocabulary(builder);
    }
    /// Takes a list of distinct words as types 0, 1, … in the order given; `counts` has the same length, or is
    /// empty for counts of 0. Of the options, level, eos_per_line, unk and eos apply; `unk` exists if listed.
    /// Throws DataError for a duplicate, empty or ill-formed word, a negative count, no word for line ends.
    static Vocabulary from_words(const std::vector<std::string>& words,
                                 const std::vector<std::int64_t>& counts = {},
                                 const VocabularyOptions& options = {}) {
        const std::string where = "vocabulary from words";
        if (!counts.empty() && counts.size() != words.size())
            throw DataError(where, ": ", words.size(), " words, but ", counts.size(), " counts");
        Vocabulary v;
        v.options_ = detail::with_spellings(options, where);
        for (std::size_t i = 0; i < words.size(); ++i)
            v.append(words[i], counts.empty() ? 0 : counts[i], where + ", word " + std::to_string(i));
        v.finish(where);
        return v;
    }
    /// Reads what to_text wrote, exactly; `name` denotes it in messages. Throws DataError with the
    /// line for anything else.
    static Vocabulary from_text(std::string_view written, const std::string& name = "vocabulary") {
        Index line = 0;
        const auto refuse = [&](const char* what) { throw DataError(name, ":", line + 1, ": ", what); };
        if (!written.starts_with("isogloss-vocabulary\t1\n")) refuse("this is no vocabulary of version 1");
        // Whatever else is damaged shows in the end: the text is not that of the vocabulary read from it.
        std::string_view left = written;
        const auto next = [&] {
            const std::string_view all = left.substr(0, left.find('\n')), key = all.substr(0, all.find('\t'));
            left.remove_prefix(std::min(all.size() + 1, left.size()));
            ++line;
            return std::pair(key, all.substr(std::min(key.size() + 1, all.size())));
        };
        const auto value = [&] { return next().second; };
        next();
        Vocabulary v;
        VocabularyOptions options;
        options.level = value() == "word" ? Level::word : Level::character;
        options.eos_per_line = value() == "true";
        options.unk = detail::unescaped(value());
        options.eos = detail::unescaped(value());
        v.options_ = detail::with_spellings(options, name);
        next();  // how many types there are
        while (!left.empty()) {
            const auto [spelling, count] = next();
            v.append(detail::unescaped(spelling), detail::number_in(count), message(name, ":", line));
        }
        v.finish(name);
        if (const std::string ours = v.to_text(); ours != written) {
            line = std::count(ours.begin(), std::ranges::mismatch(ours, written).in1, '\n');
            refuse("this is not what a vocabulary writes; it is damaged, or was edited");
        }
        return v;
    }
    /// Reads a file that `save` wrote.
    static Vocabulary load(const std::string& path) {
        return from_text(file::InputFile(path).read_all(), path);
    }

    /// The vocabulary as text: five header lines (format, level, eos_per_line, unk, eos), the number of
    /// types, then one line `word<TAB>count` per type, with words as spelled by `escaped`.
    std::string to_text() const {
        std::string out = "isogloss-vocabulary\t1\n";
        out += options_.level == Level::word ? "level\tword\n" : "level\tcharacter\n";
        out += options_.eos_per_line ? "eos_per_line\ttrue\n" : "eos_per_line\tfalse\n";
        out += "unk\t" + escaped(options_.unk) + "\neos\t" + escaped(options_.eos) + "\n";
        out += "types\t" + std::to_string(size()) + "\n";
        for (std::size_t i = 0; i < counts_.size(); ++i)
            out += escaped(words()[i]) + "\t" + std::to_string(counts_[i]) + "\n";
        return out;
    }
    /// Writes to_text to a file: temporary name, flush, rename.
    void save(const std::string& path) const {
        file::write_atomically(path, [this](file::OutputFile& out) { out.write(to_text()); });
    }

    /// V, the number of types.
    Index size() const { return index_.size(); }
    /// The number of a word, or nothing.
    std::optional<Token> find(std::string_view word) const {
        const Token t = index_.find(word);
        return t < 0 ? std::nullopt : std::optional<Token>(t);
    }
    /// The number of a word, `unk` if it is unknown. Throws DataError if there is no `unk` either.
    Token operator[](std::string_view word) const {
        const Token t = index_.find(word);
        return t >= 0 ? t : unknown(word, nullptr);
    }
    /// The word with this number. Throws DataError outside 0 … V-1.
    const std::string& word(Token token) const { return index_[checked(token)]; }
    /// How often a type occurs in the text it was counted on. Throws DataError outside 0 … V-1.
    std::int64_t count(Token token) const { return counts_[checked(token)]; }
    /// All words in the order of their numbers.
    const std::vector<std::string>& words() const { return index_.words(); }
    /// All counts in the order of the numbers.
    const std::vector<std::int64_t>& counts() const { return counts_; }
    /// Sum of all counts: the number of tokens of the text it was counted on.
    std::int64_t total() const { return total_; }

    /// Words or characters.
    Level level() const { return options_.level; }
    /// Whether each line end is a token.
    bool eos_per_line() const { return options_.eos_per_line; }
    /// Whether there is a type for unknown words.
    bool has_unk() const { return unk_ >= 0; }
    /// The type for unknown words. Throws DataError if there is none.
    Token unk() const { return special(unk_, "type for unknown words", options_.unk); }
    /// Whether there is a type for line ends.
    bool has_eos() const { return eos_ >= 0; }
    /// The type for line ends. Throws DataError if there is none.
    Token eos() const { return special(eos_, "type for line ends", options_.eos); }
    /// 64-bit hash of everything that determines how a text becomes tokens: level, eos_per_line, unk, eos and the
    /// words in order; not the counts.
    std::uint64_t checksum() const {
        std::uint64_t h = file::hash_bytes(options_.level == Level::word ? "word" : "character",
                                           options_.eos_per_line ? 1 : 0);
        h = file::hash_bytes(has_unk() ? std::string_view(options_.unk) : std::string_view(), h);
        h = file::hash_bytes(options_.eos_per_line ? std::string_view(options_.eos) : std::string_view(), h);
        for (const auto& word : words()) h = file::hash_bytes(word, h);
        return h;
    }

    /// Appends the tokens of one line to `out`, including the line end if eos_per_line. The line is
    /// given without its "\n". Returns how many of the tokens are `unk`. Throws DataError for a line feed,
    /// NUL or invalid UTF-8 in it, and for an unknown word if there is no `unk`; `out` is then unchanged.
    Index encode(std::string_view line, std::vector<Token>& out) const {
        require_line(line);
        return translate(line, out, nullptr, options_.eos_per_line);
    }
    /// The same without the line end: for the beginning of a line that a model is to continue.
    Index encode_prefix(std::string_view line, std::vector<Token>& out) const {
        require_line(line);
        return translate(line, out, nullptr, false);
    }
    /// `encode` for the last line of a LineReader, which has checked it; error messages name its place.
    Index encode_checked(std::string_view line, std::vector<Token>& out,
                         const file::LineReader& lines) const {
        return translate(line, out, &lines, options_.eos_per_line);
    }

    /// The text of tokens: words separated by a space, or characters concatenated; a line end becomes "\n". If none is
    /// `unk`, the lines of the text give the tokens back: those that a "\n" ends by `encode`, and tokens after the last
    /// line end by `encode_prefix`, as `encode` would end them. Throws DataError for a token outside 0 … V-1.
    std::string decode(std::span<const Token> tokens) const {
        std::string out;
        bool space = false;  // whether a word precedes in the same line
        for (const Token t : tokens) {
            const std::string& spelling = word(t);
            const bool line_end = options_.eos_per_line && t == eos_;
            if (space && !line_end) out += ' ';
            out += line_end ? "\n" : spelling;
            space = options_.level == Level::word && !line_end;
        }
        return out;
    }

    /// Equal in every word, count and option.
    friend bool operator==(const Vocabulary& a, const Vocabulary& b) {
        return a.options_.level == b.options_.level && a.options_.eos_per_line == b.options_.eos_per_line &&
               a.options_.unk == b.options_.unk && a.options_.eos == b.options_.eos &&
               a.counts_ == b.counts_ && a.words() == b.words();
    }

private:
    // Adds one type. Refuses a word that no text can contain and a duplicate.
    void append(std::string_view word, std::int64_t count, const std::string& where) {
        const bool words = options_.level == Level::word,
                   special = word == options_.unk || word == options_.eos;
        if (word.empty() || bad_byte(word) || (words && std::ranges::any_of(word, detail::is_space)) ||
            (!words && !special && isogloss::detail::utf8_length(word) != word.size()) || count < 0 ||
            count > std::numeric_limits<std::int64_t>::max() - total_ ||
            index_.insert(word) != static_cast<Index>(counts_.size()))
            throw DataError(where, ": found ", in_quotes(word), " ", count, " times, expected distinct ",
                            words ? "words, without white space," : "characters",
                            " of valid UTF-8, 0 times or more");
        counts_.push_back(count);
        total_ += count;
    }
    // Looks up the special types, after all words have been added.
    void finish(const std::string& where) {
        unk_ = options_.unk.empty() ? -1 : index_.find(options_.unk);
        eos_ = index_.find(options_.eos);
        if (options_.eos_per_line && eos_ < 0)
            throw DataError(where, ": there is no ", in_quotes(options_.eos), " among the ", size(),
                            " types for line ends; name one in the option eos, or set eos_per_line = false");
    }
    static void require_line(std::string_view line) {
        if (bad_byte(line) || line.find('\n') != std::string_view::npos)
            throw DataError("line to encode: found ", in_quotes(line),
                            ", expected UTF-8 without NUL and line feed");
    }
    Index translate(std::string_view line, std::vector<Token>& out, const file::LineReader* lines,
                    bool line_end) const {
        const std::size_t before = out.size();
        Index unknowns = 0;
        const auto take = [&](std::string_view word) {
            Token t = index_.find(word);
            if (t < 0) t = unknown(word, lines);
            unknowns += t == unk_ ? 1 : 0;
            out.push_back(t);
        };
        try {
            if (options_.level == Level::word) for_each_word(line, take);
            else for_each_character(line, take);
            if (line_end) out.push_back(eos_);
        } catch (...) {
            out.resize(before);
            throw;
        }
        return unknowns;
    }
    // `unk`, or an exception that tells which word is unknown, and where.
    Token unknown(std::string_view word, const file::LineReader* lines) const {
        if (unk_ >= 0) return unk_;
        const std::string where = lines ? message(lines->name(), ":", lines->line(), ": ") : "";
        throw DataError(where, in_quotes(word), " is not among the ", size(), " types of the vocabulary, ",
                        "which has no type for unknown words; build it with one (option unk)");
    }

    Token checked(Token token) const {
        if (token < 0 || token >= size())
            throw DataError("token ", token, " is outside the vocabulary of ", size(), " types");
        return token;
    }
    Token special(Token token, const char* what, const std::string& name) const {
        if (token < 0)
            throw DataError("the vocabulary of ", size(), " types has no ", what, " ", in_quotes(name));
        return token;
    }

    WordIndex index_;
    std::vector<std::int64_t> counts_;
    std::int64_t total_ = 0;
    VocabularyOptions options_{.eos_per_line = false, .eos = "<eos>"};
    Token unk_ = -1, eos_ = -1;
};

}}}  // namespace isogloss::text
