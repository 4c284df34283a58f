/// @file common.hpp  Shared by several commands: a clock, output, kinds of files, likelihoods.
#pragma once

#include <sys/resource.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <isogloss/counts/files.hpp>
#include <isogloss/distributed/communicator.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <isogloss/text/corpus.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "commands.hpp"

namespace lt {

namespace counts = isogloss::counts;
namespace distributed = isogloss::distributed;
namespace lds = isogloss::lds;

using program::Stopwatch;

/// printf with an Index or a double, flushed at once.
template <class... Values> void say(std::ostream& out, const char* format, Values... values) {
    if constexpr (sizeof...(Values) == 0) {
        out << format << std::flush;
    } else {
        std::string text(static_cast<std::size_t>(std::snprintf(nullptr, 0, format, values...)), '\0');
        std::snprintf(text.data(), text.size() + 1, format, values...);
        out << text << std::flush;
    }
}
/// The same to std::cout, which is silent on all ranks except the first.
template <class... Values> void say(const char* format, Values... values) {
    say(std::cout, format, values...);
}

/// Peak memory of this process, MiB. From /proc if available: getrusage includes the process before it became
/// this program.
inline double peak_memory() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
    rusage use = {};
    ::getrusage(RUSAGE_SELF, &use);
    return static_cast<double>(use.ru_maxrss) / 1024;
}

/// The first lines of the logs.
inline constexpr const char* fit_header =
    "iteration,log_likelihood,above_static,radius,noise_factor,seconds,pseudo_counts,states,ssid_lags,"
    "dev_log_likelihood,dev_above_static,dev_perplexity";
inline constexpr const char* rnn_header = "epoch,rate,train,valid,test,seconds,words,vocabulary";

/// Kinds of files that the program may overwrite.
inline files::Kind model_kind() {
    return {"model of lds_text", [](const std::string& path) {
                lds::load_lds<float>(path);
                return true;
            }};
}
inline files::Kind counts_kind() {
    return {"file of `lds_text count`", [](const std::string& path) {
                const auto file = ig::io::Safetensors::map(path);
                const auto kind = file.metadata().find("isogloss.kind");
                return kind != file.metadata().end() && kind->second == "lag counts";
            }};
}
inline files::Kind vocabulary_kind() {
    return {"vocabulary",
            [](const std::string& path) { return files::begins_with(path, "isogloss-vocabulary\t"); }};
}
inline files::Kind embeddings_kind() {
    return {"file of `lds_text embed`", [](const std::string& path) {
                const auto file = ig::io::Safetensors::open(path);
                return file.tensors().size() == 2 && file.find("embeddings") && file.find("tokens");
            }};
}

/// The token that ends a sentence if sentences are respected, otherwise -1.
inline ig::Token boundary(bool sentences, const ig::text::Vocabulary& vocabulary) {
    return sentences ? vocabulary.eos() : ig::Token{-1};
}

/// Whether a system was fitted with --sentences: no counted pair crosses a line end.
inline bool of_sentences(const lds::LdsFile<float>& it) {
    const auto at = it.notes.find("lds_text.sentences");
    return at != it.notes.end() && at->second == "1";
}

/// A number that `fit` has stored in a file, or `otherwise` if absent: 0.1.0 stored fewer.
template <class T> T noted(const lds::LdsFile<float>& it, const std::string& file, const char* name, T low,
                           T high, T otherwise) {
    const auto at = it.notes.find(name);
    if (at == it.notes.end()) return otherwise;
    T value{};
    const char* end = at->second.data() + at->second.size();
    const auto [read, error] = std::from_chars(at->second.data(), end, value);
    if (error != std::errc() || read != end || !(value >= low && value <= high))
        throw ig::FileError(ig::message("'", file, "': ", name, " is ", ig::in_quotes(at->second),
                                        ", expected a number from ", low, " to ", high,
                                        "; the file is damaged"));
    return value;
}

/// Which words occur at least `least` times in the text of the vocabulary; all where it has no counts.
inline std::vector<bool> frequent(const ig::text::Vocabulary& vocabulary, double least) {
    std::vector<bool> out;
    for (const auto count : vocabulary.counts())
        out.push_back(vocabulary.total() == 0 || static_cast<double>(count) >= least);
    return out;
}

/// The vocabulary of texts, which are read again afterwards: at most `size` types, 0 for no limit.
inline ig::text::Vocabulary read_vocabulary(const std::vector<std::string>& paths, ig::Index size,
                                            std::int64_t min_count) {
    files::require_regular(paths, "write it to a file, or give its words by --vocabulary-from");
    return ig::text::Vocabulary::from_files(paths, {.min_count = min_count, .max_size = size});
}

/// The words of --vocabulary-from: a vocabulary file, or a file of `fit`.
inline ig::text::Vocabulary stored_vocabulary(const std::string& path) {
    return files::begins_with(path, "isogloss-vocabulary\t") ? ig::text::Vocabulary::load(path)
                                                             : lds::load_lds<float>(path).vocabulary;
}

/// Log-likelihood of a text in whitened words, nats per token.
struct Likelihood {
    double value = 0, above_static = 0;  ///< the likelihood, and its gain over that without dynamics
};

inline Likelihood likelihood(const lds::TextFilter<float>& filter, const lds::Whitening& whitening,
                             std::span<const ig::Token> tokens, ig::Token boundary = -1) {
    const double value = filter.log_likelihood(tokens, {.boundary = boundary});
    return {value, value - lds::static_log_likelihood(whitening, tokens)};
}

}  // namespace lt
