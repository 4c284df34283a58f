/// @file file/input_file.hpp  Files opened by descriptor: read, or mapped into memory. Writing: output_file.hpp.
///
/// POSIX (open, mmap), or its like on Windows, see system.hpp. Every failure is a FileError with the file name and the
/// reason given by the system.
#pragma once

#include <dirent.h>

#include <cerrno>
#include <cstring>
#include <isogloss/error.hpp>
#include <isogloss/file/system.hpp>
#include <isogloss/types.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace file {

/// Throws FileError: what could not be done with a file, and the reason given by the system.
[[noreturn]] inline void refuse(const char* what, const std::string& path, int error = errno) {
    throw FileError(what, " '", path, "': ", std::strerror(error));
}

namespace detail {
struct CloseFolder {
    void operator()(DIR* folder) const { ::closedir(folder); }
};
}  // namespace detail

/// A folder whose entries are read; closed by its destructor.
using Folder = std::unique_ptr<DIR, detail::CloseFolder>;

/// The status of a file, following links, or nothing if it does not exist. Throws FileError
/// if it cannot be determined: a folder on the path without access rights, a name that is too long.
inline std::optional<detail::Status> file_status(const std::string& path) {
    detail::Status status = {};
    if (detail::stat(path.c_str(), &status) == 0) return status;
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    refuse("cannot stat", path);
}

namespace detail {

/// An owning file descriptor, closed by its destructor. -1: none.
class Descriptor {
public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() {
        if (number_ >= 0) detail::close(number_);
    }
    operator int() const { return number_; }

private:
    int number_;
};

}  // namespace detail

/// A file opened for reading. Pipes and devices are read like files; a directory is refused.
class InputFile {
public:
    /// Opens `path`, with further flags of open(2). Throws FileError if it is missing, a directory, or not readable.
    explicit InputFile(std::string path, int flags = 0) : path_(std::move(path)) {
        do
            descriptor_ =
                detail::Descriptor(detail::open(path_.c_str(), O_RDONLY | detail::close_on_exec | flags));
        while (descriptor_ < 0 && errno == EINTR);
        if (descriptor_ < 0) refuse("cannot open", path_);
        detail::Status status = {};
        if (detail::fstat(descriptor_, &status) != 0) refuse("cannot stat", path_);
        if (S_ISDIR(status.st_mode)) refuse("cannot read", path_, EISDIR);
        bytes_ = S_ISREG(status.st_mode) ? static_cast<Index>(status.st_size) : -1;
    }

    /// Reads up to `bytes` bytes from the current position; returns the number read, 0 at the end.
    Index read(char* into, Index bytes) {
        for (;;) {
            const auto got = detail::read(descriptor_, into, bytes);
            if (got >= 0) return static_cast<Index>(got);
            if (errno != EINTR) refuse("cannot read", path_);
        }
    }

    /// Reads the remainder into one string.
    std::string read_all() {
        std::string all;
        for (Index used = 0, got = 1; got > 0; used += got) {
            all.resize(static_cast<std::size_t>(used) + (std::size_t{1} << 16));
            got = read(all.data() + used, std::ssize(all) - used);
            all.resize(static_cast<std::size_t>(used + got));
        }
        return all;
    }

    /// Size in bytes when it was opened, or -1 if it has none (a pipe, a terminal).
    Index bytes() const { return bytes_; }
    /// The name it was opened under.
    const std::string& path() const { return path_; }
    /// The descriptor, still owned by this object.
    int descriptor() const { return descriptor_; }

private:
    std::string path_;
    detail::Descriptor descriptor_;
    Index bytes_ = -1;
};

/// Opens a regular file, whose size is known. Throws FileError for anything else, and does not wait for somebody to write
/// to a pipe.
inline InputFile open_regular(const std::string& path) {
    InputFile file(path, detail::do_not_wait);
    if (file.bytes() < 0) throw FileError("cannot read '", path, "': it is not a regular file");
    return file;
}

/// A whole file as read-only memory; pages are read from disk on access and may be
/// dropped again, so that the file can be larger than memory.
///
/// The file must not be truncated while it is mapped: the system terminates a program that accesses a
/// page that no longer exists. A file replaced by rename, as OutputFile does, stays readable here; on
/// Windows it cannot be replaced meanwhile.
class MappedFile {
public:
    /// Maps `path`. Throws FileError if it cannot be opened or mapped, or has no size.
    explicit MappedFile(const std::string& path) : MappedFile(open_regular(path)) {}
    /// Maps a regular file that is open, even if another has taken its name meanwhile. It may be closed afterwards.
    explicit MappedFile(const InputFile& file) : path_(file.path()) {
        if (file.bytes() == 0) return;  // mmap refuses length 0; the view of an empty file is empty
        char* const memory = detail::map(file.descriptor(), file.bytes());
        if (!memory) refuse("cannot map", path_);
        data_ = {memory, Unmap{file.bytes()}};
    }

    /// First byte, aligned to a page; null for an empty file.
    const char* data() const { return data_.get(); }
    /// Size in bytes.
    Index bytes() const { return data_ ? data_.get_deleter().bytes : 0; }
    /// The name it was opened under.
    const std::string& path() const { return path_; }

private:
    struct Unmap {
        Index bytes;
        void operator()(char* memory) const { detail::unmap(memory, bytes); }
    };
    std::string path_;
    std::unique_ptr<char, Unmap> data_;
};

}}}  // namespace isogloss::file
