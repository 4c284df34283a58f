/// @file atomic_file.hpp  A file that appears whole or not at all.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <isogloss/error.hpp>
#include <isogloss/text/file.hpp>
#include <span>
#include <string>
#include <string_view>

namespace isogloss {

/// The name of a file that is about to be written or replaced. Throws FileError where it is empty, and where
/// a file of this name is write-protected: the rename would replace it all the same.
inline std::string writable_target(const std::filesystem::path& path) {
    if (path.empty()) throw FileError("cannot write a file with an empty name; give it a name");
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 && errno != ENOENT)
        throw FileError(text("cannot write '", path.string(), "': ", std::strerror(errno)));
    return path.string();
}

/// A buffered file that is written under a temporary name in the directory of its target and takes its own
/// name in `commit`: flushed, synchronised with the disk, renamed, directory synchronised.
///
///     AtomicFile file("model.safetensors");
///     file.write(bytes);
///     file.commit();
///
/// Without `commit` (an exception, a return) the temporary file is removed and what was there before stays
/// as it was. A program that is killed leaves the temporary file behind, and the old file untouched. A
/// symbolic link is followed: the link stays, and what it points to is replaced.
///
/// Errors  FileError with the name and the reason of the system: no such directory, disk full, no permission,
///         a target that is no regular file.
class AtomicFile {
public:
    /// Opens the temporary file beside `path`.
    explicit AtomicFile(const std::filesystem::path& path) : file_(writable_target(path)) {
        buffer_.reserve(capacity);
    }

    /// Appends bytes.
    void write(std::string_view bytes) {
        if (buffer_.size() + bytes.size() > capacity) flush();
        if (bytes.size() > capacity) file_.write(bytes);
        else buffer_ += bytes;
    }

    /// Appends bytes.
    void write(std::span<const std::byte> bytes) {
        if (!bytes.empty())
            write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }

    /// Gives the file its name, in place of any older one. Call it once, last.
    void commit() {
        flush();
        file_.commit();
    }

private:
    static constexpr std::size_t capacity = std::size_t{1} << 18;

    void flush() {
        file_.write(buffer_);
        buffer_.clear();
    }

    OutputFile file_;
    std::string buffer_;
};

/// Calls `writer(AtomicFile&)` and commits what it wrote. Where the writer throws, nothing has happened.
///
///     write_atomically("words.txt", [&](AtomicFile& out) { for (auto& w : words) out.write(w + "\n"); });
template <class Writer> void write_atomically(const std::filesystem::path& path, Writer&& writer) {
    AtomicFile file(path);
    writer(file);
    file.commit();
}

}  // namespace isogloss
