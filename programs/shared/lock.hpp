/// @file lock.hpp  One program at a time on one file, and what killed programs left of it.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <isogloss/error.hpp>
#include <isogloss/file/output_file.hpp>
#include <string>
#include <system_error>

namespace files {

namespace ig = isogloss;

/// Whether a path still names the open file, which another program may have replaced or removed.
inline bool is_named(int descriptor, const std::string& path) {
    struct stat open = {}, named = {};
    return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
           open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/// Removes what killed programs left of a file that they were writing (see ig::file::OutputFile). For the only program
/// that writes it, which holds a lock; one that holds a Lock on the file itself has done so.
inline void remove_abandoned(const std::string& file) {
    const std::filesystem::path target = ig::file::link_target(file);
    const std::string begin = target.filename().string().substr(0, 200) + ".isogloss-part-";
    std::error_code ignored;  // what cannot be read or removed stays
    for (const auto& entry : std::filesystem::directory_iterator(ig::file::folder_of(target), ignored))
        if (const std::string name = entry.path().filename();
            name.starts_with(begin) && name.find_first_not_of("0123456789-", begin.size()) == name.npos)
            std::filesystem::remove(entry.path(), ignored);
}

/// While one exists, no other program has one for the same file, whatever link names it.
///
/// The lock (flock) is on FILE.lock in the same folder, an empty file that is removed with it. The system
/// releases it when the program ends, however it ends: a FILE.lock left behind by a killed program locks
/// nothing, and the next program takes it. On a file system without locks there is none.
class Lock {
public:
    /// Throws FileError if another program has the lock; `option` names the file. Removes what killed programs left of it.
    Lock(const std::string& option, const std::string& file) : name_(ig::file::link_target(file) + ".lock") {
        if (file.empty()) throw ig::FileError(ig::message(option, " is an empty name; give it another"));
        for (;;) {
            descriptor_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
            if (descriptor_ < 0 && errno == EACCES)  // another user's; reading is enough for a lock
                descriptor_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
            if (descriptor_ < 0)
                throw ig::FileError(ig::message("cannot create '", name_, "': ", std::strerror(errno)));
            if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
                ::close(descriptor_);
                throw ig::FileError(
                    ig::message("another program is writing '", file, "' (it holds the lock on '", name_,
                                "'). Wait until it has ended, or give ", option, " another name"));
            }
            // The previous holder may have removed the file between the two calls.
            if (is_named(descriptor_, name_)) break;
            ::close(descriptor_);
        }
        remove_abandoned(file);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() {
        // Another program may have put a file of its own in the place of the lock.
        struct stat status = {};
        if (is_named(descriptor_, name_) && ::fstat(descriptor_, &status) == 0 && status.st_size == 0)
            ::unlink(name_.c_str());
        ::close(descriptor_);
    }

private:
    std::string name_;
    int descriptor_ = -1;
};

}  // namespace files
