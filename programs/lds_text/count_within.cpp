/// @file count_within.cpp  Counting within given memory: blocks of the text are counted into files, which are added.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "../shared/interrupt.hpp"
#include "../shared/lock.hpp"
#include "../shared/progress.hpp"
#include "../shared/ranks.hpp"
#include "counted_blocks.hpp"
#include "counting.hpp"

namespace lt {

namespace {

/// Thrown after a signal.
struct Interrupted {};

void look_for_signals() {
    if (interrupt::wanted) throw Interrupted();
}

/// Bytes of resident memory; 0 if the system does not report them.
ig::Index resident() {
    std::ifstream in("/proc/self/statm");
    ig::Index all = 0, here = 0;
    in >> all >> here;
    return here * ::sysconf(_SC_PAGESIZE);
}

/// The folder of one counting: files of counts, the vocabulary and the request. With several ranks, each has
/// a subfolder for its files.
class Spill {
public:
    Spill(const CountCommand& o, ig::Index ranks) : ranks_(ranks) {
        const std::string target = ig::file::link_target(o.counts);
        const std::string above = o.spill.empty() ? target.substr(0, target.rfind('/') + 1) : o.spill + "/";
        folder_ = above + target.substr(target.rfind('/') + 1) + ".spill";
        request_ = ig::message("--lags ", o.lags, o.sentences ? " --sentences" : "", " --shard ", o.shard,
                               " --vocabulary ", o.vocabulary, " --min-count ", o.min_count,
                               o.vocabulary_from.empty() ? "" : " --vocabulary-from " + o.vocabulary_from);
        for (const auto& path : o.text) request_ += " --text " + path;
        if (ranks > 1) request_ += ig::message(" on ", ranks, " ranks");
        request_ += "\n";
    }
    Spill(const Spill&) = delete;
    Spill& operator=(const Spill&) = delete;
    /// Removes the folder if it is empty.
    ~Spill() { ::rmdir(folder_.c_str()); }

    const std::string& folder() const { return folder_; }
    /// The folder of a rank's files.
    std::string of(ig::Index rank) const {
        return ranks_ > 1 ? ig::message(folder_, "/rank-", rank) : folder_;
    }
    std::string vocabulary() const { return folder_ + "/vocabulary"; }

    /// Whether there is a counting that was interrupted, whatever its request.
    bool exists() const { return files::exists(request()); }
    /// Whether there is a counting to resume. Throws DataError if it has another request.
    bool begun() const {
        if (!exists()) return false;
        const std::string before = ig::file::InputFile(request()).read_all();
        if (before != request_)
            throw ig::DataError(
                ig::message("--resume: '", folder_, "' was begun with '", before.substr(0, before.find('\n')),
                            "', not with '", request_.substr(0, request_.size() - 1),
                            "'; resume with the same options, or start over with --overwrite"));
        return true;
    }
    /// Makes the folder. Throws FileError where it is not there and cannot be made.
    void make() const {
        std::error_code error;
        std::filesystem::create_directory(folder_, error);
        if (error) throw ig::FileError("cannot create the folder '", folder_, "/': ", error.message());
    }
    /// Removes a counting, including the files of its ranks.
    void remove() const {
        for (const std::string& name : {request(), vocabulary()}) ::unlink(name.c_str());
        CountedBlocks::remove(folder_);
        std::error_code none;
        for (const auto& entry : std::filesystem::directory_iterator(folder_, none)) {
            const std::string name = entry.path().filename();
            if (!name.starts_with("rank-")) continue;
            CountedBlocks::remove(entry.path());
            ::rmdir(entry.path().c_str());
        }
    }
    /// Writes vocabulary and request.
    void begin(const ig::text::Vocabulary& words) const {
        words.save(vocabulary());
        ig::file::write_atomically(request(), [&](ig::file::OutputFile& out) { out.write(request_); });
    }

private:
    std::string request() const { return folder_ + "/begun"; }
    ig::Index ranks_;
    std::string folder_, request_;
};

std::string mib(ig::Index bytes) {
    const auto unit = ig::Index{1} << 20;
    return std::to_string((bytes + unit - 1) / unit) + " MiB";
}

/// What --memory leaves for counting.
ig::Index memory_left(const CountCommand& o, ig::Index memory, const BlockOptions& options,
                      const ig::text::Vocabulary& vocabulary) {
    // In use already, and needed for the text and the stacks of threads.
    const ig::Index beside = resident() + (ig::Index{6} << 20);
    const ig::Index least = CountedBlocks::least_memory(vocabulary, options);
    if (memory < beside + least)
        throw ig::UsageError(ig::message("--memory is ", o.memory, ", expected at least ",
                                         mib(beside + least), ": ", mib(beside),
                                         " for the program and its vocabulary of ", vocabulary.size(),
                                         " types, ", mib(least), " for counting"));
    return memory - beside;
}

/// One counting, from its beginning or from where it was stopped, to the file. With several ranks, each
/// counts a part of the text; then the first adds the blocks of all.
class Counting {
public:
    Counting(const CountCommand& o, ig::Index memory, program::Ranks& ranks)
        : o_(o), memory_(memory), ranks_(ranks), spill_(o, ranks.size()) {
        if (ranks.first()) {
            lock_.emplace("--counts", o.counts);
            spill_.make();
            if (!o.spill.empty()) spill_lock_.emplace("--spill", spill_.folder());
            if (!o.resume && !o.overwrite && spill_.exists())
                throw ig::FileError(ig::message("'", spill_.folder(), "' holds a counting that was ",
                                                "interrupted. Continue with --resume, or start over ",
                                                "with --overwrite"));
        }
        resumed_ = ranks.any(ranks.first() && o.resume && spill_.begun());
    }

    void run() {
        read_texts();
        const double counting = clock_.lap();
        ranks_.barrier();  // wait for the blocks of all
        if (ranks_.first()) {
            std::vector<CountedBlocks::File> blocks;
            for (ig::Index rank = 0; rank < ranks_.size(); ++rank)
                for (auto& block : CountedBlocks::files(spill_.of(rank))) blocks.push_back(std::move(block));
            long long tokens = 0;
            for (const auto& block : blocks) tokens += block.last - block.first;
            blocks_->save(o_.counts, blocks);
            say("%lld tokens, %td types, %td lags: reading and counting %.2f s, %td files, adding %.2f s, "
                "peak %.0f MiB%s\n",
                tokens, vocabulary_.size(), o_.lags, counting, std::ssize(blocks), clock_.lap(),
                peak_memory(), ranks_.size() > 1 ? " on the first rank" : "");
            spill_.remove();
        }
    }

    /// Whether there are files to --resume from.
    bool begun() const { return resumed_ || blocks_.has_value(); }
    /// What --resume will find, in words.
    std::string kept() const {
        if (!begun()) return "nothing has been counted yet";
        return "--resume continues from the files in '" + spill_.folder() + "'";
    }

private:
    void begin(BlockOptions options) {
        options.memory = memory_left(o_, memory_, options, vocabulary_);
        if (!resumed_ && ranks_.first()) spill_.remove();
        ranks_.barrier();  // wait for the folder that holds those of the ranks
        const std::string own = spill_.of(ranks_.rank());
        blocks_.emplace(vocabulary_, own, std::move(options));
        if (resumed_) say("going on from %td files in '%s'\n", blocks_->blocks(), own.c_str());
        else if (ranks_.first()) spill_.begin(vocabulary_);
    }

    void read_texts() {
        vocabulary_ = resumed_ ? ig::text::Vocabulary::load(spill_.vocabulary()) : vocabulary_of(o_);
        interrupt::catch_signals();  // before this there is nothing to keep
        if (ranks_.first()) write_beside(o_, vocabulary_, look_for_signals);
        const Texts texts(o_.text, vocabulary_);
        const bool all = parse_shard(o_.shard).second == 1 && ranks_.size() == 1;
        if (!all) files::require_regular(o_.text, "write it to a file, or count all of it in one process");
        const auto [first, last] =
            part_of(shard_of(o_, all ? std::numeric_limits<ig::Index>::max() : texts.count(look_for_signals)),
                    ranks_.rank(), ranks_.size());
        begin({.lags = o_.lags,
               .boundary = boundary(o_.sentences, vocabulary_),
               .first = first,
               .last = last,
               .watch = look_for_signals});
        ig::Index tokens = 0;
        texts.for_each_piece([&](std::span<const ig::Token> some, ig::Index bytes) {
            look_for_signals();
            progress_.update(bytes, texts.bytes(), [&] { return std::to_string(tokens) + " tokens"; });
            blocks_->add(some);
            tokens += std::ssize(some);
        });
        blocks_->finish();
        progress_.clear();
    }

    const CountCommand& o_;
    ig::Index memory_;
    program::Ranks& ranks_;
    std::optional<files::Lock> lock_, spill_lock_;
    Spill spill_;
    bool resumed_ = false;
    ig::text::Vocabulary vocabulary_;
    program::Progress progress_{"counting"};
    std::optional<CountedBlocks> blocks_;
    Stopwatch clock_;
};

}  // namespace

int count_within(const CountCommand& o, ig::Index memory, program::Ranks& ranks) {
    Counting counting(o, memory, ranks);
    try {
        counting.run();
        return 0;
    } catch (const Interrupted&) {
        const std::string what = "Interrupted; " + counting.kept();
        if (ranks.size() > 1)
            ranks.end(interrupt::status(), what);  // complete files remain, whatever each rank is doing
        interrupt::out() << what << std::endl;
        return interrupt::status();
    } catch (const ig::FileError& error) {
        if (!counting.begun()) throw;
        throw ig::FileError(error.text(), "; ", counting.kept(), " (remove one that is damaged)");
    }
}

}  // namespace lt
