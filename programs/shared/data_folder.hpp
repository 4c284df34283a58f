/// @file data_folder.hpp  The folder of the corpora and sets that are not part of the project.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <isogloss/error.hpp>
#include <string>

#include "outputs.hpp"

namespace files {

/// What ISOGLOSS_DATA names, by default ../shared/data.
inline std::filesystem::path data_folder() {
    const char* variable = std::getenv("ISOGLOSS_DATA");
    return variable && *variable ? variable : "../shared/data";
}

/// The path of a part, "train", "valid" or "test", of the corpus ptb or wikitext-2. Throws FileError if it is
/// not there; `options`: those that name texts in its place.
inline std::string corpus_file(const std::string& corpus, const std::string& part,
                               const std::string& options) {
    const std::filesystem::path root = data_folder();
    const auto path = (root / corpus / (corpus == "ptb" ? "ptb." + part + ".txt" : part + ".txt")).string();
    if (!exists(path))
        throw ig::FileError(ig::message(
            "'", path, "' does not exist. The corpus ", corpus, " is expected under ", root.string(),
            "; set ISOGLOSS_DATA to the folder that holds ", corpus, "/, or give ", options));
    return path;
}

}  // namespace files
