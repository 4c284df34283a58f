/// @file model_file.hpp  A trained model as a file: parameters, vocabulary, and the options to build it
/// again.
#pragma once

#include <filesystem>
#include <isogloss/io.hpp>
#include <memory>
#include <string>

#include "model.hpp"

namespace lm {

/// The key of the metadata under which the options stand, as JSON.
inline constexpr const char* metadata_key = "language_model";

/// The metadata of a file.
inline std::map<std::string, std::string> metadata(const nlohmann::json& options) {
    return {{metadata_key, options.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}};
}

/// The options in a file that this program wrote. Throws FileError for another program's.
inline Options stored_options(const ig::Safetensors& file) {
    const auto at = file.metadata().find(metadata_key);
    const auto json =
        at == file.metadata().end() ? nlohmann::json() : nlohmann::json::parse(at->second, nullptr, false);
    if (!json.is_object() || !file.find("state/vocabulary"))
        throw ig::FileError(
            ig::text(file.name(),
                     ": this is no model of language_model; use a file that `language_model train` wrote"));
    return from_json(json, file.name());
}

/// The vocabulary in a file.
inline ig::Vocabulary stored_vocabulary(const ig::Safetensors& file) {
    return ig::Vocabulary::from_text(file.characters("state/vocabulary"), file.name() + ", vocabulary");
}

/// Throws unless `path` may become a model: it is not there yet, or it is a file of this program. A text that
/// was named by mistake is never overwritten.
inline void require_replaceable(const std::string& path) {
    if (!std::filesystem::exists(path)) return;
    try {
        stored_options(ig::Safetensors::open(path));
    } catch (const ig::Error&) {
        throw ig::FileError(
            ig::text("'", path, "' is there already and is no model of language_model; it is left as it is. ",
                     "Give --model another name, or remove the file"));
    }
}

/// A model from a file, ready to run.
struct LoadedModel {
    Options options;
    ig::Vocabulary vocabulary;
    std::unique_ptr<Graph> g;
    Model model;
};

/// Reads a model for passes of as many steps as it was trained with and at most `batch` columns.
inline LoadedModel load_model(const std::string& path, ig::Index batch) {
    if (batch > most_size)
        throw ig::GraphError(
            ig::text(batch, " columns side by side are asked for, expected at most ", most_size));
    const auto file = ig::Safetensors::open(path);
    LoadedModel it{stored_options(file), stored_vocabulary(file), nullptr, {}};
    it.g = std::make_unique<Graph>(ig::GraphOptions{.time = it.options.bptt, .batch = batch});
    it.model = build(*it.g, it.options, it.vocabulary.size());
    ig::Checkpoint().model(*it.g).load(file, ig::Restore::parameters);
    it.g->training(false);
    return it;
}

}  // namespace lm
