/// @file file/output_file.hpp  A file that is written completely or not at all, with cleanup of temporary files.
///
/// POSIX (open, flock, fsync, rename). Every failure is a FileError with the file name and the reason given by
/// the system.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <isogloss/error.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace file {

/// The folder that contains a file, with a trailing slash; "./" if the name has none.
inline std::string folder_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

/// The file that is written under this name: the target of a symbolic link, through any number of links,
/// whether it exists or not. Throws FileError for circular links.
inline std::string link_target(std::string path) {
    const std::string name = path;
    for (int links = 0; links < 40; ++links) {
        struct stat status = {};
        if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
        char to[PATH_MAX];
        const auto length = ::readlink(path.c_str(), to, sizeof to);
        if (length < 0) refuse("cannot resolve", name);
        const std::string target(to, length);
        path = target.starts_with('/') || path.find('/') == std::string::npos ? target
                                                                              : folder_of(path) + target;
    }
    refuse("cannot resolve", name, ELOOP);
}

/// A file that appears under its name complete or not at all; writes are buffered.
///
///     OutputFile out("model.bin");    // writes to model.bin.isogloss-part-<process>-<number>, of a long name the beginning
///     out.write(bytes);
///     out.commit();                   // flush to the disk, rename, flush the directory
///
/// Without `commit` (for example after an exception) the temporary file is removed and the old file stays. A
/// program that is killed leaves the temporary file behind, and the old file untouched; the next writer of
/// the same file removes it. A writer holds a lock (flock) on its temporary file as long as it lives, and
/// only unlocked ones are removed: process numbers are not trusted, as they may be reused or come from
/// another machine. On a file system without locks nothing is removed.
///
/// A symbolic link is followed and kept. A file that replaces another gets its permissions, and
/// its owner and group if the system allows it; if the group cannot be kept, its permissions are limited to those
/// of others. A new file has permissions according to the umask.
///
/// Errors  FileError: an empty name; a directory, a device or a pipe of this name; a write-protected file,
///         which a rename would otherwise replace; any failure of the system.
class OutputFile {
public:
    /// Opens a temporary file in the folder of `path`.
    explicit OutputFile(std::string path) : path_(std::move(path)) {
        if (path_.empty()) throw FileError("cannot write a file with an empty name; give it a name");
        const auto replaced =
            file_status(path_);  // of what a link leads to, which may be a pipe without a name
        if (replaced && !S_ISREG(replaced->st_mode))
            throw FileError("cannot write '", path_, "': it exists and is not a regular file, so it ",
                            "is not replaced; choose another name");
        path_ = link_target(path_);
        if (replaced && ::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0)
            refuse("cannot write", path_);
        buffer_.reserve(capacity);
        remove_abandoned();
        // No one else may read the replacement of a file before it has that file's permissions.
        open_part(replaced ? 0600 : 0666);
        if (replaced) take_over(*replaced);
    }
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile() {
        if (descriptor_ >= 0) ::unlink(part_.c_str());  // before its lock is released
    }

    /// Appends bytes.
    void write(std::string_view bytes) {
        if (buffer_.size() + bytes.size() > capacity) flush();
        if (bytes.size() > capacity) put(bytes);
        else buffer_ += bytes;
    }
    /// Appends bytes.
    void write(std::span<const std::byte> bytes) {
        if (!bytes.empty()) write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }

    /// Overwrites bytes written before, for example a header; `write` continues at the end.
    void write_at(Index offset, std::string_view bytes) {
        flush();
        put_at(offset, bytes);
    }

    /// Flushes to disk and renames the file, replacing any older one. Call once, last.
    void commit() {
        flush();
        if (::fsync(descriptor_) != 0) refuse("cannot flush", path_);
        // Renamed before it is closed: without the lock, another writer might consider it abandoned.
        if (::rename(part_.c_str(), path_.c_str()) != 0) refuse("cannot replace", path_);
        descriptor_ = Descriptor();  // close errors are harmless after fsync
        // The new name is on disk only after the folder is; some file systems refuse, which is harmless.
        const Descriptor at(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (at >= 0) ::fsync(at);
    }

private:
    static constexpr std::size_t capacity = std::size_t{1} << 18;

    void flush() {
        put(buffer_);
        buffer_.clear();
    }
    void put(std::string_view bytes) {
        put_at(end_, bytes);
        end_ += std::ssize(bytes);
    }
    void put_at(Index offset, std::string_view bytes) {
        while (!bytes.empty()) {
            const auto put = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) refuse("cannot write", path_);
            bytes.remove_prefix(put);
            offset += static_cast<Index>(put);
        }
    }

    // What the names of temporary files begin with: the name of the file, cut where the rest would not fit.
    std::string opening() const {
        constexpr std::string_view end = ".isogloss-part-";
        constexpr std::size_t rest = end.size() + 21;  // two numbers of 32 bits with a dash
        std::string name = path_.substr(path_.rfind('/') + 1);
        const long most = ::pathconf(folder_of(path_).c_str(), _PC_NAME_MAX);
        const std::size_t room = (most > 0 ? static_cast<std::size_t>(most) : 255) - rest;
        if (name.size() > room) {
            name.resize(room);
            while (!name.empty() && (name.back() & 0xC0) == 0x80) name.pop_back();  // no half character: some
            if (!name.empty() && (name.back() & 0x80)) name.pop_back();             // file systems refuse it
        }
        return name.append(end);
    }

    void open_part(mode_t mode) {
        static std::atomic<unsigned> number{0};
        const std::string begin = folder_of(path_) + opening();
        for (;;) {
            part_ = begin + std::to_string(::getpid()) + "-" + std::to_string(number++);
            Descriptor at(::open(part_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
            if (at < 0 && (errno == EEXIST || errno == EINTR)) continue;
            if (at < 0) refuse("cannot create a file beside", path_);
            // Another writer may have locked and removed it before it was locked here: then create another.
            struct stat status = {};
            const bool taken = ::flock(at, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
            if (!taken && (::fstat(at, &status) != 0 || status.st_nlink > 0)) {
                descriptor_ = std::move(at);
                return;
            }
        }
    }

    // Failures are harmless: where ownership cannot be kept, permissions are restricted.
    void take_over(const struct stat& old) const {
        mode_t mode = old.st_mode & 0777;
        const bool group = ::fchown(descriptor_, old.st_uid, old.st_gid) == 0 ||
                           ::fchown(descriptor_, static_cast<uid_t>(-1), old.st_gid) == 0;
        if (!group) mode &= ~((~mode & 07u) << 3);
        [[maybe_unused]] const int ignored = ::fchmod(descriptor_, mode);
    }

    // Removes the temporary files of this name that no running process is writing.
    void remove_abandoned() const {
        const std::string folder = folder_of(path_);
        const std::string begin = opening();
        const Folder entries(::opendir(folder.c_str()));
        if (!entries) return;  // reported when the file is opened
        while (const dirent* entry = ::readdir(entries.get())) {
            const std::string_view name = entry->d_name;
            if (!name.starts_with(begin)) continue;
            const auto numbers = name.substr(begin.size());
            const auto dash = numbers.find('-');
            if (dash == 0 || dash == std::string_view::npos || dash + 1 == numbers.size() ||
                numbers.find_first_not_of("0123456789-") != std::string_view::npos ||
                numbers.find('-', dash + 1) != std::string_view::npos)
                continue;
            const std::string part = folder + std::string(name);
            const Descriptor at(::open(part.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
            if (at < 0) continue;
            struct stat status = {};
            if (::fstat(at, &status) == 0 && S_ISREG(status.st_mode) && ::flock(at, LOCK_EX | LOCK_NB) == 0)
                ::unlink(part.c_str());
        }
    }

    std::string path_, part_, buffer_;
    Descriptor descriptor_;
    Index end_ = 0;  // bytes in the file, without those in the buffer
};

/// Calls `writer(OutputFile&)` and commits what it wrote. If the writer throws, nothing is changed.
///
///     write_atomically("words.txt", [&](OutputFile& out) { for (auto& w : words) out.write(w + "\n"); });
template <class Writer> void write_atomically(const std::string& path, Writer&& writer) {
    OutputFile file(path);
    writer(file);
    file.commit();
}

}}}  // namespace isogloss::file
