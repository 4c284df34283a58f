/// @file language_model.hpp  A model for the program language_model, which `start` and `rnn` write.
#pragma once

#include <isogloss/io.hpp>
#include <isogloss/isogloss.hpp>
#include <map>
#include <string>
#include <utility>

#include "../language_model/model_file.hpp"
#include "../language_model/system_start.hpp"

namespace lt {

/// A model whose parameters the caller sets, and its file, as language_model reads it.
class LanguageModel {
public:
    /// `options`: of lm::one_layer or lm::options_of_system, changed or not. Throws UsageError for those out of range.
    LanguageModel(lm::Options options, const ig::text::Vocabulary& vocabulary)
        : options_(settled(std::move(options))),
          graph_({.time = 1, .batch = 1, .seed = options_.seed}),
          words_(vocabulary.to_text()) {
        lm::build(graph_, options_, vocabulary.size());
        file_.model(graph_).text("vocabulary", words_);
    }

    const lm::Options& options() const { return options_; }
    lm::Graph& graph() { return graph_; }

    /// Writes the model, with more metadata.
    void save(const std::string& path, std::map<std::string, std::string> more = {}) const {
        more.merge(lm::metadata(lm::to_json(options_, false)));
        file_.save(path, more);
    }
    /// Reads the parameters from a file that save() wrote.
    void load(const ig::io::Safetensors& file) {
        ig::io::Checkpoint().model(graph_).load(file, ig::io::Restore::parameters);
    }

private:
    static lm::Options settled(lm::Options o) {
        lm::settle(o, false);
        return o;
    }

    lm::Options options_;
    lm::Graph graph_;
    std::string words_;
    ig::io::Checkpoint file_;
};

}  // namespace lt
