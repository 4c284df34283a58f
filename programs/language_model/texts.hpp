/// @file texts.hpp  The texts of a training, and the protocol printed with a perplexity.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <isogloss/evaluation/perplexity.hpp>
#include <isogloss/evaluation/unigram.hpp>
#include <isogloss/text/corpus.hpp>
#include <isogloss/utf8.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "../shared/data_folder.hpp"
#include "../shared/outputs.hpp"
#include "options.hpp"
#include "print.hpp"

namespace lm {

/// A text that may lie in memory: a file, or some lines of one.
struct Text {
    std::string path;   ///< file
    std::string lines;  ///< its lines, if only a part is used
    std::string name;   ///< for messages and output

    ig::text::Vocabulary vocabulary(const ig::text::VocabularyOptions& options) const {
        if (lines.empty()) {
            files::require_regular({path}, "write it to a file");
            return ig::text::Vocabulary::from_file(path, options);
        }
        std::istringstream in(lines);
        return ig::text::Vocabulary::from_stream(in, name, options);
    }
    ig::text::Corpus read(const ig::text::Vocabulary& vocabulary) const {
        if (lines.empty()) return ig::text::Corpus::read(path, vocabulary);
        std::istringstream in(lines);
        return ig::text::Corpus::read_stream(in, name, vocabulary);
    }
};

/// Which texts a training uses.
struct Texts {
    Text train, valid;
    std::optional<Text> test;
};

/// The bundled text, its first 90 % of lines for training and the rest for validation.
inline Texts bundled_texts() {
    const std::string path = std::string(ISOGLOSS_EXAMPLES_DATA) + "/tinyshakespeare.txt";
    if (!files::exists(path))
        throw ig::FileError(
            ig::message("the bundled text '", path,
                        "' is not here (the Python module has none); give the training and the "
                        "validation text"));
    const std::string all = ig::file::InputFile(path).read_all();
    const ig::Index lines = std::count(all.begin(), all.end(), '\n'), first = lines * 9 / 10;
    std::size_t cut = 0;
    for (ig::Index i = 0; i < first; ++i) cut = all.find('\n', cut) + 1;
    Texts t;
    t.train = {path, all.substr(0, cut), ig::message("tinyshakespeare.txt, lines 1 to ", first)};
    t.valid = {path, all.substr(cut), ig::message("tinyshakespeare.txt, lines ", first + 1, " to ", lines)};
    return t;
}

/// A file of one of the known corpora. Throws an error that says what to do.
inline Text corpus_text(const std::string& corpus, const std::string& part) {
    const std::string path = files::corpus_file(corpus, part, "--train, --valid and --test");
    return {path, "", path};
}

/// The texts that the options name: files, a known corpus, or the bundled text.
inline Texts find_texts(const Options& o) {
    const auto file = [](const std::string& path) { return Text{path, "", path}; };
    Texts t;
    if (o.train.empty() != o.valid.empty())
        throw ig::UsageError(ig::message(o.train.empty() ? "--valid" : "--train", " is given without ",
                                         o.train.empty() ? "--train" : "--valid",
                                         "; training needs both texts"));
    if (!o.train.empty()) {
        t.train = file(o.train);
        t.valid = file(o.valid);
    } else if (!o.corpus.empty()) {
        t.train = corpus_text(o.corpus, "train");
        t.valid = corpus_text(o.corpus, "valid");
        t.test = corpus_text(o.corpus, "test");
    } else {
        t = bundled_texts();
    }
    if (!o.test.empty()) t.test = file(o.test);
    return t;
}

/// The tokens [first, last) of a text of n that "A:B" names. Each is a number or a share such as 50%, rounded
/// down to a whole number; nothing before the colon means the start, nothing after it the end.
inline std::pair<ig::Index, ig::Index> token_range(const std::string& range, ig::Index n) {
    const auto refuse = [&] {
        throw ig::UsageError(ig::message("--train-tokens is '", range,
                                         "', expected A:B with A below B, each a number of "
                                         "tokens up to the ",
                                         n, " of the training text, or a share such as 50%"));
    };
    const auto place = [&](std::string_view end, ig::Index otherwise) {
        if (end.empty()) return otherwise;
        const bool share = end.back() == '%';
        double value = 0;
        const char* stop = end.data() + end.size() - (share ? 1 : 0);
        const auto read = std::from_chars(end.data(), stop, value, std::chars_format::fixed);
        const double most = share ? 100 : static_cast<double>(n);
        if (read.ec != std::errc() || read.ptr != stop || !(value >= 0 && value <= most)) refuse();
        if (!share && value != std::floor(value)) refuse();
        return static_cast<ig::Index>(share ? value * static_cast<double>(n) / 100 : value);
    };
    const auto colon = range.find(':');
    if (colon == std::string::npos) refuse();
    const std::pair at(place(std::string_view(range).substr(0, colon), 0),
                       place(std::string_view(range).substr(colon + 1), n));
    if (at.first >= at.second) refuse();
    return at;
}

/// The tokens of a file, or of standard input if the name is "-".
inline ig::text::Corpus read_text(const std::string& path, const ig::text::Vocabulary& vocabulary) {
    return path == "-" ? ig::text::Corpus::read_stream(std::cin, "standard input", vocabulary)
                       : ig::text::Corpus::read(path, vocabulary);
}

/// The counts of a corpus: tokens, types, unknowns, line ends, checksum.
inline std::string describe(const ig::text::Corpus& corpus, std::string name) {
    if (name == "-") name = corpus.source();
    const double share = 100.0 * static_cast<double>(corpus.unknowns()) / static_cast<double>(corpus.size());
    return ig::message(ig::shown(name), ": ", counted(corpus.size(), "token"), ", ", grouped(corpus.lines()),
                       " of them line ends, ", grouped(corpus.unknowns()), " <unk> (", fixed(share, 1),
                       " %), checksum ", ig::file::hex16(corpus.checksum()));
}

/// A perplexity with everything it depends on.
inline std::string describe(const ig::Perplexity& p, const ig::text::Corpus& corpus,
                            const ig::text::Vocabulary& vocabulary, ig::Index columns) {
    std::string out = ig::message("perplexity ", fixed(p.value(), 2), " (", fixed(p.nats(), 4), " nats, ",
                                  fixed(p.bits_per_token(), 4), " bits a token)");
    if (vocabulary.level() == ig::text::Level::character)
        out += ig::message(", ", fixed(p.bits_per_character(), 4), " bits a character");
    return out + ig::message("\n    exp of the mean -log p, logarithm to base e, over ",
                             counted(p.tokens(), "token"), ", ", grouped(corpus.unknowns()), " <unk> and ",
                             grouped(corpus.lines()), " line ends among them,\n    in ",
                             counted(columns, "column"), ", a line end fed first, state carried; corpus ",
                             ig::file::hex16(corpus.checksum()), ", vocabulary ",
                             ig::file::hex16(vocabulary.checksum()));
}

/// Perplexity of a corpus under the unigram model of the vocabulary's counts.
inline double unigram_perplexity(const ig::text::Vocabulary& vocabulary, const ig::text::Corpus& corpus) {
    return std::exp(ig::unigram_cross_entropy(vocabulary, corpus));
}

}  // namespace lm
