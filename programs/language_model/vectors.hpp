/// @file vectors.hpp  Word vectors from a file as start values of a model's table.
#pragma once

#include <algorithm>
#include <isogloss/io/word_vectors.hpp>
#include <isogloss/text/vocabulary.hpp>
#include <string>

#include "model.hpp"
#include "print.hpp"

namespace lm {

/// Initialises the words that have a vector in the file `path` with it; the others keep their values. Rows
/// held at norm 1 are normalised. Returns a line to print: how many words, and their share of the text.
///
/// Errors   DataError: none of the words is in the file. UsageError: vectors of another width than the table.
inline std::string start_table(ig::Parameter<float>& table, const ig::io::WordVectors& vectors,
                               const ig::text::Vocabulary& vocabulary, const std::string& path) {
    if (vectors.dimension != table.cols)
        throw ig::UsageError(ig::message("--vectors '", path, "': its vectors have ", vectors.dimension,
                                         " numbers, but the table has the width ", table.cols,
                                         "; give --embedding ", vectors.dimension, ", or leave it out"));
    ig::Index words = 0;
    double covered = 0;
    for (ig::Token word = 0; word < table.rows; ++word) {
        const ig::Token row = vectors.words.find(vocabulary.word(word));
        if (row < 0) continue;
        std::ranges::copy(vectors.row(row), table.value + word * table.cols);
        ++words;
        covered += static_cast<double>(vocabulary.count(word));
    }
    if (words == 0)
        throw ig::DataError(ig::message("--vectors '", path, "': none of the ", grouped(table.rows),
                                        " types of the vocabulary is among its ",
                                        counted(vectors.words.size(), "word"), ", the first of which is ",
                                        ig::in_quotes(vectors.words[0]),
                                        "; expected the same spelling and case, and --level word"));
    if (table.unit_rows) ig::normalise_rows(table);
    const auto total = static_cast<double>(vocabulary.total());
    return ig::message("'", path, "' has ", grouped(words), " of the ", counted(table.rows, "type"),
                       total > 0 ? ", " + fixed(100 * covered / total, 1) + " % of the text" : "", "; ",
                       grouped(table.rows - words), " start at random");
}

}  // namespace lm
