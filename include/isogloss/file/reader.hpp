/// @file file/reader.hpp  Buffered reading: bytes and delimited pieces of any file, validated lines of a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <isogloss/error.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <istream>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace file {

/// Buffered sequential reading of bytes, from a file or a stream.
///
/// Errors  FileError: missing, a directory, unreadable, or shorter than requested.
class Reader {
public:
    /// Reads an open file.
    explicit Reader(InputFile file) : name_(file.path()), file_(std::move(file)) {
        const Index bytes = file_->bytes();  // system files report 0 but are longer
        buffer_.resize(bytes > 0 ? std::min(bytes, most) : most);
    }
    /// Reads from a stream that outlives this object; `name` denotes it in messages.
    Reader(std::istream& in, std::string name) : name_(std::move(name)), stream_(&in), buffer_(most) {
        if (!in) throw FileError("cannot read '", name_, "': the stream is not in a good state");
    }

    /// Bytes consumed so far.
    Index position() const { return position_; }
    /// Name of the file or stream.
    const std::string& name() const { return name_; }

    /// Bytes of a regular file not yet consumed, by its size when it was opened: a number in a file can be checked
    /// against them before anything is allocated.
    Index remaining() const { return file_->bytes() - position_; }
    /// The whole file in memory: the one that is open, even if another has taken its name.
    MappedFile map() const { return MappedFile(*file_); }

    /// Fills `out` with the next bytes; throws FileError if there are too few.
    void read(std::span<std::byte> out) {
        while (!out.empty()) {
            std::size_t got;
            if (begin_ == end_ && out.size() >= buffer_.size()) {  // large reads bypass the buffer
                got = fetch(reinterpret_cast<char*>(out.data()), out.size());
            } else {
                if (begin_ == end_) fill();
                got = std::min(out.size(), end_ - begin_);
                std::memcpy(out.data(), buffer_.data() + begin_, got);
                begin_ += got;
            }
            if (got == 0)
                refuse("the file ends at byte ", position_,
                       ", in the middle of its contents; it is truncated");
            out = out.subspan(got);
            position_ += static_cast<Index>(got);
        }
    }

    /// Reads up to the next `delimiter` and skips it; what precedes it is in `piece`, which is valid
    /// until the next call. False if the file ends before a delimiter: then `piece` is the remainder.
    /// Also false, with what was read so far, if a piece is longer than both `limit` and the buffer.
    bool until(char delimiter, std::string_view& piece,
               std::size_t limit = std::numeric_limits<std::size_t>::max()) {
        piece_.clear();
        for (;;) {
            if (begin_ == end_) fill();
            const char* const next = buffer_.data() + begin_;
            const auto* const found =
                begin_ == end_ ? nullptr
                               : static_cast<const char*>(std::memchr(next, delimiter, end_ - begin_));
            const std::size_t taken = found ? static_cast<std::size_t>(found - next) : end_ - begin_;
            const bool ended = !found && taken == 0;
            begin_ += taken + (found ? 1 : 0);
            position_ += static_cast<Index>(taken + (found ? 1 : 0));
            if (found && piece_.empty()) {  // entirely in the buffer: no copy
                piece = {next, taken};
                return true;
            }
            piece_.append(next, taken);
            piece = piece_;
            if (found || ended || piece.size() > limit) return found != nullptr;
        }
    }

    /// Reports a problem with the file: throws FileError "name: what".
    template <class... Parts> [[noreturn]] void refuse(Parts... what) const {
        throw FileError(name(), ": ", what...);
    }

private:
    static constexpr Index most = Index{1} << 18;

    void fill() {
        begin_ = end_ = 0;
        end_ = fetch(buffer_.data(), buffer_.size());
    }
    // The end is met only once: a terminal would be asked for more input.
    std::size_t fetch(char* into, std::size_t bytes) {
        if (at_end_) return 0;
        if (file_) {
            const Index got = file_->read(into, static_cast<Index>(bytes));
            at_end_ = got == 0;
            return static_cast<std::size_t>(got);
        }
        try {  // from the stream's buffer, which throws only if reading fails, whatever the stream was told to throw for
            const auto got = stream_->rdbuf()->sgetn(into, static_cast<std::streamsize>(bytes));
            at_end_ = got < static_cast<std::streamsize>(bytes);
            return static_cast<std::size_t>(got);
        } catch (const std::exception&) {
            throw FileError("cannot read '", name_, "': the stream failed");
        }
    }

    std::string name_;
    std::optional<InputFile> file_;  // none if it reads a stream
    std::istream* stream_ = nullptr;
    std::vector<char> buffer_;
    std::string piece_;
    std::size_t begin_ = 0, end_ = 0;  // what is in the buffer and not yet consumed
    bool at_end_ = false;
    Index position_ = 0;
};

namespace detail {

/// Describes a byte found by bad_byte: its value and its position.
inline std::string describe_bad_byte(std::string_view s, std::size_t position, Index offset) {
    const auto value = static_cast<unsigned char>(s[position]);
    const char* digits = "0123456789ABCDEF";
    return message("byte 0x", digits[value >> 4], digits[value & 15], " at offset ", offset,
                   value == 0 ? " is NUL, which no text holds; is this a binary file?"
                              : " is not valid UTF-8; convert the text to UTF-8 first");
}

}  // namespace detail

/// Limits of a LineReader.
struct LineOptions {
    Index max_line_bytes = Index{1} << 24;  ///< longest line accepted, bytes ≥ 1 (16 MiB)
};

/// Reads a text line by line in one pass with bounded memory, and validates every byte.
///
///     LineReader lines("train.txt");
///     for (std::string_view line; lines.next(line);) …     // the view holds until the next call
///
/// A line ends with "\n" or "\r\n", which is not part of it; the last line may lack it. A byte
/// order mark at the start of the file is dropped. Any other carriage return is an ordinary byte.
///
/// Options  max_line_bytes, see LineOptions.
/// Errors   FileError: missing, a directory, unreadable. DataError, with file and line: invalid UTF-8 and
///          NUL (byte value and offset in the file), a line longer than the limit.
class LineReader {
public:
    /// Opens a file.
    explicit LineReader(const std::string& path, LineOptions options = {})
        : LineReader(Reader(InputFile(path)), options) {}
    /// Reads from a stream that outlives this object; `name` denotes it in messages.
    LineReader(std::istream& in, std::string name, LineOptions options = {})
        : LineReader(Reader(in, std::move(name)), options) {}

    /// Moves to the next line; false at the end of the text. The view is valid until the next call.
    bool next(std::string_view& line) {
        Index start = in_.position();
        // Allows for what is not part of the line: a byte order mark, a carriage return.
        const bool ended = in_.until('\n', line, static_cast<std::size_t>(max_line_) + 4);
        if (start == 0 && line.starts_with(byte_order_mark)) {
            line.remove_prefix(byte_order_mark.size());
            start += std::ssize(byte_order_mark);
        }
        if (!ended && line.empty()) return false;
        ++line_;
        if (ended && line.ends_with('\r')) line.remove_suffix(1);
        if (std::ssize(line) > max_line_)
            throw DataError(name(), ":", line_, ": the line is longer than ", max_line_,
                            " bytes; break the text into lines, or raise max_line_bytes");
        if (const auto bad = bad_byte(line))
            throw DataError(name(), ":", line_, ": ",
                            detail::describe_bad_byte(line, *bad, start + static_cast<Index>(*bad)),
                            " (byte ", *bad + 1, " of the line)");
        return true;
    }

    /// Number of the line last returned by `next`, from 1; 0 before the first.
    Index line() const { return line_; }
    /// Bytes of the text up to the end of that line.
    Index bytes() const { return in_.position(); }
    /// Name of the file or stream.
    const std::string& name() const { return in_.name(); }

private:
    LineReader(Reader in, LineOptions options) : in_(std::move(in)), max_line_(options.max_line_bytes) {
        require<DataError>(name(), "max_line_bytes", max_line_, 1);
    }

    Reader in_;
    Index max_line_;
    Index line_ = 0;
};

}}}  // namespace isogloss::file
