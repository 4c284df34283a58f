/// @file lds/count_folder.hpp  The folder that holds the temporary files of a counting.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <isogloss/error.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/lds/count_cursor.hpp>
#include <isogloss/lds/count_run.hpp>
#include <isogloss/types.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// A folder with count files, counts-FIRST-LAST.run, used by one counting at a time; other files in it are
/// left alone.
///
/// Errors   FileError: the folder cannot be made, another counting uses it (a lock, flock, on the folder itself,
///          which is released when the program ends), its file system has no locks, any failure of a system call.
class CountFolder {
public:
    /// Opens the folder, and creates it if it does not exist.
    explicit CountFolder(const std::string& path) : path_(path.ends_with('/') ? path : path + "/") {
        if (path.empty()) throw FileError("the folder for counts has an empty name; give it a name");
        if (::mkdir(path_.c_str(), 0777) == 0) made_ = true;
        else if (errno != EEXIST) file::refuse("cannot create the folder", path_);
        at_ = file::Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (at_ < 0) file::refuse("cannot open the folder", path_);
        while (::flock(at_, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EINTR) continue;
            if (errno == EWOULDBLOCK)
                throw FileError("this or another program is counting in '", path_,
                                "'; wait until it has ended, or use another folder");
            const int reason = errno;  // without a lock two programs could remove each other's files
            throw FileError("cannot lock the folder '", path_, "': ", std::strerror(reason),
                            "; use a folder on a file system that has locks (flock)");
        }
    }

    /// The path of a count file in the folder.
    std::string name_of(const CountRunHeader& h) const {
        return path_ + "counts-" + std::to_string(h.first) + "-" + std::to_string(h.last) + ".run";
    }

    /// The complete files, sorted by first token, without overlaps. Files that have been merged into another and
    /// partial files of a killed program are removed. A damaged file is removed too, and `damaged` tells
    /// what was wrong with it. All files are read to check them; watch() is called every 2¹⁸ pairs, and may throw.
    ///
    /// A file that cannot be opened or read just then, or that another version of the library wrote, may be sound:
    /// FileError, and it stays.
    template <class Watch = NoCallback>
    std::vector<CountRun> restore(std::vector<std::string>& damaged, Watch&& watch = {}) const {
        constexpr Index stride = Index{1} << 18;
        std::vector<CountRun> all, kept;
        for (const std::string& name : entries()) {
            if (!name.ends_with(".run")) {
                remove(path_ + name);
                continue;
            }
            // Whether read() meets no damage. It must not call watch(), whose exceptions are the caller's.
            const auto is_sound = [&](auto&& read) {
                try {
                    read();
                    return true;
                } catch (const DamagedCounts& error) {
                    damaged.push_back(error.what());
                    return false;
                }
            };
            std::optional<CountRun> run;
            bool sound = is_sound([&] { run.emplace(path_ + name); });
            Index met = 0;
            for (Index k = 0; sound && k <= run->header().lags; ++k) {
                CountRunCursor at(*run, k, stride);
                for (bool more = true; sound && more;) {
                    sound = is_sound([&] {
                        do more = at.next();
                        while (more && ++met % stride != 0);
                    });
                    if (sound && more) watch();
                }
            }
            if (sound && run->header().first < run->header().last) all.push_back(std::move(*run));
            else remove(path_ + name);  // damaged, or of a text without tokens
        }
        std::sort(all.begin(), all.end(), [](const CountRun& a, const CountRun& b) {
            const auto &x = a.header(), &y = b.header();
            return x.first != y.first ? x.first < y.first : x.last > y.last;
        });
        for (CountRun& run : all) {
            if (kept.empty() || run.header().first >= kept.back().header().last)
                kept.push_back(std::move(run));
            else remove(run.path());
        }
        return kept;
    }

    /// Number of complete files.
    Index files() const {
        const auto names = entries();
        return std::count_if(names.begin(), names.end(),
                             [](const std::string& name) { return name.ends_with(".run"); });
    }
    /// Removes one of the count files.
    void remove(const std::string& file) const {
        if (::unlink(file.c_str()) != 0 && errno != ENOENT) isogloss::file::refuse("cannot remove", file);
    }
    /// Removes all count files.
    void clear() const {
        for (const std::string& name : entries()) remove(path_ + name);
    }
    /// Removes the folder if this object created it and it is empty.
    void remove_if_made() const {
        if (made_) ::rmdir(path_.c_str());
    }
    /// Its name, with a slash at the end.
    const std::string& path() const { return path_; }

private:
    // Names of count files, and the temporary names that OutputFile gives them before they are complete.
    static bool is_own(std::string_view name) {
        if (!name.starts_with("counts-")) return false;
        const auto dot = name.find(".run");
        if (dot == std::string_view::npos) return false;
        const auto numbers = name.substr(7, dot - 7), rest = name.substr(dot + 4);
        return std::count(numbers.begin(), numbers.end(), '-') == 1 &&
               numbers.find_first_not_of("0123456789-") == std::string_view::npos &&
               (rest.empty() || (rest.starts_with(".isogloss-part-") &&
                                 rest.find_first_not_of("0123456789-", 15) == std::string_view::npos));
    }
    std::vector<std::string> entries() const {
        const file::Folder folder(::opendir(path_.c_str()));
        if (!folder) file::refuse("cannot read the folder", path_);
        std::vector<std::string> names;
        while (const dirent* entry = ::readdir(folder.get()))
            if (is_own(entry->d_name)) names.push_back(entry->d_name);
        std::sort(names.begin(), names.end());
        return names;
    }

    std::string path_;
    bool made_ = false;
    file::Descriptor at_;
};

}}}  // namespace isogloss::lds
