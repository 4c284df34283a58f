/// @file io/word_vectors.hpp  Word vectors in the file formats of word2vec and GloVe.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/file/output_file.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <isogloss/word_index.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io {

/// Words with one vector each: `words.find("north")` is the row of a word, `words[i]` the word of a row.
struct WordVectors {
    WordIndex words;            ///< bytes, usually UTF-8
    Index dimension = 0;        ///< numbers per word, ≥ 1
    std::vector<float> values;  ///< [words, dimension], row-major, finite

    /// The vector of word number `i`. Throws UsageError for a number that no word has, as -1 of a word not found.
    std::span<const float> row(Index i) const {
        if (i < 0 || dimension < 0 || i >= words.size() || std::ssize(values) < (i + 1) * dimension)
            throw UsageError("word vectors: found row ", i, ", expected one of the ", words.size(),
                             " words, counted from 0; words.find() gives -1 for a word that is not there");
        return std::span(values).subspan(i * dimension, dimension);
    }
};

/// The file formats of word vectors.
///
/// - word2vec_text: a line "words dimension", then per word a line "word x₁ … x_n"
/// - word2vec_binary: the same first line, then per word its bytes, a space, n little-endian floats, "\n"
/// - glove_text: per word a line "word x₁ … x_n", no first line
enum class WordVectorFormat { word2vec_text, word2vec_binary, glove_text };

/// The first line of a word2vec file.
struct Word2VecHeader {
    Index words = 0;      ///< how many lines or records follow, ≥ 0
    Index dimension = 0;  ///< numbers per word, ≥ 0
};

/// Parses "words dimension", with any spaces and tabs between and behind them; nothing if the line is not
/// two whole numbers, or one overflows an Index.
inline std::optional<Word2VecHeader> word2vec_header(std::string_view line) {
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!line.empty() && (blank(line.back()) || line.back() == '\r')) line.remove_suffix(1);
    const char* const end = line.data() + line.size();
    Word2VecHeader h;
    const auto first = std::from_chars(line.data(), end, h.words);
    const char* const between = std::find_if_not(first.ptr, end, blank);
    if (first.ec != std::errc() || between == first.ptr) return std::nullopt;
    const auto second = std::from_chars(between, end, h.dimension);
    if (second.ec != std::errc() || second.ptr != end || h.words < 0 || h.dimension < 0) return std::nullopt;
    return h;
}

/// Parses one decimal number and nothing else; nothing if there is none, it is not finite or it overflows a
/// float. A number too small for a float becomes the nearest one or 0, as long as a double can hold it.
inline std::optional<float> parse_float(std::string_view digits) {
    float value = 0;
    const char* const end = digits.data() + digits.size();
    auto result = std::from_chars(digits.data(), end, value);
    if (result.ec == std::errc::result_out_of_range) {  // too large or too small: decided in double
        double wide = 0;
        result = std::from_chars(digits.data(), end, wide);
        if (std::abs(wide) > 1) return std::nullopt;
        value = static_cast<float>(wide);
    }
    if (result.ec != std::errc() || result.ptr != end || !std::isfinite(value)) return std::nullopt;
    return value;
}

/// Longest word in a file of word vectors, and longest line of one in text; bytes. A file of something else may go on
/// without an end of either.
inline constexpr std::size_t most_word_bytes = std::size_t{1} << 16, most_line_bytes = std::size_t{1} << 28;

namespace detail {

/// Whether a character separates words and numbers in a line of text.
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Takes the next field, which ends at a blank or at the end, off the beginning of a line; "" if there is none left.
inline std::string_view next_field(std::string_view& line) {
    std::size_t begin = 0;
    while (begin < line.size() && is_blank(line[begin])) ++begin;
    std::size_t end = begin;
    while (end < line.size() && !is_blank(line[end])) ++end;
    const auto field = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return field;
}

/// The part of a word or line before its first blank.
inline std::string_view before_blank(std::string_view line) {
    return line.substr(0, static_cast<std::size_t>(std::ranges::find_if(line, is_blank) - line.begin()));
}

}  // namespace detail

/// Whether a word can be stored in a format, by default in all of them: not empty or longer than most_word_bytes, no line
/// end, carriage return or NUL, and no space or tab. In text it may contain spaces and tabs, as ". . ." in the file
/// glove.840B.300d, if it neither begins nor ends with one and no number follows one, so that it is clear where the
/// vector begins. (The first word of GloVe text may not: the file does not say how many numbers follow it.)
inline bool is_storable_word(std::string_view word,
                             WordVectorFormat format = WordVectorFormat::word2vec_binary) {
    if (word.empty() || word.size() > most_word_bytes ||
        word.find_first_of(std::string_view("\n\r\0", 3)) != std::string_view::npos)
        return false;
    std::string_view rest = word;
    rest.remove_prefix(detail::before_blank(word).size());
    if (rest.empty()) return true;
    if (format == WordVectorFormat::word2vec_binary || rest.size() == word.size() ||
        detail::is_blank(word.back()))
        return false;
    for (std::string_view part; !(part = detail::next_field(rest)).empty();)
        if (parse_float(part)) return false;
    return true;
}

/// Reads the parts common to the three formats. Used by the read functions below.
class WordVectorReader {
public:
    /// Opens a file, which must not be empty; a line longer than `most_line` bytes is refused.
    explicit WordVectorReader(const std::filesystem::path& path, std::size_t most_line = most_line_bytes)
        : in(file::open_regular(path.string())), most_line_(most_line) {
        if (in.remaining() == 0) in.refuse("the file is empty");
    }

    /// Reads up to the next line end, as Reader::until; a byte order mark before the first line is dropped.
    bool line(std::string_view& out) {
        const bool ended = in.until('\n', out, most_line_);
        if (out.size() > most_line_)
            in.refuse("line ", line_ + 1, " is longer than ", most_line_, " bytes; are these word vectors?");
        if (line_++ == 0 && out.starts_with(byte_order_mark)) out.remove_prefix(byte_order_mark.size());
        return ended;
    }

    /// Reads and checks the first line of a word2vec file and returns the number of words. A number takes at
    /// least `least` bytes in this format, and the file must be large enough for all of them before anything is
    /// allocated.
    Index header(Index least) {
        std::string_view first;
        line(first);
        const auto h = word2vec_header(first);
        if (!h)
            in.refuse("line 1: ", in_quotes(first), " is not the number of words and the dimension; ",
                      "is this GloVe text, which has no such line?");
        if (h->words == 0 || h->dimension == 0)
            in.refuse("line 1: ", h->words, " words of dimension ", h->dimension,
                      "; expected at least 1 of each");
        // A word adds at least one character and one space or line end; the last line end may be missing.
        const Index room = in.remaining();
        if (h->dimension > room / least || h->words > (room + 1) / (h->dimension * least + 2))
            in.refuse("line 1: ", h->words, " words of dimension ", h->dimension, " do not fit into the ",
                      room, " bytes that follow; the file is truncated or not in this format");
        try {
            vectors.words.reserve(h->words);
            vectors.values.reserve(h->words * h->dimension);
        } catch (const std::exception&) {
            in.refuse("line 1: ", h->words, " words of dimension ", h->dimension,
                      " need more memory than is available");
        }
        vectors.dimension = h->dimension;
        return h->words;
    }

    /// Reads one line "word x₁ … x_n"; false at the end of the file. The first line sets the dimension if
    /// it is not known; else a word may have several parts: all up to the first number behind a blank.
    bool text_row() {
        std::string_view row;
        if (!line(row) && row.empty()) return false;
        if (row.ends_with('\r')) row.remove_suffix(1);
        std::string_view w = detail::before_blank(row), rest = row.substr(w.size()), odd;
        const auto refuse = [&](std::string_view field, const char* hint) {
            in.refuse("line ", line_, ": ", in_quotes(field), " after the word ",
                      in_quotes(detail::before_blank(row)), " is not a finite number", hint);
        };
        Index found = 0, parts = 0;
        for (std::string_view field; !(field = detail::next_field(rest)).empty();) {
            if (const auto value = parse_float(field)) {
                // More than expected are counted for the error message.
                if (++found <= vectors.dimension || vectors.dimension == 0) vectors.values.push_back(*value);
                continue;
            }
            if (found > 0) refuse(field, "");
            if (vectors.dimension == 0)
                refuse(field,
                       "; the first word of a file cannot contain a space, unless a line before it says the "
                       "number of words and the dimension");
            if (++parts == 1) odd = field;
            w = row.substr(0, row.size() - rest.size());
        }
        if (parts > 0 && found + parts == vectors.dimension) refuse(odd, "");  // in place of a number
        word(w, WordVectorFormat::word2vec_text, "line ", line_ - vectors.words.size(),
             [this] { return message("line ", line_); });
        if (vectors.dimension == 0) {
            vectors.dimension = found;
            begins_as_word2vec_ = word2vec_header(row).has_value();
        }
        if (found == 0 || found != vectors.dimension)
            in.refuse("line ", line_, ": ", found, " numbers after the word ", in_quotes(w), ", expected ",
                      vectors.dimension > 0 ? std::to_string(vectors.dimension) : "at least 1",
                      begins_as_word2vec_ ? ", as in line 1; is that line the number of words and the "
                                            "dimension? Then read the file as word2vec's text"
                                          : "");
        return true;
    }

    /// Reads one word and its numbers in binary.
    void binary_row(Index number, Index count) {
        const auto place = [&, byte = in.position()] {
            return message("word ", number + 1, " of ", count, ", from byte ", byte);
        };
        std::string_view piece;
        constexpr std::size_t most = most_word_bytes + 1;  // with the line end of the word before
        if (!in.until(' ', piece, most) && piece.size() <= most)
            in.refuse(place(), ": the file ends in the middle; it is truncated or not in this format");
        if (piece.starts_with('\n')) piece.remove_prefix(1);
        word(piece, WordVectorFormat::word2vec_binary, "word ", 1, place);
        const std::size_t begin = vectors.values.size();
        vectors.values.resize(begin + vectors.dimension);
        const auto row = std::span(vectors.values).subspan(begin);
        in.read(std::as_writable_bytes(row));
        for (std::size_t i = 0; i < row.size(); ++i)
            if (!std::isfinite(row[i]))
                in.refuse(place(), ", ", in_quotes(vectors.words[number]), ": number ", i + 1,
                          " is not finite");
    }

    file::Reader in;      ///< the file
    WordVectors vectors;  ///< the vectors read so far

private:
    // Adds the next word; error messages call it `unit` and count from `first`.
    template <class Place>
    void word(std::string_view w, WordVectorFormat format, const char* unit, Index first, Place&& place) {
        if (!is_storable_word(w, format))
            in.refuse(place(), ": ", in_quotes(w), " is not a word; expected 1 to ", most_word_bytes,
                      " bytes, and no space, tab, line end or NUL");
        const Index i = vectors.words.size();
        if (const Index twin = vectors.words.insert(w); twin != i)
            in.refuse(unit, i + first, ": the word ", in_quotes(w), " appears twice, first in ", unit,
                      twin + first);
    }

    std::size_t most_line_;
    Index line_ = 0;
    bool begins_as_word2vec_ = false;  // the first word and its number could be the header of word2vec
};

/// Reads word vectors in word2vec's text format.
///
/// Numbers are decimal, separated by spaces or tabs; a space at the end of a line, "\r\n" and a byte order mark at the
/// beginning of the file are accepted. Bytes of words are not changed. A word may contain spaces, if no number follows
/// one of them: what comes before the first number behind a space is the word, and exactly n numbers follow.
///
/// Errors   FileError with file and line: an empty file, a first line that is not two numbers or announces
///          more than the file can hold, another number of words or values than announced, a value that is
///          not finite or overflows a float, an empty word, a duplicate word, a word or a line that is too long.
inline WordVectors read_word2vec_text(const std::filesystem::path& path) {
    WordVectorReader r(path);
    const Index count = r.header(2);  // a number is a space and a digit
    for (Index i = 0; i < count; ++i)
        if (!r.text_row()) r.in.refuse("line 1 promises ", count, " words, but the file ends after ", i);
    if (r.in.remaining() != 0)
        r.in.refuse("line 1 promises ", count, " words, but more follow in line ", count + 2);
    return std::move(r.vectors);
}

/// Reads word vectors in word2vec's binary format. The line end after each vector is optional, as some
/// programs omit it.
///
/// Errors   FileError with file and word number, as for read_word2vec_text; also a file that is truncated or
///          has bytes left over.
inline WordVectors read_word2vec_binary(const std::filesystem::path& path) {
    WordVectorReader r(path);
    const Index count = r.header(4);
    for (Index i = 0; i < count; ++i) r.binary_row(i, count);
    std::string_view rest;
    r.in.until('\n', rest, 0);
    if (!rest.empty() || r.in.remaining() != 0)
        r.in.refuse("line 1 promises ", count,
                    " words, but bytes follow after the last; the file is damaged or not in word2vec's "
                    "binary format");
    return std::move(r.vectors);
}

/// Reads word vectors in GloVe's text format: that of word2vec without the first line. The first row sets
/// the dimension, and its word has no spaces; those of other rows may, as ". . ." in the file glove.840B.300d.
///
/// Errors   FileError with file and line, as for read_word2vec_text.
inline WordVectors read_glove_text(const std::filesystem::path& path) {
    WordVectorReader r(path);
    while (r.text_row()) {
    }
    if (r.vectors.dimension == 0) r.in.refuse("the file is empty, but for a byte order mark");
    return std::move(r.vectors);
}

namespace detail {

/// Whether a line of text is a word without blanks and `dimension` numbers.
inline bool is_text_row(std::string_view line, Index dimension) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    line.remove_prefix(before_blank(line).size());
    Index found = 0;
    for (std::string_view field; !(field = next_field(line)).empty();)
        if (!parse_float(field) || ++found > dimension) return false;
    return found == dimension;
}

/// Whether `bytes`, what follows the first line of a word2vec file, or the beginning of it, is binary. The numbers of
/// the first word take 4 · dimension bytes after its space, and any of these may be a line feed.
inline bool looks_binary(std::string_view bytes, Index dimension, bool whole) {
    const auto line = bytes.substr(0, bytes.find('\n'));
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || is_text_row(line, dimension)) return false;
    const auto is_text = [](char c) { return (c >= ' ' && c <= '~') || c == '\t' || c == '\r' || c == '\n'; };
    const auto after = bytes.substr(space + 1);
    if (!std::ranges::all_of(line.substr(space), is_text)) return true;
    // A faulty line of text, or the bytes before a line feed in a number. Words of the next lines may hold bytes
    // beyond ASCII, but no control characters.
    const bool fits = dimension <= std::ssize(after) / 4;
    const auto numbers = after.substr(0, fits ? static_cast<std::size_t>(4 * dimension) : after.size());
    const auto is_control = [&](char c) { return static_cast<unsigned char>(c) < ' ' && !is_text(c); };
    if (std::ranges::any_of(numbers, is_control)) return true;
    if (!fits || std::ranges::all_of(numbers, is_text)) return false;
    return numbers.size() < after.size() ? after[numbers.size()] == '\n' : whole;
}

}  // namespace detail

/// The format of a file: a first line of two whole numbers is word2vec's, all other files are taken to be GloVe text. A
/// file of word2vec is text if its second line is a word and as many numbers as the first line says; else it is
/// binary if what follows the space after its first word is not all printable: the rest of the line, or the 4 bytes
/// of each number, which may contain a line feed.
///
/// Three cases cannot be recognised; name the format explicitly for them: GloVe text of dimension 1 whose first
/// word and value are whole numbers, binary files of very low dimension whose numbers look like letters, and text of
/// word2vec whose first word has spaces and, behind one, bytes beyond ASCII.
/// Throws FileError if the file cannot be read or is empty.
inline WordVectorFormat recognise_word_vectors(const std::filesystem::path& path) {
    WordVectorReader r(path);
    std::string_view first;
    r.line(first);
    const auto header = word2vec_header(first);
    if (!header) return WordVectorFormat::glove_text;
    std::string bytes(static_cast<std::size_t>(std::min(r.in.remaining(), Index{1} << 20)), '\0');
    r.in.read(std::as_writable_bytes(std::span(bytes)));
    return detail::looks_binary(bytes, header->dimension, r.in.remaining() == 0)
               ? WordVectorFormat::word2vec_binary
               : WordVectorFormat::word2vec_text;
}

/// Reads word vectors in the format found by recognise_word_vectors.
inline WordVectors read_word_vectors(const std::filesystem::path& path) {
    const WordVectorFormat format = recognise_word_vectors(path);
    if (format == WordVectorFormat::glove_text) return read_glove_text(path);
    return format == WordVectorFormat::word2vec_text ? read_word2vec_text(path) : read_word2vec_binary(path);
}

/// Throws DataError unless the vectors can be written in a format, by default in the strictest, and read again: at least
/// one word, all storable, the first of GloVe text without spaces and without a byte order mark, which readers drop;
/// dimension ≥ 1; as many values as words · dimension, all finite.
inline void require_storable(const WordVectors& v,
                             WordVectorFormat format = WordVectorFormat::word2vec_binary) {
    const Index rows = v.words.size();
    if (rows == 0 || v.dimension < 1 || std::ssize(v.values) % rows != 0 ||
        std::ssize(v.values) / rows != v.dimension)
        throw DataError("word vectors: ", rows, " words, dimension ", v.dimension, ", ", v.values.size(),
                        " values; expected words · dimension values, and at least one word");
    const char* const fault =
        format == WordVectorFormat::word2vec_binary
            ? "is empty or too long or holds a space, tab, line end or NUL; rename or remove it, "
              "or write text, where words may hold spaces"
            : "is empty or too long, holds a line end or NUL, or has a space at an end or before a "
              "number; rename or remove it";
    for (Index i = 0; i < rows; ++i) {
        if (!is_storable_word(v.words[i], format))
            throw DataError("word vectors: word ", i, ", ", in_quotes(v.words[i]), ", cannot be stored: it ",
                            fault);
        for (const float x : v.row(i))
            if (!std::isfinite(x))
                throw DataError("word vectors: the vector of ", in_quotes(v.words[i]), " is not finite");
    }
    if (format != WordVectorFormat::glove_text) return;
    if (v.words[0].starts_with(byte_order_mark))
        throw DataError(
            "word vectors: word 0, ", in_quotes(v.words[0]), ", begins with a byte order mark, which ",
            "readers drop at the beginning of a file; put another word first, or use word2vec's format");
    if (detail::before_blank(v.words[0]).size() < v.words[0].size())
        throw DataError("word vectors: word 0, ", in_quotes(v.words[0]),
                        ", holds a space, which the first word of GloVe text cannot; put another word first, "
                        "or use word2vec's text");
}

/// Writes the file, as OutputFile does, in the given format.
///
/// Text has the shortest decimals that read back as the same floats, so that it is lossless.
///
/// Errors   DataError, before anything is written: as require_storable. FileError as OutputFile.
inline void write_word_vectors(const std::filesystem::path& path, const WordVectors& v,
                               WordVectorFormat format) {
    require_storable(v, format);
    file::write_atomically(path.string(), [&](file::OutputFile& out) {
        if (format != WordVectorFormat::glove_text)
            out.write(std::to_string(v.words.size()) + " " + std::to_string(v.dimension) + "\n");
        std::string line;
        for (Index i = 0; i < v.words.size(); ++i) {
            const auto row = v.row(i);
            line = v.words[i];
            if (format == WordVectorFormat::word2vec_binary) {
                line += ' ';
                line.append(reinterpret_cast<const char*>(row.data()), row.size_bytes());
            } else {
                for (const float x : row) {
                    char digits[32];
                    line += ' ';
                    line.append(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
                }
            }
            out.write(line += '\n');
        }
    });
}

/// Writes word2vec's text format; see write_word_vectors.
inline void write_word2vec_text(const std::filesystem::path& path, const WordVectors& vectors) {
    write_word_vectors(path, vectors, WordVectorFormat::word2vec_text);
}
/// Writes word2vec's binary format; see write_word_vectors.
inline void write_word2vec_binary(const std::filesystem::path& path, const WordVectors& vectors) {
    write_word_vectors(path, vectors, WordVectorFormat::word2vec_binary);
}
/// Writes GloVe's text format; see write_word_vectors.
inline void write_glove_text(const std::filesystem::path& path, const WordVectors& vectors) {
    write_word_vectors(path, vectors, WordVectorFormat::glove_text);
}

}}}  // namespace isogloss::io
