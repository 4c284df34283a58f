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

/// What a token stands for.
enum class Level {
    word,      ///< runs of bytes between ASCII white space
    character  ///< Unicode code points, spaces included
};

/// How a vocabulary is built.
struct VocabularyOptions {
    Level level = Level::word;  ///< words or characters
    /// Types that occur fewer times are dropped, ≥ 1. 1 drops none, so that a text of your own has no example of `unk`;
    /// with 2 it has.
    std::int64_t min_count = 1;
    Index max_size = 0;         ///< most types kept, `unk` and `eos` included; 0: no limit
    bool eos_per_line = true;   ///< each line end is a token
    std::string unk = "<unk>";  ///< type of everything dropped or never seen; "": none
    bool add_unk = true;        ///< include `unk` even if nothing is dropped and the text lacks it
    std::string eos = {};       ///< type of a line end; "": "<eos>" for words, "\n" for characters
    Index max_line_bytes = Index{1} << 24;  ///< longest line accepted, bytes ≥ 1 (16 MiB)
};

namespace detail {

/// The options with the default spelling of a line end filled in. Throws DataError, prefixed with
/// `where`, for spellings of `unk` and `eos` that are equal or that no text can contain.
inline VocabularyOptions with_spellings(VocabularyOptions options, const std::string& where) {
    if (options.eos.empty()) options.eos = options.level == Level::word ? "<eos>" : "\n";
    for (const std::string& name : {options.unk, options.eos})
        if (options.unk == options.eos || bad_byte(name) ||
            (options.level == Level::word && std::ranges::any_of(name, detail::is_space)))
            throw DataError(where, ": found ", in_quotes(options.unk), " for unknown words and ",
                            in_quotes(options.eos),
                            " for line ends, expected two different words of valid UTF-8");
    return options;
}

/// Distinct words or characters of texts, in order of first occurrence, and how often each occurs.
struct TypeCounts {
    VocabularyOptions options;
    WordIndex index = {};
    std::vector<std::int64_t> counts = {};
    std::string sources = {};  ///< names of the texts

    explicit TypeCounts(const VocabularyOptions& given)
        : options(with_spellings(given, "vocabulary options")) {
        require<DataError>("vocabulary options", "min_count", options.min_count, 1);
        const Index specials = (options.unk.empty() ? 0 : 1) + (options.eos_per_line ? 1 : 0);
        if (options.max_size != 0)
            require<DataError>("vocabulary options", "max_size", options.max_size, specials + 1);
    }

    /// Counts every remaining line.
    void add(file::LineReader& lines) {
        const auto take = [&](std::string_view word) {
            const Token t = index.insert(word);
            if (t == std::ssize(counts)) counts.push_back(0);
            ++counts[t];
        };
        for (std::string_view line; lines.next(line);) {
            if (options.level == Level::word) for_each_word(line, take);
            else for_each_character(line, take);
            if (options.eos_per_line) take(options.eos);
        }
        if (lines.line() == 0)
            throw DataError(lines.name(), ": the text is empty; expected at least one line");
        sources += (sources.empty() ? "" : ", ") + lines.name();
    }

    /// The words to keep and their counts, in the order of a Vocabulary.
    std::pair<std::vector<std::string>, std::vector<std::int64_t>> kept() const {
        struct Type {
            std::int64_t count;
            Index first;
            std::string_view word;
        };
        const auto by_count = [](const Type& a, const Type& b) {
            return a.count != b.count ? a.count > b.count : a.first < b.first;
        };
        const std::string who = "vocabulary of " + (sources.empty() ? "no text" : sources);
        if (counts.empty()) throw DataError(who, ": there are no words");
        const Token unk = options.unk.empty() ? -1 : index.find(options.unk);
        const Token eos = options.eos_per_line ? index.find(options.eos) : -1;
        const auto type = [&](Token t) { return Type{counts[t], t, index[t]}; };
        std::vector<Type> types;
        for (Token t = 0; t < index.size(); ++t)
            if (t != unk && t != eos) types.push_back(type(t));
        std::sort(types.begin(), types.end(), by_count);

        const auto frequent =
            std::ranges::count_if(types, [&](const Type& one) { return one.count >= options.min_count; });
        const auto room = [&](bool with_unk) {
            const Index limit = options.max_size - (eos >= 0 ? 1 : 0) - (with_unk ? 1 : 0);
            return options.max_size == 0 ? Index{frequent} : std::min(Index{frequent}, limit);
        };
        bool with_unk = unk >= 0 || (options.add_unk && !options.unk.empty());
        if (room(with_unk) < std::ssize(types)) {
            if (options.unk.empty())
                throw DataError(who, ": types are left out, and the option unk names none to stand for them");
            with_unk = true;
        }
        if (frequent == 0 && !types.empty())
            throw DataError(who, ": no type occurs ", options.min_count, " times or more; lower min_count");
        Type rest{0, index.size(), options.unk};  // first where the first that it stands for is
        const auto leave = [&](const Type& one) {
            rest = {rest.count + one.count, std::min(rest.first, one.first), rest.word};
        };
        if (unk >= 0) leave(type(unk));
        for (const Index most = room(with_unk); std::ssize(types) > most; types.pop_back())
            leave(types.back());
        if (eos >= 0) types.push_back(type(eos));
        if (with_unk) types.push_back(rest);
        std::sort(types.begin(), types.end(), by_count);
        std::pair<std::vector<std::string>, std::vector<std::int64_t>> all;
        for (const Type& one : types) all.first.emplace_back(one.word), all.second.push_back(one.count);
        return all;
    }
};

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
/// Options  see VocabularyOptions. `unk` and `eos` are always kept; of the others those with min_count or more, and of
///          these the most frequent, up to max_size in all. `unk` comes of the text, of dropped types, or of add_unk; its
///          first occurrence is that of the earliest type it replaces.
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
    /// Counts the types of one file in a streaming pass: memory grows with the types, not with the text.
    static Vocabulary from_file(const std::string& path, const VocabularyOptions& options = {}) {
        return from_files({path}, options);
    }
    /// Counts the types of several files, one after the other; the last line of each ends with its file.
    static Vocabulary from_files(const std::vector<std::string>& paths,
                                 const VocabularyOptions& options = {}) {
        detail::TypeCounts counted(options);
        for (const std::string& path : paths) {
            file::LineReader lines(path, {.max_line_bytes = options.max_line_bytes});
            counted.add(lines);
        }
        return of_kept(counted);
    }
    /// Counts the types of a stream; `name` denotes it in messages.
    static Vocabulary from_stream(std::istream& in, const std::string& name,
                                  const VocabularyOptions& options = {}) {
        detail::TypeCounts counted(options);
        file::LineReader lines(in, name, {.max_line_bytes = options.max_line_bytes});
        counted.add(lines);
        return of_kept(counted);
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
    static Vocabulary of_kept(const detail::TypeCounts& counted) {
        const auto [words, counts] = counted.kept();
        return from_words(words, counts, counted.options);
    }
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
