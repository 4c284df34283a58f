/// @file log.hpp  The CSV log of a training: a row per epoch.
#pragma once

#include <cstdlib>
#include <isogloss/utf8.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../shared/csv_log.hpp"
#include "print.hpp"

namespace lm {

/// The results of one epoch.
struct Row {
    ig::Index epoch = 0;
    double rate = 0;
    ig::Index train_tokens = 0;
    double train_perplexity = 0;
    ig::Index valid_tokens = 0;
    double valid_perplexity = 0, seconds = 0;
    double cpu_seconds = 0;  ///< of all threads, validation included; `seconds` are wall-clock time
    double soft_term = 0;    ///< nats per token
    double gradient_norm = 0, largest_gradient_norm = 0, clipped_share = 0;
    double largest_row = 0;  ///< squared length of the longest word vector
    std::string largest_row_word;
    std::optional<double> tau_log_v;  ///< for a loss with a soft term
    std::optional<double> subspace;   ///< averaged distance of word vectors and softmax, with --subspace
};

/// A word as a field of the log, on one line.
inline std::string csv_field(const std::string& word) { return files::csv_text(ig::shown(word)); }

/// The log of trainings: a row per epoch, each on disk at once. The column `run` distinguishes trainings in
/// one file. Throws FileError if the file has another header.
class Log {
public:
    static constexpr const char* header =
        "run,epoch,rate,train_tokens,train_perplexity,valid_tokens,valid_perplexity,seconds,tokens_per_"
        "second,soft_term,gradient_norm,largest_gradient_norm,clipped_share,largest_row,largest_row_word,"
        "tau_log_v,cpu_seconds,subspace_distance";

    static files::Kind kind() { return files::table("log of language_model", header); }

    /// `epochs`: how many the run has completed. Rows of this run for later epochs, left by a program that
    /// was killed before its checkpoint, are removed, as is an incomplete row.
    Log(const std::string& path, std::string run, ig::Index epochs)
        : run_(std::move(run)),
          csv_(path, header, [&](std::string_view row) { return !is_later(row, epochs); }) {}

    void append(const Row& r) const {
        csv_.append(
            ig::message(run_, ',', r.epoch, ',', exact(r.rate), ',', r.train_tokens, ',',
                        exact(r.train_perplexity), ',', r.valid_tokens, ',', exact(r.valid_perplexity), ',',
                        exact(r.seconds), ',', exact(static_cast<double>(r.train_tokens) / r.seconds), ',',
                        exact(r.soft_term), ',', exact(r.gradient_norm), ',', exact(r.largest_gradient_norm),
                        ',', exact(r.clipped_share), ',', exact(r.largest_row), ',',
                        csv_field(r.largest_row_word), ',', r.tau_log_v ? exact(*r.tau_log_v) : "", ',',
                        exact(r.cpu_seconds), ',', r.subspace ? exact(*r.subspace) : ""));
    }

private:
    bool is_later(std::string_view row, ig::Index epochs) const {
        if (!row.starts_with(run_ + ",")) return false;
        return std::strtoll(std::string(row.substr(run_.size() + 1)).c_str(), nullptr, 10) > epochs;
    }

    std::string run_;
    files::CsvLog csv_;
};

}  // namespace lm
