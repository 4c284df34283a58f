/// @file text/corpus.hpp  A text as tokens: in memory, or in a mapped file larger than memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/text/batches.hpp>
#include <isogloss/text/token_file.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <isogloss/types.hpp>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace text {

/// How a text is read into tokens. Level, line ends and unknown words follow the vocabulary.
using CorpusOptions = file::LineOptions;

/// How a token file is mapped.
struct MapOptions {
    bool verify = true;  ///< read it once to check the checksum and the range of every token
};

/// A stream of tokens, 0 … V-1, from a text and a Vocabulary. Copies share the tokens, which are immutable.
///
///     auto corpus = Corpus::read("train.txt", vocabulary);               // 4 bytes per token in memory
///
///     Corpus::encode("train.txt", "train.tokens", vocabulary);           // once; memory stays bounded
///     auto corpus = Corpus::map("train.tokens", vocabulary);             // pages come as they are needed
///
///     for (auto batch : corpus.batches({.time = 35, .batch = 20})) …     // see Batches
///
/// Errors   DataError with file and line for invalid text (see LineReader), for unknown words without an
///          `unk`, for a text without tokens; FileError for files that cannot be read or are invalid (see
///          TokenFile).
class Corpus {
public:
    /// Reads a text file line by line; the tokens are kept in memory.
    static Corpus read(const std::string& path, const Vocabulary& vocabulary, CorpusOptions options = {}) {
        file::LineReader lines(path, options);
        return read(lines, vocabulary);
    }
    /// Reads a stream; `name` denotes it in messages.
    static Corpus read_stream(std::istream& in, const std::string& name, const Vocabulary& vocabulary,
                              CorpusOptions options = {}) {
        file::LineReader lines(in, name, options);
        return read(lines, vocabulary);
    }
    /// Takes tokens as given. Throws DataError for a token outside 0 … vocabulary_size-1, and for no tokens.
    static Corpus from_tokens(std::vector<Token> tokens, Index vocabulary_size,
                              std::string source = "tokens") {
        if (tokens.empty()) throw DataError(source, ": there are no tokens; expected at least one");
        for (std::size_t i = 0; i < tokens.size(); ++i)
            if (tokens[i] < 0 || tokens[i] >= vocabulary_size)
                throw DataError(source, ": token ", i, " is ", tokens[i], ", of ", vocabulary_size, " types");
        return Corpus(std::move(tokens), vocabulary_size, {}, std::move(source));
    }

    /// Encodes a text file as a token file: temporary name, flush, rename. Memory is bounded.
    static TokenStreamInfo encode(const std::string& text_path, const std::string& token_path,
                                  const Vocabulary& vocabulary, CorpusOptions options = {}) {
        file::LineReader lines(text_path, options);
        if (file::detail::same_file(text_path.c_str(), token_path.c_str()))
            throw FileError("'", token_path, "' is the text itself; write the tokens to another file");
        TokenFileWriter out(token_path, vocabulary);
        std::vector<Token> tokens;
        const Index unknowns = translate(lines, vocabulary, tokens, [&] {
            if (tokens.size() < (std::size_t{1} << 16)) return;
            out.add(tokens);
            tokens.clear();
        });
        out.add(tokens);
        return out.commit(unknowns, lines.line());
    }

    /// Maps a token file that `encode` wrote with the same vocabulary.
    static Corpus map(const std::string& token_path, const Vocabulary& vocabulary, MapOptions options = {}) {
        auto file = std::make_shared<const TokenFile>(token_path, vocabulary, options.verify);
        Corpus corpus;
        corpus.tokens_ = file->tokens();
        if (corpus.tokens_.empty()) throw DataError("'", token_path, "': there are no tokens");
        corpus.info_ = file->info();
        corpus.owner_ = std::move(file);
        corpus.types_ = vocabulary.size();
        corpus.vocabulary_ = vocabulary.checksum();
        corpus.source_ = token_path;
        return corpus;
    }

    /// N, the number of tokens, line ends included.
    Index size() const { return static_cast<Index>(tokens_.size()); }
    /// All tokens; valid as long as this object or a copy of it.
    std::span<const Token> tokens() const { return tokens_; }
    /// V, the size of the vocabulary.
    Index vocabulary_size() const { return types_; }
    /// Whether a vocabulary is the one that the tokens were read with, but for its counts; of bare tokens only the
    /// size is known.
    bool fits(const Vocabulary& vocabulary) const {
        return vocabulary.size() == types_ && (vocabulary_ == 0 || vocabulary.checksum() == vocabulary_);
    }
    /// Throws DataError unless it fits.
    void require_fits(const Vocabulary& vocabulary) const {
        if (!fits(vocabulary))
            throw DataError("'", source_, "' was read with another vocabulary, of ", types_, " types");
    }
    /// Number of `unk` tokens; 0 from bare tokens, for which it is unknown.
    Index unknowns() const { return info_.unknowns; }
    /// Lines of the text; 0 from bare tokens, for which it is unknown.
    Index lines() const { return info_.lines; }
    /// TokenHash of the stream: equal streams have equal checksums, on every platform. hex16 formats it.
    std::uint64_t checksum() const { return info_.checksum; }
    /// Name of the file or stream.
    const std::string& source() const { return source_; }

    /// Tokens first … last-1 as a corpus that shares them; `vocabulary` is the one they were read with. Its
    /// number of lines is that of the line ends among them, 0 where these are not tokens. Throws DataError unless
    /// 0 ≤ first < last ≤ size(), and for another vocabulary.
    Corpus part(Index first, Index last, const Vocabulary& vocabulary) const {
        if (first < 0 || first >= last || last > size())
            throw DataError(source_, ": found the part from ", first, " to ", last, " of ", size());
        require_fits(vocabulary);
        Corpus c = *this;
        c.tokens_ = tokens_.subspan(first, last - first);
        const auto count = [&c](bool there, Token t) {
            return there ? Index{std::count(c.tokens_.begin(), c.tokens_.end(), t)} : 0;
        };
        c.info_.tokens = c.size();
        c.info_.unknowns = count(vocabulary.has_unk(), vocabulary.has_unk() ? vocabulary.unk() : 0);
        c.info_.lines = count(vocabulary.eos_per_line(), vocabulary.eos_per_line() ? vocabulary.eos() : 0);
        file::TokenHash hash;
        hash.add(c.tokens_);
        c.info_.checksum = hash.value();
        return c;
    }

    /// One pass over the tokens in batches [T, B]; see Batches. The range keeps the tokens alive.
    Batches batches(Capacity capacity, BatchOptions options = {}) const {
        return Batches(tokens_, types_, capacity, options, source_, owner_);
    }

private:
    Corpus() = default;
    Corpus(std::vector<Token> tokens, Index types, TokenStreamInfo info, std::string source)
        : info_(info), types_(types), source_(std::move(source)) {
        auto held = std::make_shared<const std::vector<Token>>(std::move(tokens));
        tokens_ = *held;
        owner_ = std::move(held);
        file::TokenHash hash;
        hash.add(tokens_);
        info_.tokens = size();
        info_.checksum = hash.value();
    }

    static Corpus read(file::LineReader& lines, const Vocabulary& vocabulary) {
        std::vector<Token> tokens;
        const Index unknowns = translate(lines, vocabulary, tokens, [] {});
        Corpus corpus(std::move(tokens), vocabulary.size(), {.unknowns = unknowns, .lines = lines.line()},
                      lines.name());
        corpus.vocabulary_ = vocabulary.checksum();
        return corpus;
    }

    // Appends the tokens of all lines; `flush` is called after each line and may consume them. Returns
    // the number of unknown tokens.
    template <class Flush> static Index translate(file::LineReader& lines, const Vocabulary& vocabulary,
                                                  std::vector<Token>& tokens, Flush&& flush) {
        Index unknowns = 0;
        bool any = false;
        for (std::string_view line; lines.next(line);) {
            unknowns += vocabulary.encode_checked(line, tokens, lines);
            any = any || !tokens.empty();
            flush();
        }
        if (!any)
            throw DataError(lines.name(), ": the text is empty: no words in its ", lines.line(), " lines");
        return unknowns;
    }

    std::span<const Token> tokens_;
    std::shared_ptr<const void> owner_;
    TokenStreamInfo info_;
    Index types_ = 0;
    std::uint64_t vocabulary_ = 0;  // checksum of the vocabulary; 0: bare tokens
    std::string source_;
};

}}}  // namespace isogloss::text
