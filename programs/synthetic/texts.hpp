// The texts of a call: drawn from a source, or given files.
#pragma once

#include <algorithm>
#include <cstdio>
#include <isogloss/file/checksum.hpp>
#include <isogloss/text/corpus.hpp>
#include <limits>
#include <optional>
#include <string>

#include "../shared/outputs.hpp"
#include "options.hpp"
#include "tasks.hpp"

// A file as a text. Symbols outside the vocabulary become its unknown symbol.
inline tasks::Text own_text(const std::string& path, const isogloss::text::Vocabulary& vocabulary) {
    const auto corpus = isogloss::text::Corpus::read(path, vocabulary);
    tasks::Text text;
    text.x.assign(corpus.tokens().begin(), corpus.tokens().end());
    if (text.size() < 2)
        throw isogloss::DataError(isogloss::message("'", path, "': found ", text.size(),
                                                    " symbol, expected at least 2; use a longer text"));
    text.predicted.assign(text.x.size(), 1);
    text.telling.assign(text.x.size(), 0);
    const bool words = vocabulary.level() == isogloss::text::Level::word;
    for (tasks::Token v = 0; v < vocabulary.size(); ++v) {
        const bool end = vocabulary.has_eos() && v == vocabulary.eos();
        text.names.push_back(end ? "\n" : words ? vocabulary.word(v) + " " : vocabulary.word(v));
    }
    return text;
}

// Texts for training, for choosing the best moment, and for reporting.
struct Texts {
    tasks::Text train, valid;
    std::vector<tasks::Text> choice;         // parts, each read from the start values
    std::optional<tasks::Text> longer;       // anbn: with longer lines
    double entropy = 0, longer_entropy = 0;  // bits per predicted symbol; not a number if unknown
    std::string symbols;                     // as stored in a file
    std::string hash;                        // of a given training text

    bool own() const { return train.task == nullptr; }
};

// Throws DataError for a text of which nothing is to be predicted.
inline void require_predicted(const tasks::Text& text, const char* which, const char* longer) {
    const auto n = text.size() < 1 ? 0 : std::count(text.predicted.begin() + 1, text.predicted.end(), 1);
    if (n < 1)
        throw isogloss::DataError(
            isogloss::message("the ", which, " text: found ", text.size(), " symbols, of which ", n,
                              " are to be predicted after another, expected at least 1; "
                              "make it longer by ",
                              longer));
}

// Independent texts of a source.
inline Texts drawn_texts(const Options& o) {
    const tasks::Task& task = o.named_task();
    const tasks::Index other = o.validation_length > 0 ? o.validation_length : o.length;
    tasks::Options shorter = o.source, longer = o.source;
    shorter.fewest_bits = o.fewest_training_bits;
    Texts t;
    t.train = tasks::generate(task, shorter, 3 * o.seed, o.length, o.lines);
    // Whether a network is led astray by a line that few texts have is seen in many lines alone.
    constexpr tasks::Index fewest_lines = 300, enough = 10000000;  // of 10⁶ symbols each, a few are enough
    tasks::Text choice = tasks::generate(task, o.source, 3 * o.seed + 1, std::max<tasks::Index>(other, 2000));
    if (std::ssize(choice.begins) < fewest_lines)
        choice = tasks::generate(task, o.source, 3 * o.seed + 1, 2, fewest_lines, enough);
    t.valid = tasks::generate(task, o.source, 3 * o.seed + 2, other);
    require_predicted(t.train, "training", o.lines > 0 ? "--lines" : "--length");
    require_predicted(choice, "selection", "--validation-length");
    // Full batches begin in few places, and what follows may depend on the first line.
    t.choice = choice.in_parts(o.full_batches() ? 16 : 1);
    require_predicted(t.valid, "validation", "--validation-length");
    t.entropy = tasks::entropy_rate(task, o.source);
    t.symbols = task.symbols;
    if (&task == &tasks::anbn && o.longest_validation > 0) {
        longer.shortest = o.source.longest, longer.longest = o.longest_validation;
        t.longer = tasks::generate(task, longer, 3 * o.seed + 2, other);
        t.longer_entropy = tasks::entropy_rate(task, longer);
    }
    return t;
}

// Given files. The validation text is also used for choosing. `known`: the symbols of a loaded model, or
// empty; without a training text the validation text replaces it.
inline Texts own_texts(const Options& o, const std::string& known) {
    using isogloss::text::Level, isogloss::text::Vocabulary;
    const bool words = o.level == "words";
    if (known.empty()) files::require_regular({o.text}, "write it to a file");
    const auto vocabulary =
        known.empty() ? Vocabulary::from_file(o.text, {.level = words ? Level::word : Level::character,
                                                       .min_count = o.min_count > 0 ? o.min_count
                                                                    : words         ? 2
                                                                                    : 1})
                      : Vocabulary::from_text(known, "'" + o.load + "', symbols");
    Texts t;
    t.valid = own_text(o.valid, vocabulary);
    t.choice = {t.valid};
    t.train = o.text.empty() ? t.valid : own_text(o.text, vocabulary);
    t.entropy = std::numeric_limits<double>::quiet_NaN();
    t.symbols = vocabulary.to_text();
    if (!o.text.empty()) {
        isogloss::file::TokenHash hash;
        hash.add(t.train.x);
        t.hash = isogloss::file::hex16(hash.value());
    }
    const auto unknown =
        vocabulary.has_unk() ? std::count(t.valid.x.begin(), t.valid.x.end(), vocabulary.unk()) : 0;
    std::fprintf(
        o.json ? stderr : stdout, "%s%td to validate on (%td unknown), %td different ones\n",
        o.text.empty() ? "symbols: " : isogloss::message(t.train.size(), " symbols to train on, ").c_str(),
        t.valid.size(), unknown, vocabulary.size());
    return t;
}
