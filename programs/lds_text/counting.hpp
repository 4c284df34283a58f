/// @file counting.hpp  Shared by counting in memory and within given memory.
#pragma once

#include <sstream>
#include <string>
#include <utility>

#include "common.hpp"
#include "texts.hpp"

namespace lt {

/// "2/4": the second of four.
inline std::pair<ig::Index, ig::Index> parse_shard(const std::string& shard) {
    std::istringstream in(shard);
    ig::Index number = 0, of = 0;
    char slash = 0;
    constexpr ig::Index most = 1000000000;  // part_of multiplies two of these
    if (!(in >> number >> slash >> of) || slash != '/' || number < 1 || number > of || of > most ||
        in.peek() != EOF)
        throw ig::DataError(ig::message("--shard is '", shard,
                                        "', expected NUMBER/OF, 2/4 for the second of four, and at most ",
                                        most, " parts"));
    return {number, of};
}

/// The part of rank `rank` of `size` among tokens first … last-1.
inline std::pair<ig::Index, ig::Index> part_of(std::pair<ig::Index, ig::Index> all, ig::Index rank,
                                               ig::Index size) {
    const ig::Index tokens = all.second - all.first, each = tokens / size, rest = tokens % size;
    // tokens · r / size, without the product
    const auto begin = [&](ig::Index r) { return all.first + each * r + rest * r / size; };
    return {begin(rank), begin(rank + 1)};
}

/// Tokens first … last-1 of the shard that --shard names.
inline std::pair<ig::Index, ig::Index> shard_of(const CountCommand& o, ig::Index tokens) {
    const auto [number, of] = parse_shard(o.shard);
    return part_of({0, tokens}, number - 1, of);
}

/// The vocabulary to count with.
inline ig::text::Vocabulary vocabulary_of(const CountCommand& o) {
    if (!o.vocabulary_from.empty()) return stored_vocabulary(o.vocabulary_from);
    for (const std::string& path : o.text)
        if (is_token_file(path))
            throw ig::DataError(ig::message("'", path,
                                            "' is a file of tokens, which holds no words; give the "
                                            "vocabulary it was made with by --vocabulary-from"));
    return read_vocabulary(o.text, o.vocabulary, o.min_count);
}

/// Writes the requested files other than the counts. Calls watch() from time to time, which may throw.
template <class Watch>
void write_beside(const CountCommand& o, const ig::text::Vocabulary& vocabulary, Watch&& watch) {
    if (!o.vocabulary_to.empty()) vocabulary.save(o.vocabulary_to);
    if (!o.tokens_to.empty()) Texts(o.text, vocabulary).encode(o.tokens_to, watch);
}

}  // namespace lt
