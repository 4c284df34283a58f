/// @file lds/count_run.hpp  Sequential writing of the counts of a part of a text to a file.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <isogloss/array.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/file/output_file.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <string>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// What a count file contains: the fixed part of its header, 80 bytes without gaps.
struct CountRunHeader {
    std::array<char, 8> magic{'i', 's', 'o', 'c', 'o', 'u', 'n', 't'};
    std::uint32_t version = 1;
    std::uint32_t order = 0x01020304;
    std::int64_t vocabulary = 0;  ///< V
    std::uint64_t words = 0;      ///< checksum of the vocabulary
    std::int64_t lags = 0;
    std::int64_t boundary = -1;
    std::int64_t first = 0, last = 0;  ///< the later words are tokens first … last-1 of the text
    std::uint64_t text = 0;            ///< TokenHash of tokens 0 … last-1
    std::uint64_t checksum = 0;        ///< CRC-64 of header and sections, with this field taken as 0
};
static_assert(sizeof(CountRunHeader) == 80);

/// Where the pairs of one matrix lie. Section 0 holds the occurrences, n[i] as row i, column 0; section k lag k.
struct CountRunSection {
    std::int64_t begin = 0, bytes = 0;  ///< in the file
    std::int64_t pairs = 0;             ///< number of nonzero entries
    std::int64_t largest = 0;           ///< largest count
    std::uint64_t checksum = 0;         ///< CRC-64
};
static_assert(sizeof(CountRunSection) == 40);

/// Writes a count file: sections 0 … lags in this order, the pairs of each by ascending row and column.
///
///     header | sections | for each pair:  2 (column - previous column), count                   in the same row
///                                         2 (row - previous row) + 1, column + 1, count         in a new row
///
/// Numbers are in base 128, lowest digit first, with the eighth bit set in all digits but the last; the row
/// before the first pair is -1. A pair takes about 3 bytes in the counts of a text.
///
/// Errors   FileError, as OutputFile.
class CountRunWriter {
public:
    /// Opens a temporary file in the folder of `path`.
    CountRunWriter(const std::string& path, const CountRunHeader& header)
        : out_(path), header_(header), sections_(header.lags + 1) {
        put_head();
        end_ = head_bytes();
        buffer_.reserve(capacity);
    }

    /// Begins the next section; the first call begins section 0.
    void section() {
        close_section();
        ++section_;
        sections_[section_] = {end_, 0, 0, 0, 0};
        row_ = column_ = -1;
        crc_ = {};
    }
    /// Appends a pair that comes after the previous one in order; count ≥ 1.
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
        CountRunSection& s = sections_[section_];
        ++s.pairs;
        s.largest = std::max(s.largest, count);
    }
    /// Completes the header, flushes and renames the file. Call once, after the last section.
    void commit() {
        close_section();
        header_.checksum = 0;
        header_.checksum = head_checksum(header_, sections_);
        put_head();
        out_.commit();
    }

    /// CRC-64 of header and sections.
    static std::uint64_t head_checksum(const CountRunHeader& header, std::span<const CountRunSection> s) {
        file::Crc64 crc;
        crc.add(std::as_bytes(std::span(&header, 1)));
        crc.add(std::as_bytes(s));
        return crc.value();
    }
    /// Bytes of memory that a writer takes, whatever it writes.
    static constexpr Index memory = (Index{1} << 18) + (Index{1} << 14) + 4096;

private:
    static constexpr std::size_t capacity = std::size_t{1} << 14;

    Index head_bytes() const {
        return Index{sizeof header_} + Index{sizeof(CountRunSection)} * (header_.lags + 1);
    }
    void put_head() {
        std::string head(reinterpret_cast<const char*>(&header_), sizeof header_);
        head.append(reinterpret_cast<const char*>(sections_.data()),
                    sections_.size() * sizeof(CountRunSection));
        if (section_ < 0) out_.write(head);
        else out_.write_at(0, head);
    }
    void put(std::uint64_t number) {
        for (; number >= 128; number >>= 7) buffer_ += static_cast<char>(number | 128);
        buffer_ += static_cast<char>(number);
    }
    void flush() {
        crc_.add(buffer_);
        out_.write(buffer_);
        end_ += std::ssize(buffer_);
        buffer_.clear();
    }
    void close_section() {
        if (section_ < 0) return;
        flush();
        sections_[section_].bytes = end_ - sections_[section_].begin;
        sections_[section_].checksum = crc_.value();
    }

    file::OutputFile out_;
    CountRunHeader header_;
    Array<CountRunSection> sections_;
    file::Crc64 crc_;
    std::string buffer_;
    Index section_ = -1, end_ = 0;
    std::int64_t row_ = -1, column_ = -1;
};

}}}  // namespace isogloss::lds
