/// @file lds/files.hpp  Counts and systems in files. Needs isogloss/io.hpp and its dependency.
#pragma once

#include <filesystem>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/lds/counts.hpp>
#include <isogloss/lds/model.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds {

/// Counts with the vocabulary they are of.
struct CountsFile {
    LagCounts counts;
    text::Vocabulary vocabulary;
};

/// Writes counts as one safetensors file: "starts/k" [V+1], "columns/k", "values/k" [pairs] per lag k,
/// "occurrences" [V], "boundary", "vocabulary".
///
/// Throws UsageError where the vocabulary is not that of the counts, FileError as write_safetensors.
inline void save_counts(const std::filesystem::path& path, const LagCounts& counts,
                        const text::Vocabulary& vocabulary) {
    if (vocabulary.size() != counts.vocabulary())
        throw UsageError("save_counts: found counts of ", counts.vocabulary(), " words and a vocabulary of ",
                         vocabulary.size());
    const std::string words = vocabulary.to_text();
    const std::int64_t boundary = counts.options().boundary;
    std::vector<io::TensorView> tensors{
        io::text_view("vocabulary", words), io::tensor_view<std::int64_t>("boundary", {}, {&boundary, 1}),
        io::tensor_view<std::int64_t>("occurrences", {counts.vocabulary()}, counts.occurrences())};
    for (Index k = 1; k <= counts.lags(); ++k) {
        const SparseCounts& m = counts.lag(k);
        const std::string of = message("/", k);
        tensors.push_back(io::tensor_view<std::int32_t>("starts" + of, {std::ssize(m.starts)}, m.starts));
        tensors.push_back(io::tensor_view<std::int32_t>("columns" + of, {m.pairs()}, m.columns));
        tensors.push_back(io::tensor_view<std::uint32_t>("values" + of, {m.pairs()}, m.values));
    }
    io::write_safetensors(path, tensors, {{"isogloss.kind", "lag counts"}});
}

/// Reads what save_counts wrote. Throws FileError for anything else, also where the numbers are no counts.
inline CountsFile load_counts(const std::filesystem::path& path) {
    const auto file = io::Safetensors::open(path);
    auto vocabulary =
        text::Vocabulary::from_text(file.characters("vocabulary"), file.name() + ", vocabulary");
    auto occurrences = file.values<std::int64_t>("occurrences");
    const Index V = vocabulary.size();
    const auto refuse = [&](const auto&... what) {
        throw FileError(file.name(), ": ", what..., "; the file was not written by save_counts");
    };
    if (std::ssize(occurrences) != V) refuse("the occurrences are not of its vocabulary");
    std::int64_t room = std::numeric_limits<std::uint32_t>::max();
    for (const auto n : occurrences) {
        if (n < 0) refuse("a word occurs fewer than 0 times");
        if (n > room) refuse("the words occur more than 2³² - 1 times");
        room -= n;
    }
    Array<SparseCounts> lags;
    for (Index k = 1; file.find(message("starts/", k)); ++k) {
        const std::string of = message("/", k);
        lags.push_back({file.values<std::int32_t>("starts" + of), file.values<std::int32_t>("columns" + of),
                        file.values<std::uint32_t>("values" + of)});
        if (lags.back().rows() != V || !lags.back().is_valid()) refuse("lag ", k, " is no matrix of counts");
    }
    if (lags.empty()) refuse("it holds no lags");
    const auto boundary = file.scalar<std::int64_t>("boundary");
    if (boundary < -1 || boundary >= V) refuse("the boundary is no word of it");
    const CountOptions options{.lags = std::ssize(lags), .boundary = static_cast<Token>(boundary)};
    return {LagCounts::from_parts(options, std::move(occurrences), std::move(lags)), std::move(vocabulary)};
}

/// A system with all that its use needs, and the course of its fitting.
template <class T> struct LdsFile {
    Lds<T> system;
    SmallMatrix xx, xx_filtered;  ///< of Statistics, for embeddings
    text::Vocabulary vocabulary;
    Array<double> singular_values;             ///< of the Hankel operator; none after another start
    Array<double> log_likelihoods;             ///< per token, before each iteration of EM, and after the last
    std::map<std::string, std::string> notes;  ///< the program's own
};

/// Writes a system as one safetensors file: "A", "M", "xx", "xx_filtered" [h, h] and "frequencies" [V] in
/// double, "C" [V, h], "mass", "vocabulary", "singular_values", "log_likelihoods".
template <class T> void save_lds(const std::filesystem::path& path, const LdsFile<T>& it) {
    require_consistent(it.system, "save_lds");
    const Index h = it.system.states(), V = it.system.vocabulary();
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

/// Reads what save_lds wrote, of the same scalar type. Throws FileError for anything else.
template <class T> LdsFile<T> load_lds(const std::filesystem::path& path) {
    const auto file = io::Safetensors::open(path);
    LdsFile<T> it;
    it.vocabulary = text::Vocabulary::from_text(file.characters("vocabulary"), file.name() + ", vocabulary");
    const auto& shape = file.at("C").shape;
    if (shape.size() != 2 || shape[0] != it.vocabulary.size() || shape[1] < 1)
        throw FileError(file.name(), ": C has shape ", dimensions_text(shape), ", expected ",
                        it.vocabulary.size(), " rows, one for each word, and at least one column");
    const Index V = shape[0], h = shape[1];
    // All against what the file has, before any of it is allocated.
    for (const char* square : {"A", "M", "xx", "xx_filtered"}) file.require<double>(square, {h, h});
    file.require<T>("C", {V, h});
    file.require<double>("frequencies", {V});
    const auto read = [&]<class S>(const std::string& name, Index rows, Index cols, Tensor<S, 2>& m) {
        m = zeros<S>(rows, cols);
        file.read<S>(name, {rows, cols}, std::span(m.data(), m.size()));
        for (const S x : m)
            if (!std::isfinite(x)) throw FileError(file.name(), ": ", name, " holds ", x);
    };
    read("A", h, h, it.system.A);
    read("M", h, h, it.system.M);
    read("xx", h, h, it.xx);
    read("xx_filtered", h, h, it.xx_filtered);
    read("C", V, h, it.system.C);
    std::vector<double> mu(std::size_t(V), 0.0);
    file.read<double>("frequencies", std::span(mu));
    try {
        it.system.whitening = Whitening::of_frequencies(std::move(mu), file.scalar<double>("mass"));
    } catch (const DataError& error) {
        throw FileError(file.name(), ": the frequencies are none: ", error.what());
    }
    it.singular_values = file.values<double>("singular_values");
    it.log_likelihoods = file.values<double>("log_likelihoods");
    it.notes = file.metadata();
    return it;
}

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds
