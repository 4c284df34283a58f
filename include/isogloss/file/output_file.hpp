/// @file file/output_file.hpp  A file that is written completely or not at all.
///
/// POSIX (open, fsync, rename), or its like on Windows, see system.hpp. Every failure is a FileError with the file name
/// and the reason given by the system.
#pragma once

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <isogloss/error.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/file/system.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <string>
#include <string_view>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace file {

/// The folder that contains a file, with a trailing slash; "./" if the name has none.
inline std::string folder_of(const std::string& path) {
#ifdef _WIN32
    const auto slash = path.find_last_of("/\\:");
#else
    const auto slash = path.rfind('/');
#endif
    return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

/// The file that is written under this name: the target of a symbolic link, through any number of links,
/// whether it exists or not.
inline std::string link_target(std::string path) {
#ifndef _WIN32
    for (int links = 0; links < 40; ++links) {  // as many as the system follows
        char target[PATH_MAX];
        const auto length = ::readlink(path.c_str(), target, sizeof target);
        if (length <= 0) break;  // no link
        path = (target[0] == '/' ? "" : folder_of(path)) + std::string(target, length);
    }
#endif
    return path;
}

/// A file that appears under its name complete or not at all; writes are buffered.
///
///     OutputFile out("model.bin");    // writes to model.bin.isogloss-part-<process>-<number>
///     out.write(bytes);
///     out.commit();                   // flush to the disk, rename, flush the directory
///
/// Without `commit` (for example after an exception) the temporary file is removed and the old file stays. A
/// program that is killed leaves the temporary file behind, and the old file untouched. Of several writers of one
/// file, the last to commit wins; a program that wants to be the only one holds a lock of its own.
///
/// A symbolic link is followed and kept. A file that replaces another gets its permissions; a new file has
/// permissions according to the umask.
///
/// Errors  FileError: an empty name; a directory, a device or a pipe of this name; a write-protected file,
///         which a rename would otherwise replace; any failure of the system.
class OutputFile {
public:
    /// Opens a temporary file in the folder of `path`.
    explicit OutputFile(const std::string& path) : path_(link_target(path)) {
        const auto replaced = file_status(path);
        if (path.empty() || (replaced && !S_ISREG(replaced->st_mode)))
            throw FileError("cannot write '", path, "': it is not a regular file, nor a name for a new one");
        if (replaced && !detail::writable(path_.c_str())) refuse("cannot write", path_);
        buffer_.reserve(capacity);
        static std::atomic<unsigned> number{0};
        // The beginning of a long name is enough: the numbers make it unique, and they must fit, too.
        const auto folder = folder_of(path_);
        const std::string name = path_.substr(path_.starts_with(folder) ? folder.size() : 0, 200);
        do {
            part_ = folder + name + ".isogloss-part-" + std::to_string(::getpid()) + "-" +
                    std::to_string(number++);
            // No one else may read the replacement of a file before it has that file's permissions.
            descriptor_ = detail::Descriptor(detail::open(
                part_.c_str(), O_RDWR | O_CREAT | O_EXCL | detail::close_on_exec, replaced ? 0600 : 0666));
        } while (descriptor_ < 0 && (errno == EEXIST || errno == EINTR));
        if (descriptor_ < 0) refuse("cannot create a file beside", path_);
#ifndef _WIN32
        if (replaced) ::fchmod(descriptor_, replaced->st_mode & 0777);  // not every file system has them
#endif
    }
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile() {
        descriptor_ = detail::Descriptor();  // Windows keeps what is open
        if (!part_.empty()) detail::unlink(part_.c_str());
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
        if (detail::fsync(descriptor_) != 0) refuse("cannot flush", path_);
        descriptor_ = detail::Descriptor();  // close errors are harmless after fsync
        if (detail::rename(part_.c_str(), path_.c_str()) != 0) refuse("cannot replace", path_);
        part_.clear();
#ifndef _WIN32
        // The new name is on disk only after the folder is; some file systems refuse, which is harmless.
        const detail::Descriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (folder >= 0) ::fsync(folder);
#endif
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
            const auto written = detail::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) refuse("cannot write", path_);
            bytes.remove_prefix(written);
            offset += static_cast<Index>(written);
        }
    }

    std::string path_, part_, buffer_;
    detail::Descriptor descriptor_;
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
