/// @file lds/spill_plan.hpp  Options of counting within a memory limit, and how the memory is divided.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <isogloss/error.hpp>
#include <isogloss/lds/count_cursor.hpp>
#include <isogloss/lds/count_run.hpp>
#include <isogloss/lds/pair_block.hpp>
#include <isogloss/threads.hpp>
#include <isogloss/types.hpp>
#include <limits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// Progress of a counting.
struct SpillProgress {
    bool merging = false;   ///< false: tokens are counted; true: files are merged
    std::int64_t done = 0;  ///< tokens counted so far; bytes merged so far
    std::int64_t all = 0;   ///< bytes to merge in this merge; 0 while tokens are counted
};

/// What becomes of the complete files that an earlier counting has left in the folder.
enum class Existing {
    refuse,  ///< they stay, and to count there is an error
    resume,  ///< the counting continues from them
    remove,  ///< they are removed, and the counting starts over
};

/// Options of SpilledCounts.
struct SpillOptions {
    Index lags = 7;                        ///< r ≥ 1: distances 1 … r, at most 1000
    Token boundary = -1;                   ///< a token that ends a sentence: no pair crosses it; -1: none
    Index memory = Index{1} << 30;         ///< memory limit in bytes, at least SpilledCounts::least_memory
    Index open_files = 64;                 ///< most files read at a time during a merge, ≥ 2
    Existing existing = Existing::refuse;  ///< files of an earlier counting in the folder
    std::uint64_t vocabulary_checksum =
        0;  ///< Vocabulary::checksum(): files with another are refused; 0: unknown
    /// Called several times per second; may throw to stop.
    std::function<void(const SpillProgress&)> watch = {};
};

/// How the memory of a counting is divided: first a block of tokens with its pairs, later the buffers of the
/// files being merged; a file writer in both phases.
///
///     memory ≥ fixed + 4 (block + lags) + PairBlock::bytes(block, …)        while tokens are counted
///     memory ≥ fixed + fan (buffer + CountRunCursor::memory)                while files are merged
///
/// Errors   UsageError: a vocabulary or options out of range, too little memory for 4096 tokens.
struct SpillPlan {
    Index block;         ///< tokens counted at a time, 4096 … 2³¹ - 1
    Index side_by_side;  ///< lags counted at a time, one per thread of threads()
    Index buffer;        ///< bytes of the read buffer of a file, 4096 … 2²⁰
    Index fan;           ///< files merged at a time, 2 … open_files

    /// The plan for a vocabulary of `vocabulary` words.
    SpillPlan(Index vocabulary, const SpillOptions& options)
        : block(block_tokens(vocabulary, options)),
          side_by_side(lags_at_a_time(options)),
          buffer(std::clamp((options.memory - fixed) / options.open_files - CountRunCursor::memory,
                            Index{4096}, Index{1} << 20)),
          fan(std::max<Index>(2, std::min(options.open_files,
                                          (options.memory - fixed) / (buffer + CountRunCursor::memory)))) {}

    /// The least memory for these options with the current number of threads.
    static Index least_memory(Index vocabulary, const SpillOptions& options) {
        return bytes_for(least_block, vocabulary, options);
    }

private:
    static constexpr Index least_block = 4096, fixed = CountRunWriter::memory + (Index{1} << 16);

    static Index lags_at_a_time(const SpillOptions& options) {
        return std::min<Index>(isogloss::threads(), options.lags);
    }
    static Index bytes_for(Index tokens, Index vocabulary, const SpillOptions& options) {
        return fixed + Index{sizeof(Token)} * (tokens + options.lags) +
               PairBlock::bytes(tokens, vocabulary, options.lags, options.boundary, lags_at_a_time(options));
    }
    static Index block_tokens(Index vocabulary, const SpillOptions& options) {
        const char* who = "SpilledCounts";
        require(who, "vocabulary", vocabulary, 1, std::numeric_limits<std::int32_t>::max());
        require(who, "lags", options.lags, 1, 1000);
        require(who, "boundary", Index{options.boundary}, -1, vocabulary - 1);
        require(who, "open_files", options.open_files, 2);
        const Index least = least_memory(vocabulary, options);
        if (options.memory < least)
            throw UsageError(who, ": found memory = ", options.memory, " bytes, expected at least ", least,
                             " for ", vocabulary, " words and ", options.lags, " lags on ",
                             isogloss::threads(), isogloss::threads() == 1 ? " thread" : " threads");
        const Index each = bytes_for(least_block + 1, vocabulary, options) - least;
        return std::min(least_block + (options.memory - least) / each, (Index{1} << 31) - 1 - options.lags);
    }
};

}}}  // namespace isogloss::lds
