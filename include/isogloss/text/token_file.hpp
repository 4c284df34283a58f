/// @file text/token_file.hpp  Token streams on disk, mapped into memory for use.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/file/output_file.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <string>
#include <string_view>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace text {

/// Counts and checksum of a token stream.
struct TokenStreamInfo {
    Index tokens = 0;            ///< number of tokens, line ends included
    Index unknowns = 0;          ///< number of `unk` among them
    Index lines = 0;             ///< lines of the text it comes from
    std::uint64_t checksum = 0;  ///< TokenHash of the stream
};

namespace detail {

/// The first 128 bytes of a token file; tokens of 32 bits follow, in the byte order of `order`.
struct TokenFileHeader {
    std::array<char, 8> magic{'i', 's', 'o', 't', 'o', 'k', 'e', 'n'};
    std::uint32_t version = 1;
    std::uint32_t order = 0x01020304;  ///< reads as 0x04030201 on a machine of the other byte order
    std::uint64_t vocabulary_size = 0;
    std::uint64_t vocabulary_checksum = 0;
    std::uint64_t tokens = 0;
    std::uint64_t unknowns = 0;
    std::uint64_t lines = 0;
    std::uint64_t checksum = 0;               ///< TokenHash of the tokens
    std::array<std::uint64_t, 7> reserved{};  ///< zero
    std::uint64_t header_checksum = 0;        ///< hash_bytes of the preceding 120 bytes

    /// hash_bytes of all fields but the last.
    std::uint64_t hash() const {
        return file::hash_bytes(
            {reinterpret_cast<const char*>(this), offsetof(TokenFileHeader, header_checksum)});
    }
};
static_assert(sizeof(TokenFileHeader) == 128, "the header of a token file has 128 bytes and no gaps");

}  // namespace detail

/// Writes a token file piece by piece; `commit` gives it its name.
class TokenFileWriter {
public:
    /// Opens a temporary file in the folder of `path`, for tokens of `vocabulary`.
    TokenFileWriter(const std::string& path, const Vocabulary& vocabulary) : file_(path) {
        header_.vocabulary_size = static_cast<std::uint64_t>(vocabulary.size());
        header_.vocabulary_checksum = vocabulary.checksum();
        file_.write(bytes_of(header_));  // commit() writes it again, complete
    }

    /// Appends tokens, each of them below the size of the vocabulary.
    void add(std::span<const Token> tokens) {
        file_.write({reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()});
        hash_.add(tokens);
        header_.tokens += tokens.size();
    }

    /// Completes the header, flushes and renames the file. Returns what was written.
    TokenStreamInfo commit(Index unknowns, Index lines) {
        header_.unknowns = static_cast<std::uint64_t>(unknowns);
        header_.lines = static_cast<std::uint64_t>(lines);
        header_.checksum = hash_.value();
        header_.header_checksum = header_.hash();
        file_.write_at(0, bytes_of(header_));
        file_.commit();
        return {static_cast<Index>(header_.tokens), unknowns, lines, header_.checksum};
    }

private:
    static std::string_view bytes_of(const detail::TokenFileHeader& h) {
        return {reinterpret_cast<const char*>(&h), sizeof h};
    }

    file::OutputFile file_;
    detail::TokenFileHeader header_;
    file::TokenHash hash_;
};

/// A mapped token file. The whole file is refused unless everything matches: magic, version, byte order, the
/// header's own checksum, the exact size, the vocabulary, and, if `verify`, the checksum of the
/// tokens and the range of each of them, which reads the file once.
///
/// Errors   FileError: missing, not a token file, truncated, damaged. DataError: made with another vocabulary.
class TokenFile {
public:
    /// Maps `path`; with `verify` false the tokens are not checked.
    TokenFile(const std::string& path, const Vocabulary& vocabulary, bool verify) : file_(path) {
        const detail::TokenFileHeader expected;
        detail::TokenFileHeader h;
        const auto bytes = static_cast<std::uint64_t>(file_.bytes());
        if (bytes > 0)
            std::memcpy(static_cast<void*>(&h), file_.data(), std::min<std::uint64_t>(sizeof h, bytes));
        if (bytes < sizeof h || h.magic != expected.magic || h.order != expected.order ||
            h.version != expected.version || h.header_checksum != h.hash() ||
            (bytes - sizeof h) % sizeof(Token) != 0 || h.tokens != (bytes - sizeof h) / sizeof(Token))
            throw FileError("'", path, "' is no token file of version ", expected.version,
                            " and this byte order, ",
                            "or it is damaged; make one from a text with Corpus::encode");
        if (h.vocabulary_size != static_cast<std::uint64_t>(vocabulary.size()) ||
            h.vocabulary_checksum != vocabulary.checksum())
            throw DataError("'", path, "' was made with another vocabulary, of ", h.vocabulary_size,
                            " types; this one has ", vocabulary.size(), "; encode the text again");
        info_ = {static_cast<Index>(h.tokens), static_cast<Index>(h.unknowns), static_cast<Index>(h.lines),
                 h.checksum};
        if (verify) check(vocabulary.size());
    }

    /// The tokens; valid as long as this object.
    std::span<const Token> tokens() const {
        return {reinterpret_cast<const Token*>(file_.data() + sizeof(detail::TokenFileHeader)),
                static_cast<std::size_t>(info_.tokens)};
    }
    /// Counts and checksum, from the header.
    const TokenStreamInfo& info() const { return info_; }

private:
    // Both checks in one pass: the file may be larger than memory.
    void check(Index types) const {
        constexpr std::size_t piece = std::size_t{1} << 14;
        file::TokenHash hash;
        bool inside = true;
        for (auto left = tokens(); !left.empty(); left = left.subspan(std::min(piece, left.size()))) {
            const auto some = left.first(std::min(piece, left.size()));
            hash.add(some);
            inside = inside && std::ranges::all_of(some, [types](Token t) { return t >= 0 && t < types; });
        }
        if (hash.value() != info_.checksum || !inside)
            throw FileError("'", file_.path(),
                            "' is damaged: its tokens do not match checksum or vocabulary");
    }

    file::MappedFile file_;
    TokenStreamInfo info_;
};

}}}  // namespace isogloss::text
