/// @file file_reader.hpp  Reading a file that somebody else may have written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <isogloss/error.hpp>
#include <isogloss/text/file.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace isogloss {

/// A name from a file, fit for a message: in quotes, control characters as hexadecimal escapes, cut after
/// 100 bytes.
inline std::string in_quotes(std::string_view name) {
    std::string out = "'";
    for (const char c : name.substr(0, 100)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f)
            out += {'\\', 'x', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
        else out += c;
    }
    return out + (name.size() > 100 ? "…'" : "'");
}

/// A regular file read from start to end through a buffer, with its size known from the start, so that a
/// number in the file can be held against what the file has room for before anything is allocated.
///
/// Errors  FileError: missing, unreadable, not a regular file, or shorter than what is asked for.
class FileReader {
public:
    /// Opens a regular file.
    explicit FileReader(const std::filesystem::path& path)
        : file_(checked(path)),
          buffer_(static_cast<std::size_t>(std::clamp(file_.bytes(), Index{1}, Index{1} << 18))) {}

    /// Bytes in the file when it was opened.
    Index bytes() const { return file_.bytes(); }
    /// Bytes handed out so far.
    Index position() const { return position_; }
    /// Bytes not yet handed out.
    Index remaining() const { return bytes() - position_; }
    /// Name of the file.
    const std::string& name() const { return file_.path(); }

    /// Fills `out` with the next bytes, all of them or a FileError.
    void read(std::span<std::byte> out) {
        for (std::size_t filled = 0; filled < out.size();) {
            const std::size_t wanted = out.size() - filled;
            std::size_t got = std::min(wanted, end_ - begin_);
            if (got > 0) {
                std::memcpy(out.data() + filled, buffer_.data() + begin_, got);
                begin_ += got;
            } else if (wanted >= buffer_.size()) {  // large pieces need no stop-over
                got = straight(out.subspan(filled));
            } else {
                fill();
                if (begin_ == end_) cut();
            }
            filled += got;
            position_ += static_cast<Index>(got);
        }
    }

    /// Reads up to the next `delimiter` and steps over it; what came before it is in `piece`, which holds
    /// until the next call. False where the file ends before a delimiter: then `piece` is all that was left.
    bool until(char delimiter, std::string_view& piece) {
        piece_.clear();
        for (;;) {
            const char* const from = buffer_.data() + begin_;
            const auto* const found =
                end_ == begin_ ? nullptr
                               : static_cast<const char*>(std::memchr(from, delimiter, end_ - begin_));
            const std::size_t taken = found ? static_cast<std::size_t>(found - from) : end_ - begin_;
            const std::size_t consumed = taken + (found ? 1 : 0);
            begin_ += consumed;
            position_ += static_cast<Index>(consumed);
            if (found && piece_.empty()) {  // whole in the buffer: no copy
                piece = {from, taken};
                return true;
            }
            piece_.append(from, taken);
            piece = piece_;
            if (found) return true;
            fill();
            if (begin_ == end_) return false;
        }
    }

    /// Says what is wrong with the file: throws FileError "name: what".
    template <class... Parts> [[noreturn]] void refuse(const Parts&... what) const {
        throw FileError(message(name(), ": ", what...));
    }

private:
    // Looked at before it is opened, because opening a pipe would wait for somebody to write to it.
    static InputFile checked(const std::filesystem::path& path) {
        namespace fs = std::filesystem;
        std::error_code error;
        const fs::file_status status = fs::status(path, error);
        if (fs::exists(status) && !fs::is_regular_file(status))
            throw FileError(message("cannot read '", path.string(), "': not a regular file"));
        return InputFile(path.string());
    }

    void fill() {
        begin_ = 0;
        end_ = static_cast<std::size_t>(file_.read(buffer_.data(), static_cast<Index>(buffer_.size())));
    }

    std::size_t straight(std::span<std::byte> out) {
        const auto got = file_.read(reinterpret_cast<char*>(out.data()), static_cast<Index>(out.size()));
        if (got == 0) cut();
        return static_cast<std::size_t>(got);
    }

    [[noreturn]] void cut() const {
        refuse("the file ends at byte ", position_, ", in the middle of what it should hold; it is cut");
    }

    InputFile file_;
    std::vector<char> buffer_;
    std::string piece_;
    std::size_t begin_ = 0, end_ = 0;  // what is in the buffer and not yet handed out
    Index position_ = 0;
};

}  // namespace isogloss
