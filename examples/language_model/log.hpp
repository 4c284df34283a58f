/// @file log.hpp  The CSV file of a training: a row per epoch.
#pragma once

#include <filesystem>
#include <fstream>
#include <isogloss/error.hpp>
#include <isogloss/text/file.hpp>
#include <isogloss/text/lines.hpp>
#include <optional>
#include <string>

#include "print.hpp"

namespace lm {

/// What one epoch came to.
struct Row {
    ig::Index epoch = 0;
    double rate = 0;
    ig::Index train_tokens = 0;
    double train_perplexity = 0;
    ig::Index valid_tokens = 0;
    double valid_perplexity = 0, seconds = 0;
    double soft_term = 0;  ///< nats a token
    double gradient_norm = 0, largest_gradient_norm = 0, clipped_share = 0;
    double largest_row = 0;  ///< squared length of the longest word vector
    std::string largest_row_word;
    std::optional<double> tau_log_v;  ///< of a loss that has a soft term
};

/// A word as a field of a CSV file, on one line.
inline std::string csv_field(std::string word) {
    word = ig::escaped(word, false);
    if (word.find_first_of(",\"") == std::string::npos) return word;
    for (std::size_t i = 0; (i = word.find('"', i)) != std::string::npos; i += 2) word.insert(i, 1, '"');
    return '"' + word + '"';
}

/// Throws FileError for a log of an earlier version, which has fewer columns.
inline void refuse_earlier_log(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    if (!path.empty() && std::getline(in, line) &&
        line ==
            "run,epoch,rate,train_tokens,train_perplexity,valid_tokens,valid_perplexity,seconds,tokens_per_"
            "second")
        throw ig::FileError(ig::text(
            "'", path,
            "' is a log of an earlier version of this program, without the columns from soft_term to "
            "tau_log_v; it is left as it is. Give --log another name"));
}

/// A CSV file to which rows are appended, each written through at once. The column `run` tells trainings in
/// one file apart. Throws FileError where the file has another header.
class Log {
public:
    static constexpr const char* header =
        "run,epoch,rate,train_tokens,train_perplexity,valid_tokens,valid_perplexity,seconds,tokens_per_"
        "second,soft_term,gradient_norm,largest_gradient_norm,clipped_share,largest_row,largest_row_word,"
        "tau_log_v";

    /// `epochs`: how many the run has behind it. Rows of this run for later epochs, left by a program that
    /// was killed before its checkpoint, are dropped, and so is the beginning of a row.
    Log(std::string path, std::string run, ig::Index epochs) : path_(std::move(path)), run_(std::move(run)) {
        if (path_.empty()) return;
        if (std::filesystem::exists(path_) && !std::filesystem::is_regular_file(path_)) refuse();
        const std::string before = std::filesystem::exists(path_) ? ig::InputFile(path_).read_all() : "";
        std::string kept;
        for (std::size_t at = 0, end; (end = before.find('\n', at)) != std::string::npos; at = end + 1) {
            const std::string line = before.substr(at, end - at);
            if (at == 0 && line != header) refuse();
            if (!is_later(line, epochs)) kept += line + "\n";
        }
        if (kept.empty() && !std::string(header).starts_with(before)) refuse();
        if (kept.empty()) kept = std::string(header) + "\n";
        if (kept == before) return;
        ig::OutputFile out(path_);
        out.write(kept);
        out.commit();
    }

    void append(const Row& r) const {
        if (path_.empty()) return;
        std::ofstream out(path_, std::ios::app);
        out << run_ << ',' << r.epoch << ',' << exact(r.rate) << ',' << r.train_tokens << ','
            << exact(r.train_perplexity) << ',' << r.valid_tokens << ',' << exact(r.valid_perplexity) << ','
            << exact(r.seconds) << ',' << exact(static_cast<double>(r.train_tokens) / r.seconds) << ','
            << exact(r.soft_term) << ',' << exact(r.gradient_norm) << ',' << exact(r.largest_gradient_norm)
            << ',' << exact(r.clipped_share) << ',' << exact(r.largest_row) << ','
            << csv_field(r.largest_row_word) << ',' << (r.tau_log_v ? exact(*r.tau_log_v) : "") << '\n';
        out.flush();
        if (!out) throw ig::FileError(ig::text("cannot append to '", path_, "'"));
    }

private:
    [[noreturn]] void refuse() const {
        throw ig::FileError(ig::text(
            "'", path_,
            "' is there and is no log of this program; it is left as it is. Give --log another name"));
    }
    bool is_later(const std::string& line, ig::Index epochs) const {
        if (!line.starts_with(run_ + ",")) return false;
        return std::strtoll(line.c_str() + run_.size() + 1, nullptr, 10) > epochs;
    }

    std::string path_, run_;
};

}  // namespace lm
