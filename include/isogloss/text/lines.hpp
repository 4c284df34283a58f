/// @file lines.hpp  Text by streaming: checked UTF-8 lines, their words and their characters.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <isogloss/error.hpp>
#include <isogloss/text/file.hpp>
#include <isogloss/text/hash.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss {

/// What is wrong with a byte found by bad_byte, in words: its value and its place.
inline std::string describe_bad_byte(std::string_view s, std::size_t position, Index offset) {
    const auto value = static_cast<unsigned char>(s[position]);
    const char* digits = "0123456789ABCDEF";
    return message("byte 0x", digits[value >> 4], digits[value & 15], " at offset ", offset,
                   value == 0 ? " is NUL, which no text holds; is this a binary file?"
                              : " is not valid UTF-8; convert the text to UTF-8 first");
}

/// True for the bytes that separate words: space, tab, vertical tab, form feed, carriage return and line
/// feed. Spaces beyond ASCII (U+00A0, U+3000 …) belong to words.
inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The first byte in [p, end) that separates words, or `end`.
inline const char* find_space(const char* p, const char* end) {
    constexpr std::uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    // Eight bytes at a time, without a branch for each: marks the bytes below 0x21. A mark above the lowest
    // one may be false (the borrow of the subtraction), the lowest is right.
    while (end - p >= 8) {
        const std::uint64_t w = little_endian_64(p);
        const std::uint64_t low = (w - ones * 0x21) & ~w & highs;
        if (low == 0) {
            p += 8;
        } else {
            p += std::countr_zero(low) / 8;
            if (is_space(*p)) return p;
            ++p;  // another control byte, which belongs to the word
        }
    }
    while (p != end && !is_space(*p)) ++p;
    return p;
}

/// Calls `use(std::string_view)` for each word: the longest runs of bytes without space.
template <class Use> void for_each_word(std::string_view line, Use&& use) {
    const char *p = line.data(), *const end = p + line.size();
    for (;;) {
        while (p != end && is_space(*p)) ++p;
        if (p == end) return;
        const char* const word = p;
        p = find_space(word, end);
        use(std::string_view(word, static_cast<std::size_t>(p - word)));
    }
}

/// Calls `use(std::string_view)` for each character (Unicode code point, 1 … 4 bytes) of valid UTF-8.
template <class Use> void for_each_character(std::string_view line, Use&& use) {
    while (!line.empty()) {
        const auto a = static_cast<unsigned char>(line[0]);
        const std::size_t n = a < 0x80 ? 1 : a < 0xE0 ? 2 : a < 0xF0 ? 3 : 4;
        use(line.substr(0, n));
        line.remove_prefix(std::min(n, line.size()));
    }
}

/// Limits of a LineReader.
struct LineOptions {
    Index max_line_bytes = Index{1} << 24;  ///< longest line that is read, bytes ≥ 1 (16 MiB)
};

/// Reads a text line by line in one pass and in bounded memory, and checks every byte.
///
///     LineReader lines("train.txt");
///     for (std::string_view line; lines.next(line);) …     // the view holds until the next call
///
/// A line ends with "\n" or "\r\n", neither of which is part of it; the last line may lack its end. A byte
/// order mark at the start of the file is dropped. A carriage return elsewhere is an ordinary byte.
///
/// Options  max_line_bytes, see LineOptions.
/// Errors   FileError: missing, a directory, unreadable. DataError, with file and line: invalid UTF-8 and
///          NUL (byte value and offset in the file), a line over the limit.
class LineReader {
public:
    /// Opens a file.
    explicit LineReader(const std::string& path, LineOptions options = {})
        : name_(path), max_line_(options.max_line_bytes), file_(InputFile(path)) {
        prepare();
    }
    /// Reads from a stream that outlives this object; `name` stands for it in messages.
    LineReader(std::istream& in, std::string name, LineOptions options = {})
        : name_(std::move(name)), max_line_(options.max_line_bytes), stream_(&in) {
        if (!in) throw FileError(message("cannot read '", name_, "': the stream is not in a good state"));
        prepare();
    }

    /// Moves to the next line; false at the end of the text. The view holds until the next call.
    bool next(std::string_view& line) {
        std::size_t seen = 0;
        for (;;) {
            const char* const first = buffer_.data() + begin_;
            const auto* end = static_cast<const char*>(std::memchr(first + seen, '\n', end_ - begin_ - seen));
            if (end || (at_end_ && begin_ != end_)) {
                const auto bytes = end ? static_cast<std::size_t>(end - first) : end_ - begin_;
                line = {first, bytes};
                ++line_;
                if (end && bytes > 0 && line.back() == '\r') line.remove_suffix(1);
                const Index start = offset_;
                begin_ += bytes + (end ? 1 : 0);
                offset_ += static_cast<Index>(bytes + (end ? 1 : 0));
                check(line, start);
                return true;
            }
            if (at_end_) return false;
            seen = end_ - begin_;
            fill();
        }
    }

    /// Number of the line that `next` gave last, from 1; 0 before the first.
    Index line() const { return line_; }
    /// Bytes of the text up to the end of that line.
    Index bytes() const { return offset_; }
    /// Name of the file or stream.
    const std::string& name() const { return name_; }

private:
    void prepare() {
        if (max_line_ < 1)
            throw DataError(
                message(name_, ": max_line_bytes is ", max_line_, "; a line needs at least 1 byte"));
        buffer_.resize(std::size_t{1} << 18);
        while (end_ < 3 && !at_end_) fill();
        if (std::string_view(buffer_.data(), end_).substr(0, 3) == "\xEF\xBB\xBF") {
            begin_ = 3;
            offset_ = 3;
        }
    }

    // Called when the buffer holds no whole line: makes room and reads on.
    void fill() {
        const std::size_t held = end_ - begin_;
        // Two bytes of grace for a line end "\r\n" that has not been read yet.
        if (held > static_cast<std::size_t>(max_line_) + 1) too_long(line_ + 1);
        std::memmove(buffer_.data(), buffer_.data() + begin_, held);
        begin_ = 0;
        end_ = held;
        if (held > buffer_.size() / 2) buffer_.resize(2 * buffer_.size());
        const auto room = static_cast<Index>(buffer_.size() - end_);
        Index got = 0;
        if (file_) {
            got = file_->read(buffer_.data() + end_, room);
        } else {
            stream_->read(buffer_.data() + end_, room);
            got = static_cast<Index>(stream_->gcount());
            if (stream_->bad()) throw FileError(message("cannot read '", name_, "': the stream failed"));
        }
        end_ += static_cast<std::size_t>(got);
        at_end_ = got == 0;
    }

    void check(std::string_view line, Index start) const {
        if (static_cast<Index>(line.size()) > max_line_) too_long(line_);
        if (const auto bad = bad_byte(line))
            throw DataError(message(name_, ":", line_, ": ",
                                    describe_bad_byte(line, *bad, start + static_cast<Index>(*bad)),
                                    " (byte ", *bad + 1, " of the line)"));
    }
    [[noreturn]] void too_long(Index line) const {
        throw DataError(message(name_, ":", line, ": the line is longer than ", max_line_,
                                " bytes; break the text into lines or raise max_line_bytes"));
    }

    std::string name_;
    Index max_line_;
    std::optional<InputFile> file_;
    std::istream* stream_ = nullptr;
    std::vector<char> buffer_;
    std::size_t begin_ = 0, end_ = 0;  // what is read and not yet handed out
    bool at_end_ = false;
    Index line_ = 0, offset_ = 0;
};

}  // namespace isogloss
