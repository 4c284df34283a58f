/// @file counts/files.hpp  Files of counts. Needs isogloss/io.hpp and its dependency.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <isogloss/counts/lag_counts.hpp>
#include <isogloss/counts/sorted_file.hpp>
#include <isogloss/counts/spilled_counts.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace counts {

/// Counts and their vocabulary.
struct CountsFile {
    LagCounts counts;
    text::Vocabulary vocabulary;
};

namespace detail {

// What a file holds of lag k besides the numbers themselves.
struct StoredLag {
    Index pairs;
    std::int64_t largest;  // count
};

// Writes the numbers that each(put) passes to put(n) in blocks, converted to T.
template <class T, class Each> void write_numbers(io::TensorSink& sink, const Each& each) {
    std::vector<T> piece;
    const auto flush = [&] {
        sink.write(std::as_bytes(std::span(piece)));
        piece.clear();
    };
    each([&](std::int64_t n) {
        piece.push_back(static_cast<T>(n));
        if (piece.size() == 1024) flush();
    });
    flush();
}

// A tensor of as many such numbers, as I64 or as T.
template <class T, class Each>
io::TensorSource numbers(const std::string& name, Index size, bool as_long, Each each) {
    return {{name, as_long ? io::DType::i64 : io::dtype_of<T>(), {size}},
            [as_long, each = std::move(each)](io::TensorSink& sink) {
                if (as_long) write_numbers<std::int64_t>(sink, each);
                else write_numbers<T>(sink, each);
            }};
}

// Writes a file of counts of this shape. stored(k) is what it holds of lag k; each(k, use) calls use(row, column, count)
// for the pairs of lag k in order, or k = 0 for the occurrences, whenever it is called.
template <class Stored, class Each>
void write_counts(const std::filesystem::path& path, const CountShape& shape,
                  const text::Vocabulary& vocabulary, Stored&& stored, const Each& each) {
    const Index V = shape[0];
    if (vocabulary.size() != V)
        throw UsageError("save_counts: found counts of ", V, " words and a vocabulary of ",
                         vocabulary.size());
    if (shape[3] != 0 && shape[3] != static_cast<Index>(vocabulary.checksum()))
        throw UsageError(
            "save_counts: found a vocabulary of other words than those of the counts; take the one ",
            "they were made with");
    Array<std::int64_t> occurrences(V);
    each(0, [&](std::int64_t row, std::int64_t, std::int64_t count) { occurrences[row] = count; });
    const std::string words = vocabulary.to_text();
    std::vector<io::TensorSource> tensors;
    tensors.push_back({{"vocabulary", io::DType::u8, {std::ssize(words)}},
                       [&words](io::TensorSink& sink) { sink.write(std::as_bytes(std::span(words))); }});
    tensors.push_back({{"boundary", io::DType::i64, {}}, [&shape](io::TensorSink& sink) {
                           sink.write(std::as_bytes(std::span(&shape[2], 1)));
                       }});
    tensors.push_back({{"occurrences", io::DType::i64, {V}}, [&occurrences](io::TensorSink& sink) {
                           sink.write(std::as_bytes(std::span(occurrences)));
                       }});
    for (Index k = 1; k <= shape[1]; ++k) {
        const StoredLag lag = stored(k);
        tensors.push_back(
            numbers<std::int32_t>(message("starts/", k), V + 1,
                                  lag.pairs > std::numeric_limits<std::int32_t>::max(), [=, &each](auto put) {
                                      std::int64_t next = 0, pairs = 0;  // starts 0 … next are put
                                      put(0);
                                      each(k, [&](std::int64_t row, std::int64_t, std::int64_t) {
                                          for (; next < row; ++next) put(pairs);
                                          ++pairs;
                                      });
                                      for (; next < V; ++next) put(pairs);
                                  }));
        tensors.push_back(
            numbers<std::int32_t>(message("columns/", k), lag.pairs, false, [=, &each](auto put) {
                each(k, [&](std::int64_t, std::int64_t column, std::int64_t) { put(column); });
            }));
        tensors.push_back(numbers<std::uint32_t>(
            message("values/", k), lag.pairs, lag.largest > std::numeric_limits<std::uint32_t>::max(),
            [=, &each](auto put) {
                each(k, [&](std::int64_t, std::int64_t, std::int64_t count) { put(count); });
            }));
    }
    io::stream_safetensors(path, std::move(tensors), {{"isogloss.kind", "lag counts"}});
}

// A tensor of a file as an array: in place, or copied if its type or alignment is not that of T.
template <class T> ArrayView<const T> mapped(const io::Safetensors& file, const std::string& name,
                                             std::vector<std::shared_ptr<const void>>& owners) {
    const io::TensorView& t = file.at(name);
    if (t.dtype == io::dtype_of<T>() && reinterpret_cast<std::uintptr_t>(t.bytes.data()) % alignof(T) == 0)
        return std::span(reinterpret_cast<const T*>(t.bytes.data()), t.bytes.size() / sizeof(T));
    const auto copy = std::make_shared<const std::vector<T>>(file.values<T>(name));
    owners.push_back(copy);
    return std::span(*copy);
}

}  // namespace detail

/// Writes counts as one safetensors file: "starts/k" [V+1], "columns/k", "values/k" [pairs] per lag k,
/// "occurrences" [V], "boundary", "vocabulary".
///
/// Starts and columns are I32, values U32; starts are I64 at a lag with more than 2³¹ - 1 pairs, values are I64
/// at a lag with a count above 2³² - 1. Versions before 0.2 read only files without such a lag.
///
/// The counts are the sum of several, which may lie in mapped files: memory is that of a row and 8 bytes per word. Their
/// pairs are read four times.
///
/// Throws UsageError for counts of different words, lags or boundary, for a vocabulary of another size, or of other words
/// where the counts know theirs (CountOptions::vocabulary_checksum); DataError for more than 2⁶³ - 1 tokens; FileError as
/// write_safetensors.
inline void save_counts(const std::filesystem::path& path, std::span<const LagCounts> parts,
                        const text::Vocabulary& vocabulary, const std::function<void()>& watch = {}) {
    auto shape = detail::shape_of(parts.front().vocabulary(), parts.front().options());
    std::int64_t total = 0;
    for (const LagCounts& part : parts) {
        const auto own = detail::shape_of(part.vocabulary(), part.options());
        detail::require_alike("save_counts", own, shape);
        if (shape[3] == 0) shape[3] = own[3];
        detail::require_room("save_counts", part.tokens(), total);
        total += part.tokens();
    }
    const auto each = [&](Index k, auto&& use) {
        std::vector<std::pair<std::int32_t, std::int64_t>> row;
        for (Index i = 0, met = 0; i < shape[0]; ++i) {
            row.clear();
            for (const LagCounts& part : parts) {
                const auto middle = std::ssize(row);
                if (k == 0) {
                    row.emplace_back(0, part.occurrences()[i]);
                } else {
                    const SparseCounts& m = part.lag(k);
                    for (Index at = m.starts[i]; at < m.starts[i + 1]; ++at)
                        row.emplace_back(m.columns[at], m.values[at]);
                }
                std::inplace_merge(row.begin(), row.begin() + middle, row.end());
            }
            for (std::size_t at = 0; at < row.size();) {
                const std::int32_t column = row[at].first;
                std::int64_t sum = 0;
                for (; at < row.size() && row[at].first == column; ++at) sum += row[at].second;
                use(i, column, sum);
                if (++met % 65536 == 0 && watch) watch();
            }
        }
    };
    const auto stored = [&](Index k) {
        std::int64_t pairs = 0, largest = 0;
        each(k, [&](std::int64_t, std::int64_t, std::int64_t n) { ++pairs, largest = std::max(largest, n); });
        return detail::StoredLag{pairs, largest};
    };
    detail::write_counts(path, shape, vocabulary, stored, each);
}

/// Writes a file of these counts alone.
inline void save_counts(const std::filesystem::path& path, const LagCounts& counts,
                        const text::Vocabulary& vocabulary) {
    save_counts(path, std::span(&counts, 1), vocabulary);
}

/// Writes the same file from sorted files, lag k (0: the occurrences) in files[k mod size]: one file with all lags,
/// or those of merge_of_ranks. They are read three times through `buffer` bytes; memory is 8 bytes per word.
///
/// `watch`, if given, is called now and then; an exception from it aborts the writing and leaves no file.
inline void save_counts(const std::filesystem::path& path, std::span<const SortedFile> files,
                        const text::Vocabulary& vocabulary, Index buffer,
                        const std::function<void()>& watch = {}) {
    const auto file_of = [&](Index k) -> const SortedFile& {
        return files[static_cast<std::size_t>(k) % files.size()];
    };
    const auto each = [&](Index k, auto&& use) {
        std::int64_t met = 0;
        file_of(k).read(k, buffer, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
            use(row, column, count);
            if (++met % 65536 == 0 && watch) watch();
        });
    };
    const auto stored = [&](Index k) {
        return detail::StoredLag{file_of(k).section(k).pairs, file_of(k).section(k).largest};
    };
    detail::write_counts(path, files.front().shape(), vocabulary, stored, each);
}

/// Writes the same file from counts that may exceed memory; calls finish().
inline void save_counts(const std::filesystem::path& path, SpilledCounts& counts,
                        const text::Vocabulary& vocabulary, const std::function<void()>& watch = {}) {
    save_counts(path, std::span(&counts.finish(), 1), vocabulary, counts.buffer(), watch);
}

/// Reads a file written by save_counts. The file is mapped, so that counts may exceed memory: all of it is
/// read twice, to verify its checksum and that its numbers are valid counts; columns and values are read again
/// whenever they are used. Throws FileError for anything else, including invalid counts, and DataError for a
/// vocabulary that is none.
inline CountsFile load_counts(const std::filesystem::path& path) {
    const auto file = io::Safetensors::map(path);
    auto vocabulary =
        text::Vocabulary::from_text(file.characters("vocabulary"), file.name() + ", vocabulary");
    Array<SparseCounts> lags;
    for (Index k = 1; file.find(message("starts/", k)); ++k) {
        const std::string of_lag = message("/", k);
        const auto is_long = [&](const char* name) { return file.at(name + of_lag).dtype == io::DType::i64; };
        Array<std::int64_t> starts;
        if (is_long("starts")) {
            starts = file.values<std::int64_t>("starts" + of_lag);
        } else {
            const auto narrow = file.values<std::int32_t>("starts" + of_lag);
            starts.Base::assign(narrow.begin(), narrow.end());
        }
        auto owners = std::make_shared<std::vector<std::shared_ptr<const void>>>();
        owners->push_back(file.owner());
        const auto columns = detail::mapped<std::int32_t>(file, "columns" + of_lag, *owners);
        detail::CountView values;
        if (is_long("values")) values.wide = detail::mapped<std::int64_t>(file, "values" + of_lag, *owners);
        else values.narrow = detail::mapped<std::uint32_t>(file, "values" + of_lag, *owners);
        lags.push_back({std::move(starts), columns, values, std::move(owners)});
    }
    const auto boundary = file.scalar<std::int64_t>("boundary");
    auto occurrences = file.values<std::int64_t>("occurrences");
    if (lags.empty() || std::ssize(occurrences) != vocabulary.size() || boundary < -1 ||
        boundary >= vocabulary.size())
        throw FileError(file.name(), ": the lags, the boundary or the vocabulary are not those of counts; ",
                        "the file was not written by save_counts");
    const CountOptions options{.lags = std::ssize(lags),
                               .boundary = static_cast<Token>(boundary),
                               .vocabulary_checksum = vocabulary.checksum()};
    return {LagCounts::from_parts<FileError>(options, std::move(occurrences), std::move(lags), file.name()),
            std::move(vocabulary)};
}

}}}  // namespace isogloss::counts
