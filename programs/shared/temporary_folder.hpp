/// @file temporary_folder.hpp  A folder for files that a program writes only for itself.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <isogloss/error.hpp>
#include <string>
#include <system_error>

namespace files {

namespace ig = isogloss;

/// A new folder among the temporary files of the system, removed at the end with everything in it. No file of
/// somebody else can be in it, whatever the names.
class TemporaryFolder {
public:
    /// Throws FileError if it cannot be created.
    TemporaryFolder() {
        std::error_code error;
        const auto place = std::filesystem::temp_directory_path(error);
        if (error)
            throw ig::FileError(ig::message("cannot create a temporary folder: ", error.message(),
                                            "; set TMPDIR to a folder that may be written"));
        path_ = (place / "isogloss-XXXXXX").string();
        if (!::mkdtemp(path_.data()))
            throw ig::FileError(ig::message("cannot create '", path_, "': ", std::strerror(errno)));
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    /// The path of a file in it.
    std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

}  // namespace files
