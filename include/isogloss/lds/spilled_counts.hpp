/// @file lds/spilled_counts.hpp  Counts of a text of any length within given memory, by way of files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/lds/count_cursor.hpp>
#include <isogloss/lds/count_folder.hpp>
#include <isogloss/lds/count_run.hpp>
#include <isogloss/lds/counts.hpp>
#include <isogloss/lds/pair_block.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds {

/// How far a counting is.
struct SpillProgress {
    bool merging = false;   ///< false: tokens are counted; true: files are merged
    std::int64_t done = 0;  ///< tokens counted so far; bytes merged so far
    std::int64_t all = 0;   ///< bytes to merge in this merge; 0 while tokens are counted
};

/// Options of SpilledCounts.
struct SpillOptions {
    Index lags = 7;                 ///< r ≥ 1: distances 1 … r, at most 1000
    Token boundary = -1;            ///< a token that ends a sentence: no pair reaches over it; -1: none does
    Index memory = Index{1} << 30;  ///< most bytes it takes, at least SpilledCounts::least_memory
    Index open_files = 64;          ///< most files read at a time while they are merged, ≥ 2
    bool resume = false;            ///< go on from the files in the folder; else they are removed
    std::uint64_t words = 0;        ///< checksum of the vocabulary: files of another are refused
    std::function<void(const SpillProgress&)> watch = {};  ///< called now and then; may throw to stop
};

/// Lagged co-occurrences of a text whose counts may be larger than the memory: those of LagCounts.
///
///     SpilledCounts counts(V, "big.spill", {.lags = 7, .memory = Index{2} << 30, .words = v.checksum()});
///     while (read(some)) counts.add(some);     // tokens of one text, in pieces of any size
///     save_counts("big.counts", counts, v);    // of isogloss/lds/files.hpp
///     counts.clear();                          // removes its files
///
/// A block of tokens, as many as the memory has room for, is counted as LagCounts does it and written to a
/// file of the folder, pairs in order. At the end files are merged, `open_files` or as many as the memory has
/// buffers for at a time, neighbours with the fewest bytes first, until one is left. What it holds does not
/// depend on memory, files, threads or pieces.
///
/// Resuming     A file has its name only once it is complete, and a checksum of every part. With `resume` the
///              tokens that the files in the folder are of are passed over (the whole text is given again),
///              all others counted. A damaged file is removed, named in `damaged`, and its tokens are counted
///              anew. Each file knows a hash of the text up to its end, so that another text is refused.
/// Memory       `memory` bounds the blocks that it takes from operator new, and its threads' (see
///              PairBlock); what the caller keeps, and the system's cache of files, are apart from it.
/// Disk         about 3 bytes for each pair and block, and as much again while the last files are merged.
/// Errors       UsageError: options out of range, too little memory, use after an end. DataError: a token
///              outside the vocabulary, more than 2⁶³ - 1 tokens, another text or vocabulary than that of the
///              files. FileError: a folder that another counting uses, a damaged file, whatever the system
///              refuses: a full disk. After an error, or what `watch` threw, the object can only be
///              destroyed; files that are complete stay for `resume`, in the folder until clear().
/// Source       Knuth 1998, The Art of Computer Programming 3, section 5.4: external sorting by merging.
class SpilledCounts {
public:
    /// Counts of no tokens. The folder is created where it is not there; one above it must be.
    SpilledCounts(Index vocabulary, const std::string& folder, SpillOptions options = {})
        : vocabulary_(vocabulary),
          options_(std::move(options)),
          block_(block_tokens(vocabulary, options_)),
          side_by_side_(lags_at_a_time(options_)),
          folder_(folder) {
        within_memory("SpilledCounts", options_.memory, [&] { text_.reserve(options_.lags + block_); });
        if (!options_.resume) {
            folder_.clear();
            return;
        }
        runs_ = folder_.restore(damaged_);
        for (const CountRun& run : runs_) {
            const CountRunHeader& h = run.header();
            if (h.vocabulary != vocabulary || h.words != options_.words || h.lags != options_.lags ||
                h.boundary != options_.boundary)
                throw DataError("SpilledCounts: '", run.path(), "' is of ", h.vocabulary, " words, ", h.lags,
                                " lags and boundary ", h.boundary,
                                h.words == options_.words ? "" : ", and of another vocabulary", ", expected ",
                                vocabulary, ", ", options_.lags, " and ", options_.boundary,
                                "; resume as it was begun, or begin anew");
        }
    }

    /// Counts tokens that follow those before. A pair is counted with its later word.
    void add(ArrayView<const Token> tokens) { take(tokens, true); }
    /// Tokens that follow those before, as earlier words alone: for a part of a text.
    void pass(ArrayView<const Token> tokens) { take(tokens, false); }

    /// Adds counts of another text: no pair reaches into it or out of it.
    void add(const LagCounts& other) {
        require_open();
        if (other.vocabulary() != vocabulary_ || other.lags() != options_.lags ||
            other.options().boundary != options_.boundary)
            throw UsageError("SpilledCounts: found counts of ", other.vocabulary(), " words, ", other.lags(),
                             " lags and boundary ", other.options().boundary, ", expected ", vocabulary_,
                             ", ", options_.lags, " and ", options_.boundary, "; count all parts alike");
        require_room(other.tokens());
        if (other.tokens() == 0) return;
        spill();
        text_.clear();
        for (const std::int64_t n : other.occurrences()) {
            const Token halves[] = {static_cast<Token>(n & 0x7fffffff),
                                    static_cast<Token>(n >> 31 & 0x7fffffff)};
            hash_.add(halves);
        }
        const std::int64_t first = std::exchange(position_, position_ + other.tokens());
        if (restored_ < runs_.size() && runs_[restored_].header().first < position_) {
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
                    for (Index at = m.starts[i]; at < m.starts[i + 1]; ++at)
                        if (m.values[at] > 0) out.add(i, m.columns[at], m.values[at]);
            }
        });
    }

    /// Merges what was counted into one file; nothing can be added then.
    const CountRun& finish() {
        if (finished_) return runs_.front();
        spill();
        if (restored_ < runs_.size())
            throw DataError("SpilledCounts: the text has ", position_, " tokens, but '",
                            runs_[restored_].path(), "' is of tokens ", runs_[restored_].header().first,
                            " to ", runs_[restored_].header().last,
                            "; resume with the text it was begun with, or begin anew");
        text_ = {};
        if (runs_.empty()) {
            write(position_, [&](CountRunWriter& out) {
                for (Index k = 1; k <= options_.lags; ++k) out.section();
            });
        }
        finished_ = true;
        while (runs_.size() > 1) merge();
        return runs_.front();
    }

    /// All counts in memory, as if LagCounts had counted them; calls finish().
    LagCounts counts() {
        const CountRun& run = finish();
        Array<std::int64_t> occurrences(vocabulary_);
        for (CountRunCursor at(run, 0, buffer()); at.next();) occurrences[at.row()] = at.count();
        Array<SparseCounts> lags;
        for (Index k = 1; k <= options_.lags; ++k) {
            const CountRunSection& section = run.section(k);
            Array<std::int64_t> starts(vocabulary_ + 1), wide;
            Array<std::int32_t> columns;
            Array<std::uint32_t> narrow;
            const bool fits = section.largest <= std::numeric_limits<std::uint32_t>::max();
            columns.reserve(section.pairs);
            fits ? narrow.reserve(section.pairs) : wide.reserve(section.pairs);
            for (CountRunCursor at(run, k, buffer()); at.next();) {
                columns.push_back(static_cast<std::int32_t>(at.column()));
                if (fits) narrow.push_back(static_cast<std::uint32_t>(at.count()));
                else wide.push_back(at.count());
                ++starts[at.row() + 1];
            }
            std::partial_sum(starts.begin(), starts.end(), starts.begin());
            lags.push_back({std::move(starts), std::move(columns), std::move(narrow), std::move(wide)});
        }
        return LagCounts::from_parts({.lags = options_.lags, .boundary = options_.boundary},
                                     std::move(occurrences), std::move(lags));
    }

    /// Removes the files that it and others before it wrote into the folder, and the folder where it made it.
    void clear() {
        runs_.clear();
        folder_.clear();
        folder_.remove_if_made();
        closed_ = true;
    }

    Index vocabulary() const { return vocabulary_; }          ///< V
    const SpillOptions& options() const { return options_; }  ///< as given
    std::int64_t tokens() const { return position_; }         ///< tokens given so far
    Index block() const { return block_; }                    ///< tokens counted at a time
    Index files() const { return std::ssize(runs_); }         ///< files now
    Index merges() const { return merges_; }                  ///< merges so far
    /// Of `resume`: what was wrong with files that are counted anew, one sentence each.
    const std::vector<std::string>& damaged() const { return damaged_; }

    /// The least memory for such options.
    static Index least_memory(Index vocabulary, const SpillOptions& options) {
        return bytes_for(least_block, vocabulary, options);
    }
    /// Bytes of a buffer through which a file is read.
    Index buffer() const {
        return std::clamp((options_.memory - fixed) / options_.open_files - CountRunCursor::memory,
                          Index{4096}, Index{1} << 20);
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
        require(who, "open_files", options.open_files, 2);
        const Index least = least_memory(vocabulary, options);
        if (options.memory < least)
            throw UsageError(who, ": found memory = ", options.memory, " bytes, expected at least ", least,
                             " for ", vocabulary, " words and ", options.lags, " lags on ",
                             isogloss::threads(), isogloss::threads() == 1 ? " thread" : " threads");
        const Index each = bytes_for(least_block + 1, vocabulary, options) - least;
        return std::min(least_block + (options.memory - least) / each, (Index{1} << 31) - 1 - options.lags);
    }

    void require_open() const {
        if (finished_ || closed_)
            throw UsageError("SpilledCounts: found tokens after the end, expected them before finish()");
    }
    void require_room(std::int64_t more) const {
        if (more > std::numeric_limits<std::int64_t>::max() - position_)
            throw DataError("SpilledCounts: ", more, " tokens beside ", position_,
                            " are more than 2⁶³ - 1, and a count could overflow");
    }

    void take(ArrayView<const Token> tokens, bool count) {
        require_open();
        for (Index p = 0; p < std::ssize(tokens); ++p)
            if (tokens[p] < 0 || tokens[p] >= vocabulary_)
                throw DataError("SpilledCounts: token ", position_ + p, " is ", tokens[p],
                                ", outside the vocabulary of ", vocabulary_,
                                " words; read the text with the vocabulary counted with");
        require_room(std::ssize(tokens));
        if (!count) spill();
        while (!tokens.empty()) {
            Index some = std::ssize(tokens);
            const CountRunHeader* next = restored_ < runs_.size() ? &runs_[restored_].header() : nullptr;
            if (next && next->first <= position_) {  // counted by the program before
                if (!count) refuse_part(*next);
                some = std::min<Index>(some, next->last - position_);
                remember(tokens.first(std::size_t(some)));
                if (position_ == next->last) pass_restored();
            } else if (count) {
                if (next) some = std::min<Index>(some, next->first - position_);
                some = std::min(some, block_ - pending_);
                text_.insert(text_.end(), tokens.begin(), tokens.begin() + some);
                hash_.add(tokens.first(std::size_t(some)));
                pending_ += some;
                position_ += some;
                if (pending_ == block_ || (next && position_ == next->first)) spill();
            } else {
                if (next && next->first < position_ + some) refuse_part(*next);
                remember(tokens.first(std::size_t(some)));
            }
            tokens = tokens.subspan(std::size_t(some));
        }
    }
    [[noreturn]] void refuse_part(const CountRunHeader& h) const {
        throw DataError("SpilledCounts: the files in the folder are of tokens from ", h.first,
                        " on, which are not to be counted here; resume as it was begun, or begin anew");
    }

    // Tokens that are not to be counted, as the context of those that follow.
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
                            " tokens differ; resume with the text it was begun with, or begin anew");
        ++restored_;
    }

    // Counts the block and writes it to a file.
    void spill() {
        if (pending_ == 0) return;
        const Index end = std::ssize(text_), V = vocabulary_;
        within_memory<DataError>("SpilledCounts", options_.memory, [&] {
            const PairBlock pairs(text_, end - pending_, end, V, options_.lags, options_.boundary);
            std::vector<LagCells> cells(static_cast<std::size_t>(side_by_side_));
            for (LagCells& c : cells) {  // nothing is allocated on the threads
                c.rows.resize(V);
                c.cells.resize(pending_);
            }
            write(position_ - pending_, [&](CountRunWriter& out) {
                for (Index i = 0; i < V; ++i)
                    if (pairs.start(i + 1) > pairs.start(i))
                        out.add(i, 0, std::int64_t{pairs.start(i + 1) - pairs.start(i)});
                for (Index k = 1; k <= options_.lags; k += side_by_side_) {
                    watch({.done = position_});
                    const Index n = std::min(side_by_side_, options_.lags + 1 - k);
                    parallel(n, 1, n, [&](Index a, Index b, Index) {
                        for (Index c = a; c < b; ++c) pairs.count(k + c, cells[std::size_t(c)]);
                    });
                    for (Index c = 0; c < n; ++c) {
                        out.section();
                        const LagCells& lag = cells[std::size_t(c)];
                        for (Index i = 0; i < V; ++i)
                            for (std::uint32_t at = pairs.start(i); at < lag.rows[i].end; ++at)
                                out.add(i, lag.cells[at].column, lag.cells[at].count);
                    }
                }
            });
        });
        pending_ = 0;
        keep_context();
    }

    // Writes tokens first … position of the text; sections(writer) follows the beginning of section 0.
    template <class Sections> void write(std::int64_t first, Sections&& sections) {
        CountRunHeader h{.vocabulary = vocabulary_,
                         .words = options_.words,
                         .lags = options_.lags,
                         .boundary = options_.boundary,
                         .first = first,
                         .last = position_,
                         .text = hash_.value()};
        const std::string path = folder_.name_of(h);
        CountRunWriter out(path, h);
        out.section();
        sections(out);
        out.commit();
        runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(restored_), CountRun(path));
        ++restored_;
    }

    // Merges the neighbours with the fewest bytes, so many that as few merges as can be are left.
    void merge() {
        const Index fan = std::max<Index>(
            2,
            std::min(options_.open_files, (options_.memory - fixed) / (buffer() + CountRunCursor::memory)));
        const Index n = std::ssize(runs_), width = std::min(fan, n > fan ? n - fan + 1 : n);
        Index begin = 0, least = 0;
        for (Index i = 0, sum = 0; i < n; ++i) {
            sum += runs_[std::size_t(i)].bytes();
            if (i >= width) sum -= runs_[std::size_t(i - width)].bytes();
            if (i == width - 1 || (i >= width && sum < least)) begin = i - width + 1, least = sum;
        }
        const std::span<const CountRun> group(runs_.data() + begin, static_cast<std::size_t>(width));
        CountRunHeader h = group.back().header();
        h.first = group.front().header().first;
        const std::string path = folder_.name_of(h);
        CountRunWriter out(path, h);
        std::int64_t done = 0;
        for (Index k = 0; k <= options_.lags; ++k) {
            out.section();
            std::int64_t bytes = 0, pairs = 0, met = 0;
            for (const CountRun& run : group) bytes += run.section(k).bytes, pairs += run.section(k).pairs;
            merge_count_runs(
                group, k, buffer(), [&](std::int64_t row, std::int64_t column, std::int64_t count) {
                    out.add(row, column, count);
                    if (++met % 65536 == 0)
                        watch({true, done + bytes * std::min<std::int64_t>(1000, 1000 * met / pairs) / 1000,
                               least});
                });
            done += bytes;
            watch({true, done, least});
        }
        out.commit();
        ++merges_;
        for (const CountRun& run : group) folder_.remove(run.path());
        runs_.erase(runs_.begin() + begin + 1, runs_.begin() + begin + width);
        runs_[std::size_t(begin)] = CountRun(path);
    }

    void watch(const SpillProgress& progress) const {
        if (options_.watch) options_.watch(progress);
    }

    Index vocabulary_;
    SpillOptions options_;
    Index block_, side_by_side_;
    CountFolder folder_;
    std::vector<CountRun> runs_;  // by their first token
    std::size_t restored_ = 0;    // of them, those that the text has come past
    std::vector<std::string> damaged_;
    Array<Token> text_;  // the last `lags` tokens that are counted, then `pending_` that are to be
    Index pending_ = 0, merges_ = 0;
    std::int64_t position_ = 0;
    file::TokenHash hash_;
    bool finished_ = false, closed_ = false;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds
