/// @file atomic_file.hpp  A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <isogloss/text/output_file.hpp>
#include <span>
#include <string>
#include <string_view>

namespace isogloss {

/// A buffered file that is written under a temporary name in the directory of its target and takes its own
/// name in `commit`: flushed, synchronised with the disk, renamed, directory synchronised.
///
///     AtomicFile file("model.safetensors");
///     file.write(bytes);
///     file.commit();
///
/// Without `commit` (an exception, a return) the temporary file is removed and what was there before stays
/// as it was. Links, permissions, temporary files of programs that were killed, errors: see OutputFile, which
/// this buffers.
class AtomicFile {
public:
    /// Opens the temporary file beside `path`.
    explicit AtomicFile(const std::filesystem::path& path) : file_(path.string()) {
        buffer_.reserve(capacity);
    }

    /// Appends bytes.
    void write(std::string_view bytes) {
        if (buffer_.size() + bytes.size() > capacity) flush();
        if (bytes.size() > capacity) file_.write(bytes);
        else buffer_ += bytes;
    }

    /// Appends bytes.
    void write(std::span<const std::byte> bytes) {
        if (!bytes.empty())
            write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }

    /// Gives the file its name, in place of any older one. Call it once, last.
    void commit() {
        flush();
        file_.commit();
    }

private:
    static constexpr std::size_t capacity = std::size_t{1} << 18;

    void flush() {
        file_.write(buffer_);
        buffer_.clear();
    }

    OutputFile file_;
    std::string buffer_;
};

/// Calls `writer(AtomicFile&)` and commits what it wrote. Where the writer throws, nothing has happened.
///
///     write_atomically("words.txt", [&](AtomicFile& out) { for (auto& w : words) out.write(w + "\n"); });
template <class Writer> void write_atomically(const std::filesystem::path& path, Writer&& writer) {
    AtomicFile file(path);
    writer(file);
    file.commit();
}

}  // namespace isogloss
