/// @file main.cpp  Evaluates word vectors on word-similarity sets and analogies, from a file of word vectors
/// or a table of a trained model.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <isogloss/geometry/analogies.hpp>
#include <isogloss/geometry/word_similarity.hpp>
#include <isogloss/io/compact.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/io/word_vectors.hpp>
#include <isogloss/text/vocabulary.hpp>

#include "../shared/csv_log.hpp"
#include "../shared/data_folder.hpp"
#include "../shared/outputs.hpp"
#include "../shared/program.hpp"
#include "../shared/threads.hpp"

namespace {

namespace ig = isogloss;

/// The command line.
struct Options {
    std::string vectors, model, table = "E", sets, analogies, csv;
    std::vector<std::string> similarity;
    ig::WordTableOptions words;
    int threads = 1;
};

constexpr const char* csv_header = "kind,set,size,known,result";

/// Words and vectors from either kind of file.
ig::io::WordVectors read(const Options& o) {
    if (!o.vectors.empty()) return ig::io::read_word_vectors(o.vectors);
    const auto file = ig::io::Safetensors::open(o.model);
    const auto* tensor = file.find(o.table);
    if (!tensor || !file.find("state/vocabulary") || tensor->shape.size() != 2) {
        std::string tables;
        for (const auto& t : file.tensors())
            if (t.shape.size() == 2) tables += " " + std::string(t.name);
        throw ig::FileError(
            ig::message(o.model, ": found no table '", o.table,
                        "' with a vocabulary; matrices there:", tables.empty() ? " none" : tables));
    }
    const auto vocabulary =
        ig::text::Vocabulary::from_text(file.characters("state/vocabulary"), o.model + ", vocabulary");
    if (tensor->shape[0] != vocabulary.size())
        throw ig::FileError(ig::message(o.model, ": '", o.table, "' has ", tensor->shape[0], " rows for ",
                                        vocabulary.size(), " words, expected one for each"));
    return {vocabulary.words(), tensor->shape[1], ig::io::numbers<float>(file, o.table)};
}

/// Finds files in the folder by their usual names, unless files were given.
void find_sets(Options& o) {
    if (!o.similarity.empty() || !o.analogies.empty()) return;
    if (o.sets.empty()) o.sets = (files::data_folder() / "word-similarity").string();
    std::error_code error;
    std::filesystem::directory_iterator entries(o.sets, error);
    if (error)
        throw ig::FileError(ig::message(
            "'", o.sets, "' is not a readable folder. Name the sets with --similarity and --analogies, ",
            "or their folder with --sets or ISOGLOSS_DATA"));
    for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
        const auto& path = entries->path();
        const std::string name = path.filename().string();
        if (name.starts_with("EN-") && name.ends_with(".txt")) o.similarity.push_back(path.string());
        if (name == "questions-words.txt") o.analogies = path.string();
    }
    std::sort(o.similarity.begin(), o.similarity.end());
    if (o.similarity.empty() && o.analogies.empty())
        throw ig::FileError(ig::message("'", o.sets, "' holds neither EN-….txt nor questions-words.txt"));
}

double percent(ig::Index part, ig::Index whole) { return whole ? 100.0 * double(part) / double(whole) : 0; }

std::string evaluate_similarity(const Options& o, const ig::WordTable& table) {
    std::string csv;
    std::printf("%-24s %7s %7s %8s %9s\n", "similarity", "pairs", "found", "unknown", "spearman");
    for (const auto& path : o.similarity) {
        const auto result = ig::word_similarity(table, ig::read_scored_pairs(path));
        const std::string name = std::filesystem::path(path).stem().string();
        std::printf("%-24s %7td %6.1f%% %8td %9.4f\n", name.c_str(), result.pairs,
                    percent(result.found, result.pairs), result.unknown, result.spearman);
        csv += ig::message("similarity,", files::csv_text(name), ',', result.pairs, ',', result.found, ',',
                           result.spearman, '\n');
    }
    return csv;
}

std::string evaluate_analogies(const Options& o, const ig::WordTable& table) {
    std::string csv;
    auto scores = ig::analogies(table, ig::read_analogies(o.analogies));
    // The set of Mikolov et al. names its syntactic sections gram….
    std::vector<ig::AnalogyScore> semantic, syntactic;
    for (const auto& s : scores) (s.name.starts_with("gram") ? syntactic : semantic).push_back(s);
    const auto all = ig::sum_of("all", scores);
    if (!syntactic.empty()) {
        scores.push_back(ig::sum_of("semantic", semantic));
        scores.push_back(ig::sum_of("syntactic", syntactic));
    }
    scores.push_back(all);
    std::printf("\n%-28s %9s %7s %8s %9s\n", "analogies", "questions", "asked", "correct", "accuracy");
    for (const auto& s : scores) {
        std::printf("%-28s %9td %6.1f%% %8td %8.1f%%\n", s.name.c_str(), s.questions,
                    percent(s.asked, s.questions), s.correct, 100 * s.accuracy());
        csv += ig::message("analogies,", files::csv_text(s.name), ',', s.questions, ',', s.asked, ',',
                           s.accuracy(), '\n');
    }
    return csv;
}

void evaluate(Options o) {
    if (o.vectors.empty() == o.model.empty())
        throw ig::UsageError("give either --vectors, a file of word vectors, or --model, a trained model");
    find_sets(o);
    files::Outputs()
        .read("--similarity", o.similarity)
        .read("--vectors", o.vectors)
        .read("--model", o.model)
        .read("--analogies", o.analogies)
        .write("--csv", o.csv, files::table("table of word_vectors", csv_header))
        .check();
    const auto vectors = read(o);
    const ig::WordTable table(vectors.words.words(), vectors.dimension, vectors.values, o.words);
    std::printf("%td words of dimension %td%s\n\n", table.size(), table.dimension(),
                o.words.fold_case ? ", capitals as small letters" : "");
    std::string csv = ig::message(csv_header, '\n');
    if (!o.similarity.empty()) csv += evaluate_similarity(o, table);
    if (!o.analogies.empty()) csv += evaluate_analogies(o, table);
    if (!o.csv.empty()) ig::file::write_atomically(o.csv, [&](ig::file::OutputFile& out) { out.write(csv); });
}

/// Throws UsageError for an option of `evaluate` without effect.
void require_effect(const CLI::App& command, const Options& o) {
    if (!o.vectors.empty()) program::without(command, "with --vectors, a file of one table", {"--table"});
    for (const char* named : {"--similarity", "--analogies"})
        if (command.count(named) > 0)
            program::without(command, ig::message("with ", named, ", which names the sets"), {"--sets"});
}

int work(int argc, char** argv) {
    CLI::App app("Word vectors: how good they are.");
    app.require_subcommand(1);
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    Options o;
    auto* e =
        app.add_subcommand("evaluate", "Spearman's correlation on similarity sets, accuracy on analogies");
    e->add_option("--vectors", o.vectors, "word vectors in a format of word2vec or GloVe");
    e->add_option("--model", o.model, "a safetensors file with a vocabulary, as language_model writes it");
    e->add_option("--table", o.table, "which matrix of the model")->capture_default_str();
    e->add_option("--sets", o.sets, "folder of the sets; default: word-similarity under ISOGLOSS_DATA");
    e->add_option("--similarity", o.similarity, "sets of lines `word word score`")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    e->add_option("--analogies", o.analogies, "set of lines `a b c d` in sections `: name`");
    e->add_flag("--fold-case", o.words.fold_case, "capitals are small letters, in sets and vectors");
    e->add_option("--restrict", o.words.restrict_to, "only this many words from the beginning; 0: all")
        ->capture_default_str();
    e->add_option("--csv", o.csv, "the results as a table");
    e->add_option("--threads", o.threads, "threads")->capture_default_str();
    program::add_portable(*e);
    if (const auto end = program::parse(app, argc, argv)) return *end;
    require_effect(*e, o);
    program::use_threads("evaluate", o.threads);
    evaluate(o);
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return program::run(argc, argv, work, "these word vectors"); }
