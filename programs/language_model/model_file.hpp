/// @file model_file.hpp  A trained model as a file: parameters, vocabulary, and the options to rebuild it.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/io.hpp>
#include <isogloss/text.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../shared/outputs.hpp"
#include "model.hpp"

namespace lm {

/// The metadata key of the options, in JSON.
inline constexpr const char* metadata_key = "language_model";

/// The metadata of a file.
inline std::map<std::string, std::string> metadata(const nlohmann::json& options) {
    return {{metadata_key, options.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}};
}

/// Throws FileError if the tensors of a file are too small for its options: the word vectors are of another
/// width, or all parameters together are fewer than the entries of the matrices of states, or weights of edges. Called
/// before a graph is built, whose size would otherwise be unbounded.
inline void require_room(const ig::io::Safetensors& file, const Options& o) {
    const auto* table = file.find("E");
    double room = 0;  // parameters
    for (const auto& t : file.tensors())
        if (!t.name.starts_with("state/"))
            room += static_cast<double>(t.bytes.size()) / static_cast<double>(ig::io::info(t.dtype).bytes);
    double least = 0;
    for (ig::Index l = 1; l <= *o.layers; ++l)
        least += static_cast<double>(width(o, l)) *
                 static_cast<double>(sparse(o)          ? o.edges
                                     : o.cell == "qrnn" ? 6 * (l == 1 ? o.embedding : width(o, l - 1))
                                     : o.cell == "rhn"  ? width(o, l) * o.depth
                                                        : width(o, l) + o.rounds * o.rank);
    if (!table || table->shape.size() != 2 || table->shape[1] != o.embedding || least > room)
        throw ig::FileError(ig::message(file.name(), ": its options specify ", layers_in_words(o),
                                        ", and word vectors of width ", o.embedding,
                                        ", but its tensors do not have these sizes; it is damaged"));
}

/// The options in a file that this program wrote, checked against the same bounds as those of the command
/// line. Throws FileError for the file of another program.
inline Options stored_options(const ig::io::Safetensors& file) {
    const auto at = file.metadata().find(metadata_key);
    const auto json =
        at == file.metadata().end() ? nlohmann::json() : nlohmann::json::parse(at->second, nullptr, false);
    if (!json.is_object() || !file.find("state/vocabulary"))
        throw ig::FileError(ig::message(
            file.name(),
            ": this is not a model of language_model; use a file that `language_model train` wrote"));
    const Options o = from_json(json, file.name());
    if (const auto found = fault(o); !found.empty())
        throw ig::FileError(ig::message(file.name(), ": in its options, ", found, "; it is damaged"));
    require_room(file, o);
    return o;
}

/// Throws DataError unless each line end of a text is a token of the vocabulary of `who`, as of every model here.
inline void require_line_ends(const ig::text::Vocabulary& vocabulary, const std::string& who) {
    vocabulary.eos();  // fed before a text: throws if there is none
    if (!vocabulary.eos_per_line())
        throw ig::DataError(who,
                            " has eos_per_line false, expected true: each line end is a token of a model; ",
                            "build it with eos_per_line = true");
}

/// The vocabulary in a file.
inline ig::text::Vocabulary stored_vocabulary(const ig::io::Safetensors& file) {
    const std::string name = file.name() + ", vocabulary";
    auto vocabulary = ig::text::Vocabulary::from_text(file.characters("state/vocabulary"), name);
    require_line_ends(vocabulary, name);
    return vocabulary;
}

/// Whether a file of this program holds a training, which can be resumed, and not a model alone.
inline bool is_training(const ig::io::Safetensors& file) { return file.find("state/epoch") != nullptr; }

/// A model file of this program, which may be overwritten; a training is none.
inline files::Kind model_kind() {
    return {"model of language_model", [](const std::string& path) {
                const auto file = ig::io::Safetensors::open(path);
                stored_options(file);
                return !is_training(file);
            }};
}

/// The file of a training of this program, which a training of the same name may overwrite.
inline files::Kind training_kind() {
    return {"training of language_model", [](const std::string& path) {
                const auto file = ig::io::Safetensors::open(path);
                stored_options(file);
                return is_training(file);
            }};
}

/// A model file that was read, and the graph not yet built.
struct ModelFile {
    ig::io::Safetensors file;
    Options options;
    ig::text::Vocabulary vocabulary;
};

/// Reads a model, in float or as stored by `convert`.
inline ModelFile read_model(const std::string& path) {
    auto file = ig::io::widened(ig::io::Safetensors::open(path));
    Options options = stored_options(file);
    auto vocabulary = stored_vocabulary(file);
    return {std::move(file), std::move(options), std::move(vocabulary)};
}

/// Columns and steps of passes over a text.
struct Extent {
    ig::Index columns, steps;
};

/// Throws UsageError for --columns out of range.
inline void require_columns(ig::Index columns) {
    if (columns < 1 || columns > most_size)
        throw ig::UsageError(
            ig::message("--columns is ", columns, ", expected at least 1 and at most ", most_size));
}

/// As requested by --columns and for a segment, but no more than a text of so many tokens fills: the rest would
/// be memory and work for padding. Throws UsageError for columns out of range.
inline Extent extent_of(ig::Index tokens, ig::Index columns, ig::Index steps) {
    require_columns(columns);
    columns = std::clamp<ig::Index>(columns, 1, std::max<ig::Index>(tokens, 1));
    const ig::Index length = std::max<ig::Index>(1, (tokens + columns - 1) / columns);
    return {columns, std::min(steps, length)};
}

/// A model from a file, ready to run.
struct LoadedModel {
    Options options;
    ig::text::Vocabulary vocabulary;
    std::unique_ptr<Graph> g;
    Model model;
};

/// The precision that `--precision` of evaluate and score names.
inline ig::Precision precision_of(const std::string& name) {
    if (ig::portable() && name != "fp32")
        throw ig::UsageError(ig::message("--precision is ", name, ", expected fp32 with --portable"));
    return name == "int8" ? ig::Precision::int8 : name == "bf16" ? ig::Precision::bf16 : ig::Precision::full;
}

/// Builds a model that was read, for passes of at most these steps and columns. With `packed` its matrices are
/// packed in that precision. `gradients`: for dynamic evaluation; they take as much memory as weights and states.
inline LoadedModel build_model(ModelFile from, Extent most, std::optional<ig::Precision> packed = {},
                               bool gradients = false) {
    LoadedModel it{std::move(from.options), std::move(from.vocabulary), nullptr, {}};
    const ig::io::Safetensors file = std::move(from.file);
    const ig::GraphOptions sizes{.time = most.steps, .batch = most.columns, .gradients = gradients};
    it.g = std::make_unique<Graph>(packed ? ig::GraphOptions{.gradients = false} : sizes);
    it.model = build(*it.g, it.options, it.vocabulary.size());
    ig::io::Checkpoint().model(*it.g).load(file, ig::io::Restore::parameters);
    if (packed) {
        it.g = std::make_unique<Graph>(sizes, it.g->packed_weights(*packed));
        it.model = build(*it.g, it.options, it.vocabulary.size());
    }
    it.g->training(false);
    return it;
}

/// Reads and builds a model for passes of as many steps as in training and at most `batch` columns.
inline LoadedModel load_model(const std::string& path, ig::Index batch) {
    auto file = read_model(path);
    const ig::Index steps = file.options.bptt;
    return build_model(std::move(file), {batch, steps});
}

/// Throws DataError, beginning with `who`, if two models do not predict the same types.
inline void require_same_vocabulary(const std::string& who, const ig::text::Vocabulary& a,
                                    const ig::text::Vocabulary& b) {
    if (a.checksum() != b.checksum())
        throw ig::DataError(ig::message(who, ": the models have different vocabularies, ",
                                        ig::file::hex16(a.checksum()), " of ", a.size(), " types and ",
                                        ig::file::hex16(b.checksum()), " of ", b.size(),
                                        "; train both on the same text with the same options"));
}

}  // namespace lm
