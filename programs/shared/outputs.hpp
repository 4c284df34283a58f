/// @file outputs.hpp  The rule by which the example programs write files.
///
/// An existing file is overwritten only if it is empty or recognisably of the kind to be written, by the
/// header of a table or the contents of a model. A file that cannot be recognised (word vectors, plain text)
/// is overwritten only with --overwrite. No output is an input of the same call, nor another output, under
/// whatever name, link or not, existing or not. All of this, and whether the folders exist and are writable,
/// is checked before the work begins.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <isogloss/error.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/file/output_file.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace files {

namespace ig = isogloss;

/// Whether there is a file of this name. Throws FileError if that cannot be determined.
inline bool exists(const std::string& path) { return ig::file::file_status(path).has_value(); }

/// Whether a file of this name holds anything. An empty file may be overwritten, so it counts as none.
inline bool has_content(const std::string& path) {
    const auto status = ig::file::file_status(path);
    return status && !(S_ISREG(status->st_mode) && status->st_size == 0);
}

/// Throws DataError for a text that cannot be read twice, such as a pipe. `instead`: what else to do. Of a missing
/// file, and of a folder, whoever reads it says what it is.
inline void require_regular(const std::vector<std::string>& paths, const char* instead) {
    for (const std::string& path : paths)
        if (const auto status = ig::file::file_status(path);
            status && !S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode))
            throw ig::DataError(
                ig::message("'", path, "' is not a regular file, but its text is read twice; ", instead));
}

/// Whether a file begins with these bytes.
inline bool begins_with(const std::string& path, std::string_view opening) {
    ig::file::InputFile file(path);
    std::string found(opening.size(), '\0');
    ig::Index used = 0, got = 1;
    while (got > 0) used += got = file.read(found.data() + used, std::ssize(found) - used);
    return used == std::ssize(opening) && found == opening;
}

/// A kind of file: its name, and whether a file is one. An ig::Error means that it is not.
struct Kind {
    std::string name;
    std::function<bool(const std::string&)> recognises;
};

/// A table or log with this first line.
inline Kind table(std::string name, const std::string& header) {
    return {std::move(name), [header](const auto& path) { return begins_with(path, header + "\n"); }};
}

/// The files of one call, each under the option that names it; an empty name is an option that is not given.
///
///     files::Outputs().read("--text", o.text).write("--csv", o.csv, files::table("table of …",
///     header)).check();
class Outputs {
public:
    Outputs& read(const std::string& option, const std::string& path) {
        if (!path.empty()) inputs_.push_back({option, path, {}, false});
        return *this;
    }
    Outputs& read(const std::string& option, const std::vector<std::string>& paths) {
        for (const auto& path : paths) read(option, path);
        return *this;
    }
    /// A file that is overwritten if it is empty or of its kind.
    Outputs& write(const std::string& option, const std::string& path, Kind kind) {
        if (!path.empty()) outputs_.push_back({option, path, std::move(kind), false});
        return *this;
    }
    /// A file that does not show its origin: overwritten if it is empty or `overwrite` is set.
    Outputs& write_unmarked(const std::string& option, const std::string& path, bool overwrite) {
        if (!path.empty()) outputs_.push_back({option, path, {}, overwrite});
        return *this;
    }

    /// The file by which a Lock on an output is held, which is empty; beside what a link names, as that of Lock.
    Outputs& lock(const std::string& option, const std::string& output) {
        return write(option, output.empty() ? "" : ig::file::link_target(output) + ".lock",
                     {"lock, which is empty", [](const std::string&) { return false; }});
    }

    /// Throws FileError, with the reason, for the first output that may not be written.
    void check() const {
        for (std::size_t i = 0; i < outputs_.size(); ++i) {
            const File& output = outputs_[i];
            require_place(output);
            const auto same = [&](const File& other) {
                return identity(output.path) == identity(other.path);
            };
            for (const File& input : inputs_)
                if (same(input))
                    refuse(output,
                           ig::message("is the file that ", input.option, " reads; it was left unchanged"));
            for (std::size_t j = 0; j < i; ++j)
                if (same(outputs_[j]))
                    refuse(output, ig::message("is the file that ", outputs_[j].option, " writes"));
            require_replaceable(output);
        }
    }

private:
    struct File {
        std::string option, path;
        Kind kind;
        bool overwrite;
    };
    // Device, inode and, for a file that does not exist yet, its name in the folder of that inode.
    using Identity = std::tuple<dev_t, ino_t, std::string>;

    static Identity identity(const std::string& path) {
        if (const auto status = ig::file::file_status(path)) return {status->st_dev, status->st_ino, ""};
        const std::string target = ig::file::link_target(path);
        const auto folder = ig::file::file_status(ig::file::folder_of(target));
        const std::string name = target.substr(target.rfind('/') + 1);
        return folder ? Identity{folder->st_dev, folder->st_ino, name} : Identity{0, 0, target};
    }
    [[noreturn]] static void refuse(const File& file, const std::string& why) {
        throw ig::FileError(
            ig::message(file.option, " '", file.path, "' ", why, ". Give ", file.option, " another name"));
    }
    static void require_place(const File& file) {
        const std::string folder = ig::file::folder_of(ig::file::link_target(file.path));
        const auto status = ig::file::file_status(folder);
        if (!status)
            refuse(file, ig::message("is in the folder '", folder, "', which does not exist; create it"));
        if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
            refuse(file, ig::message("is in the folder '", folder,
                                     "', which may not be written: ", std::strerror(errno)));
    }
    static void require_replaceable(const File& file) {
        const auto status = ig::file::file_status(file.path);
        if (!status) return;
        if (!S_ISREG(status->st_mode)) refuse(file, "already exists and is not a regular file");
        if (::faccessat(AT_FDCWD, file.path.c_str(), W_OK, AT_EACCESS) != 0)
            refuse(file, ig::message("may not be written: ", std::strerror(errno)));
        if (status->st_size == 0 || file.overwrite) return;
        if (!file.kind.recognises)
            throw ig::FileError(ig::message(file.option, " '", file.path,
                                            "' already exists; it was left unchanged. Give ", file.option,
                                            " another name, or add --overwrite"));
        std::string why;  // it is something else, or damaged
        try {
            if (file.kind.recognises(file.path)) return;
        } catch (const ig::Error& error) {
            why = ig::message(" (", error.text(), ")");
        }
        throw ig::FileError(ig::message(file.option, " '", file.path, "' already exists and is not a ",
                                        file.kind.name, why, "; it was left unchanged. Give ", file.option,
                                        " another name, or remove the file"));
    }

    std::vector<File> inputs_, outputs_;
};

}  // namespace files
