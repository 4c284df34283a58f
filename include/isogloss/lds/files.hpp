/// @file lds/files.hpp  Files of systems. Needs isogloss/io.hpp and its dependency.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/lds/model.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

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

// Throws E, naming `who`, unless this is a system with finite numbers whose covariances are symmetric up to rounding.
template <class E, class T> void require_sound(const std::string& who, const LdsFile<T>& it) {
    require_finite<E>(who, "C", std::ssize(it.system.C), it.system.C.data());
    require_finite<E>(who, "A", std::ssize(it.system.A), it.system.A.data());
    for (const SmallMatrix* m : {&it.system.M, &it.xx, &it.xx_filtered}) {
        require_finite<E>(who, "a covariance", std::ssize(*m), m->data());
        if (frobenius(*m - transposed(*m)) > 1e-10 * frobenius(*m))
            throw E(who, ": found M, xx or xx_filtered not symmetric, as a covariance is");
    }
}

}  // namespace detail

/// Writes a system as one safetensors file: "A", "M", "xx", "xx_filtered" [h, h] and "frequencies" [V] in
/// double, "C" [V, h], "mass", "vocabulary", "singular_values", "log_likelihoods".
///
/// Nothing is written where this throws: UsageError where the sizes of the parts differ; NumericError for a matrix that is
/// not finite, for M, xx or xx_filtered that is not symmetric, and for a mass that is not above 0; FileError as
/// write_safetensors.
template <class T> void save_lds(const std::filesystem::path& path, const LdsFile<T>& it) {
    const char* who = "save_lds";
    detail::require_consistent(it.system, who);
    const Index h = it.system.states(), V = it.system.vocabulary();
    if (it.vocabulary.size() != V)
        throw UsageError(who, ": found a system of ", V, " words and a vocabulary of ", it.vocabulary.size());
    detail::require_shape(it.xx, h, h, who, "averages");
    detail::require_shape(it.xx_filtered, h, h, who, "averages");
    detail::require_sound<NumericError>(who, it);
    require<NumericError>(who, "mass", it.system.whitening.mass, Exclusive{0});
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
    const auto& shape = file.at("A").shape;
    const Index V = it.vocabulary.size(), h = shape.empty() ? 0 : shape[0];
    require<FileError>(file.name(), "states", h, 1);
    // All shapes are checked against the file before anything is allocated.
    for (const char* square : {"A", "M", "xx", "xx_filtered"}) file.expect(square, io::DType::f64, {{h, h}});
    file.expect("C", io::dtype_of<T>(), {{V, h}});
    file.expect("frequencies", io::DType::f64, {{V}});
    const auto read = [&]<class S>(const char* name, Index count, Tensor<S, 2>& m) {
        m = zeros<S>(count, h);
        file.read<S>(name, {count, h}, std::span(m.data(), m.size()));
    };
    read("A", h, it.system.A), read("M", h, it.system.M), read("C", V, it.system.C);
    read("xx", h, it.xx), read("xx_filtered", h, it.xx_filtered);
    detail::require_sound<FileError>(file.name(), it);
    it.system.whitening = Whitening::of_frequencies<FileError>(file.values<double>("frequencies"),
                                                               file.scalar<double>("mass"), file.name());
    it.singular_values = file.values<double>("singular_values");
    it.log_likelihoods = file.values<double>("log_likelihoods");
    it.notes = file.metadata();
    return it;
}

}}}  // namespace isogloss::lds
