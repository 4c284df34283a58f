/// @file file.hpp  Files by descriptor: read, mapped into memory, and written whole or not at all.
///
/// POSIX (open, mmap, fsync, rename). Every failure is a FileError that names the file and the reason
/// the system gives.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <isogloss/error.hpp>
#include <isogloss/types.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace isogloss {

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
            const auto got = ::read(descriptor_, into, static_cast<std::size_t>(bytes));
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
        throw FileError(text(what, " '", path_, "': ", std::strerror(error)));
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
        if (file.bytes() < 0) throw FileError(text("cannot map '", path, "': it is not a regular file"));
        bytes_ = static_cast<std::size_t>(file.bytes());
        if (bytes_ == 0) return;  // mmap refuses length 0; an empty view is what the file holds
        void* const at = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file.descriptor(), 0);
        if (at == MAP_FAILED) throw FileError(text("cannot map '", path, "': ", std::strerror(errno)));
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
    Index bytes() const { return static_cast<Index>(bytes_); }
    /// The name it was opened under.
    const std::string& path() const { return path_; }

private:
    std::string path_;
    const char* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// A file that appears under its name complete, or not at all.
///
///     OutputFile out("model.bin");    // writes to model.bin.part-<process>-<number>
///     out.write(bytes);
///     out.commit();                   // flush to the disk, rename
///
/// Without `commit` (an exception, say) the temporary file is removed and what was there before stays.
/// A program that is killed leaves the temporary file behind, and the old file untouched.
class OutputFile {
public:
    /// Opens a temporary file beside `path`; a symbolic link is followed, so that the link stays. Throws
    /// FileError where that is not possible, and where there is a directory, a device or a pipe of this name.
    explicit OutputFile(std::string path) : path_(std::move(path)) {
        struct stat status = {};
        if (::stat(path_.c_str(), &status) == 0) {
            if (!S_ISREG(status.st_mode))
                throw FileError(text("cannot write '", path_,
                                     "': there is something of this name that is not a ",
                                     "regular file, and it is not replaced; choose another name"));
            if (char* const target = ::realpath(path_.c_str(), nullptr)) {
                path_ = target;
                ::free(target);
            }
        }
        static std::atomic<unsigned> number{0};
        do {
            part_ = path_ + ".part-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
            descriptor_ = ::open(part_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        } while (descriptor_ < 0 && (errno == EEXIST || errno == EINTR));
        if (descriptor_ < 0) fail("cannot create a file beside", errno);
    }
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile() {
        if (descriptor_ < 0) return;
        ::close(descriptor_);
        ::unlink(part_.c_str());
    }

    /// Appends bytes.
    void write(std::string_view bytes) {
        write_at(end_, bytes);
        end_ += static_cast<Index>(bytes.size());
    }

    /// Writes over bytes that were written before, a header for instance; `write` goes on at the end.
    void write_at(Index offset, std::string_view bytes) {
        while (!bytes.empty()) {
            const auto put = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) fail("cannot write", errno);
            bytes.remove_prefix(static_cast<std::size_t>(put));
            offset += static_cast<Index>(put);
        }
    }

    /// Flushes to the disk and gives the file its name, in place of any older one. Call it once, last.
    void commit() {
        if (::fsync(descriptor_) != 0) fail("cannot flush", errno);
        if (::close(std::exchange(descriptor_, -1)) != 0) remove_and_fail("cannot close", errno);
        if (::rename(part_.c_str(), path_.c_str()) != 0) remove_and_fail("cannot replace", errno);
        // The new name is on the disk only once the folder is; some file systems refuse, which is no loss.
        const auto slash = path_.rfind('/');
        const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
        const int at = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (at < 0) return;
        ::fsync(at);
        ::close(at);
    }

private:
    [[noreturn]] void fail(const char* what, int error) const {
        throw FileError(text(what, " '", path_, "': ", std::strerror(error)));
    }
    [[noreturn]] void remove_and_fail(const char* what, int error) const {
        ::unlink(part_.c_str());
        fail(what, error);
    }

    std::string path_, part_;
    int descriptor_ = -1;
    Index end_ = 0;
};

}  // namespace isogloss
