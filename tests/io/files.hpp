/// @file files.hpp  A directory for one test, and whole files in and out of it.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

/// A directory of its own that is removed with everything in it.
class TemporaryDirectory {
public:
    TemporaryDirectory() {
        static std::atomic<int> number{0};
        path_ = std::filesystem::temp_directory_path() /
                ("isogloss_io_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
        std::filesystem::create_directory(path_);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    std::string operator/(std::string_view name) const { return (path_ / name).string(); }
    const std::filesystem::path& path() const { return path_; }
    /// How many entries there are, temporary files included.
    long entries() const {
        return static_cast<long>(std::distance(std::filesystem::directory_iterator(path_), {}));
    }

private:
    std::filesystem::path path_;
};

/// All bytes of a file.
inline std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Writes a file and returns its path. An older one is removed first: file systems flush a file that is
/// truncated and written again, which would make tests with thousands of files slow.
inline std::string put(const std::string& path, std::string_view bytes) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
}
