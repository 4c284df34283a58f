/// @file counted_blocks.hpp  Counts of a text that may exceed memory: of blocks of it, in files, which are added at the end.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <isogloss/counts/files.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pages.hpp"

namespace lt {

namespace ig = isogloss;

/// What CountedBlocks counts, and with how much memory.
struct BlockOptions {
    ig::Index lags = 7;       ///< distances 1 … lags
    ig::Token boundary = -1;  ///< a token that ends a sentence: no pair crosses it; -1: none
    ig::Index memory = 0;     ///< bytes, at least CountedBlocks::least_memory
    /// The later words are tokens first … last - 1 of the text.
    ig::Index first = 0, last = std::numeric_limits<ig::Index>::max();
    std::function<void()> watch = [] {};  ///< called now and then; may throw to stop
};

/// Counts of a text within given memory; the sum of its blocks is that of LagCounts.
///
///     CountedBlocks blocks(vocabulary, "big.spill", {.memory = Index{2} << 30});
///     while (read(some)) blocks.add(some);             // all tokens of the text, in pieces of any size
///     blocks.finish();
///     blocks.save("big.counts", CountedBlocks::files("big.spill"));
///     CountedBlocks::remove("big.spill");
///
/// Pieces of the text are counted, and their counts added, each time the smaller half to one of its size. What would not
/// leave memory for another piece is written to the folder as one file of counts,
///
///     block-FIRST-LAST-HASH.counts      its later words are tokens FIRST … LAST - 1; HASH is of the text up to LAST
///
/// Resuming     A file gets its name once it is complete. Where the folder has some that follow one another from the first
///              token on, the whole text is given again, and the tokens that they cover are skipped; those that follow a gap
///              are removed. One counting at a time uses a folder.
/// Memory       `memory` bounds what this and its threads allocate with operator new. Of mapped files as much as has been
///              read lately is resident, too.
/// Disk         8 bytes for each pair that occurs in a block.
/// Errors       DataError: a token outside the vocabulary, another text than that of the files. FileError: as load_counts.
class CountedBlocks {
public:
    /// A file of counts.
    struct File {
        std::string path;
        ig::Index first = -1, last = -1;  ///< as in the name; -1: an incomplete one, or a sum of others
        std::string text = {};            ///< HASH
    };

    /// Goes on from the blocks in the folder, which is created if it does not exist.
    CountedBlocks(const ig::text::Vocabulary& vocabulary, const std::string& folder, BlockOptions options)
        : vocabulary_(vocabulary),
          folder_(folder + "/"),
          o_(std::move(options)),
          needs_(vocabulary, o_),
          piece_(std::clamp((o_.memory - needs_.none) / 4 / needs_.each, least_piece, ig::Index{1} << 20)),
          counted_(o_.first) {
        text_.reserve(piece_ + 2 * o_.lags);
        if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
            ig::file::refuse("cannot create the folder", folder_);
        for (const File& file : files(folder_)) {
            if (file.first == counted_ && file.last > counted_) {
                ig::file::open_regular(file.path);
                counted_ = file.last;
                written_.push_back(file);
            } else {
                remove_file(file.path);
            }
        }
    }

    /// Counts those of the next tokens of the text that are in the range and in no file.
    void add(std::span<const ig::Token> tokens) {
        while (!tokens.empty()) {
            const bool before = position_ < counted_, counts = !before && position_ < o_.last;
            ig::Index n = std::ssize(tokens);
            if (before) n = std::min(n, counted_ - position_);
            if (counts) n = std::min({n, o_.last - position_, piece_ - pending_});
            const auto some = tokens.first(static_cast<std::size_t>(n));
            tokens = tokens.subspan(some.size());
            hash_.add(some);
            position_ += n;
            if (counts) {
                text_.insert(text_.end(), some.begin(), some.end());
                if ((pending_ += n) == piece_) count();
            } else if (before) {
                const auto context = some.last(std::min(some.size(), static_cast<std::size_t>(o_.lags)));
                text_.insert(text_.end(), context.begin(), context.end());
                keep_context();
                if (position_ == counted_) require_text();
            }
        }
    }

    /// Writes the last block; then all tokens of the text must have been given.
    void finish() {
        if (position_ < counted_) require_text();
        if (pending_ > 0 || (written_.empty() && held_.empty())) count();
        if (!held_.empty()) write();
    }

    /// Writes the sum of files of blocks, of this folder and of others. As many are added at a time as the memory has room
    /// for; the sums of some are files in this folder.
    void save(const std::string& path, std::vector<File> parts) const {
        const ig::Index most =
            std::max<ig::Index>(2, (o_.memory - needs_.saving) / (needs_.rows + 1024 * (o_.lags + 4)));
        for (int sums = 0; std::ssize(parts) > most; ++sums) {
            const File sum{ig::message(folder_, "sum-", sums)};
            save_sum(sum.path, std::span(parts).first(static_cast<std::size_t>(most)));
            parts.erase(parts.begin(), parts.begin() + most);
            parts.push_back(sum);
        }
        save_sum(path, parts);
    }

    ig::Index blocks() const { return std::ssize(written_); }  ///< in files

    /// The files of blocks and sums in a folder, by first token.
    static std::vector<File> files(const std::string& folder) {
        std::vector<File> found;
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
            const std::string name = entry.path().filename();
            File file{entry.path()};
            std::array<char, 17> text{};
            int end = 0, number = 0;
            std::sscanf(name.c_str(), "block-%td-%td-%16[0-9a-f].counts%n", &file.first, &file.last,
                        text.data(), &end);
            if (end == 0) std::sscanf(name.c_str(), "sum-%d%n", &number, &end);
            const std::string_view rest = std::string_view(name).substr(static_cast<std::size_t>(end));
            if (end == 0 || !(rest.empty() || rest.starts_with(".isogloss-part-"))) continue;
            if (!rest.empty()) file.first = -1;
            file.text = text.data();
            found.push_back(std::move(file));
        }
        if (error) throw ig::FileError("cannot read the folder '", folder, "': ", error.message());
        std::ranges::sort(found, {}, &File::first);
        return found;
    }
    /// Removes these files, incomplete ones too. Others in the folder are left alone.
    static void remove(const std::string& folder) {
        for (const File& file : files(folder)) remove_file(file.path);
    }

    /// The least memory for these options with the current number of threads: some 40 bytes for each word and lag.
    static ig::Index least_memory(const ig::text::Vocabulary& vocabulary, const BlockOptions& options) {
        return Needs(vocabulary, options).counting(least_piece);
    }

private:
    static constexpr ig::Index least_piece = 4096;
    static constexpr ig::Index most_tokens = ig::Index{1} << 28;  // of a block

    // How many bytes are allocated for what.
    struct Needs {
        Needs(const ig::text::Vocabulary& v, const BlockOptions& o)
            : rows(8 * (v.size() + 1) * (o.lags + 1)),
              saving(rows + 24 * v.size() + 5 * std::ssize(v.to_text()) + 4096 * (o.lags + 128)),
              none(2 * rows + saving + 4 * o.lags + block(v, o, 0)),
              each(4 + 8 * (o.lags + 1) + block(v, o, 1) - block(v, o, 0)) {}
        // Counting a piece and writing a block, beside the counts held.
        ig::Index counting(ig::Index piece) const { return none + piece * each; }

        ig::Index rows;    // starts and occurrences of counts
        ig::Index saving;  // a file of counts being written
        ig::Index none;    // counting no tokens
        ig::Index each;    // and each token

    private:
        static ig::Index block(const ig::text::Vocabulary& v, const BlockOptions& o, ig::Index tokens) {
            const ig::Index threads = std::min<ig::Index>(ig::threads(), o.lags);
            return ig::counts::PairBlock::bytes(tokens, v.size(), o.lags, o.boundary, threads);
        }
    };

    // Whether there may be no memory for another piece beside the counts held, and for the sum of a lag of them.
    bool is_full() const {
        ig::Index all = needs_.rows * std::ssize(held_), largest = 0;
        for (ig::Index k = 1; k <= o_.lags; ++k) {
            ig::Index pairs = 0;
            for (const auto& counts : held_) pairs += counts.lag(k).pairs();
            all += 8 * pairs;
            largest = std::max(largest, 8 * pairs);
        }
        return all + largest + needs_.counting(piece_) > o_.memory || position_ - counted_ >= most_tokens;
    }

    void keep_context() { text_.erase(text_.begin(), text_.end() - std::min(o_.lags, std::ssize(text_))); }
    void require_text() const {
        if (written_.empty()) return;
        const File& last = written_.back();
        if (position_ == last.last && ig::file::hex16(hash_.value()) == last.text) return;
        throw ig::DataError("the first ", position_, " tokens of the text are not those of '", last.path,
                            "', which holds counts up to token ", last.last,
                            "; resume with the same text, or start over");
    }

    // Counts the pending tokens.
    void count() {
        const ig::Index end = std::ssize(text_);
        ig::counts::LagCounts piece(
            vocabulary_.size(),
            {.lags = o_.lags, .boundary = o_.boundary, .vocabulary_checksum = vocabulary_.checksum()});
        piece.add(text_, end - pending_, end);
        pending_ = 0;
        keep_context();
        held_.push_back(std::move(piece));
        while (held_.size() > 1 && held_.rbegin()[1].tokens() < 2 * held_.back().tokens()) {
            auto last = std::move(held_.back());
            held_.pop_back();
            held_.back().add(std::move(last));
        }
        if (is_full()) write();
    }
    void write() {
        File file{"", counted_, position_, ig::file::hex16(hash_.value())};
        file.path = ig::message(folder_, "block-", file.first, "-", file.last, "-", file.text, ".counts");
        ig::counts::save_counts(file.path, held_, vocabulary_, o_.watch);
        held_.clear();
        counted_ = position_;
        written_.push_back(std::move(file));
    }
    void save_sum(const std::string& path, std::span<const File> parts) const {
        std::vector<ig::counts::LagCounts> counts;
        std::vector<std::span<const std::byte>> pages;
        const auto watch = [&] {
            o_.watch();
            for (const auto bytes : pages) release(bytes);
        };
        for (const File& part : parts) {
            const auto file = ig::io::Safetensors::map(part.path);
            counts.push_back(ig::counts::counts_of(file, vocabulary_));
            const auto first = file.tensors().front().bytes, last = file.tensors().back().bytes;
            pages.emplace_back(first.data(), last.data() + last.size());
            watch();
        }
        ig::counts::save_counts(path, counts, vocabulary_, watch);
    }
    static void remove_file(const std::string& path) {
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) ig::file::refuse("cannot remove", path);
    }

    const ig::text::Vocabulary& vocabulary_;
    std::string folder_;  // with a slash at the end
    BlockOptions o_;
    Needs needs_;
    ig::Index piece_;                          // tokens counted at a time
    std::vector<File> written_;                // blocks, in order
    std::vector<ig::counts::LagCounts> held_;  // of pieces; each at least twice as large as the next
    ig::Array<ig::Token> text_;  // the last `lags` tokens, then `pending_` tokens still to be counted
    ig::Index pending_ = 0, position_ = 0;  // of the text
    ig::Index counted_;                     // tokens up to here are in files, or before the range
    ig::file::TokenHash hash_;
};

}  // namespace lt
