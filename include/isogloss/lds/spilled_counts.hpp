/// @file lds/spilled_counts.hpp  Counts of a text of any length within a memory limit, by means of files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/lds/count_cursor.hpp>
#include <isogloss/lds/count_folder.hpp>
#include <isogloss/lds/count_merge.hpp>
#include <isogloss/lds/count_run.hpp>
#include <isogloss/lds/counts.hpp>
#include <isogloss/lds/pair_block.hpp>
#include <isogloss/lds/spill_plan.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// Lagged co-occurrences of a text whose counts may exceed memory; the result is that of LagCounts.
///
///     SpilledCounts counts(V, "big.spill", {.lags = 7, .memory = Index{2} << 30, .vocabulary_checksum = v.checksum()});
///     while (read(some)) counts.add(some);     // tokens of one text, in pieces of any size
///     save_counts("big.counts", counts, v);    // of isogloss/lds/files.hpp
///     counts.clear();                          // removes its files
///
/// A block of tokens, as many as fit in the memory limit, is counted as in LagCounts and written to a file of
/// the folder, pairs in order. At the end files are merged, `open_files` or as many as the memory has
/// buffers for at a time, neighbours with the fewest bytes first, until one is left. Its contents do not
/// depend on memory, files, threads or pieces.
///
/// Resuming     A file gets its name only once it is complete, and has a checksum of every part. Files of an
///              earlier counting in the folder are an error, which leaves them, unless `existing` says what becomes
///              of them. With Existing::resume the tokens covered by the files in the folder are skipped (the whole text is given again), all
///              others counted. A damaged file is removed, listed in `damaged`, and its tokens are counted
///              again; one that cannot be read, or of another version of the library, is an error and stays. Each
///              file has a hash of the text up to its end, so that a different text is refused.
/// Memory       `memory` bounds what it and its threads allocate with operator new (see PairBlock); memory of
///              the caller and the file cache of the system are not included.
/// Disk         about 3 bytes for each pair and block, and as much again during the last merge.
/// Errors       UsageError: options out of range, too little memory, use after finish() or clear(), tokens to
///              count after passed ones that follow counted ones. DataError: a token outside the vocabulary,
///              more than 2⁶³ - 1 tokens, a text or vocabulary other than that of the files. FileError: a
///              folder in use by another counting, or with the files of one that are neither to be continued
///              nor removed, a damaged file, any failure of the system, such as a full disk. After an error,
///              or an exception from `watch`, the object can only be destroyed, unless it came from a merge:
///              the next call of finish() goes on with it. Complete files stay in the folder for
///              Existing::resume until clear().
/// Source       Knuth 1998, The Art of Computer Programming 3, section 5.4: external sorting by merging.
class SpilledCounts {
public:
    /// Counts of no tokens. The folder is created if it does not exist; its parent must exist.
    SpilledCounts(Index vocabulary, const std::string& folder, SpillOptions options = {})
        : vocabulary_(vocabulary),
          options_(std::move(options)),
          plan_(vocabulary, options_),
          folder_(folder) {
        within_memory("SpilledCounts", options_.memory, [&] { text_.reserve(options_.lags + plan_.block); });
        if (const Index found = folder_.files(); found > 0 && options_.existing == Existing::refuse)
            throw FileError("SpilledCounts: '", folder_.path(), "' holds ", found,
                            found == 1 ? " file" : " files",
                            " of an earlier counting, which would be lost; continue from there with "
                            "existing = Existing::resume, or start over with Existing::remove");
        if (options_.existing != Existing::resume) {
            folder_.clear();  // at most partial files of a killed program if not asked to remove more
            return;
        }
        runs_ = folder_.restore(damaged_, [&] { watch({}); });
        for (const CountRun& run : runs_) {
            detail::require_alike("SpilledCounts: ", run, header(),
                                  "resume with the same options, or start over");
            if (vocabulary_checksum() == 0) added_checksum_ = run.header().words;
        }
    }

    /// Counts tokens that follow those given before. A pair is counted with its later word.
    void add(ArrayView<const Token> tokens) { take(tokens, true); }
    /// Tokens that follow those given before, as earlier words only: context for counting a part of a text. Those before
    /// and after the part may be passed, but none between tokens that are counted: UsageError.
    void pass(ArrayView<const Token> tokens) { take(tokens, false); }

    /// Adds counts of another text: no pair crosses the boundary between the texts.
    void add(const LagCounts& other) {
        require_open();
        auto known = options_;
        known.vocabulary_checksum = vocabulary_checksum();
        detail::require_alike("SpilledCounts", detail::shape_of(other.vocabulary(), other.options()),
                              detail::shape_of(vocabulary_, known));
        if (added_checksum_ == 0) added_checksum_ = other.options().vocabulary_checksum;
        detail::require_room("SpilledCounts", other.tokens(), position_);
        if (other.tokens() == 0) return;
        begin_counted();
        spill();
        text_.clear();
        add_to_hash(other);
        const std::int64_t first = std::exchange(position_, position_ + other.tokens());
        if (restored_ < files() && runs_[restored_].header().first < position_) {
            if (runs_[restored_].header().last > position_) return;
            pass_restored();
            return;
        }
        write(first, [&](CountRunWriter& out) {
            for (std::size_t i = 0; i < other.occurrences().size(); ++i)
                if (other.occurrences()[i] > 0)
                    out.add(static_cast<std::int64_t>(i), 0, other.occurrences()[i]);
            for (Index k = 1; k <= options_.lags; ++k) {
                out.section();
                const SparseCounts& m = other.lag(k);
                for (Index i = 0; i < vocabulary_; ++i)
                    for (Index at = m.starts[i]; at < m.starts[i + 1]; ++at) {
                        if (at % PairBlock::stride == 0) watch({.done = position_});
                        if (m.values[at] > 0) out.add(i, m.columns[at], m.values[at]);
                    }
            }
        });
    }

    /// Merges all counts into one file; nothing can be added afterwards.
    const CountRun& finish() {
        if (closed_)
            throw UsageError(
                "SpilledCounts: found a use after clear(), which has removed the counts; call clear() last");
        if (finished_ && runs_.size() == 1) return runs_.front();  // more: a merge failed, and goes on here
        spill();
        if (restored_ < files())
            throw DataError("SpilledCounts: the text has ", position_, " tokens, but '",
                            runs_[restored_].path(), "' holds counts of tokens ",
                            runs_[restored_].header().first, " to ", runs_[restored_].header().last,
                            "; resume with the same text, or start over");
        text_ = {};
        if (runs_.empty()) {
            write(position_, [&](CountRunWriter& out) {
                for (Index k = 1; k <= options_.lags; ++k) out.section();
            });
        }
        finished_ = true;
        const auto tell = [&](std::int64_t done, std::int64_t all) { watch({true, done, all}); };
        for (; runs_.size() > 1; ++merges_) merge_neighbours(runs_, folder_, plan_.fan, plan_.buffer, tell);
        return runs_.front();
    }

    /// All counts, read into memory as LagCounts; calls finish(). Throws DataError if there is not enough memory; the
    /// counts remain in their file.
    LagCounts counts() {
        const CountRun& all = finish();
        try {
            return counts_of(all, buffer(), vocabulary_checksum());
        } catch (const std::bad_alloc&) {
        } catch (const std::length_error&) {
        }
        throw DataError(
            "SpilledCounts: there is not enough memory for all counts at once; write them with save_counts "
            "and map that file with load_counts");
    }

    /// Removes the count files in the folder, including those of earlier runs, and the folder if created here.
    void clear() {
        if (closed_) return;
        runs_.clear();
        folder_.clear();
        folder_.remove_if_made();
        closed_ = true;
    }

    Index vocabulary() const { return vocabulary_; }          ///< V
    const SpillOptions& options() const { return options_; }  ///< as given
    /// Of the vocabulary: as given, else that of counts that were added; 0 if neither knows it.
    std::uint64_t vocabulary_checksum() const {
        return options_.vocabulary_checksum != 0 ? options_.vocabulary_checksum : added_checksum_;
    }
    std::int64_t tokens() const { return position_; }  ///< tokens given so far
    Index block() const { return plan_.block; }        ///< tokens counted at a time
    Index files() const { return std::ssize(runs_); }  ///< current number of files
    Index merges() const { return merges_; }           ///< merges so far
    /// With Existing::resume: what was wrong with files that are counted again, one sentence each.
    const std::vector<std::string>& damaged() const { return damaged_; }

    /// The least memory for these options.
    static Index least_memory(Index vocabulary, const SpillOptions& options) {
        return SpillPlan::least_memory(vocabulary, options);
    }
    /// Bytes of the read buffer of a file.
    Index buffer() const { return plan_.buffer; }

private:
    void require_open() const {
        if (finished_ || closed_)
            throw UsageError("SpilledCounts: found tokens after the end, expected them before finish()");
    }

    // The header of a file is of tokens from the first to the last that are counted: it does not tell that some between
    // them were only passed, and a resumed run would take these as counted.
    void begin_counted() {
        if (passed_after_)
            throw UsageError(
                "SpilledCounts: found tokens to count after passed ones that follow counted ones, "
                "expected a part of a text in one piece; count the parts one by one, in folders of "
                "their own");
        counted_ = true;
    }

    // By all of these counts a resumed run tells whether it is given what an earlier one was.
    void add_to_hash(const LagCounts& other) {
        std::vector<Token> halves;
        const auto put = [&](std::int64_t n) {
            halves.push_back(static_cast<Token>(n & 0x7fffffff));
            halves.push_back(static_cast<Token>(n >> 31 & 0x7fffffff));
            if (halves.size() < 8192) return;
            hash_.add(halves);
            halves.clear();
        };
        for (const std::int64_t n : other.occurrences()) put(n);
        for (Index k = 1; k <= options_.lags; ++k) {
            const SparseCounts& m = other.lag(k);
            for (const std::int64_t s : m.starts) put(s);
            for (Index at = 0; at < m.pairs(); ++at) put(m.columns[at]), put(m.values[at]);
        }
        hash_.add(halves);
    }

    void take(ArrayView<const Token> tokens, bool counted) {
        require_open();
        for (Index p = 0; p < std::ssize(tokens); ++p)
            detail::require_word("SpilledCounts", position_ + p, tokens[p], vocabulary_);
        detail::require_room("SpilledCounts", std::ssize(tokens), position_);
        if (tokens.empty()) return;
        if (counted) begin_counted();
        else passed_after_ = counted_, spill();
        while (!tokens.empty()) {
            Index count = std::ssize(tokens);
            const CountRunHeader* next = restored_ < files() ? &runs_[restored_].header() : nullptr;
            if (next && next->first <= position_) {  // counted by an earlier run
                if (!counted) refuse_part(*next);
                count = std::min<Index>(count, next->last - position_);
                remember(tokens.first(std::size_t(count)));
                if (position_ == next->last) pass_restored();
            } else if (counted) {
                if (next) count = std::min<Index>(count, next->first - position_);
                count = std::min(count, plan_.block - pending_);
                text_.insert(text_.end(), tokens.begin(), tokens.begin() + count);
                hash_.add(tokens.first(std::size_t(count)));
                pending_ += count;
                position_ += count;
                if (pending_ == plan_.block || (next && position_ == next->first)) spill();
            } else {
                if (next && next->first < position_ + count) refuse_part(*next);
                remember(tokens.first(std::size_t(count)));
            }
            tokens = tokens.subspan(std::size_t(count));
        }
    }
    [[noreturn]] void refuse_part(const CountRunHeader& h) const {
        throw DataError("SpilledCounts: the files in the folder hold counts of tokens from ", h.first,
                        " on, which are not to be counted here; resume with the same options, or start over");
    }

    // Keeps tokens that are not to be counted, as context of those that follow.
    void remember(std::span<const Token> tokens) {
        hash_.add(tokens);
        position_ += std::ssize(tokens);
        const auto last = tokens.last(std::min(tokens.size(), std::size_t(options_.lags)));
        text_.insert(text_.end(), last.begin(), last.end());
        keep_context();
    }
    void keep_context() {
        const auto kept = std::min<Index>(options_.lags, std::ssize(text_));
        text_.erase(text_.begin(), text_.end() - kept);
    }
    void pass_restored() {
        if (hash_.value() != runs_[restored_].header().text)
            throw DataError("SpilledCounts: the text is not that of '", runs_[restored_].path(),
                            "': its first ", position_,
                            " tokens differ; resume with the same text, or start over");
        ++restored_;
    }

    // Counts the block and writes it to a file. Calls watch throughout: a large block takes minutes.
    void spill() {
        if (pending_ == 0) return;
        const Index end = std::ssize(text_), V = vocabulary_;
        const auto look = [&] { watch({.done = position_}); };
        within_memory<DataError>("SpilledCounts", options_.memory, [&] {
            const PairBlock pairs(text_, end - pending_, end, V, options_.lags, options_.boundary, look);
            Array<LagCells> cells(plan_.side_by_side);
            write(position_ - pending_, [&](CountRunWriter& out) {
                for (Index i = 0; i < V; ++i)
                    if (pairs.start(i + 1) > pairs.start(i))
                        out.add(i, 0, std::int64_t{pairs.start(i + 1) - pairs.start(i)});
                for (Index k = 1; k <= options_.lags; k += plan_.side_by_side) {
                    const Index n = std::min(plan_.side_by_side, options_.lags + 1 - k);
                    count_lags(pairs, k, n, cells, look);
                    for (Index c = 0; c < n; ++c) write_lag(pairs, cells[c], out, look);
                }
            });
        });
        pending_ = 0;
        keep_context();
    }

    // Lags k … k + n - 1 of a block, one per thread; look() and allocations on the calling thread only.
    template <class Look>
    static void count_lags(const PairBlock& pairs, Index k, Index n, Array<LagCells>& cells, Look&& look) {
        for (Index c = 0; c < n; ++c) pairs.begin(cells[c], look);
        for (Index from = 0; from < pairs.places(); from += PairBlock::stride) {
            look();
            const Index to = std::min(pairs.places(), from + PairBlock::stride);
            parallel(n, 1, n, [&](Index a, Index b, Index) {
                for (Index c = a; c < b; ++c) pairs.count(k + c, cells[c], from, to);
            });
        }
    }
    template <class Look>
    void write_lag(const PairBlock& pairs, const LagCells& lag, CountRunWriter& out, Look&& look) const {
        out.section();
        Index met = 0;
        for (Index i = 0; i < vocabulary_; ++i)
            for (std::uint32_t at = pairs.start(i); at < lag.rows[i].end; ++at) {
                if (met++ % PairBlock::stride == 0) look();
                out.add(i, lag.cells[at].column, lag.cells[at].count);
            }
    }

    // What its files have in common.
    CountRunHeader header() const {
        return {.vocabulary = vocabulary_,
                .words = vocabulary_checksum(),
                .lags = options_.lags,
                .boundary = options_.boundary};
    }
    // Writes tokens first … position of the text; sections(writer) is called after section 0 has begun.
    template <class Sections> void write(std::int64_t first, Sections&& sections) {
        CountRunHeader h = header();
        h.first = first;
        h.last = position_;
        h.text = hash_.value();
        const std::string path = folder_.name_of(h);
        CountRunWriter out(path, h);
        out.section();
        sections(out);
        out.commit();
        runs_.insert(runs_.begin() + restored_, CountRun(path));
        ++restored_;
    }

    void watch(const SpillProgress& progress) const {
        if (options_.watch) options_.watch(progress);
    }

    Index vocabulary_;
    SpillOptions options_;
    std::uint64_t added_checksum_ = 0;  // of the vocabulary of added or restored counts, where it is known
    SpillPlan plan_;
    CountFolder folder_;
    Array<CountRun> runs_;  // sorted by first token
    Index restored_ = 0;    // number of these that the text has passed
    std::vector<std::string> damaged_;
    Array<Token> text_;  // the last `lags` counted tokens, then `pending_` tokens still to be counted
    Index pending_ = 0, merges_ = 0;
    std::int64_t position_ = 0;
    file::TokenHash hash_;
    bool counted_ = false,
         passed_after_ = false;  // whether any tokens were counted, and some passed after that
    bool finished_ = false, closed_ = false;
};

}}}  // namespace isogloss::lds
