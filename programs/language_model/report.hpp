/// @file report.hpp  The results of a command: lines for people as they come, or one JSON object at the end.
#pragma once

#include <iostream>
#include <isogloss/evaluation/perplexity.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/text/corpus.hpp>
#include <string>

#include "../shared/json.hpp"

namespace lm {

namespace ig = isogloss;

using program::dump;
using program::Json;

/// Standard output of a command, with or without --json, which is for programs: then nothing else is printed.
class Report {
public:
    explicit Report(bool json) : json_(json) {}

    /// Prints a line at once, for people only.
    void line(const std::string& text) const {
        if (!json_) std::cout << text << std::endl;
    }
    /// Prints `values`, for programs only.
    void finish() const {
        if (json_) std::cout << dump(values) << std::endl;
    }

    Json values = Json::object();  ///< for programs

private:
    bool json_;
};

/// The counts of a text.
inline Json counts_of(const ig::text::Corpus& corpus) {
    return {{"name", corpus.source()},
            {"tokens", corpus.size()},
            {"line_ends", corpus.lines()},
            {"unknowns", corpus.unknowns()},
            {"checksum", ig::file::hex16(corpus.checksum())}};
}

/// Adds a perplexity to an object.
inline void add_perplexity(Json& to, const ig::Perplexity& p) {
    to["perplexity"] = p.value();
    to["nats_per_token"] = p.nats();
    to["bits_per_token"] = p.bits_per_token();
    if (p.characters() > 0) to["bits_per_character"] = p.bits_per_character();
    to["tokens"] = p.tokens();
}

}  // namespace lm
