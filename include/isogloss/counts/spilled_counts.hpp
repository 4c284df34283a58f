/// @file counts/spilled_counts.hpp  Counts of a text of any length within a memory limit, by means of files.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <isogloss/array.hpp>
#include <isogloss/counts/lag_counts.hpp>
#include <isogloss/counts/pair_block.hpp>
#include <isogloss/counts/sorted_file.hpp>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/threads.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace counts {

/// Options of SpilledCounts.
struct SpillOptions {
    Index lags = 7;                         ///< r ≥ 1: distances 1 … r, at most 1000
    Token boundary = -1;                    ///< a token that ends a sentence: no pair crosses it; -1: none
    Index memory = Index{1} << 30;          ///< memory limit in bytes, at least SpilledCounts::least_memory
    Index open_files = 64;                  ///< most files read at a time during a merge, ≥ 2
    std::uint64_t vocabulary_checksum = 0;  ///< Vocabulary::checksum(): others are refused; 0: unknown
    /// Called several times per second, with the bytes merged and to be merged, or twice 0 while tokens are counted; may
    /// throw to stop.
    std::function<void(Index done, Index all)> watch = {};
};

/// Lagged co-occurrences of a text whose counts may exceed memory; the result is that of LagCounts.
///
///     SpilledCounts counts(V, "big.spill", {.lags = 7, .memory = Index{2} << 30, .vocabulary_checksum = v.checksum()});
///     while (read(some)) counts.add(some);     // tokens of one text, in pieces of any size
///     save_counts("big.counts", counts, v);    // of isogloss/counts/files.hpp
///     counts.clear();                          // removes its files
///
/// A block of tokens, as many as fit in the memory limit, is counted as in LagCounts and written to a SortedFile of
/// the folder, counts-FIRST-LAST.run. At the end files are merged, `open_files` or as many as the memory has
/// buffers for at a time, neighbours with the fewest bytes first, until one is left. Its contents do not
/// depend on memory, files, threads or pieces.
///
/// Resuming     A file gets its name only once it is complete. Where the folder has files already, the counting goes
///              on from them: the whole text is given again, and the tokens that they cover are skipped. A hash of
///              the text up to its end is in each, so that another text is refused. One counting at a time uses a
///              folder; SpilledCounts::remove empties it.
/// Memory       `memory` bounds what it and its threads allocate with operator new (see PairBlock); memory of
///              the caller and the file cache of the system are not included.
/// Disk         about 3 bytes for each pair and block, and as much again during the last merge.
/// Errors       UsageError: options out of range, too little memory, use after finish() or clear(), tokens to
///              count after passed ones that follow counted ones. DataError: a token outside the vocabulary,
///              more than 2⁶³ - 1 tokens, a text, vocabulary or options other than those of the files. FileError: as
///              SortedFile. After an error, or an exception from `watch`, the object can only be destroyed, unless it
///              came from a merge: the next call of finish() goes on with it. Complete files stay in the folder.
class SpilledCounts {
public:
    /// Counts of no tokens, or of those covered by the files in the folder. The folder is created if it does not exist;
    /// its parent must exist.
    SpilledCounts(Index vocabulary, const std::string& folder, SpillOptions options = {})
        : vocabulary_(vocabulary), options_(std::move(options)), folder_(folder + "/") {
        const char* who = "SpilledCounts";
        require(who, "vocabulary", vocabulary, 1, std::numeric_limits<std::int32_t>::max());
        require(who, "lags", options_.lags, 1, 1000);
        require(who, "boundary", Index{options_.boundary}, -1, vocabulary - 1);
        require(who, "open_files", options_.open_files, 2);
        const Index least = least_memory(vocabulary, options_),
                    each = bytes_for(least_block + 1, vocabulary, options_) - least;
        if (options_.memory < least)
            throw UsageError(who, ": found memory = ", options_.memory, " bytes, expected at least ", least,
                             " for ", vocabulary, " words and ", options_.lags, " lags on ",
                             isogloss::threads(), isogloss::threads() == 1 ? " thread" : " threads");
        block_ =
            std::min(least_block + (options_.memory - least) / each, (Index{1} << 31) - 1 - options_.lags);
        within_memory(who, options_.memory, [&] { text_.reserve(options_.lags + block_); });
        if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
            file::refuse("cannot create the folder", folder_);
        restore();
    }

    /// Counts tokens that follow those given before. A pair is counted with its later word.
    void add(ArrayView<const Token> tokens) { take(tokens, true); }
    /// Tokens that follow those given before, as earlier words only: context for counting a part of a text. Those before
    /// and after the part may be passed, but none between tokens that are counted: UsageError.
    void pass(ArrayView<const Token> tokens) { take(tokens, false); }

    /// Merges all counts into one file; nothing can be added afterwards.
    const SortedFile& finish() {
        if (!finished_) {
            require_open();
            spill();
            if (passed_ < files())
                throw DataError("SpilledCounts: the text has ", position_, " tokens, but '",
                                runs_[passed_].path(), "' holds counts of tokens ",
                                runs_[passed_].header().first, " to ", runs_[passed_].header().last,
                                "; resume with the same text, or start over");
            if (runs_.empty()) write(position_, [](Index, auto&&) {});
            text_ = {};
            finished_ = true;
        }
        while (runs_.size() > 1) merge_neighbours();
        return runs_.front();
    }

    /// Removes the files; the object can only be destroyed then.
    void clear() {
        remove(folder_);
        runs_.clear();
        cleared_ = true, finished_ = false;
    }
    /// Removes the files of countings in a folder, incomplete ones too. Others in it are left alone.
    static void remove(const std::string& folder) {
        for (const std::string& name : files_in(folder + "/")) remove_file(name);
    }

    Index vocabulary() const { return vocabulary_; }          ///< V
    const SpillOptions& options() const { return options_; }  ///< as given
    std::int64_t tokens() const { return position_; }         ///< tokens given so far
    Index block() const { return block_; }                    ///< tokens counted at a time
    Index files() const { return std::ssize(runs_); }         ///< current number of files
    /// Bytes of the read buffer of a file.
    Index buffer() const {
        return std::clamp((options_.memory - fixed) / options_.open_files - SortedFile::reader_memory,
                          Index{4096}, Index{1} << 20);
    }

    /// The least memory for these options with the current number of threads: that of 4096 tokens.
    ///
    ///     memory ≥ fixed + 4 (block + lags) + PairBlock::bytes(block, …)        while tokens are counted
    ///     memory ≥ fixed + files (buffer + SortedFile::reader_memory)           while files are merged
    static Index least_memory(Index vocabulary, const SpillOptions& options) {
        return bytes_for(least_block, vocabulary, options);
    }

private:
    static constexpr Index least_block = 4096, fixed = SortedFile::writer_memory + (Index{1} << 16);

    // Lags that are counted at a time, one per thread.
    static Index side_by_side(const SpillOptions& o) { return std::min<Index>(isogloss::threads(), o.lags); }
    static Index bytes_for(Index tokens, Index vocabulary, const SpillOptions& o) {
        return fixed + Index{sizeof(Token)} * (tokens + o.lags) +
               PairBlock::bytes(tokens, vocabulary, o.lags, o.boundary, side_by_side(o));
    }

    // Paths of complete files of counts, and of the temporary ones that OutputFile makes before they are complete.
    static std::vector<std::string> files_in(const std::string& folder) {
        const file::Folder all(::opendir(folder.c_str()));
        if (!all) file::refuse("cannot read the folder", folder);
        std::vector<std::string> paths;
        while (const dirent* entry = ::readdir(all.get())) {
            const std::string_view name = entry->d_name;
            const auto end = name.find(".run");
            if (name.starts_with("counts-") && end != name.npos &&
                name.find_first_not_of("0123456789-", 7) == end &&
                (name.substr(end) == ".run" || name.substr(end).starts_with(".run.isogloss-part-")))
                paths.push_back(folder + std::string(name));
        }
        return paths;
    }
    static void remove_file(const std::string& path) {
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) file::refuse("cannot remove", path);
    }

    // The complete files of the folder by first token, without those that have been merged into another.
    void restore() {
        for (const std::string& path : files_in(folder_)) {
            if (!path.ends_with(".run")) {  // what a killed program has left
                remove_file(path);
                continue;
            }
            runs_.emplace_back(path);
            detail::require_alike<DataError>("SpilledCounts", runs_.back().shape(),
                                             detail::shape_of(vocabulary_, options_), " in '" + path + "'");
        }
        std::sort(runs_.begin(), runs_.end(), [](const SortedFile& a, const SortedFile& b) {
            const auto &x = a.header(), &y = b.header();
            return x.first != y.first ? x.first < y.first : x.last > y.last;
        });
        Array<SortedFile> kept;
        for (SortedFile& run : runs_) {
            if (kept.empty() || run.header().first >= kept.back().header().last)
                kept.push_back(std::move(run));
            else remove_file(run.path());
        }
        runs_ = std::move(kept);
    }

    void require_open() const {
        if (finished_ || cleared_)
            throw UsageError("SpilledCounts: found a use after finish() or clear(), expected it before");
    }
    void take(ArrayView<const Token> tokens, bool counted) {
        require_open();
        for (Index p = 0; p < std::ssize(tokens); ++p)
            detail::require_word("SpilledCounts", position_ + p, tokens[p], vocabulary_);
        detail::require_room("SpilledCounts", std::ssize(tokens), position_);
        if (tokens.empty()) return;
        // The header of a file is of tokens from the first to the last that are counted: it does not tell that some between
        // them were only passed, and a resumed run would take these as counted.
        if (counted && passed_after_)
            throw UsageError("SpilledCounts: found tokens to count after passed ones that follow counted ",
                             "ones; count the parts of a text one by one, in folders of their own");
        counted_ = counted_ || counted;
        if (!counted) passed_after_ = counted_, spill();
        while (!tokens.empty()) {
            const auto* next = passed_ < files() ? &runs_[passed_].header() : nullptr;
            const bool restored = next && next->first <= position_;  // counted by an earlier run
            Index n = std::ssize(tokens);
            if (next) n = std::min<Index>(n, (restored ? next->last : next->first) - position_);
            if (restored && !counted)
                throw DataError("SpilledCounts: '", runs_[passed_].path(),
                                "' holds counts of tokens that are ",
                                "not to be counted here; resume with the same options, or start over");
            if (counted && !restored) n = std::min(n, block_ - pending_);
            const auto some = tokens.first(static_cast<std::size_t>(n));
            hash_.add(some);
            position_ += n;
            if (counted && !restored) {
                text_.insert(text_.end(), some.begin(), some.end());
                pending_ += n;
                if (pending_ == block_ || (next && position_ == next->first)) spill();
            } else {  // context of the tokens that follow
                const auto last = some.last(std::min(some.size(), static_cast<std::size_t>(options_.lags)));
                text_.insert(text_.end(), last.begin(), last.end());
                keep_context();
                if (restored && position_ == next->last) pass_restored();
            }
            tokens = tokens.subspan(static_cast<std::size_t>(n));
        }
    }
    void keep_context() {
        text_.erase(text_.begin(), text_.end() - std::min(options_.lags, std::ssize(text_)));
    }
    void pass_restored() {
        if (hash_.value() != runs_[passed_].header().text)
            throw DataError("SpilledCounts: the text is not that of '", runs_[passed_].path(),
                            "': its first ", position_,
                            " tokens differ; resume with the same text, or start over");
        ++passed_;
    }

    // Counts the block and writes it to a file. Calls watch throughout: a large block takes minutes.
    void spill() {
        if (pending_ == 0) return;
        const auto look = [this] { watch(); };
        within_memory<DataError>("SpilledCounts", options_.memory, [&] {
            const Index end = std::ssize(text_), width = side_by_side(options_);
            const PairBlock pairs(text_, end - pending_, end, vocabulary_, options_.lags, options_.boundary,
                                  look);
            Array<LagCells> cells(width);
            write(position_ - pending_, [&](Index k, auto&& put) {
                if (k == 0) {
                    for (Index i = 0; i < vocabulary_; ++i)
                        if (pairs.start(i + 1) > pairs.start(i))
                            put(i, 0, std::int64_t{pairs.start(i + 1) - pairs.start(i)});
                    return;
                }
                const Index place = (k - 1) % width;
                if (place == 0) count_lags(pairs, k, std::min(width, options_.lags + 1 - k), cells);
                Index met = 0;
                for (Index i = 0; i < vocabulary_; ++i)
                    for (std::uint32_t at = pairs.start(i); at < cells[place].rows[i].end; ++at) {
                        if (met++ % PairBlock::stride == 0) watch();
                        put(i, cells[place].cells[at].column, std::int64_t{cells[place].cells[at].count});
                    }
            });
        });
        pending_ = 0;
        keep_context();
    }
    // Lags k … k + n - 1 of a block, one per thread; watch() and allocations on the calling thread only.
    void count_lags(const PairBlock& pairs, Index k, Index n, Array<LagCells>& cells) const {
        for (Index c = 0; c < n; ++c) pairs.begin(cells[c], [this] { watch(); });
        for (Index begin = 0; begin < pairs.places(); begin += PairBlock::stride) {
            watch();
            const Index end = std::min(pairs.places(), begin + PairBlock::stride);
            parallel(n, 1, n, [&](Index a, Index b, Index) {
                for (Index c = a; c < b; ++c) pairs.count(k + c, cells[c], begin, end);
            });
        }
    }

    std::string path_of(const SortedFile::Header& h) const {
        return message(folder_, "counts-", h.first, "-", h.last, ".run");
    }
    // Writes tokens first … position of the text.
    template <class Pairs> void write(std::int64_t first, Pairs&& pairs) {
        const SortedFile::Header h{.vocabulary = vocabulary_,
                                   .words = options_.vocabulary_checksum,
                                   .lags = options_.lags,
                                   .boundary = options_.boundary,
                                   .first = first,
                                   .last = position_,
                                   .text = hash_.value()};
        runs_.insert(runs_.begin() + passed_, SortedFile::write(path_of(h), h, pairs));
        ++passed_;
    }

    // Merges the neighbours with the fewest bytes, as many as the memory has buffers for, and no more than needed for all
    // later merges to be of as many.
    void merge_neighbours() {
        const Index most = std::clamp((options_.memory - fixed) / (buffer() + SortedFile::reader_memory),
                                      Index{2}, options_.open_files);
        const Index n = files(), width = std::min(most, n > most ? n - most + 1 : n);
        Index begin = 0, least = 0;
        for (Index i = 0, sum = 0; i < n; ++i) {
            sum += runs_[i].bytes();
            if (i >= width) sum -= runs_[i - width].bytes();
            if (i == width - 1 || (i >= width && sum < least)) begin = i - width + 1, least = sum;
        }
        const std::span<const SortedFile> group(runs_.data() + begin, static_cast<std::size_t>(width));
        auto h = group.back().header();
        if (h.words == 0) h.words = options_.vocabulary_checksum;
        h.first = group.front().header().first;
        Index done = 0;
        SortedFile merged = SortedFile::write(path_of(h), h, [&](Index k, auto&& put) {
            Index bytes = 0, pairs = 0, met = 0;
            for (const SortedFile& run : group) bytes += run.section(k).bytes, pairs += run.section(k).pairs;
            SortedFile::merge(group, k, buffer(), [&](auto row, auto column, auto count) {
                put(row, column, count);
                if (++met % 65536 == 0 && options_.watch)
                    options_.watch(
                        done + static_cast<Index>(static_cast<double>(bytes) * static_cast<double>(met) /
                                                  static_cast<double>(pairs)),
                        least);
            });
            done += bytes;
        });
        // Before any is removed: where that fails, the next merge goes on from here.
        std::vector<std::string> replaced;
        for (const SortedFile& run : group) replaced.push_back(run.path());
        runs_.erase(runs_.begin() + begin + 1, runs_.begin() + begin + width);
        runs_[begin] = std::move(merged);
        for (const std::string& path : replaced) remove_file(path);
    }

    void watch() const {
        if (options_.watch) options_.watch(0, 0);
    }

    Index vocabulary_;
    SpillOptions options_;
    std::string folder_;  // with a slash at the end
    Index block_ = 0;
    Array<SortedFile> runs_;  // sorted by first token
    Index passed_ = 0;        // number of these that the text has passed
    Array<Token> text_;       // the last `lags` tokens, then `pending_` tokens still to be counted
    Index pending_ = 0;
    std::int64_t position_ = 0;
    file::TokenHash hash_;
    bool counted_ = false, passed_after_ = false;  // whether tokens were counted, and some passed after that
    bool finished_ = false, cleared_ = false;
};

}}}  // namespace isogloss::counts
