/// @file texts.hpp  Texts and token files, read in sequence as pieces of tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <isogloss/file/checksum.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/text/corpus.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../shared/outputs.hpp"
#include "commands.hpp"
#include "pages.hpp"

namespace lt {

/// Whether a file is a token file, as Corpus::encode writes it, and not a text. Pipes are not inspected.
inline bool is_token_file(const std::string& path) {
    const auto status = ig::file::file_status(path);
    return status && S_ISREG(status->st_mode) && files::begins_with(path, "isotoken");
}

/// Throws FileError for a missing text, DataError for an empty one.
inline void require_texts(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
        const auto status = ig::file::file_status(path);
        if (!status) ig::file::InputFile missing(path);  // says why
        else if (S_ISREG(status->st_mode) && status->st_size == 0)
            throw ig::DataError(ig::message(path, ": the text is empty; expected at least one line"));
    }
}

/// Several texts as one; token files among them are mapped.
class Texts {
public:
    /// Throws FileError for a missing one.
    Texts(std::vector<std::string> paths, const ig::text::Vocabulary& vocabulary)
        : paths_(std::move(paths)), vocabulary_(&vocabulary) {
        for (const std::string& path : paths_) {
            const auto status = ig::file::file_status(path);
            if (!status) ig::file::InputFile missing(path);  // says why
            else if (S_ISREG(status->st_mode)) bytes_ += static_cast<ig::Index>(status->st_size);
            else known_ = false;  // the size of a pipe is not its length
        }
    }

    /// Bytes of all files; 0 if unknown, as for a pipe.
    ig::Index bytes() const { return known_ ? bytes_ : 0; }

    /// Calls take(tokens, bytes) with pieces of about 2^16 tokens and the bytes of the files up to there.
    template <class Take> void for_each_piece(Take&& take) const {
        ig::Index before = 0;
        for (const std::string& path : paths_) {
            if (is_token_file(path)) before += mapped(path, before, take);
            else before += read(path, before, take);
        }
    }

    /// Writes all tokens to a file of tokens. Calls watch() with every piece, which may throw.
    template <class Watch> void encode(const std::string& path, Watch&& watch) const {
        ig::text::TokenFileWriter out(path, *vocabulary_);
        ig::Index unknowns = 0, lines = 0;
        for_each_piece([&](std::span<const ig::Token> some, ig::Index) {
            watch();
            out.add(some);
            if (vocabulary_->has_unk()) unknowns += std::ranges::count(some, vocabulary_->unk());
            if (vocabulary_->has_eos()) lines += std::ranges::count(some, vocabulary_->eos());
        });
        out.commit(unknowns, lines);
    }

    /// The number of tokens, found by reading all. Calls watch() with every piece, which may throw.
    template <class Watch> ig::Index count(Watch&& watch) const {
        ig::Index tokens = 0;
        for_each_piece([&](std::span<const ig::Token> some, ig::Index) {
            watch();
            tokens += std::ssize(some);
        });
        return tokens;
    }

private:
    static constexpr std::size_t piece = std::size_t{1} << 16;

    template <class Take> ig::Index mapped(const std::string& path, ig::Index before, Take& take) const {
        const auto corpus = ig::text::Corpus::map(path, *vocabulary_, {.verify = false});
        ig::file::TokenHash hash;
        for (auto left = corpus.tokens(); !left.empty();) {
            const auto some = left.first(std::min(piece, left.size()));
            left = left.subspan(some.size());
            hash.add(some);
            take(some, before + 4 * (corpus.size() - std::ssize(left)));
            release(std::as_bytes(some));
        }
        if (hash.value() != corpus.checksum())
            throw ig::FileError(ig::message("'", path,
                                            "' is damaged: its tokens do not match their checksum; "
                                            "encode the text again"));
        return 4 * corpus.size();
    }

    template <class Take> ig::Index read(const std::string& path, ig::Index before, Take& take) const {
        ig::file::LineReader lines(path);
        std::vector<ig::Token> tokens;
        for (std::string_view line; lines.next(line);) {
            vocabulary_->encode_checked(line, tokens, lines);
            if (tokens.size() < piece) continue;
            take(std::span<const ig::Token>(tokens), before + lines.bytes());
            tokens.clear();
        }
        if (lines.line() == 0)
            throw ig::DataError(ig::message(path, ": the text is empty; expected at least one line"));
        if (!tokens.empty()) take(std::span<const ig::Token>(tokens), before + lines.bytes());
        return lines.bytes();
    }

    std::vector<std::string> paths_;
    const ig::text::Vocabulary* vocabulary_;
    ig::Index bytes_ = 0;
    bool known_ = true;
};

/// All tokens in memory, or mapped if the text is a single token file.
inline ig::text::Corpus corpus_of(const std::vector<std::string>& paths,
                                  const ig::text::Vocabulary& vocabulary) {
    if (paths.size() == 1)
        return is_token_file(paths[0]) ? ig::text::Corpus::map(paths[0], vocabulary)
                                       : ig::text::Corpus::read(paths[0], vocabulary);
    std::vector<ig::Token> tokens;
    Texts(paths, vocabulary).for_each_piece([&](std::span<const ig::Token> some, ig::Index) {
        tokens.insert(tokens.end(), some.begin(), some.end());
    });
    return ig::text::Corpus::from_tokens(std::move(tokens), vocabulary.size(), paths.front());
}

}  // namespace lt
