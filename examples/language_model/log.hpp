/// @file log.hpp  The CSV file of a training: a row per epoch.
#pragma once

#include <cstdlib>
#include <isogloss/error.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "../shared/csv_log.hpp"
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
};

/// The log of trainings: a row per epoch, each written through at once. The column `run` tells trainings in
/// one file apart. Throws FileError where the file has another header.
class Log {
public:
    static constexpr const char* header =
        "run,epoch,rate,train_tokens,train_perplexity,valid_tokens,valid_perplexity,seconds,tokens_per_"
        "second";

    /// `epochs`: how many the run has behind it. Rows of this run for later epochs, left by a program that
    /// was killed before its checkpoint, are dropped, and so is the beginning of a row.
    Log(const std::string& path, std::string run, ig::Index epochs)
        : run_(std::move(run)),
          csv_(path, header, [&](std::string_view row) { return !is_later(row, epochs); }) {}

    void append(const Row& r) const {
        csv_.append(ig::text(run_, ',', r.epoch, ',', exact(r.rate), ',', r.train_tokens, ',',
                             exact(r.train_perplexity), ',', r.valid_tokens, ',', exact(r.valid_perplexity),
                             ',', exact(r.seconds), ',',
                             exact(static_cast<double>(r.train_tokens) / r.seconds)));
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
