/// @file lds/count_cursor.hpp  Sequential reading of count files.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/file/input_file.hpp>
#include <isogloss/lds/count_run.hpp>
#include <isogloss/types.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// What a count file contains is not what a writer wrote: its tokens must be counted again. A failure of the system and
/// a file of another version of the library are a plain FileError instead: the file may be sound.
class DamagedCounts : public FileError {
    using FileError::FileError;
};

/// A file of counts, with its header read and checked. Throws DamagedCounts if it is not a valid one, FileError if it
/// cannot be read or was written by another version of the library.
class CountRun {
public:
    explicit CountRun(std::string path) : path_(std::move(path)) {
        file::InputFile in = file::open_regular(path_);
        const CountRunHeader expected;
        if (in.bytes() < Index{sizeof header_} || !read_whole(in, &header_, sizeof header_) ||
            header_.magic != expected.magic)
            refuse("it does not start like one");
        if (header_.order != expected.order || header_.version != expected.version)
            throw FileError("'", path_, "' is a file of spilled counts of format version ", header_.version,
                            header_.order == expected.order ? "" : " in another byte order", ", expected ",
                            expected.version, " as this version of the library writes it. Read it with the ",
                            "version that wrote it, or remove it: its tokens must then be counted again");
        if (header_.lags < 1 || header_.lags > 1000) refuse("it has ", header_.lags, " lags");
        sections_.resize(header_.lags + 1);
        if (!read_whole(in, sections_.data(), sections_.size() * sizeof(CountRunSection)))
            refuse("it ends within its header");
        CountRunHeader bare = header_;
        bare.checksum = 0;
        if (CountRunWriter::head_checksum(bare, sections_) != header_.checksum)
            refuse("its header does not match its checksum");
        const CountRunSection& end = sections_.back();
        if (end.begin + end.bytes != in.bytes())
            refuse("it has ", in.bytes(), " bytes, expected ", end.begin + end.bytes);
    }

    const CountRunHeader& header() const { return header_; }                ///< contents and parameters
    const CountRunSection& section(Index k) const { return sections_[k]; }  ///< 0 … lags
    const std::string& path() const { return path_; }                       ///< its name
    Index bytes() const { return sections_.back().begin + sections_.back().bytes; }  ///< its size

    /// Throws DamagedCounts with the path and what is wrong.
    template <class... Parts> [[noreturn]] void refuse(Parts... what) const {
        throw DamagedCounts("'", path_, "' is damaged, or not a file of spilled counts: ", what...);
    }

private:
    static bool read_whole(file::InputFile& in, void* to, std::size_t bytes) {
        auto* at = static_cast<char*>(to);
        for (Index left = static_cast<Index>(bytes); left > 0;) {
            const Index got = in.read(at, left);
            if (got == 0) return false;
            at += got;
            left -= got;
        }
        return true;
    }

    std::string path_;
    CountRunHeader header_;
    Array<CountRunSection> sections_;
};

namespace detail {

/// Throws DataError unless a file's counts have the words, lags and boundary of `expected`, and the checksum of the words
/// if both know it; `begin` and `advice` are the two ends of the message.
inline void require_alike(const char* begin, const CountRun& run, const CountRunHeader& expected,
                          const char* advice) {
    const CountRunHeader& h = run.header();
    const bool same_words = h.words == expected.words || h.words == 0 || expected.words == 0;
    if (h.vocabulary == expected.vocabulary && same_words && h.lags == expected.lags &&
        h.boundary == expected.boundary)
        return;
    throw DataError(begin, "'", run.path(), "' holds counts of ", h.vocabulary, " words, ", h.lags,
                    " lags and boundary ", h.boundary, same_words ? "" : ", and of another vocabulary",
                    ", expected ", expected.vocabulary, ", ", expected.lags, " and ", expected.boundary, "; ",
                    advice);
}

}  // namespace detail

/// The pairs of one section in order, read through a buffer.
///
///     for (CountRunCursor at(run, k, 65536); at.next();) use(at.row(), at.column(), at.count());
///
/// Errors   DamagedCounts, at the latest from the last `next`: truncated, damaged, wrong checksum. FileError: the file
///          cannot be read.
class CountRunCursor {
public:
    /// Opens section k of a file, which must outlive it; `buffer` ≥ 64 bytes.
    CountRunCursor(const CountRun& run, Index k, Index buffer)
        : run_(&run),
          section_(run.section(k)),
          file_(file::open_regular(run.path())),
          unread_(section_.bytes),
          left_(section_.pairs) {
        buffer_.resize(static_cast<std::size_t>(std::max<Index>(64, std::min(buffer, unread_))));
        if (::lseek(file_.descriptor(), static_cast<off_t>(section_.begin), SEEK_SET) < 0)
            file::refuse("cannot read", run.path());
    }

    /// Moves to the next pair; false at the end.
    bool next() {
        if (end_ - at_ < longest) fill();
        if (left_ == 0) {
            if (at_ != end_ || unread_ != 0) run_->refuse("bytes follow the last pair");
            if (crc_.value() != section_.checksum) run_->refuse("the pairs do not match their checksum");
            return false;
        }
        --left_;
        const std::uint64_t step = number();
        if (step % 2 == 0) {
            column_ += step / 2;
        } else {
            row_ += step / 2;
            column_ = number() - 1;
        }
        count_ = static_cast<std::int64_t>(number());
        const auto V = static_cast<std::uint64_t>(run_->header().vocabulary);
        if (row_ >= V || column_ >= V || count_ < 1) run_->refuse("a pair lies outside the vocabulary");
        return true;
    }
    std::int64_t row() const { return static_cast<std::int64_t>(row_); }        ///< the later word
    std::int64_t column() const { return static_cast<std::int64_t>(column_); }  ///< the earlier word
    std::int64_t count() const { return count_; }                               ///< how often, ≥ 1
    /// Row and column as one number, which gives the order of the pairs.
    std::uint64_t key() const { return row_ << 32 | column_; }
    /// Bytes of memory that a cursor takes in addition to its buffer.
    static constexpr Index memory = 512;

private:
    static constexpr std::size_t longest = 30;  // three numbers of at most 10 digits

    std::uint64_t number() {
        std::uint64_t n = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (at_ == end_) break;
            const auto digit = static_cast<unsigned char>(buffer_[at_++]);
            n |= std::uint64_t{digit & 127u} << shift;
            if (digit < 128) return n;
        }
        run_->refuse("it has an unterminated number");
    }
    void fill() {
        if (unread_ == 0) return;
        std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
        end_ -= at_;
        at_ = 0;
        while (unread_ > 0 && end_ < buffer_.size()) {
            const Index room = std::min(unread_, static_cast<Index>(buffer_.size() - end_));
            const Index got = file_.read(buffer_.data() + end_, room);
            if (got == 0) run_->refuse("it became shorter while being read");
            crc_.add(std::string_view(buffer_.data() + end_, static_cast<std::size_t>(got)));
            end_ += static_cast<std::size_t>(got);
            unread_ -= got;
        }
    }

    const CountRun* run_;
    CountRunSection section_;
    file::InputFile file_;
    std::string buffer_;
    std::size_t at_ = 0, end_ = 0;  // the part of the buffer not yet consumed
    Index unread_;
    std::int64_t left_, count_ = 0;
    std::uint64_t row_ = ~std::uint64_t{0}, column_ = ~std::uint64_t{0};
    file::Crc64 crc_;
};

}}}  // namespace isogloss::lds
