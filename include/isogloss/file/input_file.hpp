/// @file file/input_file.hpp  Files by descriptor: read, or mapped into memory. Writing is output_file.hpp's.
///
/// POSIX (open, mmap). Every failure is a FileError that names the file and the reason the system gives.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <isogloss/error.hpp>
#include <isogloss/types.hpp>
#include <optional>
#include <string>
#include <utility>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::file {

/// What the system knows of a file, links followed, or nothing where there is no such file. Throws FileError
/// where it cannot be looked at: a folder on the way that may not be entered, a name that is too long.
inline std::optional<struct stat> file_status(const std::string& path) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) == 0) return status;
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw FileError("cannot look at '", path, "': ", std::strerror(errno));
}

/// An open file for reading. Pipes and devices are read like files; a directory is refused.
class InputFile {
public:
    /// Opens `path`. Throws FileError where it is missing, a directory, or may not be read.
    explicit InputFile(std::string path) : path_(std::move(path)) {
        do descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
        while (descriptor_ < 0 && errno == EINTR);
        if (descriptor_ < 0) fail("cannot open", errno);
        struct stat status = {};
        if (::fstat(descriptor_, &status) != 0) close_and_fail("cannot look at", errno);
        if (S_ISDIR(status.st_mode)) close_and_fail("cannot read", EISDIR);
        bytes_ = S_ISREG(status.st_mode) ? static_cast<Index>(status.st_size) : -1;
    }
    InputFile(InputFile&& other) noexcept
        : path_(std::move(other.path_)),
          descriptor_(std::exchange(other.descriptor_, -1)),
          bytes_(other.bytes_) {}
    InputFile& operator=(InputFile&& other) noexcept {
        std::swap(path_, other.path_);
        std::swap(descriptor_, other.descriptor_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~InputFile() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }

    /// Reads up to `bytes` bytes from where the last call stopped; returns how many came, 0 at the end.
    Index read(char* into, Index bytes) {
        for (;;) {
            const auto got = ::read(descriptor_, into, bytes);
            if (got >= 0) return static_cast<Index>(got);
            if (errno != EINTR) fail("cannot read", errno);
        }
    }

    /// Reads what is left into one string.
    std::string read_all() {
        std::string all;
        for (std::size_t used = 0;;) {
            all.resize(used + (std::size_t{1} << 16));
            const auto got =
                static_cast<std::size_t>(read(all.data() + used, static_cast<Index>(all.size() - used)));
            used += got;
            if (got == 0) {
                all.resize(used);
                return all;
            }
        }
    }

    /// Size in bytes when it was opened, or -1 where there is none (a pipe, a terminal).
    Index bytes() const { return bytes_; }
    /// The name it was opened under.
    const std::string& path() const { return path_; }
    /// The descriptor, still owned by this object.
    int descriptor() const { return descriptor_; }

private:
    [[noreturn]] void fail(const char* what, int error) const {
        throw FileError(what, " '", path_, "': ", std::strerror(error));
    }
    [[noreturn]] void close_and_fail(const char* what, int error) {
        ::close(std::exchange(descriptor_, -1));
        fail(what, error);
    }

    std::string path_;
    int descriptor_ = -1;
    Index bytes_ = -1;
};

/// A whole file seen as memory, read-only; pages come from the disk when they are touched and may be
/// dropped again, so that the file can be larger than the memory.
///
/// The file must not be shortened while it is mapped: the system ends a program that reads a page
/// which is no longer there. A file replaced by rename, as OutputFile does it, stays readable here.
class MappedFile {
public:
    /// Maps `path`. Throws FileError where it cannot be opened or mapped, or has no size.
    explicit MappedFile(const std::string& path) : path_(path) {
        const InputFile file(path);
        if (file.bytes() < 0) throw FileError("cannot map '", path, "': it is not a regular file");
        bytes_ = file.bytes();
        if (bytes_ == 0) return;  // mmap refuses length 0; an empty view is what the file holds
        void* const at = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file.descriptor(), 0);
        if (at == MAP_FAILED) throw FileError("cannot map '", path, "': ", std::strerror(errno));
        data_ = static_cast<const char*>(at);
    }
    MappedFile(MappedFile&& other) noexcept
        : path_(std::move(other.path_)),
          data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    MappedFile& operator=(MappedFile&& other) noexcept {
        std::swap(path_, other.path_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~MappedFile() {
        if (data_) ::munmap(const_cast<char*>(data_), bytes_);
    }

    /// First byte, aligned to a page; null for an empty file.
    const char* data() const { return data_; }
    /// Size in bytes.
    Index bytes() const { return bytes_; }
    /// The name it was opened under.
    const std::string& path() const { return path_; }

private:
    std::string path_;
    const char* data_ = nullptr;
    Index bytes_ = 0;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::file
