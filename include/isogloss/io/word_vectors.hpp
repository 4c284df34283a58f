/// @file io/word_vectors.hpp  Word vectors in the file formats of word2vec and GloVe.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <isogloss/error.hpp>
#include <isogloss/file/output_file.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/sizes.hpp>
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
        require("word vectors", "row", i, 0, words.size() - 1);
        return std::span(values).subspan(i * dimension, dimension);
    }
};

/// The file formats of word vectors.
///
/// - word2vec_text: a line "words dimension", then per word a line "word x₁ … x_n"
/// - word2vec_binary: the same first line, then per word its bytes, a space, n little-endian floats, "\n"
/// - glove_text: per word a line "word x₁ … x_n", no first line
enum class WordVectorFormat { word2vec_text, word2vec_binary, glove_text };

namespace detail {

/// Longest word in a file of word vectors, and longest line of one in text; bytes. A file of something else may go on
/// without an end of either.
inline constexpr std::size_t most_word_bytes = std::size_t{1} << 16, most_line_bytes = std::size_t{1} << 28;

/// Parses one decimal number and nothing else; nothing if there is none, it is not finite or it overflows a
/// float. A number too small for a float becomes the nearest one or 0, as long as a double can hold it.
inline std::optional<float> parse_float(std::string_view digits) {
    float value = 0;
    const char* const end = digits.data() + digits.size();
    auto result = std::from_chars(digits.data(), end, value);
    if (result.ec == std::errc::result_out_of_range) {  // too large or too small
        double wide = 0;
        result = std::from_chars(digits.data(), end, wide);
        value = static_cast<float>(wide);
    }
    if (result.ec != std::errc() || result.ptr != end || !std::isfinite(value)) return std::nullopt;
    return value;
}

/// The parts of a line between spaces and tabs alone, as words may hold other control characters; a carriage return at
/// its end is dropped.
inline void split(std::string_view line, std::vector<std::string_view>& fields) {
    fields.clear();
    if (line.ends_with('\r')) line.remove_suffix(1);
    for (std::size_t begin, end = 0; (begin = line.find_first_not_of(" \t", end)) != line.npos;) {
        end = std::min(line.find_first_of(" \t", begin), line.size());
        fields.push_back(line.substr(begin, end - begin));
    }
}

/// Reads a file of word vectors, whose format is given.
class WordVectorReader {
public:
    explicit WordVectorReader(const std::filesystem::path& path) : in_(file::open_regular(path.string())) {
        next_line();
    }

    /// Whether what follows the first line of a word2vec file is binary: it holds control characters, which text has
    /// not and numbers in binary nearly always have.
    WordVectorFormat guess() {
        if (!parse_header()) return WordVectorFormat::glove_text;
        std::string bytes(static_cast<std::size_t>(std::min(in_.remaining(), Index{1} << 16)), '\0');
        in_.read(std::as_writable_bytes(std::span(bytes)));
        const auto is_control = [](char c) {
            return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n' && c != '\r';
        };
        return std::ranges::any_of(bytes, is_control) ? WordVectorFormat::word2vec_binary
                                                      : WordVectorFormat::word2vec_text;
    }

    WordVectors read(WordVectorFormat format) {
        if (format == WordVectorFormat::glove_text) {
            v_.dimension = std::ssize(fields_) - 1;
            if (v_.dimension < 1) refuse("expected a word and at least one number");
            do text_row();
            while (next_line());
            return std::move(v_);
        }
        const bool binary = format == WordVectorFormat::word2vec_binary;
        const Index count = header(binary ? sizeof(float) : 2);  // a number of text is a space and a digit
        for (Index i = 0; i < count; ++i) {
            if (binary) binary_row();
            else next_line(), text_row();
        }
        if (std::string_view rest; binary) in_.until('\n', rest, 0), line_ = rest;
        if (in_.remaining() != 0 || (binary && !line_.empty()))
            refuse("more follows than the ", count, " words of line 1");
        return std::move(v_);
    }

private:
    template <class... Parts> [[noreturn]] void refuse(Parts... what) const {
        in_.refuse("line ", lines_, ", word ", v_.words.size() + 1, ": ", what...,
                   "; the file is damaged or in another format");
    }

    // Splits the next line into fields_; false at the end of the file.
    bool next_line() {
        const bool first = in_.position() == 0, ended = in_.until('\n', line_, most_line_bytes);
        if (line_.size() > most_line_bytes) refuse("a line is longer than ", most_line_bytes, " bytes");
        if (first && line_.starts_with(byte_order_mark)) line_.remove_prefix(byte_order_mark.size());
        split(line_, fields_);
        ++lines_;
        return ended || !line_.empty();
    }

    // The number of words of word2vec's first line, which sets the dimension; nothing if it is not two whole numbers.
    std::optional<Index> parse_header() {
        Index numbers[2];
        if (fields_.size() != 2) return std::nullopt;
        for (int k = 0; k < 2; ++k) {
            const char* const end = fields_[k].data() + fields_[k].size();
            const auto read = std::from_chars(fields_[k].data(), end, numbers[k]);
            if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
        }
        v_.dimension = numbers[1];
        return numbers[0];
    }

    // The same for a file in which a number takes at least `least` bytes: it must be large enough for all of them.
    Index header(Index least) {
        const auto words = parse_header();
        const Index n = v_.dimension, room = in_.remaining();
        // A word adds at least one character and one space or line end; the last line end may be missing.
        if (!words || *words < 1 || n < 1 || n > room / least || *words > (room + 1) / (n * least + 2))
            refuse("expected a first line of the number of words and the dimension, of which ", room,
                   " bytes have room, found ", in_quotes(line_));
        within_memory<FileError>(in_.name(), *words * n * Index{sizeof(float)},
                                 [&] { v_.values.reserve(static_cast<std::size_t>(*words * n)); });
        return *words;
    }

    // Words of text may hold spaces, as ". . ." in the file glove.840B.300d: what precedes the last n fields is the word.
    void text_row() {
        const auto n = static_cast<std::size_t>(v_.dimension);
        const std::size_t parts = fields_.size() - std::min(n, fields_.size());
        bool sound = parts > 0;
        for (std::size_t i = 1; i < fields_.size(); ++i) {
            const auto value = parse_float(fields_[i]);
            sound = sound && value.has_value() == (i >= parts);
            if (value) v_.values.push_back(*value);
        }
        if (!sound) refuse("found ", in_quotes(line_), ", expected a word and ", n, " finite numbers");
        const char* const begin = fields_[0].data();
        add_word({begin, fields_[parts - 1].data() + fields_[parts - 1].size()}, "\r");
    }

    void binary_row() {
        std::string_view word;
        // With the line end of the word before, which some programs omit.
        if (!in_.until(' ', word, most_word_bytes + 1)) word = {};  // it has no end
        if (word.starts_with('\n')) word.remove_prefix(1);
        add_word(word, "\n\r\t");
        const std::size_t begin = v_.values.size();
        v_.values.resize(begin + static_cast<std::size_t>(v_.dimension));
        const auto row = std::span(v_.values).subspan(begin);
        in_.read(std::as_writable_bytes(row));
        require_finite<FileError>(in_.name(), "the vector of " + in_quotes(v_.words.words().back()),
                                  std::ssize(row), row.data());
    }

    void add_word(std::string_view word, std::string_view without) {
        if (word.empty() || word.size() > most_word_bytes || word.find('\0') != word.npos ||
            word.find_first_of(without) != word.npos || v_.words.find(word) >= 0)
            refuse("found the word ", in_quotes(word), ", expected another of 1 to ", most_word_bytes,
                   " bytes and no line end or NUL");
        v_.words.insert(word);
    }

    file::Reader in_;
    WordVectors v_;
    std::string_view line_;
    std::vector<std::string_view> fields_;  // of the line
    Index lines_ = 0;
};

}  // namespace detail

/// Reads word vectors.
///
/// Words are bytes and are not changed. Numbers of text are decimal, separated by spaces or tabs; a space at the end of a
/// line, "\r\n", a byte order mark at the beginning of a file, and binary vectors without a line end are accepted. In text
/// a word may contain spaces, if no number follows one of them; not the first word of GloVe text, whose line sets the
/// dimension.
///
/// Errors   FileError, naming file and word: a first line that is not two numbers or announces more than the file can hold,
///          another number of words or values than announced, a value that is not finite or overflows a float, an empty
///          word, a duplicate word, a word of more than 65,536 or a line of more than 2²⁸ bytes. What cannot be noticed:
///          text that was cut within its last number, and GloVe text that was cut between words.
inline WordVectors read_word_vectors(const std::filesystem::path& path, WordVectorFormat format) {
    return detail::WordVectorReader(path).read(format);
}

/// A guess of the format of a file: a first line of two whole numbers is word2vec's, which is binary if control
/// characters follow; all other files are taken to be GloVe text. Name the format for GloVe text of dimension 1 whose
/// first line is two whole numbers, and for tiny binary files.
inline WordVectorFormat guess_word_vectors(const std::filesystem::path& path) {
    return detail::WordVectorReader(path).guess();
}

/// Reads word vectors in the format that guess_word_vectors finds.
inline WordVectors read_word_vectors(const std::filesystem::path& path) {
    return read_word_vectors(path, guess_word_vectors(path));
}

/// Writes the file, as OutputFile does. Text has the shortest decimals that read back as the same floats, so that it is
/// lossless.
///
/// Errors   DataError, before anything is written: no words, dimension < 1, not as many values as words · dimension, a value
///          that is not finite; a word that is empty or longer than 65,536 bytes or holds a space, tab, line end or NUL,
///          or a first one with a byte order mark. FileError as OutputFile.
inline void write_word_vectors(const std::filesystem::path& path, const WordVectors& v,
                               WordVectorFormat format) {
    const Index words = v.words.size(), values = std::ssize(v.values);
    if (words == 0 || v.dimension < 1 || values % words != 0 || values / words != v.dimension)
        throw DataError("word vectors: found ", words, " words, dimension ", v.dimension, " and ", values,
                        " values");
    for (Index i = 0; i < words; ++i) {
        const std::string& word = v.words[i];
        if (word.empty() || word.size() > detail::most_word_bytes ||
            word.find_first_of(std::string_view(" \t\n\r\0", 5)) != word.npos ||
            (i == 0 && word.starts_with(byte_order_mark)))
            throw DataError("word vectors: found ", in_quotes(word),
                            ", which is empty or too long or holds a space, ",
                            "tab, line end or NUL; rename or remove it");
        require_finite<DataError>("word vectors", in_quotes(word), v.dimension, v.row(i).data());
    }
    file::write_atomically(path.string(), [&](file::OutputFile& out) {
        if (format != WordVectorFormat::glove_text)
            out.write(std::to_string(words) + " " + std::to_string(v.dimension) + "\n");
        std::string line;
        for (Index i = 0; i < words; ++i) {
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

}}}  // namespace isogloss::io
