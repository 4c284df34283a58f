/// @file counts/sorted_file.hpp  A file of counts in the order of their pairs: written, read and merged in one pass.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <isogloss/array.hpp>
#include <isogloss/counts/lag_counts.hpp>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/file/output_file.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace counts {

/// A file with the counts of a part of a text, the pairs of each lag by ascending row and column.
///
///     const auto a = SortedFile::write("a.run", header, [&](Index k, auto&& add) { add(row, column, count) … });
///     a.read(k, 65536, [&](std::int64_t row, std::int64_t column, std::int64_t count) { … });
///     SortedFile::merge(files, k, 65536, [&](…) { … });              // the sum of lag k of several files
///
/// Section 0 holds the occurrences, n[i] as row i, column 0; section k lag k:
///
///     header | sections | for each pair:  2 (column - previous column), count                   in the same row
///                                         2 (row - previous row) + 1, column + 1, count         in a new row
///
/// Numbers are in base 128, lowest digit first, with the eighth bit set in all digits but the last; the row
/// before the first pair is -1. A pair takes about 3 bytes in the counts of a text.
///
/// Errors   FileError: whatever the system refuses; a file that is not a regular one, that is damaged (header and
///          sections have checksums), or that another version of the library wrote. DataError: a sum above 2⁶³ - 1.
/// Source   Knuth 1998, The Art of Computer Programming 3, section 5.4: external sorting by merging.
class SortedFile {
public:
    /// What the file contains: the fixed part of its head, 80 bytes without gaps.
    struct Header {
        std::array<char, 8> magic{'i', 's', 'o', 'c', 'o', 'u', 'n', 't'};
        std::uint32_t version = 1;
        std::uint32_t order = 0x01020304;  ///< of bytes
        std::int64_t vocabulary = 0;       ///< V
        std::uint64_t words = 0;           ///< checksum of the vocabulary; 0: unknown
        std::int64_t lags = 0;             ///< r, 1 … 1000
        std::int64_t boundary = -1;        ///< the token that ends a sentence; -1: none
        std::int64_t first = 0, last = 0;  ///< the later words are tokens first … last-1 of the text
        std::uint64_t text = 0;            ///< hash of all that was counted up to `last`
        std::uint64_t checksum = 0;        ///< CRC-64 of header and sections, with this field taken as 0
    };
    /// Where the pairs of one matrix lie.
    struct Section {
        std::int64_t begin = 0, bytes = 0;  ///< in the file
        std::int64_t pairs = 0;             ///< number of nonzero entries
        std::int64_t largest = 0;           ///< largest count
        std::uint64_t checksum = 0;         ///< CRC-64
    };

    /// Opens a file, and checks header and sections.
    explicit SortedFile(std::string path) : path_(std::move(path)) {
        file::InputFile whole = file::open_regular(path_);
        const Index size = whole.bytes();
        file::Reader in(std::move(whole));
        const Header expected;
        in.read(std::as_writable_bytes(std::span(&header_, 1)));
        if (header_.magic != expected.magic || header_.version != expected.version ||
            header_.order != expected.order || header_.lags < 1 || header_.lags > 1000 ||
            header_.vocabulary < 1 || header_.vocabulary > std::numeric_limits<std::int32_t>::max())
            refuse();
        sections_.resize(header_.lags + 1);
        in.read(std::as_writable_bytes(std::span(sections_)));
        if (head_checksum() != header_.checksum) refuse();
        Index end = in.position();
        for (const Section& s : sections_) {
            if (s.begin != end || s.bytes < 0 || s.bytes > size - end || s.pairs < 0 || s.pairs > s.bytes)
                refuse();
            end += s.bytes;
        }
        if (end != size) refuse();
    }

    const Header& header() const { return header_; }                ///< contents and parameters
    const Section& section(Index k) const { return sections_[k]; }  ///< 0 … lags
    const std::string& path() const { return path_; }               ///< its name
    Index bytes() const { return sections_.back().begin + sections_.back().bytes; }  ///< its size

    /// Writes the file `path` for a header with V, lags, boundary and what is known of the text. For k = 0 … lags in turn,
    /// pairs(k, add) passes the pairs of section k, in order and with counts ≥ 1, to add(row, column, count). The file
    /// appears complete or, where `pairs` throws, not at all.
    template <class Pairs>
    static SortedFile write(const std::string& path, const Header& header, Pairs&& pairs) {
        SortedFile made(path, header);
        file::OutputFile out(path);
        out.write(made.head());
        Index end = std::ssize(made.head());
        for (Index k = 0; k <= header.lags; ++k) {
            Encoder to(out, made.sections_[k], end);
            pairs(k, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
                to.add(row, column, count);
            });
            to.flush();
            end += made.sections_[k].bytes;
        }
        made.header_.checksum = made.head_checksum();
        out.write_at(0, made.head());
        out.commit();
        return made;
    }

    /// Calls use(row, column, count) for the pairs of section k in order, read through `buffer` bytes.
    template <class Use> void read(Index k, Index buffer, Use&& use) const {
        for (Cursor at(*this, k, buffer); at.next();) use(at.row(), at.column(), at.count());
    }

    /// The same for the sum of the sections k of several files: a heap with one cursor per file yields the least pair. At
    /// most one open file and one buffer per file.
    template <class Use>
    static void merge(std::span<const SortedFile> files, Index k, Index buffer, Use&& use) {
        std::vector<Cursor> cursors;
        cursors.reserve(files.size());
        struct Head {
            std::uint64_t key;
            std::size_t cursor;
        };
        std::vector<Head> heap;
        heap.reserve(files.size());
        for (const SortedFile& one : files) {
            cursors.emplace_back(one, k, buffer);
            if (cursors.back().next()) heap.push_back({cursors.back().key(), cursors.size() - 1});
        }
        const auto later = [](const Head& a, const Head& b) { return a.key > b.key; };
        std::make_heap(heap.begin(), heap.end(), later);
        while (!heap.empty()) {
            const std::uint64_t key = heap.front().key;
            std::int64_t sum = 0;
            while (!heap.empty() && heap.front().key == key) {
                std::pop_heap(heap.begin(), heap.end(), later);
                Cursor& cursor = cursors[heap.back().cursor];
                if (cursor.count() > std::numeric_limits<std::int64_t>::max() - sum)
                    throw DataError("the files of counts hold more than 2⁶³ - 1 tokens together");
                sum += cursor.count();
                if (cursor.next()) {
                    heap.back().key = cursor.key();
                    std::push_heap(heap.begin(), heap.end(), later);
                } else {
                    heap.pop_back();
                }
            }
            use(static_cast<std::int64_t>(key >> 32), static_cast<std::int64_t>(key & 0xffffffffu), sum);
        }
    }

    /// What these counts must have in common with others.
    detail::CountShape shape() const {
        return {header_.vocabulary, header_.lags, header_.boundary, static_cast<Index>(header_.words)};
    }

    /// Memory that a file being written takes, and one being read in addition to its buffer.
    static constexpr Index writer_memory = (Index{1} << 18) + (Index{1} << 14) + 4096, reader_memory = 512;

private:
    SortedFile(std::string path, const Header& header) : path_(std::move(path)), header_(header) {
        sections_.resize(header.lags + 1);
    }

    // One sentence for every kind of damage.
    [[noreturn]] void refuse() const {
        throw FileError("'", path_, "' is damaged, or no file of sorted counts of this version; remove it, ",
                        "and its tokens are counted again");
    }
    std::uint64_t head_checksum() const {
        Header bare = header_;
        bare.checksum = 0;
        file::Crc64 crc;
        crc.add(std::as_bytes(std::span(&bare, 1)));
        crc.add(std::as_bytes(std::span(sections_)));
        return crc.value();
    }
    std::string head() const {
        std::string bytes(reinterpret_cast<const char*>(&header_), sizeof header_);
        return bytes.append(reinterpret_cast<const char*>(sections_.data()),
                            sections_.size() * sizeof(Section));
    }

    // The pairs of one section on their way to a file.
    class Encoder {
    public:
        Encoder(file::OutputFile& out, Section& section, Index begin) : out_(out), section_(section) {
            section = {.begin = begin};
            buffer_.reserve(capacity);
        }
        void add(std::int64_t row, std::int64_t column, std::int64_t count) {
            if (buffer_.size() + 32 > capacity) flush();
            if (row == row_) {
                put(2 * static_cast<std::uint64_t>(column - column_));
            } else {
                put(2 * static_cast<std::uint64_t>(row - row_) + 1);
                put(static_cast<std::uint64_t>(column + 1));
            }
            put(static_cast<std::uint64_t>(count));
            row_ = row;
            column_ = column;
            ++section_.pairs;
            section_.largest = std::max(section_.largest, count);
        }
        void flush() {
            crc_.add(buffer_);
            out_.write(buffer_);
            section_.bytes += std::ssize(buffer_);
            section_.checksum = crc_.value();
            buffer_.clear();
        }

    private:
        static constexpr std::size_t capacity = std::size_t{1} << 14;

        void put(std::uint64_t number) {
            for (; number >= 128; number >>= 7) buffer_ += static_cast<char>(number | 128);
            buffer_ += static_cast<char>(number);
        }

        file::OutputFile& out_;
        Section& section_;
        std::string buffer_;
        file::Crc64 crc_;
        std::int64_t row_ = -1, column_ = -1;
    };

    // The pairs of one section, read through a buffer.
    class Cursor {
    public:
        Cursor(const SortedFile& file, Index k, Index buffer)
            : file_(&file),
              section_(&file.section(k)),
              in_(file::open_regular(file.path())),
              unread_(section_->bytes),
              left_(section_->pairs) {
            buffer_.resize(static_cast<std::size_t>(std::max<Index>(64, std::min(buffer, unread_))));
            if (::lseek(in_.descriptor(), static_cast<off_t>(section_->begin), SEEK_SET) < 0)
                file::refuse("cannot read", file.path());
        }

        // Moves to the next pair; false at the end.
        bool next() {
            if (end_ - at_ < longest) fill();
            if (left_ == 0) {
                if (at_ != end_ || unread_ != 0 || crc_.value() != section_->checksum) file_->refuse();
                return false;
            }
            --left_;
            const auto V = static_cast<std::uint64_t>(file_->header().vocabulary);
            const std::uint64_t step = number();
            if (step < 2 || step / 2 > V) file_->refuse();  // rows and columns ascend
            if (step % 2 == 0) {
                column_ += step / 2;
            } else {
                row_ += step / 2;
                column_ = number() - 1;
            }
            count_ = static_cast<std::int64_t>(number());
            if (row_ >= V || column_ >= V || count_ < 1 || count_ > section_->largest) file_->refuse();
            return true;
        }
        std::int64_t row() const { return static_cast<std::int64_t>(row_); }
        std::int64_t column() const { return static_cast<std::int64_t>(column_); }
        std::int64_t count() const { return count_; }
        // Row and column as one number, which gives the order of the pairs.
        std::uint64_t key() const { return row_ << 32 | column_; }

    private:
        static constexpr std::size_t longest = 30;  // three numbers of at most 10 digits

        std::uint64_t number() {
            std::uint64_t n = 0;
            for (unsigned shift = 0; shift < 64 && at_ < end_; shift += 7) {
                const auto digit = static_cast<unsigned char>(buffer_[at_++]);
                n |= std::uint64_t{digit & 127u} << shift;
                if (digit < 128) return n;
            }
            file_->refuse();
        }
        void fill() {
            if (unread_ == 0) return;
            std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
            end_ -= at_;
            at_ = 0;
            while (unread_ > 0 && end_ < buffer_.size()) {
                const Index room = std::min(unread_, static_cast<Index>(buffer_.size() - end_));
                const Index got = in_.read(buffer_.data() + end_, room);
                if (got == 0) file_->refuse();  // it has become shorter
                crc_.add(std::string_view(buffer_.data() + end_, static_cast<std::size_t>(got)));
                end_ += static_cast<std::size_t>(got);
                unread_ -= got;
            }
        }

        const SortedFile* file_;
        const Section* section_;
        file::InputFile in_;
        std::string buffer_;
        std::size_t at_ = 0, end_ = 0;  // the part of the buffer not yet consumed
        Index unread_;
        std::int64_t left_, count_ = 0;
        std::uint64_t row_ = ~std::uint64_t{0}, column_ = ~std::uint64_t{0};
        file::Crc64 crc_;
    };

    std::string path_;
    Header header_;
    Array<Section> sections_;
};
static_assert(sizeof(SortedFile::Header) == 80 && sizeof(SortedFile::Section) == 40);

}}}  // namespace isogloss::counts
