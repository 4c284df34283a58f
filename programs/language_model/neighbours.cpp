/// @file neighbours.cpp  Nearest words, and the word vectors as a file.
#include <iostream>
#include <isogloss/geometry/neighbours.hpp>

#include "../shared/outputs.hpp"
#include "commands.hpp"
#include "model_file.hpp"
#include "print.hpp"
#include "report.hpp"

namespace lm {

namespace {

void export_vectors(const NeighbourOptions& o, const ig::text::Vocabulary& vocabulary,
                    std::span<const float> table, ig::Index width) {
    const auto format = o.format == "glove"             ? ig::io::WordVectorFormat::glove_text
                        : o.format == "word2vec-binary" ? ig::io::WordVectorFormat::word2vec_binary
                                                        : ig::io::WordVectorFormat::word2vec_text;
    ig::io::write_word_vectors(o.export_to, {vocabulary.words(), width, {table.begin(), table.end()}},
                               format);
    if (!o.json)
        std::cout << counted(vocabulary.size(), "word vector") << " of width " << width << " written to '"
                  << o.export_to << "'\n";
}

}  // namespace

int neighbours(const NeighbourOptions& o) {
    if (o.words.empty() && o.export_to.empty())
        throw ig::UsageError("neighbours: nothing to do; give --word, --export or both");
    if (o.export_to.empty() && (o.overwrite || o.format != NeighbourOptions().format))
        throw ig::UsageError(
            "neighbours: --overwrite and --format have no effect without --export; leave them out");
    ig::require("neighbours", "--k", o.k, 1);
    files::Outputs().read("--model", o.model).write_unmarked("--export", o.export_to, o.overwrite).check();
    const auto it = load_model(o.model, 1);
    if (!o.export_to.empty() && it.vocabulary.level() == ig::text::Level::character)
        throw ig::UsageError(
            "neighbours: --export is for models of words: line ends and blanks are types of one of "
            "characters, and no format of word vectors holds them; leave it out");
    const auto E = it.g->parameter("E").values();  // [V, embedding]
    const std::span<const float> table(E.data, static_cast<std::size_t>(E.rows * E.cols));
    for (const auto& word : o.words) {
        const auto token = it.vocabulary.find(word);
        if (!token)
            throw ig::DataError(ig::message(ig::in_quotes(word), " is not among the ",
                                            grouped(it.vocabulary.size()),
                                            " types of the model; check its spelling and case"));
        Json found = Json::array();
        if (!o.json) std::cout << ig::shown(word) << '\n';
        for (const auto& n : ig::nearest(table, E.rows, E.cols, *token, o.k)) {
            const auto& near = it.vocabulary.word(static_cast<ig::Token>(n.row));
            if (o.json) found.push_back({{"word", near}, {"similarity", n.similarity}});
            else std::cout << "  " << fixed(n.similarity, 4) << "  " << ig::shown(near) << '\n';
        }
        if (o.json) std::cout << dump({{"word", word}, {"neighbours", found}}) << '\n';
    }
    if (!o.export_to.empty()) export_vectors(o, it.vocabulary, table, E.cols);
    return 0;
}

}  // namespace lm
