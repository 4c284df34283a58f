/// @file counts/files.hpp  Files of counts. Needs isogloss/io.hpp and its dependency.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <isogloss/counts/lag_counts.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <limits>
#include <memory>
#include <numeric>
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

// A tensor of these numbers, which each(put) passes to put(n): as I64, or as the narrower T.
template <class T, class Each> io::TensorSource numbers(std::string name, Index size, bool wide, Each each) {
    return {{std::move(name), wide ? io::DType::i64 : io::dtype_of<T>(), {size}},
            [wide, each = std::move(each)](io::TensorSink& sink) {
                const auto write = [&]<class N>(N) {
                    std::vector<N> piece;
                    const auto flush = [&] {
                        sink.write(std::as_bytes(std::span(piece)));
                        piece.clear();
                    };
                    each([&](std::int64_t n) {
                        piece.push_back(static_cast<N>(n));
                        if (piece.size() == 1024) flush();
                    });
                    flush();
                };
                if (wide) write(std::int64_t{});
                else write(T{});
            }};
}

// Calls use(row, column, count) for the pairs of the sum of lag k of several counts, in order, and watch() now and then.
template <class Use>
void for_each_pair(std::span<const LagCounts> parts, Index k, const std::function<void()>& watch, Use&& use) {
    const Index V = parts.front().vocabulary();
    Array<std::int64_t> sums(V, -1);  // of a row; -1: no such pair
    Array<std::int32_t> columns;
    for (Index i = 0, met = 0; i < V; ++i) {
        columns.clear();
        for (const LagCounts& part : parts) {
            const SparseCounts& m = part.lag(k);
            const auto middle = std::ssize(columns);
            for (Index at = m.starts[i]; at < m.starts[i + 1]; ++at) {
                std::int64_t& sum = sums[m.columns[at]];
                if (sum < 0) columns.push_back(m.columns[at]), sum = 0;
                sum += m.values[at];
            }
            std::inplace_merge(columns.begin(), columns.begin() + middle, columns.end());
        }
        for (const std::int32_t column : columns) {
            use(i, column, std::exchange(sums[column], -1));
            if (++met % 16384 == 0 && watch) watch();
        }
    }
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
/// The counts are the sum of several, which may lie in mapped files: memory is 8 bytes per word and lag, and 24 per word.
/// Their pairs are read three times; watch(), if given, is called every few thousand, and may throw to leave no file.
///
/// Throws UsageError for counts of different words, lags or boundary, for a vocabulary of another size, or of other words
/// where the counts know theirs (CountOptions::vocabulary_checksum); DataError for more than 2⁶³ - 1 tokens; FileError as
/// write_safetensors.
inline void save_counts(const std::filesystem::path& path, std::span<const LagCounts> parts,
                        const text::Vocabulary& vocabulary, const std::function<void()>& watch = {}) {
    const Index V = vocabulary.size();
    const CountOptions& options = parts.front().options();
    const detail::CountShape shape{V, options.lags, options.boundary,
                                   static_cast<Index>(vocabulary.checksum())};
    std::int64_t total = 0;
    Array<std::int64_t> occurrences(V);
    for (const LagCounts& part : parts) {
        detail::require_alike("save_counts", detail::shape_of(part.vocabulary(), part.options()), shape);
        detail::require_room("save_counts", part.tokens(), total);
        total += part.tokens();
        for (Index i = 0; i < V; ++i) occurrences[i] += part.occurrences()[i];
    }
    const std::string words = vocabulary.to_text();
    const std::int64_t boundary = options.boundary;
    const auto bytes_of = [](auto name, io::DType type, std::vector<Index> sizes, auto numbers) {
        return io::TensorSource{{name, type, std::move(sizes)},
                                [numbers](io::TensorSink& sink) { sink.write(std::as_bytes(numbers)); }};
    };
    std::vector<io::TensorSource> tensors{
        bytes_of("vocabulary", io::DType::u8, {std::ssize(words)}, std::span(words)),
        bytes_of("boundary", io::DType::i64, {}, std::span(&boundary, 1)),
        bytes_of("occurrences", io::DType::i64, {V}, std::span(occurrences))};
    for (Index k = 1; k <= options.lags; ++k) {
        Array<std::int64_t> starts(V + 1);
        std::int64_t largest = 0;
        const auto pairs = [=, &watch](auto&& use) { detail::for_each_pair(parts, k, watch, use); };
        pairs([&](Index row, std::int32_t, std::int64_t count) {
            ++starts[row + 1];
            largest = std::max(largest, count);
        });
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        const Index n = starts.back();
        tensors.push_back(detail::numbers<std::int32_t>(
            message("starts/", k), V + 1, n > std::numeric_limits<std::int32_t>::max(),
            [starts = std::move(starts)](auto put) { std::for_each(starts.begin(), starts.end(), put); }));
        tensors.push_back(detail::numbers<std::int32_t>(message("columns/", k), n, false, [=](auto put) {
            pairs([&](Index, std::int32_t column, std::int64_t) { put(column); });
        }));
        tensors.push_back(detail::numbers<std::uint32_t>(
            message("values/", k), n, largest > std::numeric_limits<std::uint32_t>::max(),
            [=](auto put) { pairs([&](Index, std::int32_t, std::int64_t count) { put(count); }); }));
    }
    io::stream_safetensors(path, std::move(tensors), {{"isogloss.kind", "lag counts"}});
}

/// Writes a file of these counts alone.
inline void save_counts(const std::filesystem::path& path, const LagCounts& counts,
                        const text::Vocabulary& vocabulary) {
    save_counts(path, std::span(&counts, 1), vocabulary);
}

/// The counts of an open file, of the words in `vocabulary`. They stay in it where it is mapped. Throws FileError for numbers
/// that are not the counts of one text.
inline LagCounts counts_of(const io::Safetensors& file, const text::Vocabulary& vocabulary) {
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
    return LagCounts::from_parts<FileError>(options, std::move(occurrences), std::move(lags), file.name());
}

/// Reads a file written by save_counts. The file is mapped, so that counts may exceed memory: all of it is
/// read twice, to verify its checksum and that its numbers are valid counts; columns and values are read again
/// whenever they are used. Throws FileError for anything else, including invalid counts, and DataError for a
/// vocabulary that is none.
inline CountsFile load_counts(const std::filesystem::path& path) {
    const auto file = io::Safetensors::map(path);
    auto vocabulary =
        text::Vocabulary::from_text(file.characters("vocabulary"), file.name() + ", vocabulary");
    auto counts = counts_of(file, vocabulary);
    return {std::move(counts), std::move(vocabulary)};
}

}}}  // namespace isogloss::counts
