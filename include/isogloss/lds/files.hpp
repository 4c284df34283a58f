/// @file lds/files.hpp  Files of counts and systems. Needs isogloss/io.hpp and its dependency.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/lds/count_cursor.hpp>
#include <isogloss/lds/counts.hpp>
#include <isogloss/lds/model.hpp>
#include <isogloss/lds/spilled_counts.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// Counts and their vocabulary.
struct CountsFile {
    LagCounts counts;
    text::Vocabulary vocabulary;
};

namespace detail {

// What a file of counts holds for lag k: everything but the numbers themselves.
struct StoredLag {
    Index k, words, pairs;
    bool wide;  // some count is above 2³² - 1

    bool long_starts() const { return pairs > std::numeric_limits<std::int32_t>::max(); }
    io::TensorSpec starts() const {
        return {message("starts/", k), long_starts() ? io::DType::i64 : io::DType::i32, {words + 1}};
    }
    io::TensorSpec columns() const { return {message("columns/", k), io::DType::i32, {pairs}}; }
    io::TensorSpec values() const {
        return {message("values/", k), wide ? io::DType::i64 : io::DType::u32, {pairs}};
    }
};

// Collects single numbers and writes them in blocks, converted to T.
template <class T> class Pieces {
public:
    explicit Pieces(io::TensorSink& sink) : sink_(&sink) {}
    void put(std::int64_t x) {
        piece_[used_++] = static_cast<T>(x);
        if (used_ == piece_.size()) flush();
    }
    void flush() {
        sink_->write(std::as_bytes(std::span(piece_).first(used_)));
        used_ = 0;
    }

private:
    io::TensorSink* sink_;
    std::array<T, 1024> piece_;
    std::size_t used_ = 0;
};

// Calls each(put), where put(n) writes a number to the tensor, as I64 or as T.
template <class T, class Each> auto numbers(bool as_long, Each each) {
    return [as_long, each = std::move(each)](io::TensorSink& sink) {
        const auto run = [&](auto pieces) {
            each([&](std::int64_t x) { pieces.put(x); });
            pieces.flush();
        };
        if (as_long) run(Pieces<std::int64_t>(sink));
        else run(Pieces<T>(sink));
    };
}

inline std::vector<io::TensorSource> counts_head(const std::string& words, const std::int64_t& boundary,
                                                 std::span<const std::int64_t> occurrences) {
    const auto bytes = [](auto span) {
        return [all = std::as_bytes(span)](io::TensorSink& sink) { sink.write(all); };
    };
    return {{{"vocabulary", io::DType::u8, {std::ssize(words)}}, bytes(std::span(words))},
            {{"boundary", io::DType::i64, {}}, bytes(std::span(&boundary, 1))},
            {{"occurrences", io::DType::i64, {std::ssize(occurrences)}}, bytes(occurrences)}};
}

// `words`: the checksum that the counts have; 0: none.
inline void require_words(const text::Vocabulary& vocabulary, Index counted, std::uint64_t words) {
    if (vocabulary.size() != counted)
        throw UsageError("save_counts: found counts of ", counted, " words and a vocabulary of ",
                         vocabulary.size());
    if (words != 0 && words != vocabulary.checksum())
        throw UsageError("save_counts: found a vocabulary of checksum ", file::hex16(vocabulary.checksum()),
                         ", expected that of the counts, ", file::hex16(words));
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
/// Throws UsageError if the vocabulary has another size than the counts, or other words where the counts know theirs
/// (CountOptions::vocabulary_checksum), FileError as write_safetensors.
inline void save_counts(const std::filesystem::path& path, const LagCounts& counts,
                        const text::Vocabulary& vocabulary) {
    const Index V = counts.vocabulary();
    detail::require_words(vocabulary, V, counts.options().vocabulary_checksum);
    const std::string words = vocabulary.to_text();
    const std::int64_t boundary = counts.options().boundary;
    auto tensors = detail::counts_head(words, boundary, std::span(counts.occurrences()));
    for (Index k = 1; k <= counts.lags(); ++k) {
        const SparseCounts& m = counts.lag(k);
        const detail::StoredLag lag{k, V, m.pairs(), !m.values.wide.empty()};
        tensors.push_back({lag.starts(), detail::numbers<std::int32_t>(lag.long_starts(), [&m](auto put) {
                               for (const std::int64_t s : m.starts) put(s);
                           })});
        tensors.push_back({lag.columns(), [&m](io::TensorSink& out) {
                               out.write(std::as_bytes(std::span<const std::int32_t>(m.columns)));
                           }});
        tensors.push_back({lag.values(), [&m](io::TensorSink& out) {
                               out.write(std::as_bytes(std::span<const std::uint32_t>(m.values.narrow)));
                               out.write(std::as_bytes(std::span<const std::int64_t>(m.values.wide)));
                           }});
    }
    io::stream_safetensors(path, std::move(tensors), {{"isogloss.kind", "lag counts"}});
}

/// Writes the same file from count files, lag k (0: the occurrences) in runs[k mod size]: one file with all lags,
/// or those of merge_of_ranks. Files are read three times through `buffer` bytes; memory is 8 bytes per word.
///
/// `watch`, if given, is called now and then; an exception from it aborts the writing and leaves no file. Throws
/// UsageError for a vocabulary of another size, or of other words where the count files know theirs
/// (SpillOptions::vocabulary_checksum).
inline void save_counts(const std::filesystem::path& path, std::span<const CountRun> runs,
                        const text::Vocabulary& vocabulary, Index buffer,
                        const std::function<void()>& watch = {}) {
    const CountRunHeader& header = runs.front().header();
    const Index V = header.vocabulary;
    detail::require_words(vocabulary, V, header.words);
    const auto run = [runs](Index k) -> const CountRun& {
        return runs[static_cast<std::size_t>(k) % runs.size()];
    };
    const std::string words = vocabulary.to_text();
    const std::int64_t boundary = header.boundary;
    Array<std::int64_t> occurrences(V);
    const auto each = [run, &watch, buffer](Index k, auto use) {
        std::int64_t met = 0;
        for (CountRunCursor at(run(k), k, buffer); at.next();) {
            use(at);
            if (++met % 65536 == 0 && watch) watch();
        }
    };
    each(0, [&](const CountRunCursor& at) { occurrences[at.row()] = at.count(); });
    auto tensors = detail::counts_head(words, boundary, std::span(occurrences));
    for (Index k = 1; k <= header.lags; ++k) {
        const CountRunSection& section = run(k).section(k);
        const detail::StoredLag lag{k, V, section.pairs,
                                    section.largest > std::numeric_limits<std::uint32_t>::max()};
        tensors.push_back({lag.starts(), detail::numbers<std::int32_t>(lag.long_starts(), [=](auto put) {
                               std::int64_t row = 0, pairs = 0;  // starts 0 … row are put
                               put(0);
                               each(k, [&](const CountRunCursor& at) {
                                   for (; row < at.row(); ++row) put(pairs);
                                   ++pairs;
                               });
                               for (; row < V; ++row) put(pairs);
                           })});
        tensors.push_back({lag.columns(), detail::numbers<std::int32_t>(false, [=](auto put) {
                               each(k, [&](const CountRunCursor& at) { put(at.column()); });
                           })});
        tensors.push_back({lag.values(), detail::numbers<std::uint32_t>(lag.wide, [=](auto put) {
                               each(k, [&](const CountRunCursor& at) { put(at.count()); });
                           })});
    }
    io::stream_safetensors(path, std::move(tensors), {{"isogloss.kind", "lag counts"}});
}

/// Writes the same file from counts that may exceed memory; calls finish().
inline void save_counts(const std::filesystem::path& path, SpilledCounts& counts,
                        const text::Vocabulary& vocabulary, const std::function<void()>& watch = {}) {
    detail::require_words(vocabulary, counts.vocabulary(), counts.vocabulary_checksum());
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
    auto occurrences = file.values<std::int64_t>("occurrences");
    const Index V = vocabulary.size();
    const auto refuse = [&](const auto&... what) {
        throw FileError(file.name(), ": ", what..., "; the file was not written by save_counts");
    };
    if (std::ssize(occurrences) != V) refuse("the occurrences do not match the vocabulary");
    Array<SparseCounts> lags;
    for (Index k = 1; file.find(message("starts/", k)); ++k) {
        const std::string of = message("/", k);
        const auto is_long = [&](const char* name) { return file.at(name + of).dtype == io::DType::i64; };
        Array<std::int64_t> starts;
        if (is_long("starts")) {
            starts = file.values<std::int64_t>("starts" + of);
        } else {
            const auto short_starts = file.values<std::int32_t>("starts" + of);
            starts.Base::assign(short_starts.begin(), short_starts.end());
        }
        auto owners = std::make_shared<std::vector<std::shared_ptr<const void>>>();
        owners->push_back(file.owner());
        const auto columns = detail::mapped<std::int32_t>(file, "columns" + of, *owners);
        CountView values;
        if (is_long("values")) values.wide = detail::mapped<std::int64_t>(file, "values" + of, *owners);
        else values.narrow = detail::mapped<std::uint32_t>(file, "values" + of, *owners);
        lags.push_back({std::move(starts), columns, values, std::move(owners)});
    }
    if (lags.empty()) refuse("it holds no lags");
    const auto boundary = file.scalar<std::int64_t>("boundary");
    if (boundary < -1 || boundary >= V) refuse("the boundary is not a word of the vocabulary");
    const CountOptions options{.lags = std::ssize(lags),
                               .boundary = static_cast<Token>(boundary),
                               .vocabulary_checksum = vocabulary.checksum()};
    try {
        return {LagCounts::from_parts(options, std::move(occurrences), std::move(lags)),
                std::move(vocabulary)};
    } catch (const UsageError& error) {
        refuse(error.text());
        throw;
    }
}

/// A system with everything needed to use it, and its fitting history.
template <class T> struct LdsFile {
    Lds<T> system;
    SmallMatrix xx, xx_filtered;  ///< of Statistics, for embeddings
    text::Vocabulary vocabulary;
    Array<double> singular_values;  ///< of the Hankel operator; empty after another start
    Array<double> log_likelihoods;  ///< per token, before each iteration of EM, and after the last one
    std::map<std::string, std::string> notes;  ///< free for the program
};

namespace detail {

/// Whether a finite matrix is symmetric up to rounding.
inline bool is_symmetric(const SmallMatrix& m) {
    double most = 0, apart = 0;
    for (Index i = 0; i < rows(m); ++i)
        for (Index j = 0; j < cols(m); ++j) {
            most = std::max(most, std::abs(m(i, j)));
            apart = std::max(apart, std::abs(m(i, j) - m(j, i)));
        }
    return apart <= 1e-10 * most;
}

}  // namespace detail

/// Writes a system as one safetensors file: "A", "M", "xx", "xx_filtered" [h, h] and "frequencies" [V] in
/// double, "C" [V, h], "mass", "vocabulary", "singular_values", "log_likelihoods". Throws UsageError, and writes
/// nothing, where the sizes of the parts differ; NumericError likewise for what load_lds
/// would refuse: a matrix that is not finite, M, xx or xx_filtered that is not symmetric, a mass that is not above 0.
template <class T> void save_lds(const std::filesystem::path& path, const LdsFile<T>& it) {
    require_consistent(it.system, "save_lds");
    const Index h = it.system.states(), V = it.system.vocabulary();
    if (it.vocabulary.size() != V)
        throw UsageError("save_lds: found a system of ", V, " words and a vocabulary of ",
                         it.vocabulary.size());
    for (const auto* m : {&it.xx, &it.xx_filtered})
        if (rows(*m) != h || cols(*m) != h)
            throw UsageError("save_lds: found second moments [", rows(*m), ", ", cols(*m), "] of ", h,
                             " states; fill xx and xx_filtered from the statistics of EM");
    require_numbers(it.xx, "save_lds", "xx"), require_numbers(it.xx_filtered, "save_lds", "xx_filtered");
    const auto require_finite = [](const std::string& name, const auto& m) {
        if (const Index n = std::ssize(m), bad = kernel::first_non_finite(n, m.data()); bad != n)
            throw NumericError("save_lds: ", name, " holds ", m.data()[bad],
                               ", expected finite numbers; nothing was written. Keep the system from before "
                               "the step that made it so");
    };
    require_finite("A", it.system.A), require_finite("M", it.system.M), require_finite("C", it.system.C);
    require_finite("xx", it.xx), require_finite("xx_filtered", it.xx_filtered);
    const auto require_symmetric = [](const std::string& name, const SmallMatrix& m) {
        if (!detail::is_symmetric(m))
            throw NumericError("save_lds: ", name,
                               " is not symmetric, as a covariance is; nothing was written");
    };
    require_symmetric("M", it.system.M);
    require_symmetric("xx", it.xx), require_symmetric("xx_filtered", it.xx_filtered);
    require<NumericError>("save_lds", "mass", it.system.whitening.mass, Exclusive{0});
    const std::string words = it.vocabulary.to_text();
    const auto matrix = [](const std::string& name, const SmallMatrix& m) {
        return io::tensor_view<double>(name, {rows(m), cols(m)}, {m.data(), m.size()});
    };
    io::write_safetensors(
        path,
        std::vector<io::TensorView>{
            matrix("A", it.system.A), matrix("M", it.system.M), matrix("xx", it.xx),
            matrix("xx_filtered", it.xx_filtered),
            io::tensor_view<T>("C", {V, h}, {it.system.C.data(), it.system.C.size()}),
            io::tensor_view<double>("frequencies", {V}, it.system.whitening.mu),
            io::tensor_view<double>("mass", {}, {&it.system.whitening.mass, 1}),
            io::text_view("vocabulary", words),
            io::tensor_view<double>("singular_values", {std::ssize(it.singular_values)}, it.singular_values),
            io::tensor_view<double>("log_likelihoods", {std::ssize(it.log_likelihoods)}, it.log_likelihoods)},
        it.notes);
}

/// Reads a file written by save_lds with the same scalar type. Throws FileError for anything else, and DataError for
/// a vocabulary that is none.
template <class T> LdsFile<T> load_lds(const std::filesystem::path& path) {
    const auto file = io::Safetensors::open(path);
    LdsFile<T> it;
    it.vocabulary = text::Vocabulary::from_text(file.characters("vocabulary"), file.name() + ", vocabulary");
    const auto& shape = file.at("C").shape;
    if (shape.size() != 2 || shape[0] != it.vocabulary.size() || shape[1] < 1)
        throw FileError(file.name(), ": C has shape ", dimensions_text(shape), ", expected ",
                        it.vocabulary.size(), " rows, one for each word, and at least one column");
    const Index V = shape[0], h = shape[1];
    // All shapes are checked against the file before anything is allocated.
    for (const char* square : {"A", "M", "xx", "xx_filtered"}) file.require<double>(square, {h, h});
    file.require<T>("C", {V, h});
    file.require<double>("frequencies", {V});
    const auto read = [&]<class S>(const std::string& name, Index rows, Index cols, Tensor<S, 2>& m) {
        m = zeros<S>(rows, cols);
        file.read<S>(name, {rows, cols}, std::span(m.data(), m.size()));
        if (const Index n = std::ssize(m), bad = kernel::first_non_finite(n, m.data()); bad != n)
            throw FileError(file.name(), ": ", name, " holds ", m.data()[bad]);
    };
    const auto read_covariance = [&](const std::string& name, SmallMatrix& m) {
        read(name, h, h, m);
        if (!detail::is_symmetric(m))
            throw FileError(file.name(), ": ", name,
                            " is not symmetric, as a covariance is; the file was not ",
                            "written by save_lds");
    };
    read("A", h, h, it.system.A);
    read_covariance("M", it.system.M);
    read_covariance("xx", it.xx);
    read_covariance("xx_filtered", it.xx_filtered);
    read("C", V, h, it.system.C);
    std::vector<double> mu(std::size_t(V), 0.0);
    file.read<double>("frequencies", std::span(mu));
    try {
        it.system.whitening = Whitening::of_frequencies(std::move(mu), file.scalar<double>("mass"));
    } catch (const DataError& error) {
        throw FileError(file.name(), ": invalid frequencies: ", error.text());
    }
    it.singular_values = file.values<double>("singular_values");
    it.log_likelihoods = file.values<double>("log_likelihoods");
    it.notes = file.metadata();
    return it;
}

}}}  // namespace isogloss::lds
