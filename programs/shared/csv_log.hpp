/// @file csv_log.hpp  A CSV log to which rows are appended, and which a later run continues; the fields of its rows.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <isogloss/error.hpp>
#include <isogloss/file/output_file.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lock.hpp"
#include "outputs.hpp"

namespace files {

/// The fields of a row, between its commas; the logs quote none.
inline std::vector<std::string_view> csv_fields(std::string_view row) {
    std::vector<std::string_view> out;
    std::size_t begin = 0, end = 0;
    for (; (end = row.find(',', begin)) != std::string_view::npos; begin = end + 1)
        out.push_back(row.substr(begin, end - begin));
    out.push_back(row.substr(begin));
    return out;
}

/// A text as a field of a table: in quotes if it holds a comma, a quote or a line end (RFC 4180).
inline std::string csv_text(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

/// The number, possibly inf or nan, that is the whole field, whatever the locale; none if it is something else.
inline std::optional<double> csv_number(std::string_view field) {
    double x = 0;
    const char* last = field.data() + field.size();
    const auto [end, error] = std::from_chars(field.data(), last, x);
    if (error != std::errc() || end != last) return std::nullopt;
    return x;
}

/// A CSV file to which rows are appended, each on disk before `append` returns.
///
///     files::CsvLog log(path, "epoch,perplexity", [](std::string_view row) { return true; });
///     log.append("1,120.5");
///
/// Several programs may log to one file: each locks it (flock) while it appends or replaces it, on file systems
/// that have locks.
///
/// Errors  FileError: a file with another header; errors of the system. A row that could not be written
///         completely is removed again.
class CsvLog {
public:
    /// Without a file: rows are discarded.
    CsvLog() = default;

    /// Keeps the existing rows for which `keeps(row)` is true. An incomplete row, left by a program that was
    /// killed, is removed. An empty path means no file.
    template <class Keeps> CsvLog(std::string path, const std::string& header, Keeps&& keeps)
        : path_(std::move(path)), header_(header + "\n") {
        if (path_.empty()) return;
        const Turn turn(*this);
        const std::string text = ig::file::InputFile(path_).read_all();
        if (!text.empty() && !text.starts_with(header_))
            throw ig::FileError(
                ig::message("'", path_, "' exists and is not a log of this program; it was left unchanged. ",
                            "Give --log another name"));
        std::string kept = header_;
        for (std::size_t at = header_.size(), end = 0; (end = text.find('\n', at)) != std::string::npos;
             at = end + 1) {
            const std::string_view row(text.data() + at, end - at);
            if (keeps(row)) kept.append(row) += '\n';
        }
        if (kept == text) return;
        ig::file::OutputFile out(path_);
        out.write(kept);
        out.commit();
    }

    /// Whether there is a file.
    explicit operator bool() const { return !path_.empty(); }

    /// Appends a row, given without its line end.
    void append(const std::string& row) const {
        if (path_.empty()) return;
        const Turn turn(*this);
        struct stat before = {}, now = {};
        ::fstat(turn.file, &before);
        const std::string line =
            (before.st_size == 0 ? header_ : "") + row + "\n";  // it may have been removed
        std::size_t put = 0;
        int error = 0;
        while (put < line.size() && error == 0) {
            const auto some = ::write(turn.file, line.data() + put, line.size() - put);
            if (some >= 0) put += static_cast<std::size_t>(some);
            else if (errno != EINTR) error = errno;
        }
        if (error == 0 && ::fsync(turn.file) != 0 && errno != EINVAL) error = errno;
        const bool ours =
            ::fstat(turn.file, &now) == 0 && now.st_size == before.st_size + static_cast<off_t>(put);
        const bool undone = error != 0 && ours && ::ftruncate(turn.file, before.st_size) == 0;
        if (error != 0) fail(error, undone ? "" : "; its last row may be truncated");
    }

private:
    // The file, created if there is none, which no other log appends to or replaces meanwhile.
    struct Turn {
        explicit Turn(const CsvLog& log) {
            for (;;) {
                file = ::open(log.path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
                if (file < 0) log.fail(errno);
                while (::flock(file, LOCK_EX) != 0 && errno == EINTR) {
                }
                if (is_named(file, log.path_)) return;
                ::close(file);  // another log has replaced it
            }
        }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        ~Turn() { ::close(file); }

        int file = -1;
    };

    [[noreturn]] void fail(int error, const char* more = "") const {
        throw ig::FileError(ig::message("cannot append to '", path_, "': ", std::strerror(error), more));
    }

    std::string path_, header_;
};

}  // namespace files
