/// @file word_vectors.hpp  Word vectors in the file formats of word2vec and GloVe.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <isogloss/error.hpp>
#include <isogloss/io/atomic_file.hpp>
#include <isogloss/io/checksum.hpp>
#include <isogloss/io/file_reader.hpp>
#include <isogloss/metric/neighbours.hpp>
#include <isogloss/types.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace isogloss {

/// Words and a vector for each.
struct WordVectors {
    std::vector<std::string> words;  ///< different from each other; bytes, UTF-8 as a rule
    Index dimension = 0;             ///< numbers per word, ≥ 1
    std::vector<float> values;       ///< [words, dimension], row-major, finite

    /// The vector of word number `i`.
    std::span<const float> row(Index i) const {
        return std::span(values).subspan(static_cast<std::size_t>(i * dimension),
                                         static_cast<std::size_t>(dimension));
    }
    /// The number of a word, or -1 where it is not there. Looks at one word after the other.
    Index find(std::string_view word) const {
        for (std::size_t i = 0; i < words.size(); ++i)
            if (words[i] == word) return static_cast<Index>(i);
        return -1;
    }
};

/// The file formats of word vectors.
///
/// - word2vec_text: a line "words dimension", then per word a line "word x₁ … x_n"
/// - word2vec_binary: the same first line, then per word its bytes, a space, n little-endian floats, "\n"
/// - glove_text: per word a line "word x₁ … x_n", no first line
enum class WordVectorFormat { word2vec_text, word2vec_binary, glove_text };

/// Whether a word can stand in all three formats: not empty, no space, tab, line end, carriage return or NUL.
inline bool is_storable_word(std::string_view word) {
    return !word.empty() && word.find_first_of(std::string_view(" \t\n\r\0", 5)) == std::string_view::npos;
}

/// The first line of a word2vec file.
struct Word2VecHeader {
    Index words = 0;      ///< how many lines or records follow, ≥ 0
    Index dimension = 0;  ///< numbers per word, ≥ 0
};

/// Reads "words dimension"; nothing where the line is not two whole numbers, or one is beyond an Index.
inline std::optional<Word2VecHeader> word2vec_header(std::string_view line) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    const char* const end = line.data() + line.size();
    Word2VecHeader h;
    const auto first = std::from_chars(line.data(), end, h.words);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') return std::nullopt;
    const auto second = std::from_chars(first.ptr + 1, end, h.dimension);
    if (second.ec != std::errc() || second.ptr != end || h.words < 0 || h.dimension < 0) return std::nullopt;
    return h;
}

/// Reads one decimal number and nothing else; nothing where there is none, it is not finite or exceeds a
/// float. A number too small for a float becomes the nearest one or 0, as long as a double can hold it.
inline std::optional<float> parse_float(std::string_view digits) {
    float value = 0;
    const char* const end = digits.data() + digits.size();
    auto result = std::from_chars(digits.data(), end, value);
    if (result.ec == std::errc::result_out_of_range) {  // too large or too small: a double can tell
        double wide = 0;
        result = std::from_chars(digits.data(), end, wide);
        if (std::abs(wide) > 1) return std::nullopt;
        value = static_cast<float>(wide);
    }
    if (result.ec != std::errc() || result.ptr != end || !std::isfinite(value)) return std::nullopt;
    return value;
}

/// Reads the parts that the three formats share. Used by the read functions below.
class WordVectorReader {
public:
    /// Opens a file that is not empty.
    explicit WordVectorReader(const std::filesystem::path& path) : in(path) {
        if (in.bytes() == 0) in.refuse("the file is empty");
    }

    /// Reads and checks the first line of a word2vec file and returns the number of words. A number takes at
    /// least `least` bytes in this format, and the file must have room for all of them before anything is
    /// allocated.
    Index header(Index least) {
        std::string_view line;
        in.until('\n', line);
        ++line_;
        const auto h = word2vec_header(line);
        if (!h)
            in.refuse("line 1: ", in_quotes(line), " is not the number of words and the dimension; ",
                      "is this GloVe text, which has no such line?");
        if (h->words == 0 || h->dimension == 0)
            in.refuse("line 1: ", h->words, " words of dimension ", h->dimension,
                      "; expected at least 1 of each");
        // A word adds one character and one space or line end; the last line end may be missing.
        const Index room = in.remaining();
        if (h->dimension > room / least || h->words > (room + 1) / (h->dimension * least + 2))
            in.refuse("line 1: ", h->words, " words of dimension ", h->dimension, " do not fit into the ",
                      room, " bytes that follow; the file is cut or not of this format");
        try {
            vectors.words.reserve(static_cast<std::size_t>(h->words));
            vectors.values.reserve(static_cast<std::size_t>(h->words * h->dimension));
        } catch (const std::exception&) {
            in.refuse("line 1: ", h->words, " words of dimension ", h->dimension,
                      " need more memory than there is");
        }
        vectors.dimension = h->dimension;
        return h->words;
    }

    /// Reads one line "word x₁ … x_n"; false at the end of the file. The first line sets the dimension where
    /// it is not known.
    bool text_row() {
        std::string_view line;
        if (!in.until('\n', line) && line.empty()) return false;
        ++line_;
        if (line.ends_with('\r')) line.remove_suffix(1);
        const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
        std::size_t at = 0;
        while (at < line.size() && !is_blank(line[at])) ++at;
        word(line.substr(0, at), [this] { return message("line ", line_); });
        Index found = 0;
        for (;;) {
            while (at < line.size() && is_blank(line[at])) ++at;
            if (at == line.size()) break;
            const std::size_t begin = at;
            while (at < line.size() && !is_blank(line[at])) ++at;
            const auto field = line.substr(begin, at - begin);
            const auto value = parse_float(field);
            if (!value)
                in.refuse("line ", line_, ": ", in_quotes(field), " after the word ",
                          in_quotes(vectors.words.back()),
                          " is not a finite number; a word that contains a space is not possible here");
            if (++found > vectors.dimension && vectors.dimension > 0) continue;  // counted for the message
            vectors.values.push_back(*value);
        }
        if (vectors.dimension == 0) vectors.dimension = found;
        if (found == 0 || found != vectors.dimension)
            in.refuse("line ", line_, ": ", found, " numbers after the word ",
                      in_quotes(vectors.words.back()), ", expected ",
                      vectors.dimension > 0 ? std::to_string(vectors.dimension) : "at least 1");
        return true;
    }

    /// Reads one word and its numbers in binary.
    void binary_row(Index number, Index count) {
        const auto place = [&, byte = in.position()] {
            return message("word ", number + 1, " of ", count, ", from byte ", byte);
        };
        std::string_view piece;
        if (!in.until(' ', piece)) in.refuse(place(), ": the file ends in the middle; it is cut");
        if (piece.starts_with('\n')) piece.remove_prefix(1);  // the line end of the word before
        word(piece, place);
        const std::size_t begin = vectors.values.size(), n = static_cast<std::size_t>(vectors.dimension);
        vectors.values.resize(begin + n);
        const auto row = std::span(vectors.values).subspan(begin);
        in.read(std::as_writable_bytes(row));
        for (std::size_t i = 0; i < n; ++i)
            if (!std::isfinite(row[i]))
                in.refuse(place(), ", ", in_quotes(vectors.words.back()), ": number ", i + 1,
                          " is not finite");
    }

    /// The vectors, once no word comes twice. `first_line` is the line of the first word, 0 for binary files.
    WordVectors finish(Index first_line) {
        std::unordered_map<std::string_view, std::size_t> seen;
        seen.reserve(vectors.words.size());
        for (std::size_t i = 0; i < vectors.words.size(); ++i) {
            const auto [other, is_new] = seen.emplace(vectors.words[i], i);
            if (is_new) continue;
            const char* const unit = first_line > 0 ? "line " : "word ";
            const Index from = first_line > 0 ? first_line : 1;
            in.refuse(unit, static_cast<Index>(i) + from, ": the word ", in_quotes(vectors.words[i]),
                      " comes twice, first in ", unit, static_cast<Index>(other->second) + from);
        }
        return std::move(vectors);
    }

    FileReader in;        ///< the file
    WordVectors vectors;  ///< what was read so far

private:
    template <class Place> void word(std::string_view w, Place&& place) {
        if (!is_storable_word(w))
            in.refuse(place(), ": ", in_quotes(w),
                      " is not a word; expected at least one character, and no space, tab, "
                      "line end or NUL");
        vectors.words.emplace_back(w);
    }

    Index line_ = 0;
};

/// Reads word vectors in word2vec's text format.
///
/// Numbers are decimal, separated by spaces or tabs; a space at the end of a line and "\r\n" are accepted.
/// Bytes of words pass through unchanged.
///
/// Errors   FileError with file and line: an empty file, a first line that is not two numbers or promises
///          more than the file can hold, another count of words or numbers than promised, a number that is
///          not finite or does not fit a float, an empty word, a word that comes twice.
inline WordVectors read_word2vec_text(const std::filesystem::path& path) {
    WordVectorReader r(path);
    const Index count = r.header(2);  // a number is a space and a digit
    for (Index i = 0; i < count; ++i)
        if (!r.text_row()) r.in.refuse("line 1 promises ", count, " words, but the file ends after ", i);
    if (r.in.remaining() != 0)
        r.in.refuse("line 1 promises ", count, " words, but more follow in line ", count + 2);
    return r.finish(2);
}

/// Reads word vectors in word2vec's binary format. The line end after each vector may be missing, as some
/// programs leave it out.
///
/// Errors   FileError with file and word number, as for read_word2vec_text; also a file that is cut or has
///          bytes left over.
inline WordVectors read_word2vec_binary(const std::filesystem::path& path) {
    WordVectorReader r(path);
    const Index count = r.header(4);
    for (Index i = 0; i < count; ++i) r.binary_row(i, count);
    std::string_view rest;
    r.in.until('\n', rest);
    if (!rest.empty() || r.in.remaining() != 0)
        r.in.refuse("line 1 promises ", count,
                    " words, but bytes follow after the last; the file is damaged or "
                    "not in word2vec's binary format");
    return r.finish(0);
}

/// Reads word vectors in GloVe's text format, the lines of word2vec's without the first. The first line sets
/// the dimension.
///
/// Errors   FileError with file and line, as for read_word2vec_text.
inline WordVectors read_glove_text(const std::filesystem::path& path) {
    WordVectorReader r(path);
    while (r.text_row()) {
    }
    return r.finish(1);
}

/// The format of a file, from its first two lines: a first line of two whole numbers is word2vec's; then the
/// rest of the second line after its first space is text where all of it can be printed, and binary else. All
/// other files are taken for GloVe text.
///
/// Two cases are beyond it, and for them name the format yourself: GloVe text of dimension 1 whose first
/// word and value are whole numbers, and binary files of very low dimension whose numbers look like letters.
/// Throws FileError where the file cannot be read or is empty.
inline WordVectorFormat recognise_word_vectors(const std::filesystem::path& path) {
    FileReader in(path);
    if (in.bytes() == 0) in.refuse("the file is empty");
    std::string_view line;
    in.until('\n', line);
    if (!word2vec_header(line)) return WordVectorFormat::glove_text;
    in.until('\n', line);
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return WordVectorFormat::word2vec_text;
    for (const char c : line.substr(space))
        if ((c < ' ' || c > '~') && c != '\t' && c != '\r') return WordVectorFormat::word2vec_binary;
    return WordVectorFormat::word2vec_text;
}

/// Reads word vectors in the format that recognise_word_vectors finds.
inline WordVectors read_word_vectors(const std::filesystem::path& path) {
    switch (recognise_word_vectors(path)) {
        case WordVectorFormat::word2vec_text:
            return read_word2vec_text(path);
        case WordVectorFormat::word2vec_binary:
            return read_word2vec_binary(path);
        case WordVectorFormat::glove_text:
            break;
    }
    return read_glove_text(path);
}

/// Throws DataError unless the vectors can be written and read again: at least one word, all storable and
/// different; dimension ≥ 1; as many values as words · dimension, all finite.
inline void require_storable(const WordVectors& v) {
    const std::size_t rows = v.words.size();
    if (rows == 0 || v.dimension < 1 || v.values.size() % rows != 0 ||
        v.values.size() / rows != static_cast<std::size_t>(v.dimension))
        throw DataError(message("word vectors: ", rows, " words, dimension ", v.dimension, ", ",
                                v.values.size(),
                                " values; expected words · dimension values, and at least one word"));
    std::unordered_map<std::string_view, std::size_t> seen;
    for (std::size_t i = 0; i < rows; ++i) {
        if (!is_storable_word(v.words[i]))
            throw DataError(
                message("word vectors: word ", i, ", ", in_quotes(v.words[i]),
                        ", is empty or holds a space, tab, line end or NUL, which no format can store"));
        if (!seen.emplace(v.words[i], i).second)
            throw DataError(message("word vectors: the word ", in_quotes(v.words[i]),
                                    " comes twice, as number ", seen[v.words[i]], " and ", i));
        for (const float x : v.row(static_cast<Index>(i)))
            if (!std::isfinite(x))
                throw DataError(
                    message("word vectors: the vector of ", in_quotes(v.words[i]), " is not finite"));
    }
}

/// Writes the file, as AtomicFile does, in the given format.
///
/// Text holds the shortest decimals that read back as the same floats, so that nothing is lost.
///
/// Errors   DataError, before anything is written, as for require_storable. FileError as for AtomicFile.
inline void write_word_vectors(const std::filesystem::path& path, const WordVectors& v,
                               WordVectorFormat format) {
    require_storable(v);
    write_atomically(path, [&](AtomicFile& out) {
        if (format != WordVectorFormat::glove_text)
            out.write(std::to_string(v.words.size()) + " " + std::to_string(v.dimension) + "\n");
        std::string line;
        for (std::size_t i = 0; i < v.words.size(); ++i) {
            const auto row = v.row(static_cast<Index>(i));
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

/// The k words nearest to a word by the angle of their vectors, itself left out; see nearest in
/// isogloss/metric/neighbours.hpp. Throws DataError where the word is not there.
inline std::vector<Neighbour> nearest(const WordVectors& vectors, std::string_view word, Index k) {
    const Index row = vectors.find(word);
    if (row < 0)
        throw DataError(message("nearest: the word ", in_quotes(word), " is not among the ",
                                vectors.words.size(), " words; check its spelling and case"));
    return nearest(vectors.values, static_cast<Index>(vectors.words.size()), vectors.dimension, row, k);
}

}  // namespace isogloss
